//! Users of a directory server. Skipped where there is none to start.

use serde_json::{Value, json};

use crate::harness::{Builder, RpcError, Slapd, TestServer};

const REFUSED: &str = "Invalid username or password";

/// A server with this section and the secrets that it names.
fn with(section: &str, authorization: &str) -> Builder {
    let secrets = "[ldap]\npassword: reader's secret\n";
    let builder = TestServer::builder().without_printer().config(section).authorization(&format!("[authorization]\n{authorization}\n"));
    builder.prepare(move |folder| std::fs::write(folder.join("core.secrets"), secrets).unwrap())
}

fn person(name: &str, password: &str) -> Value {
    json!({"username": name, "password": password, "source": "ldap"})
}

/// A login on the machine itself, where failures have no consequences.
async fn log_in(server: &TestServer, name: &str, password: &str) -> Result<Value, RpcError> {
    server.unix().await.call("access.login", person(name, password)).await
}

#[tokio::test]
async fn a_member_of_the_group_logs_in_and_becomes_a_user() {
    let Some(slapd) = Slapd::start().await else { return };
    let server = with(&slapd.section(), "default_source: LDAP").start().await;
    let info = server.http().get("/access/info").await.result();
    assert_eq!((&info["default_source"], &info["available_sources"]), (&json!("ldap"), &json!(["core", "ldap"])));
    let login = json!({"username": "anna", "password": "anna's secret"});
    let answer = server.http().post_json("/access/login", &login).await.result();
    assert_eq!((&answer["username"], &answer["source"], &answer["action"]), (&json!("anna"), &json!("ldap"), &json!("user_logged_in")));
    let bearer = format!("Bearer {}", answer["token"].as_str().unwrap());
    let who = server.http().send("GET", "/access/user", &[("Authorization", &bearer)], b"").await.result();
    assert_eq!((&who["username"], &who["source"]), (&json!("anna"), &json!("ldap")));
    let change = json!({"password": "anna's secret", "new_password": "another"}).to_string();
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let (status, message) = server.http().send("POST", "/access/user/password", &headers, change.as_bytes()).await.error();
    assert!(status == 400 && message.contains("directory"), "{status} {message}");
    let components = server.unix().await.ok("server.info", json!({})).await;
    assert!(components["components"].as_array().unwrap().contains(&json!("ldap")), "{components}");
}

#[tokio::test]
async fn no_secret_is_kept_or_shown() {
    let Some(slapd) = Slapd::start().await else { return };
    let mut server = with(&slapd.section(), "").start().await;
    log_in(&server, "anna", "anna's secret").await.unwrap();
    log_in(&server, "anna", "not anna's secret").await.unwrap_err();
    let config = server.unix().await.ok("server.config", json!({})).await;
    assert_eq!(config["config"]["ldap"]["bind_password"], "{secrets.ldap.password}");
    let info = server.unix().await.ok("server.info", json!({})).await;
    assert_eq!(server.stop().await, Some(0));
    let mut seen = format!("{config}{info}{}", server.stderr()).into_bytes();
    for file in std::fs::read_dir(server.path("database")).unwrap().map(|file| file.unwrap().path()).filter(|path| path.is_file()) {
        seen.extend(std::fs::read(file).unwrap());
    }
    assert!(find(&seen, b"anna") && !find(&seen, b"anna's secret") && !find(&seen, b"reader's secret"));
}

fn find(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[tokio::test]
async fn nobody_else_gets_in_and_all_are_told_the_same() {
    let Some(slapd) = Slapd::start().await else { return };
    let server = with(&slapd.section(), "").start().await;
    let secret = "anna's secret";
    for (name, password) in [
        ("anna", "wrong"),
        ("anna", ""),
        ("bob", "bob's secret"), // not in the group
        ("nobody", secret),
        ("*", secret),
        ("ann*", secret),
        ("anna)(uid=*", secret),
        ("*)(|(objectClass=*", secret),
        ("\\61nna", secret),
        ("uid=anna,ou=people,dc=example,dc=test", secret),
        ("anna,ou=people", secret),
        ("", secret),
    ] {
        let error = log_in(&server, name, password).await.unwrap_err();
        assert_eq!(error.message, REFUSED, "{name}");
    }
    assert_eq!(server.unix().await.ok("access.users.list", json!({})).await["users"], json!([]));
}

#[tokio::test]
async fn every_spelling_is_the_same_user() {
    let Some(slapd) = Slapd::start().await else { return };
    let server = with(&slapd.section(), "").start().await;
    for name in ["anna", "ANNA", "Anna"] {
        assert_eq!(log_in(&server, name, "anna's secret").await.unwrap()["username"], "anna");
    }
    let users = server.unix().await.ok("access.users.list", json!({})).await;
    assert_eq!(users["users"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_filter_finds_users_by_other_attributes_without_a_login() {
    let Some(slapd) = Slapd::open_to_all().await else { return };
    let section = format!("[ldap]\nldap_host: localhost\nldap_port: {}\nbase_dn: ou=people,dc=example,dc=test\n", slapd.port);
    let by_mail = "user_filter: (&(objectClass=inetOrgPerson)(|(mail=USERNAME)(entryDN=uid=USERNAME,ou=people,dc=example,dc=test)))\n";
    let server = with(&format!("{section}{by_mail}"), "").start().await;
    for name in ["anna@example.test", "anna"] {
        assert_eq!(log_in(&server, name, "anna's secret").await.unwrap()["username"], "anna", "{name}");
    }
    assert_eq!(log_in(&server, "bob", "bob's secret").await.unwrap()["username"], "bob", "no group is wanted");
    for name in ["*@example.test", "anna,ou=people,dc=example,dc=test", "anna+uid=bob"] {
        assert_eq!(log_in(&server, name, "anna's secret").await.unwrap_err().message, REFUSED, "{name}");
    }
}

#[tokio::test]
async fn groups_are_compared_with_case_unless_told_otherwise() {
    let Some(slapd) = Slapd::start().await else { return };
    let section = slapd.section().replace("cn=makers", "CN=Makers");
    let mut server = with(&section, "").start().await;
    assert_eq!(log_in(&server, "anna", "anna's secret").await.unwrap_err().message, REFUSED);
    server.write_config(|text| text.replace("[ldap]\n", "[ldap]\ncheck_dn_case: false\n"));
    server.restart().await;
    assert!(log_in(&server, "anna", "anna's secret").await.is_ok());
}

#[tokio::test]
async fn tls_needs_a_certificate_that_is_trusted() {
    let Some(slapd) = Slapd::start().await else { return };
    let section = slapd.section().replace(&slapd.port.to_string(), &slapd.tls_port.to_string()) + "ldap_secure: true\n";
    let distrustful = with(&section, "").start().await;
    let error = log_in(&distrustful, "anna", "anna's secret").await.unwrap_err();
    assert!(error.message.contains("cannot be asked") && distrustful.stderr().contains("TLS"), "{error:?}\n{}", distrustful.stderr());
    let trust = format!("SSL_CERT_FILE={}", slapd.certificate().display());
    let server = with(&section, "").under(move |_| vec!["env".to_owned(), trust.clone()]).start().await;
    assert!(log_in(&server, "anna", "anna's secret").await.is_ok(), "{}", server.stderr());
}

#[tokio::test]
async fn without_the_directory_users_of_ours_still_log_in() {
    let Some(mut slapd) = Slapd::start().await else { return };
    let server = with(&slapd.section(), "max_login_attempts: 1").start().await;
    slapd.stop();
    let (status, message) = server.http().post_json("/access/login", &person("anna", "anna's secret")).await.error();
    assert!(status == 401 && message.contains("cannot be asked"), "{status} {message}");
    assert!(server.stderr().contains("the directory of users cannot be asked"), "{}", server.stderr());
    let (status, message) = server.http().post_json("/access/login", &person("anna", "anna's secret")).await.error();
    assert!(status == 401 && message.contains("Too many failed logins"), "{status} {message}");
    let mut local = server.unix().await;
    local.ok("access.post_user", json!({"username": "carl", "password": "carl's secret"})).await;
    local.ok("access.login", json!({"username": "carl", "password": "carl's secret"})).await;
    slapd.start_again().await;
    assert_eq!(log_in(&server, "anna", "anna's secret").await.unwrap()["username"], "anna");
    let taken = log_in(&server, "carl", "carl's secret").await.unwrap_err();
    assert_eq!(taken.message, REFUSED, "a user of ours is none of the directory");
}

#[tokio::test]
async fn a_faulty_section_is_named_without_its_secrets_and_lets_nobody_in() {
    let section = "[ldap]\nldap_host: 127.0.0.1\nbase_dn: dc=x\nbind_password: hunter2\ngroup_dn: {secrets.ldap.password\n";
    let server = with(section, "default_source: ldap").start().await;
    let mut local = server.unix().await;
    let info = local.ok("server.info", json!({})).await;
    assert_eq!(info["failed_components"], json!(["ldap"]));
    let warnings = info["warnings"].to_string();
    assert!(warnings.contains("[ldap] group_dn: expected a template") && warnings.contains("default_source"), "{warnings}");
    assert!(!warnings.contains("hunter2") && !warnings.contains("reader's secret"), "{warnings}");
    assert_eq!(local.ok("access.info", json!({})).await["available_sources"], json!(["core"]));
    assert_eq!(log_in(&server, "anna", "anna's secret").await.unwrap_err().message, REFUSED);
}
