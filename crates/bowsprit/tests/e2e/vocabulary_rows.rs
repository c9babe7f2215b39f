//! Every row of the vocabulary: the page that lists them, and that both names of each lead to the same.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

use protocol::vocabulary::{self, FILES, GROUPS, MACROS, MEMBERS, Pair, Place, ROUTES, VALUES};
use serde_json::{Value, json};

use crate::golden::compare_text;
use crate::harness::TestServer;
use crate::harness::server::BOWSPRIT;
use crate::harness::ws::{Frames, Ws};

/// What exists only when it is configured; nothing answers behind it.
const STRIP: &str = "[wled desk]\naddress: 127.0.0.1\nport: 9\n";

fn printed(args: &[&str]) -> String {
    let output = Command::new(BOWSPRIT).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn contract(args: &[&str]) -> Value {
    serde_json::from_str(&printed(&[&["contract"], args].concat())).unwrap()
}

/// Name and other name of all `methods` or `notifications` that have two.
fn doubled(document: &Value, list: &str) -> Vec<(String, String)> {
    let all = document[list].as_array().unwrap().iter();
    let mut pairs: Vec<_> = all.filter_map(|one| Some((one["name"].as_str()?.to_owned(), one["alias"].as_str()?.to_owned()))).collect();
    pairs.sort();
    pairs
}

/// Routes of operations that have two names, with their verbs.
fn doubled_routes(openapi: &Value) -> Vec<(String, String, Vec<String>)> {
    let routes = openapi["paths"].as_object().unwrap().iter();
    let pairs = routes.filter_map(|(route, verbs)| {
        let verbs = verbs.as_object()?.keys().map(|verb| verb.to_uppercase()).collect();
        Some((route.clone(), vocabulary::route_alias(route)?, verbs))
    });
    pairs.collect()
}

/// Sections and options with further names, from the reference: place, name, other names.
fn doubled_options() -> Vec<(String, String, Vec<String>)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in printed(&["config-reference"]).lines() {
        if let Some(name) = line.strip_prefix("## ") {
            section = name.to_owned();
        }
        let Some((before, names)) = line.split_once("Also accepted: ") else { continue };
        let names: Vec<String> = names.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let option = before.split('`').nth(1);
        found.push((section.clone(), option.map_or_else(|| section.clone(), str::to_owned), names));
    }
    found
}

const HEAD: &str = "\
# Two vocabularies

The specification uses neutral names; existing clients use others. Both are accepted everywhere, at the same time, by every client. This page is written by
the test `golden_vocabulary_page` from the table in `protocol::vocabulary`, the operations and the options; the tests beside it try every row.

- Routes, methods, sections, options and parameter values: both names are accepted.
- Members of results and notifications: both stand in the same object.
- Notifications with two names: both are sent.
- Values with two forms: the caller's form. It is neutral unless `[server] vocabulary` is `upstream`, the configuration in use is a `moonraker.conf`, the
  client asks for it when it identifies itself (`vocabulary`) or is one of the known ones, or the call came by the other name.

A row may name what is there only when it is configured, or what is reserved for a component to come.
";

fn table(out: &mut String, title: &str, head: &str, rows: impl IntoIterator<Item = String>) {
    let columns = head.matches('|').count() - 1;
    let _ = write!(out, "\n## {title}\n\n{head}\n|{}\n", "---|".repeat(columns));
    rows.into_iter().for_each(|row| out.push_str(&format!("{row}\n")));
}

fn row(one: &str, other: &str) -> String {
    format!("| `{one}` | `{other}` |")
}

fn rows_of(pairs: &[Pair]) -> Vec<String> {
    pairs.iter().map(|pair| row(pair.neutral, pair.upstream)).collect()
}

fn rows_by_place(places: &[Place]) -> Vec<String> {
    let row = |place: &Place, pair: &Pair| format!("| `{}` | `{}` | {} |", pair.neutral, pair.upstream, place.place);
    places.iter().flat_map(|place| place.pairs.iter().map(move |pair| row(place, pair))).collect()
}

#[test]
fn golden_vocabulary_page() {
    let (openapi, rpc) = (contract(&[]), contract(&["--rpc"]));
    let mut out = HEAD.to_owned();
    let names = "| neutral | also |";
    let groups = GROUPS.iter().map(|group| row(&format!("/{}/…", group.neutral), &format!("/{}/…", group.upstream)));
    table(&mut out, "Groups of routes and methods", names, groups);
    table(&mut out, "Methods", names, doubled(&rpc, "methods").iter().map(|(one, other)| row(one, other)));
    let routes = doubled_routes(&openapi);
    let verbs = routes.iter().map(|(one, other, verbs)| format!("| {} | `{one}` | `{other}` |", verbs.join(", ")));
    table(&mut out, "Routes", "| verbs | neutral | also |", verbs);
    let further = ROUTES.iter().filter(|pair| !routes.iter().any(|(one, ..)| one == pair.neutral));
    table(&mut out, "Routes that are no operations", names, further.map(|pair| row(pair.neutral, pair.upstream)));
    table(&mut out, "Members of results and notifications", names, rows_of(MEMBERS));
    table(&mut out, "Notifications", names, doubled(&rpc, "notifications").iter().map(|(one, other)| row(one, other)));
    table(&mut out, "Values", "| neutral | also | where |", rows_by_place(VALUES));
    let options = doubled_options();
    let options = options.iter().map(|(section, name, others)| {
        let others: Vec<String> = others.iter().map(|other| format!("`{other}`")).collect();
        format!("| `{section}` | `{name}` | {} |", others.join(", "))
    });
    table(&mut out, "Sections and options of the configuration", "| section | name | also |", options);
    table(&mut out, "Files", "| neutral | also | where |", rows_by_place(FILES));
    table(&mut out, "Methods that macros call", names, rows_of(MACROS));
    compare_text("the vocabulary", &out, "../../docs/vocabulary.md");
}

/// What a call gives, without what differs from call to call.
async fn outcome(ws: &mut Ws, method: &str, params: Value) -> String {
    match ws.call(method, params).await {
        Ok(result) => result.to_string(),
        Err(error) => format!("{error:?}"),
    }
}

#[tokio::test]
async fn both_names_of_every_method_answer_the_same() {
    let server = TestServer::builder().without_printer().config(STRIP).config("vocabulary: upstream").start().await;
    let mut ws = server.ws().await;
    let methods = doubled(&contract(&["--rpc"]), "methods");
    assert!(methods.len() >= 7, "{methods:?}");
    for (neutral, upstream) in methods {
        // Without arguments most want some; with the name of a strip that nobody finds, all that take one say so.
        for params in [json!({}), json!({"strip": "none", "action": "on"})] {
            let (one, other) = (outcome(&mut ws, &neutral, params.clone()).await, outcome(&mut ws, &upstream, params).await);
            assert!(one == other && !one.contains("Method not found"), "{neutral}: {one}\n{upstream}: {other}");
        }
    }
}

#[tokio::test]
async fn both_names_of_every_route_answer_the_same() {
    let server = TestServer::builder().without_printer().config(STRIP).config("vocabulary: upstream").start().await;
    let http = server.http();
    let routes = doubled_routes(&contract(&[]));
    assert!(routes.len() >= 7, "{routes:?}");
    for (neutral, upstream, verbs) in routes {
        for verb in verbs {
            let (one, other) = (http.send(&verb, &neutral, &[], b"").await, http.send(&verb, &upstream, &[], b"").await);
            assert!(one.status == other.status && one.text() == other.text(), "{neutral}: {}\n{upstream}: {}", one.text(), other.text());
            assert!(one.text() != r#"{"error":{"code":404,"message":"Not Found"}}"#, "{verb} {neutral} is not there");
        }
    }
    for pair in ROUTES {
        if pair.neutral.ends_with("socket") {
            let open = async |path: &str| Frames::open(server.port, path, &[]).await.err();
            assert_eq!(open(pair.neutral).await, open(pair.upstream).await, "{}", pair.neutral);
        } else {
            assert_eq!(http.get(pair.neutral).await.status, http.get(pair.upstream).await.status, "{}", pair.neutral);
        }
    }
}

/// Calls `check` with every object in a document.
fn each_object(value: &Value, check: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            check(members);
            members.values().for_each(|value| each_object(value, check));
        }
        Value::Array(items) => items.iter().for_each(|value| each_object(value, check)),
        _ => {}
    }
}

#[tokio::test]
async fn both_names_of_every_member_stand_in_one_object() {
    // What the contract promises …
    let mut promised: BTreeMap<&str, usize> = BTreeMap::new();
    for document in [contract(&[]), contract(&["--rpc"])] {
        each_object(&document["components"]["schemas"], &mut |members| {
            let Some(Value::Object(properties)) = members.get("properties") else { return };
            for pair in MEMBERS.iter().filter(|pair| properties.contains_key(pair.neutral) || properties.contains_key(pair.upstream)) {
                assert_eq!(properties.get(pair.neutral), properties.get(pair.upstream), "{}", pair.neutral);
                *promised.entry(pair.neutral).or_default() += 1;
            }
        });
    }
    // … and what arrives.
    let server = TestServer::start().await;
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    // Of the configuration what is in effect; what a file says stands as it is written there.
    for (target, part) in [("/server/info", ""), ("/server/config", "/config"), ("/printer/info", ""), ("/machine/proc_stats", "")] {
        each_object(server.http().get(target).await.result().pointer(part).unwrap(), &mut |members| {
            for pair in MEMBERS.iter().filter(|pair| members.contains_key(pair.neutral) || members.contains_key(pair.upstream)) {
                assert_eq!(members.get(pair.neutral), members.get(pair.upstream), "{target}: {}", pair.neutral);
                *seen.entry(pair.neutral).or_default() += 1;
            }
        });
    }
    for name in ["fwhost_connected", "fwhost_state", "missing_fwhost_requirements", "firmware_path", "core_stats"] {
        assert!(promised.contains_key(name) || name == "firmware_path", "{name} is in no schema: {promised:?}");
        assert!(seen.contains_key(name), "{name} did not arrive: {seen:?}");
    }
    assert!(seen.contains_key("fwhost_uds_address"));
}

#[test]
fn both_names_of_every_section_and_option_are_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("config")).unwrap();
    let path = folder.path().join("config/bowsprit.conf");
    let options = doubled_options();
    assert!(options.len() >= 5, "{options:?}");
    let check = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let output = Command::new(BOWSPRIT).args(["check-config", "-d"]).arg(folder.path()).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    assert!(check("[no_such_section]\n").contains("Unparsed config section"));
    for (section, name, others) in options {
        for other in others {
            let header = |section: &str| section.replace("<name>", "x");
            let text = if name == section { format!("{}\n", header(&other)) } else { format!("{}\n{other}: x\n", header(&section)) };
            let said = check(&text);
            assert!(!said.contains("Unparsed"), "{text}{said}");
        }
    }
}
