//! The password for sudo: asked for where it is needed, given by people or by the configuration. The program runs as a user that is not root,
//! in a namespace of its own, with a sudo and a systemctl that the test wrote.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::server::Builder;
use crate::harness::{TestServer, wait};

/// Knows one password; without one it refuses, as sudo does where a password is set.
const SUDO: &str = r#"#!/bin/sh
[ "$1" = -S ] || { echo 'sudo: a password is required' >&2; exit 1; }
read -r given
while [ -e "${0%/*}/slow" ]; do : > "${0%/*}/trying"; sleep 0.1; done
[ "$given" = 'open sesame' ] || { echo 'sudo: 1 incorrect password attempt' >&2; exit 1; }
while [ "$1" != -- ]; do shift; done
shift
[ "$1" = ls ] && exit 0
AS_ROOT=1 exec "$@"
"#;

const SYSTEMCTL: &str = r#"#!/bin/sh
case "$1" in
--version) echo 'systemd 252' ;;
list-units) echo 'klipper.service loaded active running Klipper' ;;
*) [ -n "$AS_ROOT" ] || exit 1; echo "$@" >> "${0%/*}/calls" ;;
esac
"#;

/// Writes a program that can be run.
pub(crate) fn write_program(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A server that is not root. None, with a line that says so, where users cannot be mapped.
fn ordinary(config: &str) -> Option<Builder> {
    let unshare = ["--user", "--map-user=1000", "--map-group=1000"];
    if !Command::new("unshare").args(unshare).arg("true").status().is_ok_and(|status| status.success()) {
        println!("skipped: users cannot be mapped here");
        return None;
    }
    let builder = TestServer::builder().without_printer().config(&format!("[machine]\nprovider: systemd_cli\n{config}"));
    let builder = builder.prepare(|folder| {
        std::fs::create_dir(folder.join("bin")).unwrap();
        write_program(&folder.join("bin"), "sudo", SUDO);
        write_program(&folder.join("bin"), "systemctl", SYSTEMCTL);
        std::fs::write(folder.join("core.secrets"), r#"{"sudo": {"password": "open sesame", "wrong": "open barley"}}"#).unwrap();
    });
    Some(builder.under(move |folder| {
        let path = format!("PATH={}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
        ["env", &path, "unshare"].into_iter().chain(unshare).map(str::to_owned).collect()
    }))
}

fn announced(list: &Value) -> Vec<String> {
    let ours = list["entries"].as_array().unwrap().iter().filter(|entry| entry["feed"] == "machine");
    ours.map(|entry| format!("{} {}", entry["priority"].as_str().unwrap(), entry["description"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn people_are_asked_for_the_password_until_it_is_right() {
    let Some(builder) = ordinary("") else { return };
    let server = builder.start().await;
    let info = || async { server.http().get("/machine/sudo/info").await.result() };
    let asked = wait::until("the password is asked for", info, |info| info["sudo_requested"] == true).await;
    assert!(asked["request_messages"][0].as_str().unwrap().contains("services") && asked["sudo_access"].is_null(), "{asked}");
    let board = || async { server.http().get("/server/announcements/list").await.result() };
    let shown = wait::until("it is announced", board, |list| !announced(list).is_empty()).await;
    assert!(announced(&shown)[0].starts_with("high The server needs it"), "{shown}");

    let mut ws = server.ws().await;
    let refused = ws.call("machine.services.restart", json!({"service": "klipper"})).await.unwrap_err();
    assert!(refused.message.contains("password"), "{refused:?}");
    let wrong = ws.call("machine.sudo.password", json!({"password": "open barley"})).await.unwrap_err();
    assert_eq!((wrong.code, &info().await["sudo_requested"]), (400, &json!(true)), "{wrong:?}");

    let answer = ws.ok("machine.sudo.password", json!({"password": "open sesame"})).await;
    assert_eq!((answer["sudo_responses"].as_array().unwrap().len(), &answer["is_restarting"]), (2, &json!(false)), "{answer}");
    let alert = ws.notified("notify_sudo_alert").await[0].take();
    assert_eq!(alert, json!({"sudo_requested": false, "request_messages": []}));
    assert_eq!(announced(&board().await), Vec::<String>::new());
    assert_eq!(ws.ok("machine.sudo.info", json!({"check_access": true})).await["sudo_access"], true);
    ws.ok("machine.services.restart", json!({"service": "klipper"})).await;
    assert_eq!(std::fs::read_to_string(server.path("bin/calls")).unwrap(), "restart klipper.service\n");
    assert!(!server.stderr().contains("sesame") && !server.stderr().contains("barley"), "{}", server.stderr());
}

#[tokio::test]
async fn one_password_is_tried_at_a_time() {
    let Some(builder) = ordinary("") else { return };
    let server = builder.start().await;
    let info = || async { server.http().get("/machine/sudo/info").await.result() };
    wait::until("the password is asked for", info, |info| info["sudo_requested"] == true).await;
    std::fs::write(server.path("bin/slow"), "").unwrap();
    let http = server.http();
    let (right, wrong) = (json!({"password": "open sesame"}), json!({"password": "open barley"}));
    let second = async {
        wait::until("the first is tried", async || server.path("bin/trying").exists(), |tried| *tried).await;
        let (status, message) = http.post_json("/machine/sudo/password", &wrong).await.error();
        assert!(status == 409 && message.contains("Another password"), "{message}");
        assert_eq!(info().await["sudo_requested"], true, "nothing is decided yet");
        std::fs::remove_file(server.path("bin/slow")).unwrap();
    };
    let (answer, ()) = tokio::join!(http.post_json("/machine/sudo/password", &right), second);
    assert_eq!(answer.result()["sudo_responses"].as_array().unwrap().len(), 2);
    let (status, _) = http.post_json("/machine/sudo/password", &wrong).await.error();
    let info = http.get("/machine/sudo/info?check_access=true").await.result();
    assert_eq!((status, &info["sudo_access"], &info["sudo_requested"]), (400, &json!(true), &json!(false)), "a wrong one changes nothing");
}

#[tokio::test]
async fn the_configuration_may_give_it() {
    let Some(builder) = ordinary("sudo_password: {secrets.sudo.password}\nvalidate_service: false\nforce_validation: true") else { return };
    let server = builder.start().await;
    let info = || async { server.http().get("/machine/sudo/info?check_access=true").await.result() };
    let info = wait::until("sudo works", info, |info| info["sudo_access"] == true).await;
    assert_eq!((&info["sudo_requested"], info["linux_user"].as_str().unwrap().is_empty()), (&json!(false), false));
    server.http().post_json("/machine/services/stop", &json!({"service": "klipper"})).await.result();
    let report = server.http().get("/server/config").await.text();
    assert!(!report.contains("sesame") && report.contains("secrets.sudo.password"), "{report}");
    assert_eq!(server.info().await["warnings"], json!([]));
}

#[tokio::test]
async fn a_wrong_one_of_the_configuration_is_a_warning() {
    let Some(builder) = ordinary("sudo_password: {secrets.sudo.wrong}") else { return };
    let server = builder.start().await;
    let info = wait::until("a warning", || server.info(), |info| !info["warnings"].as_array().unwrap().is_empty()).await;
    let warning = info["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("[machine] sudo_password is not used") && !warning.contains("barley"), "{info}");
}
