//! Every HTTP type against an emulator of its device: the requests on the wire, in order, and the states.

use serde_json::json;

use super::emulators::{Got, Reply, WebEmulator};
use super::rig::Rig;
use crate::power::Action;

/// Switches on, asks, switches off: the requests that came.
async fn through(emulator: &WebEmulator, lines: &str) -> Vec<String> {
    let rig = Rig::start(&format!("[power x]\naddress: {}\n{lines}\n", emulator.address()));
    assert_eq!(rig.problems, Vec::<String>::new());
    rig.until("off").await;
    assert_eq!((rig.switch("x", Action::On).await, rig.query("x").await), (Ok("on"), "on"));
    assert_eq!((rig.switch("x", Action::Toggle).await, rig.query("x").await), (Ok("off"), "off"));
    assert_eq!(rig.told(), ["x off", "x on", "x off"]);
    rig.stop().await;
    let mut lines = emulator.lines();
    lines.dedup();
    lines
}

fn word(on: bool) -> &'static str {
    if on { "ON" } else { "OFF" }
}

#[tokio::test]
async fn tasmota() {
    let mut on = false;
    let emulator = WebEmulator::start(move |got: &Got| {
        let Some(command) = got.target.strip_prefix("/cm?user=admin&password=p+w&cmnd=Power2") else {
            return Reply::Raw(401, String::new(), String::new());
        };
        match command {
            "+on" => on = true,
            "+off" => on = false,
            _ => {}
        }
        Reply::Json(json!({"POWER2": word(on)}))
    })
    .await;
    let start = "GET /cm?user=admin&password=p+w&cmnd=Power2";
    let expected = ["", "+on", "", "+off", ""].map(|command| format!("{start}{command}"));
    assert_eq!(through(&emulator, "type: tasmota\npassword: p w\noutput_id: 2").await, expected);
}

#[tokio::test]
async fn shelly_of_the_first_generation() {
    let mut on = false;
    let emulator = WebEmulator::start(move |got: &Got| {
        assert_eq!(got.header("authorization"), Some("Basic YWRtaW46aHVudGVyMg=="));
        on = got.target.ends_with("turn=on") || (on && !got.target.ends_with("turn=off"));
        Reply::Json(json!({"ison": on, "has_timer": false, "timer_remaining": 0}))
    })
    .await;
    let requests = through(&emulator, "type: relay_a\npassword: {secrets.plug.password}").await;
    assert_eq!(requests, ["GET /relay/0", "GET /relay/0?turn=on", "GET /relay/0", "GET /relay/0?turn=off", "GET /relay/0"]);
}

#[tokio::test]
async fn shelly_of_later_generations_with_digest() {
    let mut on = false;
    let emulator = WebEmulator::start(move |got: &Got| {
        let Some(authorization) = got.header("authorization") else {
            let challenge = r#"WWW-Authenticate: Digest qop="auth", realm="shellyplus1-1", nonce="60dc2c6b", algorithm=SHA-256"#;
            return Reply::Raw(401, format!("{challenge}\r\n"), String::new());
        };
        assert!(authorization.contains(r#"username="admin", realm="shellyplus1-1", nonce="60dc2c6b""#), "{authorization}");
        assert!(digest_fits(authorization, &got.target, "hunter2"), "{authorization}");
        match got.target.strip_prefix("/rpc/Switch.Set?id=0&on=") {
            Some(state) => Reply::Json(json!({"was_on": std::mem::replace(&mut on, state == "true")})),
            None => Reply::Json(json!({"id": 0, "source": "init", "output": on, "temperature": {"tC": 42.0}})),
        }
    })
    .await;
    let requests = through(&emulator, "type: shelly_gen2\npassword: hunter2").await;
    let (status, set) = ("GET /rpc/Switch.GetStatus?id=0", "GET /rpc/Switch.Set?id=0&on=");
    assert_eq!(requests, [status.to_owned(), format!("{set}true"), status.to_owned(), format!("{set}false"), status.to_owned()]);
    let refused = emulator.got().iter().filter(|got| got.header("authorization").is_none()).count();
    assert_eq!(refused, 1, "one challenge serves for all requests");
}

/// Counts the answer again, apart from the driver's code.
fn digest_fits(authorization: &str, uri: &str, password: &str) -> bool {
    let part = |name: &str| {
        let (_, rest) = authorization.split_once(&format!(" {name}=")).unwrap();
        rest.trim_start_matches('"').split(['"', ',']).next().unwrap().to_owned()
    };
    let hash = |text: String| data_encoding::HEXLOWER.encode(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()).as_ref());
    let secret = hash(format!("admin:{}:{password}", part("realm")));
    let expected = hash(format!("{secret}:{}:{}:{}:auth:{}", part("nonce"), part("nc"), part("cnonce"), hash(format!("GET:{uri}"))));
    part("uri") == uri && part("response") == expected
}

#[tokio::test]
async fn homeseer() {
    let mut on = false;
    let emulator = WebEmulator::start(move |got: &Got| {
        assert_eq!(got.header("authorization"), Some("Basic YWRtaW46cA=="));
        on = got.target.ends_with("&label=On") || (on && !got.target.ends_with("&label=Off"));
        Reply::Json(json!({"Name": "HomeSeer", "Devices": [{"ref": 7, "status": if on { "On" } else { "Off" }}]}))
    })
    .await;
    let start = "GET /JSON?user=admin&pass=p&request=";
    let expected = [
        "getstatus&ref=7",
        "controldevicebylabel&ref=7&label=On",
        "getstatus&ref=7",
        "controldevicebylabel&ref=7&label=Off",
        "getstatus&ref=7",
    ];
    assert_eq!(through(&emulator, "type: homeseer\npassword: p\ndevice: 7").await, expected.map(|rest| format!("{start}{rest}")));
}

#[tokio::test]
async fn home_assistant() {
    let mut on = false;
    let emulator = WebEmulator::start(move |got: &Got| {
        assert_eq!(got.header("authorization"), Some("Bearer hunter2"));
        match got.target.as_str() {
            "/api/states/switch.psu" => Reply::Json(json!({"entity_id": "switch.psu", "state": if on { "on" } else { "off" }})),
            path => {
                assert_eq!((got.body.as_str(), got.header("content-type")), (r#"{"entity_id":"switch.psu"}"#, Some("application/json")));
                on = path == "/api/services/input_boolean/turn_on";
                Reply::Json(json!([]))
            }
        }
    })
    .await;
    let options = "type: homeassistant\ndevice: switch.psu\ntoken: {secrets.plug.password}\ndomain: input_boolean\nstatus_delay: 0.01";
    let (status, service) = ("GET /api/states/switch.psu", "POST /api/services/input_boolean/turn_");
    let expected = [status.to_owned(), format!("{service}on"), status.to_owned(), format!("{service}off"), status.to_owned()];
    assert_eq!(through(&emulator, options).await, expected);
}

#[tokio::test]
async fn loxone() {
    let mut on = false;
    let emulator = WebEmulator::start(move |got: &Got| {
        assert_eq!(got.header("authorization"), Some("Basic YWRtaW46YWRtaW4="));
        on = got.target.ends_with("/on") || (on && !got.target.ends_with("/off"));
        Reply::Json(json!({"LL": {"control": "dev/sps/io/psu", "value": if on { "1" } else { "0" }, "Code": "200"}}))
    })
    .await;
    let start = "GET /jdev/sps/io/psu";
    let expected = ["", "/on", "", "/off", ""].map(|rest| format!("{start}{rest}"));
    assert_eq!(through(&emulator, "type: loxonev1\noutput_id: psu").await, expected);
}

#[tokio::test]
async fn smartthings() {
    let mut on = false;
    let emulator = WebEmulator::start(move |got: &Got| {
        assert_eq!(got.header("authorization"), Some("Bearer t"));
        if got.method == "POST" {
            let body: serde_json::Value = serde_json::from_str(&got.body).unwrap();
            assert_eq!((&body[0]["component"], &body[0]["capability"]), (&json!("main"), &json!("switch")));
            on = body[0]["command"] == "on";
            return Reply::Json(json!({"results": [{"id": "1", "status": "ACCEPTED"}]}));
        }
        Reply::Json(json!({"switch": {"value": if on { "on" } else { "off" }}}))
    })
    .await;
    let (status, command) = ("GET /v1/devices/d-1/components/main/capabilities/switch/status", "POST /v1/devices/d-1/commands");
    let expected = [status, command, status, command, status];
    assert_eq!(through(&emulator, "type: smartthings\nprotocol: http\ntoken: t\ndevice: d-1").await, expected);
}

#[tokio::test]
async fn hue_groups() {
    let mut on = false;
    let emulator = WebEmulator::start(move |got: &Got| {
        if got.method == "PUT" {
            on = got.body == r#"{"on":true}"#;
            return Reply::Json(json!([{"success": {"/groups/3/action/on": on}}]));
        }
        Reply::Json(json!({"name": "g", "state": {"all_on": on, "any_on": true}}))
    })
    .await;
    let (status, action) = ("GET /api/hunter2/groups/3", "PUT /api/hunter2/groups/3/action");
    let options = "type: hue\nuser: {secrets.plug.password}\ndevice_id: 3\ndevice_type: group";
    assert_eq!(through(&emulator, options).await, [status, action, status, action, status]);
}

#[tokio::test]
async fn anything_by_templates() {
    let mut on = false;
    let emulator = WebEmulator::start(move |got: &Got| {
        assert_eq!(got.header("x-key"), Some("hunter2"));
        if got.method == "POST" {
            on = serde_json::from_str::<serde_json::Value>(&got.body).unwrap()["state"] == "on";
        }
        Reply::Json(json!({"is": {"on": on}}))
    })
    .await;
    let url = |path: &str| format!("http://{}/{path}", emulator.address());
    let config = format!(
        "[power x]\ntype: http\non_url: {0}\noff_url: {0}\nstatus_url: {1}\nrequest_template:\n  {{% do http_request.add_header('X-Key', secrets.plug.password) %}}\n  \
         {{% if command in ['on', 'off'] %}}\n    {{% do http_request.set_method('POST') %}}\n    {{% do http_request.set_body({{'state': command}}) %}}\n  {{% endif %}}\n  \
         {{% do http_request.send() %}}\n  {{% do async_sleep(0.01) %}}\nresponse_template:\n  {{% set r = http_request.last_response() %}}\n  \
         {{% do r.raise_for_status('no') %}}\n  {{'on' if r.json()['is']['on'] and r.status_code == 200 and 'json' in r.headers['Content-Type'] and 'content-type' in r.headers else 'off'}}\n",
        url("set"),
        url("get")
    );
    let rig = Rig::start(&config);
    assert_eq!(rig.problems, Vec::<String>::new());
    rig.until("off").await;
    assert_eq!((rig.switch("x", Action::On).await, rig.query("x").await), (Ok("on"), "on"));
    assert_eq!(emulator.lines(), ["GET /get", "GET /get", "POST /set", "GET /get"]);
    assert_eq!(emulator.got()[2].header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn template_faults_become_reasons_without_secrets() {
    let emulator = WebEmulator::start(|_: &Got| Reply::Json(json!({"on": true}))).await;
    let url = format!("http://{}/", emulator.address());
    for (templates, reason) in [
        ("response_template: {'maybe'}", "response_template: expected `on` or `off`, it gave `maybe`"),
        ("response_template: {http_request.last_response().json()['x']['y']}", "[power x] response_template"),
        ("response_template: on\nrequest_template: {command}", "it did not call `http_request.send()`"),
        ("response_template: on\nrequest_template: {raise_error('not ' ~ secrets.plug.password)}", "not ***"),
        ("response_template: on\nrequest_template: {http_request.fly()}", "http_request has no method `fly`"),
        ("response_template: on\nrequest_template: {http_request.send(url='ftp://x')}", "expected an address that starts with http"),
    ] {
        let rig = Rig::start(&format!("[power x]\ntype: http\non_url: {url}\noff_url: {url}\nstatus_url: {url}\n{templates}\n"));
        let fault = rig.fault().await;
        assert_eq!(rig.shown().0, "init");
        assert!(fault.contains(reason), "{templates}: {fault}");
    }
}
