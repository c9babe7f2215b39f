//! The MQTT client against a real broker. Skipped where `mosquitto` is not installed; `.ci/run` installs it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use outbound::Retry;
use outbound::mqtt::{Link, Message, Mqtt, MqttError, MqttOptions, Qos, Subscription, Version};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

const DEADLINE: Duration = Duration::from_secs(60);

struct Broker {
    port: u16,
    process: Child,
    folder: tempfile::TempDir,
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> Option<&'static str> {
    let found =
        ["/usr/sbin/mosquitto", "/usr/bin/mosquitto", "/usr/local/sbin/mosquitto"].into_iter().find(|path| Path::new(path).exists());
    if found.is_none() {
        println!("no mosquitto: skipped");
    }
    found
}

impl Broker {
    /// A broker with a login (`anna`, `secret`) when `password` is set; `None` where there is no mosquitto.
    async fn start(password: bool) -> Option<Self> {
        let program = program()?;
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut config = std::fs::File::create(folder.path().join("m.conf")).unwrap();
        writeln!(config, "listener {port} 127.0.0.1\npersistence false\nset_tcp_nodelay true").unwrap();
        if password {
            let passwords = folder.path().join("passwords");
            let made = Command::new("mosquitto_passwd").args(["-b", "-c"]).arg(&passwords).args(["anna", "secret"]).status().unwrap();
            assert!(made.success());
            writeln!(config, "allow_anonymous false\npassword_file {}", passwords.display()).unwrap();
        } else {
            writeln!(config, "allow_anonymous true").unwrap();
        }
        let process = launch(program, folder.path());
        let broker = Self { port, process, folder };
        broker.ready().await;
        Some(broker)
    }

    async fn ready(&self) {
        let connects = async {
            while tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(DEADLINE, connects).await.expect("mosquitto listens");
    }

    async fn restart(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.process = launch(program().unwrap(), self.folder.path());
        self.ready().await;
    }

    fn options(&self) -> MqttOptions {
        let mut options = MqttOptions::to("127.0.0.1", self.port);
        options.retry = Retry { first: Duration::from_millis(50), longest: Duration::from_millis(200), attempts: None };
        options
    }
}

fn launch(program: &str, folder: &Path) -> Child {
    Command::new(program).arg("-c").arg(folder.join("m.conf")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A client that runs; dropping the sender stops it.
fn run(options: MqttOptions) -> (Mqtt, oneshot::Sender<()>) {
    let (mqtt, worker) = Mqtt::new(options);
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(worker.run(async move { drop(stopped.await) }));
    (mqtt, stop)
}

async fn until(mqtt: &Mqtt, wanted: impl Fn(&Link) -> bool) -> Link {
    timeout(DEADLINE, mqtt.link().wait_for(|link| wanted(link))).await.expect("in time").unwrap().clone()
}

async fn online(mqtt: &Mqtt) {
    until(mqtt, |link| *link == Link::Online).await;
}

async fn next(messages: &mut mpsc::Receiver<Message>) -> (String, String) {
    let message = timeout(DEADLINE, messages.recv()).await.expect("a message in time").unwrap();
    (message.topic, String::from_utf8(message.payload.to_vec()).unwrap())
}

fn pair(topic: &str, payload: &str) -> (String, String) {
    (topic.to_owned(), payload.to_owned())
}

#[tokio::test]
async fn every_version_and_quality_brings_messages_in_order() {
    let Some(broker) = Broker::start(false).await else { return };
    for version in [Version::V31, Version::V311, Version::V5] {
        let (mqtt, _stop) = run(MqttOptions { version, ..broker.options() });
        online(&mqtt).await;
        for qos in [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce] {
            let (_subscription, mut messages) = mqtt.receive("room/+/temperature", qos, 200).unwrap();
            let (_other, mut exact) = mqtt.receive("exact", qos, 200).unwrap();
            mqtt.publish("room/1/temperature", "one", qos, false).await.unwrap();
            for n in 0..100 {
                mqtt.send("exact", n.to_string(), qos, false).unwrap();
            }
            for n in 0..100 {
                assert_eq!(next(&mut exact).await, pair("exact", &n.to_string()), "{version:?} {qos:?}");
            }
            assert_eq!(next(&mut messages).await, pair("room/1/temperature", "one"));
        }
    }
}

#[tokio::test]
async fn a_kept_message_comes_first_to_everybody_and_once() {
    let Some(broker) = Broker::start(false).await else { return };
    let (mqtt, _stop) = run(broker.options());
    online(&mqtt).await;
    mqtt.publish("state", "kept", Qos::AtLeastOnce, true).await.unwrap();
    let (_first, mut first) = mqtt.receive("state", Qos::AtMostOnce, 10).unwrap();
    assert_eq!(next(&mut first).await, pair("state", "kept"));
    let (_second, mut second) = mqtt.receive("state", Qos::AtMostOnce, 10).unwrap();
    assert_eq!(next(&mut second).await, pair("state", "kept"));
    mqtt.publish("state", "new", Qos::AtLeastOnce, false).await.unwrap();
    assert_eq!(next(&mut first).await, pair("state", "new"), "not the kept one again");
    assert_eq!(next(&mut second).await, pair("state", "new"));
}

/// A client that hears `slow` with all the patience in the world, and what it hears.
fn patient(options: MqttOptions, qos: Qos) -> (Mqtt, oneshot::Sender<()>, mpsc::UnboundedReceiver<String>, Subscription) {
    let (mqtt, stop) = run(MqttOptions { patience: Duration::from_secs(3600), ..options });
    let (heard, messages) = mpsc::unbounded_channel();
    let listener = move |message: &Message| drop(heard.send(String::from_utf8_lossy(&message.payload).into_owned()));
    let subscription = mqtt.subscribe_patiently("slow", qos, listener).unwrap();
    (mqtt, stop, messages, subscription)
}

/// Publishes to `slow` what makes a patient listener rest: not before it has had time to hear what the broker had kept.
async fn let_it_rest(other: &Mqtt, messages: &mut mpsc::UnboundedReceiver<String>) {
    other.publish("slow", "kept", Qos::AtLeastOnce, true).await.unwrap();
    assert_eq!(timeout(DEADLINE, messages.recv()).await.unwrap().unwrap(), "kept");
    sleep(Duration::from_millis(1100)).await;
    other.publish("slow", "last", Qos::AtLeastOnce, false).await.unwrap();
    assert_eq!(timeout(DEADLINE, messages.recv()).await.unwrap().unwrap(), "last");
}

#[tokio::test]
async fn messages_that_may_wait_are_fetched_together_unless_somebody_is_in_a_hurry() {
    let Some(broker) = Broker::start(false).await else { return };
    let (other, _stop) = run(broker.options());
    online(&other).await;
    let (mqtt, _stop, mut messages, _subscription) = patient(broker.options(), Qos::AtMostOnce);
    let_it_rest(&other, &mut messages).await;
    let mut hear = async || timeout(DEADLINE, messages.recv()).await.expect("a message in time").unwrap();
    for n in ["1", "2"] {
        other.publish("slow", n, Qos::AtLeastOnce, false).await.unwrap();
    }
    assert!(timeout(Duration::from_millis(100), hear()).await.is_err(), "it rests");
    mqtt.publish("anything", "", Qos::AtLeastOnce, false).await.unwrap();
    assert_eq!((hear().await, hear().await), ("1".to_owned(), "2".to_owned()));
    other.publish("slow", "3", Qos::AtLeastOnce, false).await.unwrap();
    assert_eq!(hear().await, "3", "it has just published, so it does not rest");
}

#[tokio::test]
async fn one_that_rests_can_listen_to_something_else_and_leave() {
    let Some(broker) = Broker::start(false).await else { return };
    let (other, _stop) = run(broker.options());
    let (_here, mut seen) = other.receive("here", Qos::AtMostOnce, 10).unwrap();
    online(&other).await;
    let (mqtt, stop, mut messages, _subscription) =
        patient(broker.options().announce("here", "yes", "no", Qos::AtMostOnce), Qos::AtMostOnce);
    assert_eq!(next(&mut seen).await, pair("here", "yes"));
    let_it_rest(&other, &mut messages).await;
    let (_its_own, mut its_own) = mqtt.receive("here", Qos::AtMostOnce, 10).unwrap();
    assert_eq!(next(&mut its_own).await, pair("here", "yes"));
    sleep(Duration::from_millis(1100)).await;
    other.publish("slow", "to rest again", Qos::AtLeastOnce, false).await.unwrap();
    assert_eq!(timeout(DEADLINE, messages.recv()).await.unwrap().unwrap(), "to rest again");
    drop(stop);
    assert_eq!(next(&mut seen).await, pair("here", "no"));
}

/// Brokers send only so many messages before they are acknowledged: to pause after them would pile up the others there.
#[tokio::test]
async fn messages_that_are_acknowledged_never_wait() {
    let Some(broker) = Broker::start(false).await else { return };
    let (other, _stop) = run(broker.options());
    online(&other).await;
    let (_mqtt, _stop, mut messages, _subscription) = patient(broker.options(), Qos::AtLeastOnce);
    let_it_rest(&other, &mut messages).await;
    for n in 0..100 {
        other.publish("slow", n.to_string(), Qos::AtLeastOnce, false).await.unwrap();
        assert_eq!(timeout(DEADLINE, messages.recv()).await.expect("at once").unwrap(), n.to_string());
    }
}

#[tokio::test]
async fn subscriptions_outlive_a_restart_of_the_broker() {
    let Some(mut broker) = Broker::start(false).await else { return };
    let (mqtt, _stop) = run(broker.options().announce("here", "yes", "no", Qos::AtLeastOnce));
    let (_subscription, mut messages) = mqtt.receive("here", Qos::AtMostOnce, 10).unwrap();
    assert_eq!(next(&mut messages).await, pair("here", "yes"));
    let mut link = mqtt.link();
    link.mark_unchanged();
    broker.restart().await;
    assert_eq!(next(&mut messages).await, pair("here", "yes"), "subscribed anew, announced anew");
    assert!(link.has_changed().unwrap(), "the loss was seen");
}

#[tokio::test]
async fn without_a_broker_nothing_is_taken_and_the_reason_is_told() {
    let Some(mut broker) = Broker::start(false).await else { return };
    let (mqtt, _stop) = run(broker.options());
    online(&mqtt).await;
    broker.process.kill().unwrap();
    let Link::Offline(reason) = until(&mqtt, |link| matches!(link, Link::Offline(reason) if reason.contains("refused"))).await else {
        panic!()
    };
    assert!(reason.to_lowercase().contains("connection refused"), "{reason}");
    assert_eq!(mqtt.publish("a", "b", Qos::AtMostOnce, false).await, Err(MqttError::Offline));
}

#[tokio::test]
async fn a_wrong_password_is_reported_and_tried_again() {
    let Some(broker) = Broker::start(true).await else { return };
    for version in [Version::V311, Version::V5] {
        let login =
            |password: &str| MqttOptions { username: Some("anna".into()), password: Some(password.into()), version, ..broker.options() };
        let (wrong, _stop) = run(login("guess"));
        let Link::Offline(reason) = until(&wrong, |link| matches!(link, Link::Offline(_))).await else { panic!() };
        assert!(reason.contains("password"), "{reason}");
        let (right, _stop) = run(login("secret"));
        online(&right).await;
    }
}

#[tokio::test]
async fn the_broker_tells_when_we_vanish_and_we_tell_when_we_leave() {
    let Some(broker) = Broker::start(false).await else { return };
    let (watcher, _stop) = run(broker.options());
    let (_subscription, mut seen) = watcher.receive("here/#", Qos::AtMostOnce, 10).unwrap();
    online(&watcher).await;
    let (leaving, stop) = run(broker.options().announce("here/a", "yes", "no", Qos::AtMostOnce));
    assert_eq!(next(&mut seen).await, pair("here/a", "yes"));
    drop(leaving);
    drop(stop);
    assert_eq!(next(&mut seen).await, pair("here/a", "no"));
    // One that vanishes: its runtime goes with everything in it.
    let vanishing = broker.options().announce("here/b", "yes", "no", Qos::AtMostOnce);
    let (gone, go) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_mqtt, stop) = run(vanishing);
            // Never told to stop.
            std::mem::forget(stop);
            while go.try_recv().is_err() {
                sleep(Duration::from_millis(10)).await;
            }
        });
        runtime.shutdown_background();
    });
    assert_eq!(next(&mut seen).await, pair("here/b", "yes"));
    gone.send(()).unwrap();
    assert_eq!(next(&mut seen).await, pair("here/b", "no"));
    thread.join().unwrap();
}
