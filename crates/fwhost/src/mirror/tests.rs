use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::testing::{Probe, selection};

fn status(json: &str) -> HostStatus<'_> {
    serde_json::from_str(json).unwrap()
}

fn texts(names: &[&str]) -> Vec<Text> {
    names.iter().map(|name| Text::from(*name)).collect()
}

fn loaded(now: Instant) -> Mirror {
    let mut mirror = Mirror::default();
    let full = r#"{"eventtime":1.0,"status":{"toolhead":{"x":1,"y":2},"fan":{"speed":0.0},"empty":{}}}"#;
    mirror.load(&texts(&["toolhead", "fan", "empty"]), &status(full), now);
    mirror
}

const FRESH: Duration = Duration::from_millis(500);

#[test]
fn equal_selections_share_one_frame() {
    let now = Instant::now();
    let mut mirror = loaded(now);
    let probes: Vec<Arc<Probe>> = (0..4).map(|_| Arc::default()).collect();
    for (index, json) in [r#"{"fan":null}"#, r#"{"fan":null}"#, r#"{"fan":["speed"]}"#, r#"{"toolhead":["x"]}"#].iter().enumerate() {
        mirror.subscribe(SubscriberId(index as u64), probes[index].clone(), selection(json));
    }
    mirror.tick(&status(r#"{"eventtime":1.25,"status":{"fan":{"speed":0.5},"toolhead":{"y":3}}}"#), now);
    let frame = |index: usize| probes[index].frames.lock().first().cloned();
    assert_eq!(frame(0).unwrap(), &br#"{"jsonrpc":"2.0","method":"notify_status_update","params":[{"fan":{"speed":0.5}},1.25]}"#[..]);
    assert_eq!(frame(0).unwrap().as_ptr(), frame(1).unwrap().as_ptr(), "one buffer for equal selections");
    assert_ne!(frame(0).unwrap().as_ptr(), frame(2).unwrap().as_ptr());
    assert_eq!(frame(3), None, "only y changed");

    mirror.subscribe(SubscriberId(0), probes[0].clone(), selection(r#"{"toolhead":null}"#));
    mirror.unsubscribe(SubscriberId(1));
    mirror.tick(&status(r#"{"eventtime":1.5,"status":{"fan":{"speed":0.75}}}"#), now);
    assert_eq!((probes[0].frames.lock().len(), probes[1].frames.lock().len(), probes[2].frames.lock().len()), (1, 1, 2));

    mirror.clear();
    assert_eq!(probes.iter().map(|probe| *probe.resets.lock()).collect::<Vec<_>>(), [1, 0, 1, 1]);
    assert_eq!(mirror.field("fan", "speed"), None);
}

#[test]
fn an_unchanged_value_is_told_to_nobody() {
    let now = Instant::now();
    let mut mirror = loaded(now);
    let probe: Arc<Probe> = Arc::default();
    mirror.subscribe(SubscriberId(1), probe.clone(), selection(r#"{"fan":null}"#));
    assert!(mirror.tick(&status(r#"{"eventtime":2.0,"status":{"fan":{"speed":0.0}}}"#), now).is_none());
    assert!(probe.frames.lock().is_empty());
    assert_eq!(mirror.answer(&selection(r#"{"fan":null}"#)), br#"{"eventtime":2.0,"status":{"fan":{"speed":0.0}}}"#);
}

#[test]
fn the_cache_answers_only_when_it_is_the_truth() {
    let start = Instant::now();
    let mut mirror = loaded(start);
    let ask = |mirror: &Mirror, json: &str, ms: u64| mirror.fresh_answer(&selection(json), start + Duration::from_millis(ms), FRESH);
    assert!(ask(&mirror, r#"{"fan":null,"toolhead":["x"],"empty":null}"#, 500).is_some());
    assert!(ask(&mirror, r#"{"fan":null}"#, 501).is_none(), "too old");
    assert!(ask(&mirror, r#"{"nope":null}"#, 0).is_none(), "unknown object");
    assert!(ask(&mirror, r#"{"fan":["rpm"]}"#, 0).is_none(), "unknown field");

    mirror.command_completed();
    assert!(ask(&mirror, r#"{"fan":null}"#, 0).is_none(), "our own write may not be in it yet");
    let (_, discovered) = mirror.absorb(&selection(r#"{"fan":null}"#), &status(r#"{"eventtime":1.1,"status":{"fan":{"speed":1.0}}}"#));
    assert!(!discovered);
    assert!(ask(&mirror, r#"{"toolhead":null}"#, 0).is_none(), "a query about other objects proves nothing");
    mirror.tick(&status(r#"{"eventtime":1.25,"status":{}}"#), start);
    assert!(ask(&mirror, r#"{"fan":null}"#, 0).is_some());

    mirror.clear();
    assert!(ask(&mirror, r#"{}"#, 0).is_none());
}

#[test]
fn passed_through_answers_are_merged_and_told_to_others() {
    let now = Instant::now();
    let mut mirror = loaded(now);
    let probe: Arc<Probe> = Arc::default();
    mirror.subscribe(SubscriberId(1), probe.clone(), selection(r#"{"fan":null}"#));
    let asked = selection(r#"{"fan":["speed","rpm","nope"],"ghost":null}"#);
    let answer = r#"{"eventtime":1.3,"status":{"fan":{"speed":0.25,"rpm":900,"nope":null},"ghost":{},"uninvited":{"a":1}}}"#;
    let (diff, discovered) = mirror.absorb(&asked, &status(answer));
    assert!(discovered, "rpm is not carried by the standing subscription");
    assert_eq!(diff.unwrap().objects[0].fields.len(), 2);
    assert_eq!(probe.frames.lock().len(), 1);
    assert_eq!(mirror.answer(&asked), br#"{"eventtime":1.3,"status":{"fan":{"speed":0.25,"rpm":900}}}"#);
    assert_eq!(mirror.field("uninvited", "a"), None);
}

#[test]
fn an_object_that_is_not_followed_is_never_fresh() {
    let now = Instant::now();
    let mut mirror = Mirror::default();
    mirror.load(&texts(&["webhooks"]), &status(r#"{"eventtime":1.0,"status":{"webhooks":{"state":"error"}}}"#), now);
    mirror.absorb(&selection(r#"{"fan":null}"#), &status(r#"{"eventtime":1.0,"status":{"fan":{"speed":0}}}"#));
    assert!(mirror.fresh_answer(&selection(r#"{"webhooks":null}"#), now, FRESH).is_some());
    assert!(mirror.fresh_answer(&selection(r#"{"webhooks":null,"fan":null}"#), now, FRESH).is_none());
}

#[test]
fn updates_of_objects_never_subscribed_are_ignored() {
    let now = Instant::now();
    let mut mirror = loaded(now);
    assert!(mirror.tick(&status(r#"{"eventtime":2.0,"status":{"forged":{"a":1}}}"#), now).is_none());
}

type Image = BTreeMap<String, BTreeMap<String, Value>>;

fn image(json: &Value) -> Image {
    serde_json::from_value(json.clone()).unwrap()
}

proptest! {
    /// Whoever applies the answer and then every update has what the cache has, whatever came in whichever way.
    #[test]
    fn answer_and_updates_make_the_cache(
        steps in proptest::collection::vec((0usize..3, 0usize..3, 0u32..4, 0u8..3), 1..60),
        joins in 0usize..60,
    ) {
        let now = Instant::now();
        let mut mirror = Mirror::default();
        let names = texts(&["o0", "o1", "o2"]);
        mirror.load(&names, &status(r#"{"eventtime":0.0,"status":{"o0":{"f0":0},"o1":{"f0":0,"f1":null}}}"#), now);
        let wanted = selection(r#"{"o0":null,"o1":["f0","f1"],"missing":null}"#);
        let probe: Arc<Probe> = Arc::default();
        let mut seen: Option<Image> = None;
        for (index, (object, field, value, way)) in steps.iter().enumerate() {
            if index == joins.min(steps.len() - 1) {
                let answer: Value = serde_json::from_slice(&mirror.answer(&wanted)).unwrap();
                seen = Some(image(&answer["status"]));
                mirror.subscribe(SubscriberId(9), probe.clone(), wanted.clone());
            }
            let value = if *value == 3 { "null".into() } else { value.to_string() };
            let text = format!(r#"{{"eventtime":{index}.5,"status":{{"o{object}":{{"f{field}":{value}}}}}}}"#);
            match way {
                0 => drop(mirror.tick(&status(&text), now)),
                1 => drop(mirror.load(&names, &status(&text), now)),
                _ => drop(mirror.absorb(&selection(&format!(r#"{{"o{object}":["f{field}"]}}"#)), &status(&text))),
            }
        }
        let mut seen = seen.unwrap();
        for frame in probe.frames.lock().iter() {
            let value: Value = serde_json::from_slice(frame).unwrap();
            for (object, fields) in image(&value["params"][0]) {
                seen.entry(object).or_default().extend(fields);
            }
        }
        let truth: Value = serde_json::from_slice(&mirror.answer(&wanted)).unwrap();
        prop_assert_eq!(seen, image(&truth["status"]));
    }
}
