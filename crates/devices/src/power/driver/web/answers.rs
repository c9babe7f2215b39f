//! Whatever a device answers, each type makes a state of it or a reason that can be shown.

use config::{Context, Reader, Secrets};
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::Dialect;
use crate::power::build;
use crate::power::driver::Recipe;

/// One device of each type, and one with a timer of those that have it.
const DEVICES: &str = "
[power 1]
type: tasmota
address: a
[power 2]
type: tasmota
address: a
output_id: 2
timer: 5
[power 3]
type: shelly
address: a
timer: 5
[power 4]
type: shelly_gen2
address: a
[power 5]
type: homeseer
address: a
device: 7
[power 6]
type: homeassistant
address: a
device: switch.a
token: x
[power 7]
type: loxonev1
address: a
output_id: b
[power 8]
type: smartthings
address: a
device: b
token: x
[power 9]
type: hue
address: a
device_id: 4
[power 10]
type: hue
address: a
device_id: 4
device_type: group
";

fn dialects() -> Vec<Box<dyn Dialect>> {
    let loaded = config::load_text("c", DEVICES);
    let context = Context::default();
    let mut reader = Reader::new(&loaded.document, &context);
    let devices = build::read(&mut reader, &Secrets::default());
    assert_eq!((devices.len(), &reader.problems), (10, &Vec::new()));
    let dialect = |recipe| match recipe {
        Recipe::Web(recipe) => Some(recipe.dialect),
        _ => None,
    };
    devices.into_iter().filter_map(|device| dialect(device.recipe)).collect()
}

/// JSON with the members that somebody looks for.
fn answers() -> impl Strategy<Value = Value> {
    let names = "POWER[12]?|ison|timer_remaining|output|was_on|Devices|status|state|on|all_on|success|error|description|LL|value|switch|results|/lights/4/state/on|/groups/4/action/on|[a-z]{0,3}";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "on|OFF|1|0.9|nan|ACCEPTED|.{0,500}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((names, inner), 0..6).prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn become_a_state_or_a_reason(answer in answers(), on: bool) {
        for dialect in dialects() {
            for outcome in [dialect.read_status(&answer), dialect.read_switched(&answer, on)] {
                if let Err(fault) = outcome {
                    prop_assert!(!fault.message.is_empty() && fault.message.len() <= 300, "{fault:?}");
                }
            }
        }
    }
}
