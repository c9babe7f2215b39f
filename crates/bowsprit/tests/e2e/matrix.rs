//! Who gets in where: every route and every method × every kind of caller, compared with a golden file that people can read.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::Command;

use data_encoding::BASE64URL_NOPAD;
use ring::signature::Ed25519KeyPair;
use serde_json::{Value, json};
use store::rusqlite::{Connection, OpenFlags};

use crate::golden::compare_text;
use crate::harness::broker::Broker;
use crate::harness::server::BOWSPRIT;
use crate::harness::ws::Frames;
use crate::harness::{Channel, Rpc, RpcError, TestServer};

/// Trust goes by a forwarded address, so that one server sees strangers and trusted callers from loopback.
const AUTHORIZATION: &str = "[authorization]\ntrusted_clients:\n    192.168.7.0/24\ntrusted_proxies:\n    127.0.0.1\n";
/// Sections without which groups of operations would not exist.
const OPTIONAL: &str = "[mqtt]\naddress: 127.0.0.1\nport: 9\n";
const INSTRUMENTS: &str = "
[power lamp]
type: tasmota
address: 127.0.0.1:9
[led desk]
address: 127.0.0.1
port: 9
[sensor mains]
type: mqtt
state_topic: a
state_response_template: {set_result('a', payload)}
";
const TRUSTED: (&str, &str) = ("X-Forwarded-For", "192.168.7.9");

/// Routes that are no operations, or whose rights are not those of an operation.
const FURTHER_ROUTES: &[&str] = &[
    "GET /",
    "GET /docs",
    "GET /page/main.js",
    "GET /server/openapi.json",
    "GET /server/rpc.json",
    "GET /no/such/route",
    "GET /server/files/gcodes/a.gcode",
    "GET /server/files/gcodes/a.png",
    "GET /server/files/config/bowsprit.conf",
    "GET /server/files/core.log",
    "DELETE /server/files/gcodes/none.gcode",
    "POST /server/jsonrpc",
    "POST /printer/bed_mesh/dump_mesh",
    "GET /websocket",
    "GET /fwhostsocket",
];

/// Methods that would end the test, or worse; whether they are let in is only asked of callers who must not be.
const NOT_CALLED: &[&str] = &[
    "access.logout",
    "access.post_api_key",
    "machine.",
    "printer.emergency_stop",
    "printer.firmware_restart",
    "printer.restart",
    "server.restart",
];

/// A kind of caller: a name for the column, and what it sends.
struct Caller {
    name: &'static str,
    headers: Vec<(&'static str, String)>,
}

impl Caller {
    fn new(name: &'static str, headers: &[(&'static str, &str)]) -> Self {
        Self { name, headers: headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect() }
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }
}

struct House {
    server: TestServer,
    callers: Vec<Caller>,
    admin: String,
}

impl House {
    async fn new() -> Self {
        let prepare = |folder: &std::path::Path| {
            std::fs::write(folder.join("gcodes/a.gcode"), "G28").unwrap();
            std::fs::write(folder.join("gcodes/a.png"), "png").unwrap();
        };
        let server = TestServer::builder()
            .config(OPTIONAL)
            .config(INSTRUMENTS)
            .authorization(AUTHORIZATION)
            .args(&["-n", "-g"])
            .prepare(prepare)
            .start()
            .await;
        let mut local = server.unix().await;
        let mut tokens = Vec::new();
        for role in ["viewer", "operator", "admin"] {
            let created = local.ok("access.post_user", json!({"username": role, "password": "secret of it", "role": role})).await;
            tokens.push(created["token"].as_str().unwrap().to_owned());
        }
        let key = local.ok("access.get_api_key", json!({})).await.as_str().unwrap().to_owned();
        let bearer = |token: &str| format!("Bearer {token}");
        let expired = expired(&server, &tokens[2]);
        let callers = vec![
            Caller::new("nobody", &[]),
            Caller::new("network", &[TRUSTED]),
            Caller::new("key", &[("X-Api-Key", &key)]),
            Caller::new("viewer", &[("Authorization", &bearer(&tokens[0]))]),
            Caller::new("operator", &[("Authorization", &bearer(&tokens[1]))]),
            Caller::new("admin", &[("Authorization", &bearer(&tokens[2]))]),
            Caller::new("expired", &[("Authorization", &bearer(&expired))]),
            Caller::new("oneshot", &[]),
            Caller::new("page", &[TRUSTED, ("Origin", "http://evil.page")]),
        ];
        Self { server, callers, admin: bearer(&tokens[2]) }
    }

    /// The target with a fresh oneshot token of the admin, for callers who use such.
    async fn target(&self, caller: &Caller, path: &str) -> String {
        if caller.name != "oneshot" {
            return path.to_owned();
        }
        let reply = self.server.http().send("GET", "/access/oneshot_token", &[("Authorization", &self.admin)], b"").await;
        format!("{path}?token={}", reply.result().as_str().unwrap())
    }

    /// Sends what no operation can read: whoever is let in gets 400 and nothing happens.
    async fn knock(&self, caller: &Caller, verb: &str, path: &str) -> String {
        let target = self.target(caller, path).await;
        let mut headers = caller.headers();
        if path == "/websocket" || path == "/fwhostsocket" {
            return Frames::open(self.server.port, &target, &headers).await.err().map_or("yes".to_owned(), |status| status.to_string());
        }
        headers.push(("Content-Type", "application/json"));
        let reply = self.server.http().send(verb, &target, &headers, b"{unreadable").await;
        match reply.status {
            status @ (401 | 403 | 404) => status.to_string(),
            _ => "yes".to_owned(),
        }
    }

    /// A websocket of such a caller.
    async fn websocket(&self, name: &str) -> Rpc<Frames> {
        let caller = self.callers.iter().find(|caller| caller.name == name).unwrap();
        self.server.try_ws(&caller.headers()).await.unwrap()
    }
}

/// The same token, but issued so long ago that it does not count any more; signed with the server's own key.
fn expired(server: &TestServer, token: &str) -> String {
    let read = |part: &str| -> Value { serde_json::from_slice(&BASE64URL_NOPAD.decode(part.as_bytes()).unwrap()).unwrap() };
    let parts: Vec<&str> = token.split('.').collect();
    let (header, mut claims) = (read(parts[0]), read(parts[1]));
    for time in ["iat", "exp"] {
        claims[time] = json!(claims[time].as_i64().unwrap() - 7200);
    }
    let database = Connection::open_with_flags(server.path("database/bowsprit.db"), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let id = header["kid"].as_str().unwrap();
    let seed: Vec<u8> = database.query_row("SELECT seed FROM access_sessions WHERE id = ?1", [id], |row| row.get(0)).unwrap();
    let signed = format!("{}.{}", parts[0], BASE64URL_NOPAD.encode(claims.to_string().as_bytes()));
    let signature = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap().sign(signed.as_bytes());
    format!("{signed}.{}", BASE64URL_NOPAD.encode(signature.as_ref()))
}

fn contract(args: &[&str]) -> Value {
    serde_json::from_slice(&Command::new(BOWSPRIT).arg("contract").args(args).output().unwrap().stdout).unwrap()
}

/// `VERB /route` of all operations, with their access class; neutral and upstream names.
fn routes() -> Vec<(String, String)> {
    let mut routes = Vec::new();
    for (path, verbs) in contract(&[])["paths"].as_object().unwrap() {
        for (verb, entry) in verbs.as_object().unwrap() {
            routes.push((format!("{} {path}", verb.to_uppercase()), entry["x-access"].as_str().unwrap_or("").to_owned()));
        }
    }
    routes.extend(FURTHER_ROUTES.iter().map(|route| ((*route).to_owned(), String::new())));
    routes.sort_by(|one, other| {
        one.0.split_once(' ').map(|(verb, path)| (path, verb)).cmp(&other.0.split_once(' ').map(|(verb, path)| (path, verb)))
    });
    routes
}

/// Methods that can be called this way (`WEBSOCKET`, `MQTT`), with their access class.
fn methods(way: &str) -> Vec<(String, String)> {
    let document = contract(&["--rpc"]);
    let methods = document["methods"].as_array().unwrap().iter();
    let callable = methods.filter(|method| method["transports"].as_array().unwrap().contains(&json!(way)));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    callable.map(|method| (text(&method["name"]), text(&method["access"]))).collect::<BTreeSet<_>>().into_iter().collect()
}

fn is_refused(name: &str, access: &str) -> bool {
    match name {
        "nobody" => access != "open",
        "viewer" => access == "control" || access == "admin",
        "operator" => access == "admin",
        _ => false,
    }
}

async fn call<C: Channel>(client: &mut Rpc<C>, name: &str, method: &str, access: &str) -> String {
    if NOT_CALLED.iter().any(|prefix| method.starts_with(prefix)) && !is_refused(name, access) {
        return "(yes)".to_owned();
    }
    match client.call(method, json!({})).await {
        Err(RpcError { code: -32602, message }) if message == "Unauthorized" => "401".to_owned(),
        Err(RpcError { code: -32601, message }) if message == "Method not found" => "404".to_owned(),
        Err(RpcError { code: 403, message }) if message.starts_with("This needs the role") => "403".to_owned(),
        _ => "yes".to_owned(),
    }
}

fn row(out: &mut String, first: &str, access: &str, cells: &[String]) {
    let _ = write!(out, "{first:<52}{access:<9}");
    for cell in cells {
        let _ = write!(out, "{cell:<10}");
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
}

const HEAD: &str = "\
Who gets in where. Written by the test `golden_access_matrix`; UPDATE_GOLDEN=1 rewrites it. Read every changed line before committing it.

yes      let in (what the operation says then does not matter here)
401      refused: log in
403      refused: known, but the role does not suffice, or a page of another origin
404      let in, but there is no such thing
(yes)    let in by the access class; not called, because the call would end the test

nobody   no credentials, no trusted address       network  an address listed in trusted_clients
key      the API key (role admin)                 viewer, operator, admin  users of that role with an access token
expired  an access token after its time           oneshot  a oneshot token of an admin
page     a browser at a trusted address, showing a page of another origin     unix  a peer on the unix socket
";

#[tokio::test]
async fn golden_access_matrix() {
    let house = House::new().await;
    let mut out = HEAD.to_owned();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();

    out.push_str("\n== HTTP routes ==\n");
    row(&mut out, "route", "access", &names(&house.callers.iter().map(|caller| caller.name).collect::<Vec<_>>()));
    for (route, access) in routes() {
        let (verb, path) = route.split_once(' ').unwrap();
        let mut cells = Vec::new();
        for caller in &house.callers {
            cells.push(house.knock(caller, verb, path).await);
        }
        row(&mut out, &route, &access, &cells);
    }

    out.push_str("\n== Methods over websockets and the unix socket ==\n");
    let columns = ["nobody", "network", "key", "viewer", "operator", "admin"];
    row(&mut out, "method", "access", &names(&[&columns[..], &["unix"]].concat()));
    let mut clients = Vec::new();
    for name in columns {
        clients.push((name, house.websocket(name).await));
    }
    let mut local = house.server.unix().await;
    for (method, access) in methods("WEBSOCKET") {
        let mut cells = Vec::new();
        for (name, client) in &mut clients {
            cells.push(call(client, name, &method, &access).await);
        }
        cells.push(call(&mut local, "unix", &method, &access).await);
        row(&mut out, &method, &access, &cells);
    }
    compare_text("the access matrix", &out, "tests/golden/access-matrix.txt");
}

const MQTT_HEAD: &str = "\
Who gets in where over MQTT, by [mqtt] api_role. Written by the test `golden_access_matrix_of_mqtt`; UPDATE_GOLDEN=1 rewrites it. Read every
changed line before committing it. Methods that are not listed do not exist over MQTT. The words are those of access-matrix.txt.

";

#[tokio::test]
async fn golden_access_matrix_of_mqtt() {
    let Some(broker) = Broker::start().await else { return };
    let roles = ["viewer", "operator", "admin"];
    let methods = methods("MQTT");
    let mut cells = vec![Vec::new(); methods.len()];
    for role in roles {
        let section = broker.section(&format!("api_role: {role}\ninstance_name: {role}\n")).replace("instance_name: printer\n", "");
        let _server = TestServer::builder().config(&section).config(INSTRUMENTS).args(&["-n", "-g"]).start().await;
        let client = broker.client().await;
        client.listen(&format!("{role}/core/status")).json(|state| state["server"] == "online").await;
        let mut client = client.rpc(role);
        for ((method, access), cells) in methods.iter().zip(&mut cells) {
            cells.push(call(&mut client, role, method, access).await);
        }
    }
    let mut out = MQTT_HEAD.to_owned();
    row(&mut out, "method", "access", &roles.map(str::to_owned));
    methods.iter().zip(&cells).for_each(|((method, access), cells)| row(&mut out, method, access, cells));
    compare_text("the access matrix of MQTT", &out, "tests/golden/access-matrix-mqtt.txt");
}
