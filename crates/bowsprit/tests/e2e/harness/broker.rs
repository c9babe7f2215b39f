//! A real MQTT broker of its own for every test, and a client of it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use outbound::Retry;
use outbound::mqtt::{Link, Message, Mqtt, MqttOptions, Qos, Subscription};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::mpsc::Receiver;

use super::rpc::{Channel, Rpc};
use super::wait::{self, within};

/// Where packages put the broker, which users have no path to.
const PLACES: &[&str] = &["/usr/sbin/mosquitto", "/usr/bin/mosquitto", "/usr/local/sbin/mosquitto"];

/// A running broker.
pub(crate) struct Broker {
    pub(crate) port: u16,
    process: Child,
    folder: TempDir,
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Broker {
    /// A broker that lets everybody in; `None` where there is none installed.
    pub(crate) async fn start() -> Option<Self> {
        Self::start_with(|_| "allow_anonymous true\n".to_owned()).await
    }

    /// A broker with a login.
    pub(crate) async fn with_login(user: &str, password: &str) -> Option<Self> {
        Self::start_with(|folder| {
            let file = folder.join("passwords");
            let made = Command::new("mosquitto_passwd").args(["-b", "-c"]).arg(&file).args([user, password]).status().unwrap();
            assert!(made.success());
            format!("allow_anonymous false\npassword_file {}\n", file.display())
        })
        .await
    }

    /// A broker with these lines in its configuration.
    pub(crate) async fn start_with(config: impl FnOnce(&Path) -> String) -> Option<Self> {
        let Some(program) = program() else {
            println!("skipped: needs mosquitto");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut text = format!("listener {port} 127.0.0.1\npersistence false\nset_tcp_nodelay true\n");
        text.write_str(&config(folder.path())).unwrap();
        std::fs::write(folder.path().join("broker.conf"), text).unwrap();
        let process = launch(program, folder.path());
        let broker = Self { port, process, folder };
        broker.listens().await;
        Some(broker)
    }

    async fn listens(&self) {
        wait::until("the broker listens", || async { TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() }, |listens| *listens)
            .await;
    }

    /// Ends the broker without warning.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts it again; it has forgotten everything.
    pub(crate) async fn start_again(&mut self) {
        self.process = launch(program().unwrap(), self.folder.path());
        self.listens().await;
    }

    /// Lets those in without a login, or no longer, from the next start on.
    pub(crate) fn allow_anonymous(&self, allowed: bool) {
        let config = self.path("broker.conf");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(config, text.replace(&format!("allow_anonymous {}", !allowed), &format!("allow_anonymous {allowed}"))).unwrap();
    }

    /// A path in its folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `[mqtt]` of a server that uses this broker as `printer`.
    pub(crate) fn section(&self, options: &str) -> String {
        format!("[mqtt]\naddress: 127.0.0.1\nport: {}\ninstance_name: printer\n{options}", self.port)
    }

    /// A connected client.
    pub(crate) async fn client(&self) -> Listener {
        let mut options = MqttOptions::to("127.0.0.1", self.port);
        options.retry = Retry { first: Duration::from_millis(50), longest: Duration::from_millis(100), attempts: None };
        let (mqtt, worker) = Mqtt::new(options);
        tokio::spawn(worker.run(std::future::pending()));
        within("connected to the broker", mqtt.link().wait_for(|link| *link == Link::Online)).await.unwrap();
        Listener { mqtt }
    }
}

fn program() -> Option<&'static str> {
    PLACES.iter().copied().find(|place| Path::new(place).exists())
}

fn launch(program: &str, folder: &Path) -> Child {
    let config = folder.join("broker.conf");
    Command::new(program).arg("-c").arg(config).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A client of the broker.
pub(crate) struct Listener {
    pub(crate) mqtt: Mqtt,
}

/// Messages on a topic.
pub(crate) struct Topic {
    messages: Receiver<Message>,
    _subscription: Subscription,
}

impl Listener {
    /// Listens to a topic.
    pub(crate) fn listen(&self, filter: &str) -> Topic {
        let (subscription, messages) = self.mqtt.receive(filter, Qos::AtLeastOnce, 1000).unwrap();
        Topic { messages, _subscription: subscription }
    }

    pub(crate) async fn publish(&self, topic: &str, payload: &str) {
        within("published", self.mqtt.publish(topic, payload.to_owned(), Qos::AtLeastOnce, false)).await.unwrap();
    }

    /// Calls by `service` (`core`, `moonraker`) of `printer`; the answer document.
    pub(crate) async fn call(&self, service: &str, request: &Value) -> Value {
        let mut answers = self.listen(&format!("printer/{service}/api/response"));
        self.publish(&format!("printer/{service}/api/request"), &request.to_string()).await;
        answers.json(|answer| answer["id"] == request["id"]).await
    }
}

/// JSON-RPC over the topics of an instance.
pub(crate) struct MqttChannel {
    client: Listener,
    requests: String,
    answers: Topic,
}

impl Listener {
    /// A caller of this instance.
    pub(crate) fn rpc(self, instance: &str) -> Rpc<MqttChannel> {
        let answers = self.listen(&format!("{instance}/core/api/response"));
        Rpc::over(MqttChannel { client: self, requests: format!("{instance}/core/api/request"), answers })
    }
}

impl Channel for MqttChannel {
    async fn send(&mut self, text: &str) {
        self.client.publish(&self.requests, text).await;
    }

    async fn receive(&mut self) -> Option<String> {
        self.answers.messages.recv().await.map(|message| String::from_utf8_lossy(&message.payload).into_owned())
    }
}

impl Topic {
    /// The next message.
    pub(crate) async fn next(&mut self) -> (String, Value) {
        let message = within("a message from the broker", self.messages.recv()).await.unwrap();
        let text = String::from_utf8_lossy(&message.payload).into_owned();
        (message.topic, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// The next message, however long it takes: for devices, which only answer.
    pub(crate) async fn next_ever(&mut self) -> (String, Value) {
        let Some(message) = self.messages.recv().await else { return std::future::pending().await };
        let text = String::from_utf8_lossy(&message.payload).into_owned();
        (message.topic, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// The next message that fits.
    pub(crate) async fn json(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let (_, payload) = self.next().await;
            if fits(&payload) {
                return payload;
            }
        }
    }
}
