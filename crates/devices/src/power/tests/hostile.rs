//! Devices that answer badly, late or never: the reason is said, others are not kept waiting, and it passes.

use std::time::{Duration, Instant};

use serde_json::json;

use super::emulators::{Got, Reply, WebEmulator};
use super::rig::Rig;
use crate::power::Action;

fn relay(name: &str, emulator: &WebEmulator) -> String {
    format!("[power {name}]\ntype: shelly\naddress: {}\ntimeout: 0.5\n", emulator.address())
}

/// What a device answers to anything.
type Answer = fn(&Got) -> Reply;

fn good(_: &Got) -> Reply {
    Reply::Json(json!({"ison": true}))
}

#[tokio::test]
async fn bad_answers_become_readable_reasons_and_pass() {
    let emulator = WebEmulator::start(good).await;
    let rig = Rig::start(&relay("x", &emulator));
    rig.until("on").await;
    let cases: [(Answer, &str); 9] = [
        (|_| Reply::Raw(200, String::new(), "<html>login</html>".into()), "the device answered with a web page instead of JSON"),
        (|_| Reply::Raw(200, String::new(), "{\"ison\": tr".into()), "the answer of the device is no JSON"),
        (|_| Reply::Raw(200, String::new(), String::new()), "the device answered with nothing"),
        (|_| Reply::Json(json!({"ison": "on"})), "the answer has no `ison`"),
        (|_| Reply::Raw(401, String::new(), String::new()), "the device refused the login (status 401)"),
        (|_| Reply::Raw(302, "Location: http://127.0.0.1:1/\r\n".into(), String::new()), "the device redirects to another address"),
        (|_| Reply::Raw(500, String::new(), String::new()), "no answer within 0.5 s"),
        (|_| Reply::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"), "no answer within 0.5 s"),
        (|_| Reply::Silence, "no answer within 0.5 s"),
    ];
    for (answer, reason) in cases {
        emulator.become_one_that(answer);
        assert_eq!((rig.query("x").await, rig.shown().1.as_deref()), ("error", Some(reason)));
        emulator.become_one_that(good);
        assert_eq!((rig.query("x").await, rig.shown().1), ("on", None));
    }
}

/// Every type that is asked over HTTP, with its answer that it is on. Those behind encryption have tests of their own.
fn types() -> [(&'static str, serde_json::Value); 9] {
    [
        ("tasmota", json!({"POWER": "ON"})),
        ("shelly", json!({"ison": true})),
        ("shelly_gen2", json!({"output": true})),
        ("homeseer\ndevice: 1", json!({"Devices": [{"status": "On"}]})),
        ("homeassistant\ndevice: a\ntoken: t\nstatus_delay: 0", json!({"state": "on"})),
        ("loxonev1\noutput_id: a", json!({"LL": {"value": 1}})),
        ("smartthings\nprotocol: http\ndevice: d\ntoken: t", json!({"switch": {"value": "on"}})),
        ("hue\nuser: u\ndevice_id: 1", json!({"state": {"on": true}})),
        ("http\nresponse_template: {'on' if http_request.last_response().json()['on'] else 'off'}", json!({"on": true})),
    ]
}

/// What the type with templates says when its whole time is over.
const LATE: &str = "there was no time left for an answer";

/// Each type, each bad answer: in `error` with a reason, and back without anybody's doing.
#[tokio::test]
async fn no_type_trusts_a_bad_answer() {
    let every = types().map(|(lines, answer)| async move {
        let emulator = WebEmulator::start(|_: &Got| Reply::Silence).await;
        let on = || {
            let answer = answer.clone();
            emulator.become_one_that(move |_: &Got| Reply::Json(answer.clone()));
        };
        let address = emulator.address();
        // Without address for the type whose addresses are complete.
        let place = match lines.starts_with("http\n") {
            true => format!("on_url: http://{address}/1\noff_url: http://{address}/0\nstatus_url: http://{address}/"),
            false => format!("address: {address}"),
        };
        on();
        let rig = Rig::start(&format!("[power x]\n{place}\ntimeout: 1.5\ntype: {lines}\n"));
        assert_eq!(rig.problems, Vec::<String>::new());
        rig.until("on").await;
        let bad: [(Answer, &[&str]); 9] = [
            (|_| Reply::Raw(200, String::new(), "<html>login</html>".into()), &["web page", "no JSON", "json"]),
            (|_| Reply::Raw(200, String::new(), "{\"on\": tr".into()), &["no JSON", "json"]),
            (|_| Reply::Raw(200, String::new(), String::new()), &["nothing", "no JSON"]),
            (|_| Reply::Json(json!([])), &["has no"]),
            (|_| Reply::Raw(403, String::new(), String::new()), &["status 403"]),
            (
                |_| Reply::Raw(302, "Location: http://127.0.0.1:1/\r\n".into(), String::new()),
                &["redirects", "no connection", "no answer", LATE],
            ),
            (|_| Reply::Raw(500, String::new(), String::new()), &["no answer within 1.5 s", "status 500", LATE]),
            (|_| Reply::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"), &["no answer within 1.5 s", LATE]),
            (|_| Reply::Silence, &["no answer within 1.5 s", LATE]),
        ];
        for (answer, reasons) in bad {
            emulator.become_one_that(answer);
            // What a template asks a list for is undefined, and this one takes that for off.
            if lines.starts_with("http\n") && reasons.contains(&"has no") {
                assert_eq!(rig.query("x").await, "off", "{lines}");
                on();
                assert_eq!(rig.query("x").await, "on", "{lines}");
                continue;
            }
            assert_eq!(rig.query("x").await, "error", "{lines}: {reasons:?}");
            let fault = rig.shown().1.unwrap();
            assert!(reasons.iter().any(|reason| fault.contains(reason)), "{lines}: {fault:?} is none of {reasons:?}");
            on();
            // On a busy machine a good answer may be late, too.
            while rig.query("x").await != "on" {
                let fault = rig.shown().1.unwrap();
                assert!(["no answer within 1.5 s", LATE].contains(&fault.as_str()), "{lines}: {fault}");
            }
            assert_eq!(rig.shown().1, None, "{lines}");
        }
        rig.stop().await;
    });
    futures_util::future::join_all(every).await;
}

#[tokio::test]
async fn a_passing_fault_is_tried_again_before_it_counts() {
    let mut answers = 0;
    let emulator = WebEmulator::start(move |got: &Got| {
        answers += 1;
        if answers == 1 { Reply::Raw(503, String::new(), String::new()) } else { good(got) }
    })
    .await;
    let rig = Rig::start(&format!("[power x]\ntype: shelly\naddress: {}\n", emulator.address()));
    rig.until("on").await;
    assert_eq!((emulator.lines().len(), rig.told()), (2, vec!["x on".to_owned()]));
}

#[tokio::test]
async fn a_device_that_hangs_keeps_nobody_else_waiting() {
    // The deaf ones are waited for 3 s each.
    const AT_ONCE: Duration = Duration::from_millis(2500);
    let (deaf, quick) = (WebEmulator::start(|_: &Got| Reply::Silence).await, WebEmulator::start(good).await);
    let deaf_ones = (0..12).map(|number| relay(&format!("deaf{number}"), &deaf).replace("0.5", "3"));
    let rig = Rig::start(&[relay("quick", &quick)].into_iter().chain(deaf_ones).collect::<String>());
    rig.until("on").await;
    let begun = Instant::now();
    assert_eq!(rig.query("quick").await, "on");
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    // All of the deaf ones at once: each for its own time, side by side.
    let names: Vec<String> = (0..12).map(|number| format!("deaf{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["quick"]).collect();
    let (switched, ()) = tokio::join!(rig.batch(&names, Some(Action::On)), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let begun = Instant::now();
        assert_eq!(rig.query("quick").await, "on");
        assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
    });
    assert_eq!((switched["deaf0"], switched["deaf11"], switched["quick"]), ("error", "error", "on"));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    rig.stop().await;
}

#[tokio::test]
async fn requests_that_nobody_waits_for_do_not_pile_up() {
    let deaf = WebEmulator::start(|_: &Got| Reply::Silence).await;
    let rig = Rig::start(&relay("x", &deaf));
    let begun = Instant::now();
    let all = (0..100).map(|_| rig.power.switch("x", Action::On, false));
    let outcomes = futures_util::future::join_all(all).await;
    assert!(outcomes.iter().all(Result::is_err));
    let kinds: Vec<u16> = outcomes.into_iter().map(|outcome| outcome.unwrap_err().kind.http_status()).collect();
    assert!(kinds.contains(&429) && begun.elapsed() < Duration::from_secs(30), "{kinds:?} {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_template_without_end_is_ended() {
    let emulator = WebEmulator::start(good).await;
    let url = format!("http://{}/", emulator.address());
    let templates = "timeout: 0.3\nrequest_template: {% do http_request.send() %}{% do async_sleep(3600) %}\nresponse_template: on";
    let rig = Rig::start(&format!("[power x]\ntype: http\non_url: {url}\noff_url: {url}\nstatus_url: {url}\n{templates}\n"));
    let fault = rig.fault().await;
    assert!(fault.contains("too long") || fault.contains("no answer within 0.3 s"), "{fault}");
    rig.stop().await;
}
