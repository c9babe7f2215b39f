//! Services and power over a system bus of our own, with the systemd and the logind of python-dbusmock; and through a real supervisord.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::bus::Bus;
use crate::harness::sandbox::{can_mount, in_namespaces};
use crate::harness::{TestServer, wait};

const UNITS: &[&str] = &["klipper.service", "sonar.service", "sshd.service"];

/// Each start of a program in Python takes its time on a busy machine.
const PYTHON: Duration = Duration::from_secs(120);

/// Tests may run in a container, which is never switched off from within.
const LOOKS_LIKE_A_MACHINE: &str = "echo 'systemd (1, #threads: 1)' > sched; : > cgroup; \
    mount --bind sched /proc/1/sched; mount --bind cgroup /proc/1/cgroup";

async fn on(bus: &Bus) -> TestServer {
    let address = format!("DBUS_SYSTEM_BUS_ADDRESS={}", bus.address());
    let builder = TestServer::builder().without_printer().config("[machine]\nprovider: systemd_dbus");
    let builder = builder.prepare(|folder| std::fs::write(folder.join("core.asvc"), "sonar\n").unwrap());
    let builder = in_namespaces(builder, LOOKS_LIKE_A_MACHINE);
    builder.under(move |_| vec!["env".to_owned(), address.clone()]).start().await
}

async fn known(server: &TestServer) -> Value {
    server.http().get("/machine/system_info").await.result()["system_info"].take()
}

async fn act(server: &TestServer, action: &str, service: &str) -> u16 {
    server.http().post_json(&format!("/machine/services/{action}"), &json!({"service": service})).await.status
}

#[tokio::test]
async fn services_are_listed_switched_and_followed_over_the_bus() {
    if !can_mount() {
        return;
    }
    let Some(bus) = Bus::start(UNITS).await else { return };
    let server = on(&bus).await;
    let info = wait::until("services", || known(&server), |info| info["available_services"] != json!([])).await;
    assert_eq!((&info["available_services"], &info["provider"]), (&json!(["firmware", "sonar"]), &json!("systemd_dbus")));
    assert_eq!(info["service_state"]["sonar"], json!({"active_state": "inactive", "sub_state": "sub"}));

    let mut ws = server.ws().await;
    assert_eq!(ws.ok("machine.services.start", json!({"service": "sonar"})).await, "ok");
    let change = ws.notified("notify_service_state_changed").await[0].take();
    assert_eq!(change, json!({"sonar": {"active_state": "active", "sub_state": "sub"}}));
    for (action, service, status) in
        [("stop", "sonar", 200), ("restart", "firmware", 200), ("stop", "sshd", 400), ("stop", "crowsnest", 400)]
    {
        assert_eq!(act(&server, action, service).await, status, "{action} {service}");
    }
    let asked: Vec<String> = bus.calls("systemd").into_iter().filter(|call| call.contains("Unit \"")).collect();
    let expected = ["StartUnit \"sonar", "StopUnit \"sonar", "RestartUnit \"klipper"].map(|call| format!("{call}.service\" \"replace\""));
    // A restart is a stop and a start within the counterpart.
    let asked: Vec<&String> = asked.iter().filter(|call| !call.contains("Mock")).collect();
    assert_eq!(asked[..3].iter().map(|call| call.as_str()).collect::<Vec<_>>(), expected, "{asked:?}");

    assert_eq!(ws.ok("machine.reboot", json!({})).await, "ok");
    assert_eq!(ws.ok("machine.shutdown", json!({})).await, "ok");
    assert_eq!(bus.calls("logind"), ["Reboot False", "PowerOff False"]);
}

#[tokio::test]
async fn a_bus_that_goes_away_is_an_error_and_is_found_again() {
    if !can_mount() {
        return;
    }
    let Some(mut bus) = Bus::start(UNITS).await else { return };
    let server = on(&bus).await;
    wait::until("services", || known(&server), |info| info["available_services"] != json!([])).await;
    bus.kill();
    let (status, message) = server.http().post_json("/machine/services/restart", &json!({"service": "klipper"})).await.error();
    assert_eq!(status, 503, "{message}");
    let (status, message) = server.http().post_json("/machine/reboot", &json!({})).await.error();
    assert!(status == 503 && message.contains("system bus"), "{status} {message}");
    assert_eq!(known(&server).await["provider"], "systemd_dbus", "everything else goes on");
    let warnings = || async { server.info().await["warnings"].take() };
    wait::until("a warning", warnings, |warnings| warnings.to_string().contains("The system bus")).await;
    bus.start_again(&["klipper.service"]).await;
    wait::until("a restart works again", || act(&server, "restart", "klipper"), |status| *status == 200).await;
    // The services are looked at anew: one of them is gone.
    wait::until("services", || known(&server), |info| info["available_services"] == json!(["firmware"])).await;
    wait::until("the warning is withdrawn", warnings, |warnings| *warnings == json!([])).await;
    let mut ws = server.ws().await;
    ws.ok("machine.services.stop", json!({"service": "klipper"})).await;
    assert_eq!(ws.notified("notify_service_state_changed").await[0]["firmware"]["active_state"], "inactive");
}

#[tokio::test]
async fn programs_of_supervisord_are_services() {
    let has = |program: &str| Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !has("supervisord") || !has("supervisorctl") {
        return println!("skipped: needs supervisord");
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display();
    let config = format!(
        "[unix_http_server]\nfile={place}/sock\n[supervisord]\nnodaemon=true\nlogfile={place}/log\npidfile={place}/pid\nchildlogdir={place}\n\
         [rpcinterface:supervisor]\nsupervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface\n\
         [supervisorctl]\nserverurl=unix://{place}/sock\n[program:klipper]\ncommand=sleep 1000\nstartsecs=0\n\
         [program:sonar]\ncommand=sleep 1000\nautostart=false\nstartsecs=0\n[program:sshd]\ncommand=sleep 1000\nstartsecs=0\n\
         [program:crowsnest]\ncommand=/nonexistent/crowsnest\nautostart=false\n"
    );
    let file = folder.path().join("supervisord.conf");
    std::fs::write(&file, config).unwrap();
    // In a group of its own, which is ended whole.
    let mut supervisord = Command::new("supervisord");
    let mut daemon = supervisord.arg("-c").arg(&file).process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let socket = || async { folder.path().join("sock").exists() };
    wait::until_within(PYTHON, "supervisord is there", socket, |is_there| *is_there).await;
    let section = format!("[machine]\nprovider: supervisord_cli\nsupervisord_config_path: {}", file.display());
    let server = TestServer::builder().without_printer().config(&section).start().await;
    let info =
        wait::until_within(PYTHON, "programs", || known(&server), |info| info["service_state"]["firmware"]["active_state"] == "active")
            .await;
    assert_eq!(info["available_services"], json!(["crowsnest", "firmware", "sonar"]));
    assert_eq!(info["service_state"]["sonar"], json!({"active_state": "inactive", "sub_state": "stopped"}));
    let mut ws = server.ws().await;
    ws.ok("machine.services.start", json!({"service": "sonar"})).await;
    let change = ws.notified("notify_service_state_changed").await[0].take();
    assert_eq!(change, json!({"sonar": {"active_state": "active", "sub_state": "running"}}));
    let failed = ws.call("machine.services.start", json!({"service": "crowsnest"})).await.unwrap_err();
    assert!(failed.message.contains("no such file"), "{failed:?}");
    assert_eq!((act(&server, "restart", "klipper").await, act(&server, "stop", "sshd").await), (200, 400));
    let group = rustix::process::Pid::from_child(&daemon);
    rustix::process::kill_process_group(group, rustix::process::Signal::TERM).unwrap();
    daemon.wait().unwrap();
}

/// Keeps the state of one unit, notes what it is asked, and needs a moment to stop.
const SYSTEMCTL: &str = r#"#!/bin/sh
here=${0%/*}
case "$1" in
list-units) echo "klipper.service loaded $(cat "$here/state") x Klipper" ;;
stop) echo "stop $2" >> "$here/calls"; echo deactivating > "$here/state"; (sleep 0.3; echo inactive > "$here/state") >/dev/null 2>&1 & ;;
start) echo "start $2, $(ls "$here/../logs" | wc -l) logs" >> "$here/calls"; echo active > "$here/state" ;;
esac
"#;

#[tokio::test]
async fn the_log_of_the_firmware_host_is_rolled_over_while_its_service_stands_still() {
    if std::fs::read_to_string("/proc/self/cgroup").unwrap().contains(".service") {
        return println!("skipped: this test runs within a service, which would be taken for that of the firmware host");
    }
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: sudo would be asked");
    }
    let builder = TestServer::builder().config("[machine]\nprovider: systemd_cli").prepare(|folder| {
        std::fs::create_dir(folder.join("bin")).unwrap();
        crate::sudo::write_program(&folder.join("bin"), "systemctl", SYSTEMCTL);
        std::fs::write(folder.join("bin/state"), "active\n").unwrap();
    });
    let path = |folder: &std::path::Path| format!("PATH={}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let server = builder.under(move |folder| vec!["env".to_owned(), path(folder)]).start().await;
    std::fs::write(server.path("logs/klippy.log"), "old").unwrap();
    let mut ws = server.ws().await;
    let answer = ws.ok("server.logs.rollover", json!({"application": "klipper"})).await;
    assert_eq!((&answer["rolled_over"], &answer["failed"]), (&json!(["firmware"]), &json!({})), "{answer}");
    let calls = std::fs::read_to_string(server.path("bin/calls")).unwrap();
    assert_eq!(calls, "stop klipper.service\nstart klipper.service, 1 logs\n");
    let logs = crate::harness::server::files_below(&server.path("logs"));
    let rolled = logs.iter().find(|name| name.starts_with("klippy.log.20")).unwrap();
    assert_eq!(rolled.len(), "klippy.log.2026-11-22_08-00-00".len());
    assert_eq!(std::fs::read_to_string(server.path("logs").join(rolled)).unwrap(), "old");
    // A log that is not there stops nothing.
    std::fs::remove_file(server.path("logs/klippy.log")).ok();
    let failed = ws.ok("server.logs.rollover", json!({"application": "klipper"})).await;
    assert!(failed["failed"]["firmware"].as_str().unwrap().contains("does not exist"), "{failed}");
    assert_eq!(std::fs::read_to_string(server.path("bin/calls")).unwrap(), calls);
}
