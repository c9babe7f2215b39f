//! The rules that all types have in common, with devices on simulated pins.

use std::sync::Arc;
use std::time::Duration;

use super::rig::Rig;
use crate::gpio::simulated::SimulatedChips;
use crate::gpio::{Chips, Pin};
use crate::power::Action;

#[tokio::test]
async fn a_relay_is_switched_and_everybody_told() {
    let rig = Rig::start("[power psu]\ntype: gpio\npin: !gpio4\nbound_services:\n  cam.service\n  cam\n  bowsprit\n");
    assert_eq!(rig.problems, ["[power psu] bound_services: bowsprit is left out: it is this server"]);
    rig.until("off").await;
    assert_eq!((rig.chips.level("gpio4"), rig.told()), (Some(true), vec!["psu off".to_owned()]));
    assert_eq!(rig.switch("psu", Action::On).await, Ok("on"));
    assert_eq!((rig.chips.level("gpio4"), rig.told()), (Some(false), vec!["psu on".to_owned()]));
    assert_eq!(rig.switch("psu", Action::On).await, Ok("on"));
    assert_eq!(rig.switch("psu", Action::Toggle).await, Ok("off"));
    assert_eq!(rig.told(), ["psu off"], "what does not change is not told");
    // Services follow the answer, one change after the other.
    assert_eq!(rig.query("psu").await, "off");
    assert_eq!(*rig.services.0.lock(), ["start cam", "stop cam"]);
    rig.stop().await;
}

#[tokio::test]
async fn a_start_leaves_outputs_as_they_are_unless_it_is_told_otherwise() {
    let chips = SimulatedChips::default();
    for pin in ["gpio1", "gpio2"] {
        chips.output(&Pin::read(pin).unwrap(), Some(true)).unwrap();
    }
    let rig = Rig::with_chips("[power kept]\ntype: gpio\npin: gpio1\n[power off]\ntype: gpio\npin: gpio2\ninitial_state: off\n", chips);
    assert_eq!((rig.known("kept").await, rig.known("off").await), ("on", "off"));
    assert_eq!((rig.chips.level("gpio1"), rig.chips.level("gpio2")), (Some(true), Some(false)));
    rig.stop().await;
    assert_eq!(rig.chips.level("gpio1"), Some(true), "nor does a stop change them");
}

#[tokio::test]
async fn batches_ask_every_device_and_forgive_unknown_ones() {
    let rig = Rig::start("[power a]\ntype: gpio\npin: gpio1\n[power b]\ntype: gpio\npin: gpio1\n[power c d]\ntype: gpio\npin: gpio2\n");
    let states = rig.batch(&["c d", "x", "a"], Some(Action::On)).await;
    assert_eq!(states.into_iter().collect::<Vec<_>>(), [("c d".into(), "on"), ("x".into(), "device_not_found"), ("a".into(), "on")]);
    // The line of `a` is taken.
    assert_eq!(rig.batch(&["b", "a"], Some(Action::Off)).await.into_values().collect::<Vec<_>>(), ["error", "off"]);
    assert_eq!(rig.power.batch(Vec::new(), None).await.unwrap_err().message, "No arguments provided");
    assert_eq!(rig.power.query("x").await.unwrap_err().message, "No valid device named x");
    let refused = rig.switch("b", Action::On).await.unwrap_err();
    assert_eq!(refused, "Error setting the status of device b: the line gpiochip0/gpio1 is used by another section");
}

#[tokio::test]
async fn a_device_that_fails_says_why_and_recovers() {
    let rig = Rig::start("[power psu]\ntype: gpio\npin: gpio4\n");
    rig.until("off").await;
    rig.chips.fail(Some("no such device"));
    assert!(rig.switch("psu", Action::On).await.unwrap_err().ends_with("psu: no such device"));
    assert_eq!((rig.shown(), rig.told().last().unwrap().as_str()), (("error", Some("no such device".to_owned())), "psu error"));
    rig.chips.fail(None);
    assert_eq!(rig.switch("psu", Action::On).await, Ok("on"));
    assert_eq!(rig.shown(), ("on", None));
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_looked_at_again_without_anybody_asking() {
    let chips = SimulatedChips::default();
    chips.fail(Some("busy"));
    let rig = Rig::with_chips("[power psu]\ntype: gpio\npin: gpio4\ninitial_state: on\n", chips);
    rig.fault().await;
    assert_eq!(rig.shown(), ("init", Some("busy".to_owned())), "never seen: still init");
    rig.chips.fail(None);
    rig.until("on").await;
    assert_eq!(rig.chips.level("gpio4"), Some(true));
}

#[tokio::test(start_paused = true)]
async fn a_timer_switches_off_unless_something_comes_between() {
    let rig = Rig::start("[power psu]\ntype: gpio\npin: gpio4\ntimer: 5\n");
    let (begun, wait) = (tokio::time::Instant::now(), Duration::from_secs(3));
    rig.switch("psu", Action::On).await.unwrap();
    tokio::time::sleep(wait).await;
    rig.switch("psu", Action::Off).await.unwrap();
    rig.switch("psu", Action::On).await.unwrap();
    tokio::time::sleep(wait).await;
    assert_eq!(rig.shown().0, "on", "the first timer was cancelled");
    while rig.shown().0 == "on" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(begun.elapsed() >= Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn macros_say_what_they_want_in_several_ways() {
    use serde_json::json;
    use serde_json::value::to_raw_value;
    let rig = Rig::start("[power psu]\ntype: gpio\npin: gpio4\n");
    let weak = Arc::downgrade(&rig.power);
    for (state, expected) in
        [(json!(true), "on"), (json!("toggle"), "off"), (json!("ON"), "on"), (json!("false"), "off"), (json!("maybe"), "off")]
    {
        crate::power::service::called(&weak, &to_raw_value(&json!({"device": "psu", "state": state, "force": true})).unwrap()).await;
        assert_eq!(rig.query("psu").await, expected, "{state}");
    }
    crate::power::service::called(&weak, &to_raw_value(&json!({"state": 1})).unwrap()).await;
}

#[test]
fn faulty_sections_are_left_out_and_named() {
    for (lines, expected) in [
        ("type: toaster", "type: expected one of"),
        ("pin: gpio1", "type: expected"),
        ("type: gpio", "pin: expected a pin"),
        ("type: gpio\npin: 17", "pin: expected a pin"),
        ("type: gpio\npin: gpio1\nadress: x", "adress"),
        ("type: rf\npin: gpio1\non_code: 012\noff_code: 1", "on_code: expected 1 to 24 binary digits"),
        ("type: klipper_device\nobject_name: psu", "object_name: expected `output_pin` or `gcode_macro`"),
        ("type: klipper_device\nobject_name: output_pin a\noff_when_shutdown: true", "off_when_shutdown: a device of the firmware"),
        ("type: tasmota\naddress: http://x", "address: expected a name or an address"),
        ("type: tasmota\naddress: x\noutput_id: one", "output_id: expected a whole number"),
        ("type: smartplug_b\naddress: x\nuser: anna", "password: expected both, or none of `user` and `password`"),
        ("type: tplink_klap\naddress: http://x", "address: expected a name or an address"),
        ("type: hue\naddress: x\ndevice_id: 1\ndevice_type: lamp", "device_type: expected `light` or `group`"),
        ("type: http\non_url: x\noff_url: http://a\nstatus_url: http://a\nresponse_template: on", "on_url: expected a complete address"),
        (
            "type: http\non_url: http://a\noff_url: http://a\nstatus_url: http://a\nresponse_template: {",
            "response_template: expected a template",
        ),
        ("type: mqtt\ncommand_topic: a/#\ncommand_payload: x\nstate_topic: b", "command_topic: expected a topic without wildcards"),
        ("type: uhubctl\nlocation: -a", "location: expected the place of a hub"),
        ("type: gpio\npin: gpio1\npoll_interval: 0.5", "poll_interval: expected"),
    ] {
        let loaded = config::load_text("core.conf", &format!("[power a]\n{lines}\n"));
        let context = config::Context::default();
        let mut reader = config::Reader::new(&loaded.document, &context);
        let devices = crate::power::read(&mut reader, &context.secrets);
        let mut problems: Vec<String> = reader.problems.iter().map(ToString::to_string).collect();
        problems.extend(config::unparsed(&loaded.document, &reader.usage));
        assert!(problems.iter().any(|problem| problem.contains(expected)), "{lines}: {problems:?}");
        assert_eq!(devices.len(), usize::from(lines.contains("adress")), "{lines}");
    }
}
