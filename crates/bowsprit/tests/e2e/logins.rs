//! Users: from creating them to logging them out, over every way in.

use serde_json::{Value, json};

use crate::harness::{RpcError, TestServer};

const TRUSTED: &str = "[authorization]\ntrusted_clients:\n    127.0.0.1\n";

/// A server that trusts nobody, with a user whose tokens are given.
async fn with_anna() -> (TestServer, Value) {
    let server = TestServer::builder().without_printer().authorization("").start().await;
    let anna = create(&server, "anna", "admin").await;
    (server, anna)
}

async fn create(server: &TestServer, name: &str, role: &str) -> Value {
    server.unix().await.ok("access.post_user", json!({"username": name, "password": "secret of it", "role": role})).await
}

async fn status(server: &TestServer, target: &str, headers: &[(&str, &str)]) -> u16 {
    server.http().send("GET", target, headers, b"").await.status
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_else(|| panic!("{member} in {value}")).to_owned()
}

fn bearer(answer: &Value) -> String {
    format!("Bearer {}", text(answer, "token"))
}

#[tokio::test]
async fn a_user_logs_in_over_http() {
    let (server, created) = with_anna().await;
    assert_eq!((&created["action"], &created["source"]), (&json!("user_created"), &json!("core")));
    let login = json!({"username": "anna", "password": "secret of it"});
    let answer = server.http().post_json("/access/login", &login).await.result();
    let members: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(members, ["action", "refresh_token", "source", "token", "username"]);
    assert_eq!((&answer["username"], &answer["action"]), (&json!("anna"), &json!("user_logged_in")));
    let (header, token) = (bearer(&answer), text(&answer, "token"));
    assert_eq!(status(&server, "/server/info", &[("Authorization", &header)]).await, 200);
    assert_eq!(status(&server, "/server/info", &[("X-Access-Token", &token)]).await, 200);
    assert_eq!(status(&server, &format!("/server/info?access_token={token}"), &[]).await, 200);
    let rpc = br#"{"jsonrpc":"2.0","method":"access.get_user","id":1}"#;
    let who = server.http().send("POST", "/server/jsonrpc", &[("Authorization", &header)], rpc).await.json();
    assert_eq!(
        (&who["result"]["username"], &who["result"]["source"], &who["result"]["role"]),
        (&json!("anna"), &json!("core"), &json!("admin"))
    );
}

#[tokio::test]
async fn refresh_tokens_give_access_tokens_and_nothing_else() {
    let (server, anna) = with_anna().await;
    let refresh = json!({"refresh_token": anna["refresh_token"]});
    let answer = server.http().post_json("/access/refresh_jwt", &refresh).await.result();
    assert_eq!((&answer["action"], answer.get("refresh_token")), (&json!("user_jwt_refresh"), None));
    assert_eq!(status(&server, "/server/info", &[("Authorization", &bearer(&answer))]).await, 200);
    let as_access = format!("Bearer {}", text(&anna, "refresh_token"));
    assert_eq!(status(&server, "/server/info", &[("Authorization", &as_access)]).await, 401);
    let as_refresh = json!({"refresh_token": anna["token"]});
    assert_eq!(server.http().post_json("/access/refresh_jwt", &as_refresh).await.error(), (401, "Invalid refresh token".to_owned()));
}

#[tokio::test]
async fn a_bad_token_is_refused_even_from_a_trusted_address() {
    let server = TestServer::builder().without_printer().authorization(TRUSTED).start().await;
    let good = text(&create(&server, "anna", "admin").await, "token");
    let parts: Vec<&str> = good.split('.').collect();
    let none = "eyJraWQiOiJhIiwiYWxnIjoibm9uZSIsInR5cCI6IkpXVCJ9";
    for bad in [
        String::new(),
        "rubbish".to_owned(),
        good[..good.len() - 1].to_owned(),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{none}.{}.", parts[1]),
        format!("{none}.{}.{}", parts[1], parts[2]),
        format!("{}.{}.{}", parts[0], parts[1], "A".repeat(86)),
        "a.".repeat(20_000),
    ] {
        let header = format!("Bearer {bad}");
        assert_eq!(status(&server, "/server/info", &[("Authorization", &header)]).await, 401, "{bad:.60}");
        assert_eq!(status(&server, "/access/info", &[("Authorization", &header)]).await, 200, "{bad:.60}");
    }
    assert_eq!(status(&server, "/server/info", &[("Authorization", "Basic YTpi")]).await, 200, "another scheme is somebody else's");
    assert_eq!(status(&server, "/server/info", &[("Authorization", &format!("bearer {good}"))]).await, 200);
}

#[tokio::test]
async fn failed_logins_look_alike_and_are_slowed_down() {
    let server = TestServer::builder().without_printer().authorization("[authorization]\nmax_login_attempts: 4\n").start().await;
    create(&server, "anna", "admin").await;
    let login = |name: &str, password: &str| json!({"username": name, "password": password});
    let http = server.http();
    for (name, password) in [("anna", "wrong"), ("nobody", "wrong"), ("_API_KEY_USER_", "wrong"), ("anna", &"long".repeat(5000))] {
        let began = std::time::Instant::now();
        let answer = http.post_json("/access/login", &login(name, password)).await;
        assert_eq!(answer.error(), (401, "Invalid username or password".to_owned()), "{name}");
        assert!(began.elapsed() >= std::time::Duration::from_millis(500), "{name}");
    }
    let (status, text) = http.post_json("/access/login", &login("anna", "secret of it")).await.error();
    assert!(status == 401 && text.starts_with("Too many failed logins from this address"), "{status} {text}");
    let mut ws = server.ws().await;
    assert_eq!(ws.call("access.login", login("anna", "secret of it")).await.unwrap_err().code, -32602);
    server.unix().await.ok("access.login", login("anna", "secret of it")).await;
}

/// Each hash takes 19 MiB; an allocator would keep them for every thread that ever hashed.
#[tokio::test]
async fn failed_logins_leave_no_memory_behind() {
    let server = TestServer::builder().without_printer().authorization("[authorization]\nmax_login_attempts: 100\n").start().await;
    let before = server.resident_kib();
    for round in 0..2 {
        let guesses = (0..12).map(|n| {
            let login = json!({"username": format!("guess{round}{n}"), "password": "wrong"});
            let http = server.http();
            async move { http.post_json("/access/login", &login).await.status }
        });
        assert_eq!(futures_util::future::join_all(guesses).await, [401; 12]);
    }
    let after = server.resident_kib();
    assert!(after < before + 64 * 1024, "from {before} to {after} KiB");
}

#[tokio::test]
async fn a_login_over_a_socket_makes_it_the_users_until_logout() {
    let server = TestServer::builder().authorization("").start().await;
    let anna = create(&server, "anna", "admin").await;
    let (mut ws, mut local) = (server.ws().await, server.unix().await);
    assert_eq!(ws.ok("access.info", json!({})).await["trusted"], false);
    ws.ok("access.login", json!({"username": "anna", "password": "secret of it", "source": "moonraker"})).await;
    assert_eq!(ws.ok("access.get_user", json!({})).await["username"], "anna");
    ws.ok("printer.objects.subscribe", json!({"objects": {"extruder": null}})).await;
    let mut second = server.ws().await;
    second.ok("access.login", json!({"username": "anna", "password": "secret of it"})).await;
    assert_eq!(ws.ok("access.logout", json!({})).await, json!({"username": "anna", "action": "user_logged_out"}));
    for told in [&mut ws, &mut second] {
        assert_eq!(told.notified("notify_user_logged_out").await[0], json!({"username": "anna"}));
        assert_eq!(told.call("server.info", json!({})).await, Err(RpcError::new(-32602, "Unauthorized")));
    }
    local.notified("notify_user_logged_out").await;
    // What changes the printer now reaches only those who may see it.
    ws.forget();
    local.ok("printer.objects.subscribe", json!({"objects": {"extruder": ["target"]}})).await;
    local.ok("printer.gcode.script", json!({"script": "M104 S150"})).await;
    local.notified_where("notify_status_update", |params| params[0]["extruder"]["target"] == 150.0).await;
    assert!(!ws.saw("notify_status_update").await && !ws.saw("notify_gcode_response").await);
    assert_eq!(status(&server, "/server/info", &[("Authorization", &bearer(&anna))]).await, 401, "all devices are logged out");
}

#[tokio::test]
async fn a_deleted_user_is_gone_at_once() {
    let (server, anna) = with_anna().await;
    let bob = create(&server, "bob", "admin").await;
    let mut ws = server.try_ws(&[("Authorization", &bearer(&bob))]).await.unwrap();
    ws.ok("server.info", json!({})).await;
    let own = server.http().send("DELETE", "/access/user?username=bob", &[("Authorization", &bearer(&bob))], b"").await;
    assert_eq!(own.status, 400, "not the own account");
    let by_anna = server.http().send("DELETE", "/access/user?username=bob", &[("Authorization", &bearer(&anna))], b"").await;
    assert_eq!(by_anna.result(), json!({"username": "bob", "action": "user_deleted"}));
    assert_eq!(ws.notified("notify_user_deleted").await[0]["username"], "bob");
    assert!(ws.call("server.info", json!({})).await.is_err());
    assert_eq!(status(&server, "/server/info", &[("Authorization", &bearer(&bob))]).await, 401);
    let users = server.unix().await.ok("access.users.list", json!({})).await;
    assert_eq!((users["users"].as_array().unwrap().len(), &users["users"][0]["username"]), (1, &json!("anna")));
}

#[tokio::test]
async fn a_new_password_ends_all_sessions_but_the_one_that_set_it() {
    let (server, anna) = with_anna().await;
    let mut other = server.try_ws(&[("Authorization", &bearer(&anna))]).await.unwrap();
    let mut ws = server.ws().await;
    ws.ok("access.login", json!({"username": "anna", "password": "secret of it"})).await;
    let wrong = ws.call("access.user.password", json!({"password": "wrong", "new_password": "new"})).await.unwrap_err();
    assert_eq!(wrong.message, "Invalid username or password");
    let changed = ws.ok("access.user.password", json!({"password": "secret of it", "new_password": "new"})).await;
    assert_eq!((&changed["username"], &changed["action"]), (&json!("anna"), &json!("user_password_reset")));
    other.notified("notify_user_logged_out").await;
    assert!(other.call("server.info", json!({})).await.is_err());
    ws.ok("server.info", json!({})).await;
    assert!(!ws.saw("notify_user_logged_out").await);
    assert_eq!(status(&server, "/server/info", &[("Authorization", &bearer(&anna))]).await, 401);
    assert_eq!(status(&server, "/server/info", &[("Authorization", &bearer(&changed))]).await, 200);
    let login = |password: &str| json!({"username": "anna", "password": password});
    assert_eq!(server.http().post_json("/access/login", &login("secret of it")).await.status, 401);
    assert_eq!(server.http().post_json("/access/login", &login("new")).await.status, 200);
}

#[tokio::test]
async fn trusted_clients_need_a_login_when_it_is_forced() {
    let server = TestServer::builder().without_printer().authorization(&format!("{TRUSTED}force_logins: true\n")).start().await;
    let info = server.http().get("/access/info").await.result();
    assert_eq!((&info["login_required"], &info["trusted"]), (&json!(false), &json!(true)), "{info}");
    let who = server.http().get("/access/user").await.result();
    assert_eq!((&who["username"], &who["source"]), (&json!("_TRUSTED_USER_"), &json!("core")));
    let anna = server.http().post_json("/access/user", &json!({"username": "anna", "password": "p"})).await.result();
    let info = server.http().get("/access/info").await.result();
    assert_eq!((&info["login_required"], &info["trusted"]), (&json!(true), &json!(true)), "{info}");
    assert_eq!(server.http().get("/server/info").await.error(), (401, "Unauthorized".to_owned()));
    assert_eq!(status(&server, "/server/info", &[("Authorization", &bearer(&anna))]).await, 200);
    assert!(server.ws().await.call("server.info", json!({})).await.is_err());
}

#[tokio::test]
async fn a_lost_database_does_not_open_the_door() {
    let damaged = "this is no database, ".repeat(500);
    let prepare = move |folder: &std::path::Path| {
        std::fs::create_dir(folder.join("database")).unwrap();
        std::fs::write(folder.join("database/bowsprit.db"), &damaged).unwrap();
    };
    let config = format!("{TRUSTED}force_logins: true\n");
    let mut server = TestServer::builder().without_printer().authorization(&config).prepare(prepare).start().await;
    // Also after the next start, when the new database is no news any more.
    for _ in 0..2 {
        assert_eq!(server.http().get("/server/info").await.status, 401);
        let warnings = server.info().await["warnings"].to_string();
        assert!(warnings.contains("database that held the users may be lost"), "{warnings}");
        server.restart().await;
    }
    let anna = create(&server, "anna", "admin").await;
    assert_eq!(status(&server, "/server/info", &[("Authorization", &bearer(&anna))]).await, 200);
}

#[tokio::test]
async fn users_and_their_tokens_survive_a_restart() {
    let (mut server, anna) = with_anna().await;
    let key = server.unix().await.ok("access.get_api_key", json!({})).await;
    server.restart().await;
    assert_eq!(status(&server, "/server/info", &[("Authorization", &bearer(&anna))]).await, 200);
    assert_eq!(server.unix().await.ok("access.get_api_key", json!({})).await, key);
    server.kill9().await;
    server.start_again().await;
    let login = json!({"username": "anna", "password": "secret of it"});
    assert_eq!(server.http().post_json("/access/login", &login).await.status, 200);
}

#[tokio::test]
async fn names_and_passwords_that_cannot_be_used_are_refused() {
    let (server, _) = with_anna().await;
    let mut local = server.unix().await;
    let long = "x".repeat(200_000);
    for (name, password, about) in [
        ("anna", "p", "exists"),
        ("", "p", "username"),
        (" a", "p", "username"),
        ("a\nb", "p", "username"),
        (long.as_str(), "p", "username"),
        ("_TRUSTED_USER_", "p", "reserved"),
        ("_API_KEY_USER_", "p", "reserved"),
        ("b", "", "password"),
        ("b", long.as_str(), "password"),
    ] {
        let error = local.call("access.post_user", json!({"username": name, "password": password})).await.unwrap_err();
        assert!(error.code == 400 && error.message.contains(about) && error.message.len() < 200, "{about}: {error:?}");
    }
    let ldap = local.call("access.post_user", json!({"username": "b", "password": "p", "source": "ldap"})).await.unwrap_err();
    assert!(ldap.code == 400 && ldap.message.contains("source"), "{ldap:?}");
    let name = "Jörg <b>x</b> 🙂";
    assert_eq!(local.ok("access.post_user", json!({"username": name, "password": "pässword"})).await["username"], name);
    assert_eq!(local.ok("access.login", json!({"username": name, "password": "pässword"})).await["username"], name);
}

#[tokio::test]
async fn nothing_secret_is_logged() {
    let server = TestServer::builder().without_printer().authorization("").args(&["-n", "--verbose"]).start().await;
    let anna = create(&server, "anna", "admin").await;
    let key = server.unix().await.ok("access.get_api_key", json!({})).await;
    let oneshot = server.http().send("GET", "/access/oneshot_token", &[("Authorization", &bearer(&anna))], b"").await.result();
    let login = |password: &str| json!({"username": "anna", "password": password});
    server.http().post_json("/access/login", &login("not the right one")).await;
    server.http().post_json("/access/login", &login("secret of it")).await;
    server.http().get(&format!("/server/info?token={}", oneshot.as_str().unwrap())).await;
    server.http().get(&format!("/server/info?access_token={}", text(&anna, "token"))).await;
    server.http().send("GET", "/server/info", &[("X-Api-Key", key.as_str().unwrap())], b"").await;
    server.http().post_json("/access/refresh_jwt", &json!({"refresh_token": anna["refresh_token"]})).await;
    let log = server.stderr();
    assert!(log.contains("logged in") && log.contains("a login failed"), "{log}");
    for secret in [
        "secret of it",
        "not the right one",
        "argon2",
        &text(&anna, "token"),
        &text(&anna, "refresh_token"),
        key.as_str().unwrap(),
        oneshot.as_str().unwrap(),
    ] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}
