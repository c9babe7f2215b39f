//! The host machine: statistics, information, services, devices.

use serde_json::{Value, json};

use crate::harness::{TestServer, wait};

#[tokio::test]
async fn statistics_come_each_second_to_those_who_have_not_identified_and_not_to_strangers() {
    let server = TestServer::without_printer().await;
    let mut ws = server.ws().await;
    let update = ws.notified("notify_proc_stat_update").await[0].take();
    assert!(update["moonraker_stats"]["memory"].as_u64() > Some(1000) && update["core_stats"] == update["moonraker_stats"], "{update}");
    assert!(update["system_cpu_usage"]["cpu0"].is_number() && update["network"]["lo"]["tx_drop"].is_u64(), "{update}");
    assert!(update.get("throttled_state").is_none() && update["system_memory"]["used"].as_u64() > Some(1000), "{update}");
    let next = ws.notified("notify_proc_stat_update").await[0].take();
    let time = |update: &Value| update["core_stats"]["time"].as_f64().unwrap();
    assert!((0.5..3.0).contains(&(time(&next) - time(&update))), "{update} {next}");
}

#[tokio::test]
async fn the_report_holds_samples_and_counts_connections() {
    let server = TestServer::without_printer().await;
    let _ws = server.ws().await;
    let look = || async { server.http().get("/machine/proc_stats").await.result() };
    let report = wait::until("two samples", look, |report| report["moonraker_stats"].as_array().unwrap().len() > 1).await;
    assert_eq!((&report["throttled_state"], &report["websocket_connections"]), (&Value::Null, &json!(1)));
    assert!(report["system_uptime"].as_f64() > Some(1.0) && report["core_stats"] == report["moonraker_stats"], "{report}");
}

#[tokio::test]
async fn services_that_are_not_allowed_are_refused_and_the_server_restarts_itself() {
    let server = TestServer::builder().without_printer().config("[machine]\nprovider: none").start().await;
    let http = server.http();
    let post = |path: &'static str, service: &'static str| async move { http.post_json(path, &json!({"service": service})).await.error() };
    assert_eq!(post("/machine/services/stop", "sshd").await, (400, "Service 'sshd' is not in the list of allowed services".to_owned()));
    assert_eq!(post("/machine/services/start", "crowsnest").await, (400, "Service 'crowsnest' is not installed".to_owned()));
    assert!(post("/machine/services/start", "--now").await.1.contains("'service'"));
    assert!(http.post_json("/machine/reboot", &json!({})).await.error().1.contains("provider is none"));
    assert!(server.path("core.asvc").is_file() && http.get("/server/files/config/core.asvc").await.status == 404);
    let mut ws = server.ws().await;
    assert_eq!(ws.ok("machine.services.restart", json!({"service": "moonraker"})).await, "ok");
    ws.closed().await;
}

#[tokio::test]
async fn the_server_starts_without_a_bus_and_says_so() {
    let nowhere = "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nonexistent/bus";
    let builder = TestServer::builder().without_printer().config("[machine]\nprovider: systemd_dbus");
    let server = builder.under(move |_| vec!["env".to_owned(), nowhere.to_owned()]).start().await;
    let warnings = || async { server.info().await["warnings"].take() };
    wait::until("a warning", warnings, |warnings| warnings.to_string().contains("set `provider: none`")).await;
    let refused = server.http().post_json("/machine/services/start", &json!({"service": "klipper"})).await.error();
    assert!(refused.0 == 503 && refused.1.starts_with("The system bus cannot be reached"), "{refused:?}");
    let info = server.http().get("/machine/system_info").await.result();
    assert_eq!(info["system_info"]["provider"], "systemd_dbus");
    let sudo = server.http().get("/machine/sudo/info").await.result();
    assert!(sudo["sudo_access"].is_null() && !sudo["linux_user"].as_str().unwrap().is_empty(), "{sudo}");
    assert_eq!(server.http().post_json("/machine/sudo/password", &json!({"password": ""})).await.status, 400);
}

#[tokio::test]
async fn devices_are_listed() {
    let server = TestServer::without_printer().await;
    for (kind, member) in [("usb", "usb_devices"), ("serial", "serial_devices"), ("video", "v4l2_devices")] {
        let answer = server.http().get(&format!("/machine/peripherals/{kind}")).await.result();
        assert!(answer[member].is_array(), "{answer}");
    }
    let (status, message) = server.http().get("/machine/peripherals/canbus?interface=nocan9").await.error();
    assert!(status == 500 && message.starts_with("CAN interface 'nocan9': "), "{message}");
}

#[tokio::test]
async fn system_information_has_every_member() {
    let server = TestServer::without_printer().await;
    let info = server.ws().await.ok("machine.system_info", json!({})).await["system_info"].take();
    let members: Vec<&str> = info.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = vec!["python", "cpu_info", "sd_info", "distribution", "virtualization", "network", "canbus", "provider"];
    expected.extend(["available_services", "service_state", "instance_ids"]);
    expected.sort_unstable();
    assert_eq!(members, expected);
    assert!(info["cpu_info"]["cpu_count"].as_u64() > Some(0) && info["cpu_info"]["memory_units"] == "kB", "{info}");
    assert!(info["distribution"]["kernel_version"].as_str().unwrap().contains('.'), "{info}");
    assert_eq!(info["instance_ids"]["klipper"], info["instance_ids"]["firmware"]);
    let unit = &info["instance_ids"]["firmware"];
    let mut params = json!({"client_name": "mainsail", "version": "2", "type": "web", "url": "x"});
    let mut ws = server.ws().await;
    ws.ok("server.connection.identify", params.take()).await;
    let theirs = ws.ok("machine.system_info", json!({})).await["system_info"]["instance_ids"].take();
    assert_eq!((unit, &theirs["firmware"]), (&json!("firmware"), &json!("klipper")), "each caller reads its own names");
}
