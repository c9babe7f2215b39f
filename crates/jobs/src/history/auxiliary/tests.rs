use super::*;
use serde_json::json;

fn run(field: Field, before: &[Value], during: &[Value]) -> Value {
    let auxiliary = Auxiliary::default();
    let handle = auxiliary.register(field).unwrap();
    before.iter().for_each(|value| handle.report(value.clone()));
    auxiliary.start();
    during.iter().for_each(|value| handle.report(value.clone()));
    let entries: Value = serde_json::from_str(&auxiliary.entries()).unwrap();
    entries[0]["value"].clone()
}

fn field(strategy: Strategy) -> Field {
    Field::new("sensor s", "f", strategy)
}

fn with_initial(strategy: Strategy, value: Value) -> Field {
    Field { initial: Some(Arc::new(move || Some(value.clone()))), ..field(strategy) }
}

#[test]
fn table_of_strategies() {
    use Strategy::{Accumulate, Average, Basic, Collect, Delta, Maximum, Minimum};
    let values = [json!(3), json!("x"), json!(1.5), json!(4)];
    let table = [
        (field(Basic), json!(4)),
        (field(Delta), json!(1.0)),
        (field(Accumulate), json!(8.5)),
        (field(Average), json!(8.5 / 3.0)),
        (field(Maximum), json!(4.0)),
        (field(Minimum), json!(1.5)),
        (field(Collect), json!([3, "x", 1.5, 4])),
        (with_initial(Basic, json!("start")), json!(4)),
        (with_initial(Delta, json!(1)), json!(3.0)),
        (with_initial(Accumulate, json!(10)), json!(18.5)),
        (with_initial(Average, json!(100)), json!(8.5 / 3.0)),
        (with_initial(Maximum, json!(100)), json!(100.0)),
        (with_initial(Minimum, json!(1)), json!(1.0)),
        (with_initial(Collect, json!([7, 4])), json!([7, 4, 3, "x", 1.5])),
    ];
    for (field, expected) in table {
        let (strategy, initial) = (field.strategy, field.initial.is_some());
        assert_eq!(run(field, &[], &values), expected, "{strategy:?}, initial value: {initial}");
    }
}

#[test]
fn without_values() {
    use Strategy::{Accumulate, Basic, Collect, Delta, Maximum};
    for (strategy, expected) in
        [(Basic, json!(null)), (Delta, json!(0.0)), (Accumulate, json!(0.0)), (Maximum, json!(0.0)), (Collect, json!([]))]
    {
        assert_eq!(run(field(strategy), &[json!(5)], &[]), expected, "{strategy:?}");
    }
    assert_eq!(run(with_initial(Basic, json!("start")), &[], &[]), json!("start"));
}

#[test]
fn values_count_only_in_jobs_and_perhaps_in_pauses() {
    let auxiliary = Auxiliary::default();
    let all = auxiliary.register(field(Strategy::Accumulate)).unwrap();
    let unpaused = auxiliary.register(Field { exclude_paused: true, name: "g".into(), ..field(Strategy::Accumulate) }).unwrap();
    let report = || [&all, &unpaused].iter().for_each(|handle| handle.report(json!(1)));
    report();
    auxiliary.start();
    report();
    auxiliary.pause(true);
    report();
    auxiliary.pause(false);
    report();
    auxiliary.end();
    report();
    let entries: Value = serde_json::from_str(&auxiliary.entries()).unwrap();
    assert_eq!((&entries[0]["value"], &entries[1]["value"]), (&json!(3.0), &json!(2.0)));
}

#[test]
fn what_was_gathered_survives() {
    let auxiliary = Auxiliary::default();
    let handle = auxiliary.register(field(Strategy::Average)).unwrap();
    auxiliary.start();
    [1, 2, 6].iter().for_each(|value| handle.report(json!(value)));
    let kept = auxiliary.keep();
    let later = Auxiliary::default();
    let handle = later.register(field(Strategy::Average)).unwrap();
    later.restore(&kept, false);
    handle.report(json!(7));
    assert!(later.entries().contains(r#""value":4.0"#), "{}", later.entries());
}

#[test]
fn totals_are_for_numbers_that_are_asked_for() {
    let auxiliary = Auxiliary::default();
    let totals = Field { report_total: true, precision: Some(1), ..field(Strategy::Basic) };
    let handle = auxiliary.register(totals).unwrap();
    auxiliary.register(Field { report_total: true, name: "list".into(), ..field(Strategy::Collect) }).unwrap();
    auxiliary.start();
    handle.report(json!("text"));
    assert_eq!(auxiliary.contributions(), []);
    handle.report(json!(1.26));
    assert_eq!(auxiliary.contributions(), [Contribution { provider: "sensor s".into(), field: "f".into(), value: 1.3 }]);
    let shown = AuxiliaryTotal { provider: "sensor s".into(), field: "f".into(), maximum: None, total: Some(5.3) };
    assert_eq!(auxiliary.totals(|_, _| Ok::<_, ()>((5.26, 9.0))), Ok(vec![shown]));
    assert_eq!(auxiliary.totals(|_, _| Err("the disk")), Err("the disk"), "no zeros in place of what cannot be read");
}

#[test]
fn lists_and_names_are_bounded() {
    let auxiliary = Auxiliary::default();
    let handle = auxiliary.register(field(Strategy::Collect)).unwrap();
    assert!(auxiliary.register(field(Strategy::Basic)).is_err());
    assert!(auxiliary.register(Field::new("history", "x", Strategy::Basic)).is_err());
    auxiliary.start();
    (0..150).for_each(|value| handle.report(json!(value)));
    let entries: Value = serde_json::from_str(&auxiliary.entries()).unwrap();
    let list = entries[0]["value"].as_array().unwrap();
    assert_eq!((list.len(), &list[0]), (MAX_COLLECTED, &json!(50)));
}

#[test]
fn what_waits_is_reported_before_a_job_begins() {
    let auxiliary = Auxiliary::default();
    let handle = auxiliary.register(field(Strategy::Accumulate)).unwrap();
    auxiliary.before_boundaries(Arc::new(move || handle.report(json!(5))));
    auxiliary.at_boundary();
    auxiliary.start();
    let value = || serde_json::from_str::<Value>(&auxiliary.entries()).unwrap()[0]["value"].clone();
    assert_eq!(value(), json!(0.0), "it was said before the job");
    auxiliary.at_boundary();
    assert_eq!(value(), json!(5.0), "and this within it");
}
