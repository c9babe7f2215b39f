//! The host machine: statistics, information.

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
}
