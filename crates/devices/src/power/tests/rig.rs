//! Power devices of a configuration text, with everything around them that tests look at.

use std::sync::Arc;
use std::time::Duration;

use config::{Context, Reader, Secrets};
use fwhost::FwHost;
use indexmap::IndexMap;
use outbound::Client;
use parking_lot::Mutex;
use protocol::Form;
use protocol::power::PowerState;
use rpc::transfer::Boxed;
use rpc::{ConnectionKind, Connections, Identity};
use runtime::{StopToken, Supervisor};
use serde_json::Value;

use crate::gpio::Gpio;
use crate::gpio::simulated::SimulatedChips;
use crate::power::{Action, Parts, Power, Services, read};
use crate::script::Scripts;

/// Longest that tests wait for anything.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Notes what services are told.
#[derive(Default)]
pub(super) struct FakeServices(pub(super) Mutex<Vec<String>>);

impl Services for FakeServices {
    fn refuses(&self, service: &str) -> Option<String> {
        (service == "bowsprit").then(|| "it is this server".to_owned())
    }

    fn run(&self, service: String, start: bool) -> Boxed<'static, Result<(), String>> {
        self.0.lock().push(format!("{} {service}", if start { "start" } else { "stop" }));
        Box::pin(async { Ok(()) })
    }
}

pub(super) struct Rig {
    pub(super) power: Arc<Power>,
    pub(super) chips: SimulatedChips,
    pub(super) services: Arc<FakeServices>,
    pub(super) supervisor: Supervisor,
    /// What went wrong while the configuration was read.
    pub(super) problems: Vec<String>,
    connection: rpc::connection::Registered,
}

impl Rig {
    /// Devices of a configuration, at work.
    pub(super) fn start(text: &str) -> Self {
        Self::with_chips(text, SimulatedChips::default())
    }

    pub(super) fn with_chips(text: &str, chips: SimulatedChips) -> Self {
        let loaded = config::load_text("core.conf", text);
        let context = Context { secrets: secrets(), ..Context::default() };
        let mut reader = Reader::new(&loaded.document, &context);
        let mut configured = read(&mut reader, &context.secrets);
        let mut problems: Vec<String> = reader.problems.iter().chain(&reader.warnings).map(ToString::to_string).collect();
        problems.extend(config::unparsed(&loaded.document, &reader.usage));
        let services = Arc::new(FakeServices::default());
        for device in &mut configured {
            problems.extend(device.drop_unusable_services(Some(&*services)));
        }
        let connections = Arc::new(Connections::default());
        let connection = connections.register(ConnectionKind::Unix, Identity::Local, None);
        let parts = Parts {
            host: FwHost::new(fwhost::Options::new(std::path::Path::new("/nonexistent/socket"), "test", "1")),
            connections,
            client: Client::new("test"),
            mqtt: None,
            gpio: Gpio::new(Arc::new(chips.clone())),
            scripts: Scripts::new(StopToken::new()),
            services: Some(services.clone()),
        };
        let (power, supervisor) = (Power::new(configured, &parts), Supervisor::new());
        power.start(&supervisor);
        Self { power, chips, services, supervisor, problems, connection }
    }

    pub(super) async fn switch(&self, name: &str, action: Action) -> Result<&'static str, String> {
        self.power.switch(name, action, false).await.map(PowerState::as_str).map_err(|error| error.message)
    }

    pub(super) async fn query(&self, name: &str) -> &'static str {
        self.power.query(name).await.unwrap().as_str()
    }

    /// The state of a device that has answered once.
    pub(super) async fn known(&self, name: &str) -> &'static str {
        loop {
            match self.query(name).await {
                "init" => tokio::time::sleep(Duration::from_millis(5)).await,
                state => return state,
            }
        }
    }

    /// What is wrong with the first device; waits until something is.
    pub(super) async fn fault(&self) -> String {
        loop {
            match self.shown().1 {
                Some(fault) => return fault,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    /// State and fault of the first device as the list shows them.
    pub(super) fn shown(&self) -> (&'static str, Option<String>) {
        let first = self.power.list(Form::Upstream).remove(0);
        (first.status.as_str(), first.error)
    }

    /// Waits until the first device is shown in this state.
    pub(super) async fn until(&self, state: &str) {
        let wait = async {
            while self.shown().0 != state {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "still {:?}, expected {state}", self.shown());
    }

    pub(super) async fn batch(&self, names: &[&str], action: Option<Action>) -> IndexMap<String, &'static str> {
        self.power.batch(names.iter().map(ToString::to_string).collect(), action).await.unwrap()
    }

    /// States that clients have been told since the last time.
    pub(super) fn told(&self) -> Vec<String> {
        let mut frames = Vec::new();
        self.connection.connection.outbox.take(&mut frames, usize::MAX);
        let status = |frame: &bytes::Bytes| -> Value { serde_json::from_slice(frame).unwrap() };
        let told = frames.iter().map(status).filter(|message| message["method"] == "notify_power_changed");
        told.map(|message| {
            format!("{} {}", message["params"][0]["device"].as_str().unwrap(), message["params"][0]["status"].as_str().unwrap())
        })
        .collect()
    }

    pub(super) async fn stop(&self) {
        assert!(self.supervisor.stop(Duration::from_secs(5)).await.is_clean());
    }
}

fn secrets() -> Secrets {
    Secrets::parse("core.secrets", br#"{"plug": {"password": "hunter2"}}"#).0
}
