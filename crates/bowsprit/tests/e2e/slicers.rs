//! What slicers and small screens send when they look for a printer, upload and start a print, request by request (docs/slicers.md).

use serde_json::{Value, json};
use simulator::PrintState;

use crate::harness::http::Reply;
use crate::harness::printer::{job, long_job};
use crate::harness::wait::until;
use crate::harness::{Form, Http, RpcError, TestServer};

/// What every request of one program carries.
struct Slicer<'h> {
    http: Http,
    headers: &'h [(&'h str, &'h str)],
}

impl Slicer<'_> {
    async fn get(&self, target: &str) -> Reply {
        self.http.send("GET", target, self.headers, b"").await
    }

    async fn post(&self, target: &str, content_type: &str, body: &[u8]) -> Reply {
        let headers = [self.headers, &[("Content-Type", content_type)]].concat();
        self.http.send("POST", target, &headers, body).await
    }

    async fn post_json(&self, target: &str, body: &Value) -> Reply {
        self.post(target, "application/json", body.to_string().as_bytes()).await
    }

    /// Uploads a form that must be taken; the answer.
    async fn upload(&self, target: &str, form: Form) -> Reply {
        let reply = self.post(target, &Form::content_type(), &form.body()).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply
    }
}

/// Waits until the server says this of the print.
async fn wait_for_print(server: &TestServer, state: &str) {
    let look = || async {
        let query = server.unix().await.ok("printer.objects.query", json!({"objects": {"print_stats": ["state"]}})).await;
        query["status"]["print_stats"]["state"].as_str().unwrap_or("").to_owned()
    };
    until(&format!("the print is {state}"), look, |seen| seen == state).await;
}

async fn api_key(server: &TestServer) -> String {
    server.unix().await.ok("access.get_api_key", json!({})).await.as_str().unwrap().to_owned()
}

/// The name of the first member of an object, as it stands in the text.
fn first_member(reply: &Reply) -> String {
    reply.text().trim_start_matches(['{', ' ', '"']).split('"').next().unwrap().to_owned()
}

/// PrusaSlicer, OrcaSlicer and SuperSlicer with a host of type OctoPrint, and SuperSlicer with one of type Klipper: an empty key when none
/// is set, a look at the version, then one form.
#[tokio::test]
async fn prusaslicer_and_its_relatives_as_octoprint() {
    let server = TestServer::start().await;
    let slicer = Slicer { http: server.http(), headers: &[("X-Api-Key", ""), ("User-Agent", "PrusaSlicer/2.9"), ("Accept", "*/*")] };
    let version = slicer.get("/api/version").await;
    assert_eq!((version.status, &version.json()["api"]), (200, &json!("0.1")));
    assert!(version.json()["text"].as_str().unwrap().starts_with("OctoPrint"), "{}", version.text());

    let form = Form::default().field("print", "false").field("path", "").file("later.gcode", job(3).as_bytes());
    let reply = slicer.upload("/api/files/local", form).await;
    let location = format!("http://127.0.0.1:{}/api/files/core/gcodes/later.gcode", server.port);
    assert_eq!((reply.header("location"), &reply.json()["print_started"]), (Some(location.as_str()), &json!(false)));

    let form = Form::default().field("print", "true").field("path", "sub folder").file("now.gcode", long_job().as_bytes());
    let reply = slicer.upload("/api/files/local", form).await.json();
    assert_eq!((&reply["item"]["path"], &reply["print_started"]), (&json!("sub folder/now.gcode"), &json!(true)));
    wait_for_print(&server, "printing").await;
}

#[tokio::test]
async fn prusaslicer_as_moonraker() {
    let server = TestServer::start().await;
    let slicer = Slicer { http: server.http(), headers: &[("X-Api-Key", ""), ("User-Agent", "PrusaSlicer/2.9")] };
    let info = slicer.get("/server/info").await;
    assert_eq!((info.status, first_member(&info).as_str()), (200, "result"));
    assert!(info.json()["result"]["moonraker_version"].is_string());
    let form = Form::default().field("root", "gcodes").field("print", "true").field("path", "").file("a.gcode", long_job().as_bytes());
    let reply = slicer.upload("/server/files/upload", form).await;
    assert_eq!(reply.json()["print_started"], true);
    wait_for_print(&server, "printing").await;
}

/// Reads the answer below `result` and starts the print by itself when it does not find there that it was started.
#[tokio::test]
async fn orcaslicer_as_moonraker() {
    let server = TestServer::start().await;
    let slicer = Slicer { http: server.http(), headers: &[("User-Agent", "OrcaSlicer")] };
    assert_eq!(slicer.get("/server/info").await.result()["klippy_state"], "ready");
    let roots = slicer.get("/server/files/roots").await.result();
    let writable = roots.as_array().unwrap().iter().filter(|root| root["permissions"].as_str().unwrap().contains('w'));
    assert!(writable.map(|root| &root["name"]).any(|name| name == "gcodes"), "{roots}");
    let form = |print: &str, name: &str| {
        Form::default().field("root", "gcodes").field("plateindex", "1").field("print", print).file(name, long_job().as_bytes())
    };
    let reply = slicer.upload("/server/files/upload", form("false", "plate 1.gcode")).await;
    assert_eq!(first_member(&reply), "result");
    let answer = reply.json()["result"].clone();
    assert_eq!(
        (&answer["item"]["path"], &answer["print_started"], &answer["print_queued"]),
        (&json!("plate 1.gcode"), &json!(false), &json!(false))
    );

    let started = slicer.post_json("/printer/print/start", &json!({"filename": "plate 1.gcode"})).await;
    assert_eq!(started.result(), "ok");
    wait_for_print(&server, "printing").await;
    assert_eq!(slicer.post_json("/printer/print/cancel", &json!({})).await.result(), "ok");
    wait_for_print(&server, "cancelled").await;
    let answer = slicer.upload("/server/files/upload", form("true", "plate 2.gcode")).await.json();
    assert_eq!(answer["result"]["print_started"], true);
}

/// The device page of OrcaSlicer: HTTP for what it wants to know once, a websocket of type agent for the status, ids from 0 on.
#[tokio::test]
async fn orcaslicer_as_printer_agent() {
    let server = TestServer::builder().authorization("").start().await;
    let key = api_key(&server).await;
    let headers = [("X-Api-Key", key.as_str()), ("User-Agent", "OrcaSlicer")];
    let slicer = Slicer { http: server.http(), headers: &headers };
    let info = slicer.get("/server/info").await.result();
    assert!(info["moonraker_version"].is_string() && info["klippy_state"] == "ready", "{info}");
    let config = slicer.get("/printer/objects/query?configfile").await.result();
    assert!(config["status"]["configfile"].is_object());
    assert!(slicer.get("/server/webcams/list").await.result()["webcams"].is_array());

    let mut ws = server.try_ws(&headers).await.unwrap();
    let identify = json!({"jsonrpc": "2.0", "method": "server.connection.identify", "id": 0, "params":
        {"client_name": "OrcaSlicer", "version": "1.0.0", "type": "agent", "url": "https://example.org"}});
    let answer = ws.raw(&identify.to_string()).await;
    assert!(answer["id"] == 0 && answer["result"]["connection_id"].is_u64(), "{answer}");
    let mut second = server.try_ws(&headers).await.unwrap();
    assert!(second.raw(&identify.to_string()).await["error"].is_object(), "the name of an agent is there once");
    second.ok("server.info", json!({})).await;

    assert!(slicer.get("/printer/objects/list").await.result()["objects"].as_array().unwrap().contains(&json!("extruder")));
    let objects = json!({"print_stats": null, "virtual_sdcard": null, "heater_bed": null, "extruder": null, "toolhead": null});
    let subscribed = ws.ok("printer.objects.subscribe", json!({ "objects": objects })).await;
    assert_eq!(subscribed["status"]["print_stats"]["state"], "standby");

    let form = Form::default().field("root", "gcodes").field("print", "true").file("a.gcode", long_job().as_bytes());
    slicer.upload("/server/files/upload", form).await;
    ws.status("print_stats/state", "printing").await;
    assert!(slicer.get("/server/files/thumbnails?filename=a.gcode").await.result().is_array());
    assert_eq!(slicer.post_json("/printer/print/pause", &json!({})).await.result(), "ok");
    ws.status("print_stats/state", "paused").await;
    assert_eq!(slicer.post_json("/printer/gcode/script", &json!({"script": "M117 hello"})).await.result(), "ok");
}

/// The name begins with a slash, the file comes first, and a password for a proxy in front goes along.
#[tokio::test]
async fn cura_with_its_moonraker_plug_in() {
    let server = TestServer::start().await;
    let headers =
        [("User-Agent", "Cura Plugin Moonraker"), ("Authorization", "Basic dXNlcjpwYXNz"), ("Accept", "application/json, text/plain")];
    let slicer = Slicer { http: server.http(), headers: &headers };
    assert_eq!(slicer.get("/printer/info").await.result()["state"], "ready");
    assert_eq!(slicer.get("/server/info").await.result()["klippy_state"], "ready");
    let form = Form::default().file("/part.gcode", long_job().as_bytes()).field("root", "gcodes").field("print", "true");
    let reply = slicer.upload("/server/files/upload", form).await.json();
    assert_eq!((&reply["item"]["path"], &reply["print_started"]), (&json!("part.gcode"), &json!(true)));
    wait_for_print(&server, "printing").await;
}

/// Cura's plug-in for OctoPrint asks for everything that it shows beside the upload.
#[tokio::test]
async fn cura_with_its_octoprint_plug_in() {
    let server = TestServer::builder().authorization("").start().await;
    let key = api_key(&server).await;
    let headers = [("X-Api-Key", key.as_str())];
    let slicer = Slicer { http: server.http(), headers: &headers };
    let user = slicer.post_json("/api/login", &json!({"passive": true})).await;
    assert_eq!((user.status, &user.json()["name"], &user.json()["admin"]), (200, &json!("_api"), &json!(true)));
    let settings = slicer.get("/api/settings").await.json();
    assert_eq!(settings["plugins"]["UltimakerFormatPackage"]["installed"], true);
    assert_eq!((&settings["webcam"]["streamUrl"], &settings["webcam"]["webcamEnabled"]), (&json!("/webcam/?action=stream"), &json!(true)));
    let profile = slicer.get("/api/printerprofiles").await.json()["profiles"]["_default"].take();
    assert_eq!((&profile["heatedBed"], &profile["axes"]["e"]["speed"]), (&json!(true), &json!(300)));
    assert_eq!(slicer.get("/api/server").await.json(), json!({"server": "1.5.0", "safemode": null}));
    assert_eq!(slicer.get("/api/printer").await.json()["state"]["text"], "Operational");
    assert_eq!(slicer.get("/api/job").await.json()["job"]["file"]["name"], Value::Null);

    let form = Form::default().file("part.gcode", long_job().as_bytes()).field("print", "false").field("path", "");
    slicer.upload("/api/files/local", form).await;
    let chosen = slicer.post_json("/api/files/moonraker/gcodes/part.gcode", &json!({"command": "select", "print": true})).await;
    assert_eq!((chosen.status, chosen.text().as_str()), (204, ""));
    wait_for_print(&server, "printing").await;
    let look = || async { slicer.get("/api/job").await.json() };
    let job = until("the job is shown", look, |job| job["state"] == "Printing" && job["progress"]["completion"].as_f64() > Some(0.0)).await;
    assert_eq!(job["job"]["file"]["name"], "part.gcode");
    assert!(job["progress"]["filepos"].is_u64() && job["progress"]["printTime"].is_u64(), "{job}");
}

/// A screen with a small processor: HTTP 1.0 without keep-alive, everything in the query string, bodies empty.
#[tokio::test]
async fn cyd_klipper() {
    let server = TestServer::builder().authorization("").start().await;
    let key = api_key(&server).await;
    let http = server.http();
    let ask = async |verb: &str, target: &str, length: &str| {
        let head = format!("{verb} {target} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\nUser-Agent: ESP32HTTPClient\r\n", server.port);
        let request = format!("{head}X-Api-Key: {key}\r\n{length}Connection: close\r\n\r\n");
        http.raw(request.as_bytes()).await.unwrap_or_else(|| panic!("{verb} {target}: no answer"))
    };
    let empty = "Content-Length: 0\r\n";
    assert_eq!(ask("GET", "/printer/info", "").await.result()["state"], "ready");
    let form = Form::default().file("a b.gcode", long_job().as_bytes());
    assert_eq!(Slicer { http, headers: &[("X-Api-Key", &key)] }.upload("/server/files/upload", form).await.status, 201);
    assert_eq!(ask("GET", "/server/files/list", "").await.result()[0]["path"], "a b.gcode");
    assert!(ask("GET", "/server/files/metadata?filename=a%20b.gcode", "").await.result()["size"].is_u64());
    assert_eq!(ask("GET", "/server/files/thumbnails?filename=a%20b.gcode", "").await.result(), json!([]));
    assert_eq!(ask("POST", "/printer/print/start?filename=a%20b.gcode", empty).await.result(), "ok");
    wait_for_print(&server, "printing").await;
    let query = "extruder&heater_bed&toolhead&gcode_move&virtual_sdcard&print_stats&webhooks&fan&display_status";
    let shows = || async { ask("GET", &format!("/printer/objects/query?{query}"), "").await.result()["status"].take() };
    until("the print is shown", shows, |status| status["print_stats"]["state"] == "printing").await;
    assert_eq!(ask("GET", "/printer/gcode/script?script=M117%20hi", "").await.result(), "ok");
    assert!(ask("GET", "/printer/gcode/help", "").await.result().is_object());
}

#[tokio::test]
async fn a_screen_reads_state_and_temperatures() {
    let server = TestServer::start().await;
    let http = server.http();
    let printer = async || http.get("/api/printer").await.json();
    let idle = printer().await;
    assert_eq!(idle["temperature"]["tool0"]["offset"], 0);
    assert!(idle["temperature"]["tool0"]["actual"].is_f64() && idle["temperature"]["bed"]["target"].is_f64(), "{idle}");
    let sent = http.post_json("/api/printer/command", &json!({"commands": ["M140 S55", "NO_SUCH_COMMAND", "M104 S0"]})).await;
    assert_eq!((sent.status, sent.json()), (200, json!({})));
    until("the target is shown", printer, |shown| shown["temperature"]["bed"]["target"] == 55.0).await;

    server.upload("a.gcode", &long_job()).await;
    let start = json!({"command": "select", "print": true});
    assert_eq!(http.post_json("/api/files/core/gcodes/a.gcode", &start).await.status, 204);
    let flags = until("it prints", printer, |shown| shown["state"]["text"] == "Printing").await["state"]["flags"].take();
    assert_eq!((&flags["printing"], &flags["ready"], &flags["operational"]), (&json!(true), &json!(false), &json!(true)));
    assert_eq!(http.post_json("/api/files/core/gcodes/a.gcode", &start).await.error().0, 409, "there is a print");
    http.post("/printer/print/pause").await.result();
    until("it is paused", printer, |shown| shown["state"]["flags"]["paused"] == true).await;
    http.post("/printer/emergency_stop").await.result();
    let stopped = until("it is stopped", printer, |shown| shown["state"]["text"] == "Error").await;
    assert_eq!(stopped["state"]["flags"]["closedOrError"], true);
    assert_eq!(http.get("/api/server").await.json()["safemode"], "settings");
}

#[tokio::test]
async fn a_file_is_chosen_only_when_it_is_there() {
    let server = TestServer::start().await;
    server.upload("a.gcode", &job(3)).await;
    let http = server.http();
    let choose = async |path: &str, body: Value| http.post_json(&format!("/api/files/moonraker/{path}"), &body).await;
    let print = || json!({"command": "select", "print": true});
    for path in ["gcodes/none.gcode", "config/bowsprit.conf", "gcodes/..%2fconfig/bowsprit.conf", "gcodes/sub/a.gcode"] {
        assert_eq!(choose(path, print()).await.error().0, 400, "{path}");
    }
    assert_eq!(choose("gcodes/a.gcode", json!({"print": true})).await.error().0, 400, "no command");
    assert_eq!(choose("gcodes/a.gcode", json!({"command": "delete"})).await.error().0, 400);
    assert_eq!(choose("gcodes/a.gcode", json!({"command": "select"})).await.status, 204);
    assert_eq!(server.printer().snapshot().print_state, PrintState::Standby, "chosen, not printed");
    assert_eq!(choose("gcodes/a.gcode", print()).await.status, 204);
    wait_for_print(&server, "complete").await;
}

#[tokio::test]
async fn a_file_that_has_to_wait_is_queued() {
    let server = TestServer::builder().config("[file_manager]\nqueue_gcode_uploads: true\n").start().await;
    server.upload("a.gcode", &long_job()).await;
    server.upload("b.gcode", &job(3)).await;
    let http = server.http();
    for name in ["a.gcode", "b.gcode"] {
        let chosen = http.post_json(&format!("/api/files/core/gcodes/{name}"), &json!({"command": "select", "print": true})).await;
        assert_eq!(chosen.status, 204, "{name}: {}", chosen.text());
        wait_for_print(&server, "printing").await;
    }
    let queue = http.get("/server/job_queue/status").await.result();
    assert_eq!(queue["queued_jobs"][0]["filename"], "b.gcode");
}

#[tokio::test]
async fn the_incumbents_users_find_uploads_where_they_are_used_to() {
    let server = TestServer::builder().without_printer().config("vocabulary: upstream").start().await;
    let form = Form::default().file("a.gcode", b"G28");
    let reply = Slicer { http: server.http(), headers: &[] }.upload("/api/files/local", form).await;
    assert!(reply.header("location").unwrap().ends_with("/api/files/moonraker/gcodes/a.gcode"), "{:?}", reply.header("location"));
}

#[tokio::test]
async fn without_a_printer_slicers_are_told_so() {
    let server = TestServer::without_printer().await;
    let http = server.http();
    let printer = http.get("/api/printer").await.json();
    assert_eq!((&printer["state"]["text"], &printer["temperature"]), (&json!("Offline"), &json!({})));
    assert_eq!(http.get("/api/job").await.json()["state"], "Offline");
    assert_eq!(http.post_json("/api/printer/command", &json!({"commands": ["G28"]})).await.error().0, 503);
    assert_eq!(http.get("/api/version").await.status, 200);
    server.upload("a.gcode", "G28").await;
    let chosen = http.post_json("/api/files/core/gcodes/a.gcode", &json!({"command": "select", "print": true})).await;
    assert_eq!(chosen.error().0, 503);
}

#[tokio::test]
async fn strangers_need_a_key() {
    let server = TestServer::builder().without_printer().authorization("").start().await;
    let key = api_key(&server).await;
    let upload = async |key: &str| {
        let headers = [("X-Api-Key", key), ("Content-Type", &Form::content_type())];
        server.http().send("POST", "/api/files/local", &headers, &Form::default().file("a.gcode", b"G28").body()).await.status
    };
    for target in ["/api/version", "/api/server", "/api/settings", "/api/job", "/api/printer", "/api/printerprofiles", "/api/currentuser"] {
        assert_eq!(server.http().get(target).await.error(), (401, "Unauthorized".to_owned()), "{target}");
        assert_eq!(server.http().send("GET", target, &[("X-Api-Key", &key)], b"").await.status, 200, "{target}");
    }
    for target in ["/api/login", "/api/printer/command", "/api/files/core/gcodes/a.gcode"] {
        assert_eq!(server.http().post_json(target, &json!({"command": "select"})).await.error().0, 401, "{target}");
    }
    assert_eq!((upload("").await, upload("wrong").await, upload(&key).await), (401, 401, 201));
    assert!(!server.info().await["components"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn viewers_look_and_do_not_print() {
    let server = TestServer::builder().without_printer().authorization("").start().await;
    let user = json!({"username": "eve", "password": "secret of it", "role": "viewer"});
    let token = server.unix().await.ok("access.post_user", user).await["token"].as_str().unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str())];
    let slicer = Slicer { http: server.http(), headers: &headers };
    let user = slicer.get("/api/currentuser").await.json();
    assert_eq!((&user["admin"], &user["groups"]), (&json!(false), &json!(["users"])));
    let form = Form::default().file("a.gcode", b"G28").body();
    assert_eq!(slicer.post("/api/files/local", &Form::content_type(), &form).await.error().0, 403);
    assert_eq!(slicer.post_json("/api/printer/command", &json!({"commands": ["G28"]})).await.error().0, 403);
}

#[tokio::test]
async fn the_owner_switches_it_off_or_sets_the_camera() {
    let off = TestServer::builder().without_printer().config("[octoprint_compat]\nenabled: false\n").start().await;
    for target in ["/api/version", "/api/printer"] {
        assert_eq!(off.http().get(target).await.error().0, 404, "{target}");
    }
    let form = Form::default().file("a.gcode", b"G28").body();
    let refused = off.http().send("POST", "/api/files/local", &[("Content-Type", &Form::content_type())], &form).await;
    assert_eq!(refused.error().0, 404);
    let has = |info: &Value, name: &str| info["components"].as_array().unwrap().contains(&json!(name));
    let info = off.info().await;
    assert!(!has(&info, "slicer_api") && !has(&info, "octoprint_compat"));

    let options = "[octoprint_compat]\nenable_ufp: false\nflip_h: true\nstream_url: http://cam/stream\nwebcam_enabled: false\n";
    let server = TestServer::builder().without_printer().config(options).start().await;
    let info = server.info().await;
    assert!(has(&info, "slicer_api") && has(&info, "octoprint_compat") && info["warnings"] == json!([]), "{info}");
    let settings = server.http().get("/api/settings").await.json();
    assert_eq!(settings["plugins"], json!({}));
    let webcam = json!({"flipH": true, "flipV": false, "rotate90": false, "streamUrl": "http://cam/stream", "webcamEnabled": false});
    assert_eq!(settings["webcam"], webcam);
}

/// The routes are of another server's API: no methods of ours.
#[tokio::test]
async fn its_operations_are_no_methods() {
    let server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    for method in ["slicer_api.version", "api.version", "slicer_api.select"] {
        assert_eq!(ws.call(method, json!({})).await, Err(RpcError::new(-32601, "Method not found")), "{method}");
    }
    let answer = server.http().rpc(&json!({"jsonrpc": "2.0", "method": "slicer_api.version", "id": 1})).await;
    assert_eq!(answer["error"]["code"], -32601);
    assert_eq!(server.http().post("/api/version").await.error().0, 405);
    assert_eq!(server.http().get("/api/files/local").await.error().0, 405);
    assert_eq!(server.http().get("/api/files/core/gcodes/a.gcode").await.error().0, 405);
}
