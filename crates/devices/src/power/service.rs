//! The handle: all power devices.

use std::sync::{Arc, Weak};

use futures_util::future::join_all;
use fwhost::{FwHost, HostEvent};
use indexmap::IndexMap;
use outbound::Client;
use outbound::mqtt::{Mqtt, Qos};
use protocol::ApiError;
use protocol::power::{PowerState, PowerStatus};
use rpc::Connections;
use runtime::Supervisor;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::build::PowerDevice;
use super::driver::Makings;
use super::model::Action;
use super::ports::Services;
use super::restart::Restarter;
use super::worker::{self, Device, Message, Shared};
use crate::gpio::Gpio;
use crate::script::Scripts;

/// Power devices of one configuration.
pub const MAX_DEVICES: usize = 64;

/// Name by which gcode macros call.
const REMOTE_METHOD: &str = "set_device_power";

/// State of a device that does not exist, in answers to several questions at once.
const NOT_FOUND: &str = "device_not_found";

/// What devices are made of.
pub struct Parts {
    /// For the printer's state and for devices of the firmware.
    pub host: FwHost,
    /// Who is told.
    pub connections: Arc<Connections>,
    /// For devices on the network.
    pub client: Client,
    /// For devices behind a broker, with its usual quality of service; none when no broker is configured.
    pub mqtt: Option<(Mqtt, Qos)>,
    /// For devices on pins.
    pub gpio: Gpio,
    /// For templates that call the server.
    pub scripts: Arc<Scripts>,
    /// For bound services; none where services are not controlled.
    pub services: Option<Arc<dyn Services>>,
}

/// All power devices.
pub struct Power {
    devices: IndexMap<String, Arc<Device>>,
    shared: Arc<Shared>,
}

impl Power {
    /// The devices of the configuration; [`Power::start`] lets them work.
    #[must_use]
    pub fn new(configured: Vec<PowerDevice>, parts: &Parts) -> Arc<Self> {
        let shared = Arc::new(Shared {
            host: parts.host.clone(),
            connections: parts.connections.clone(),
            services: parts.services.clone(),
            restarter: Restarter::new(parts.host.clone()),
        });
        let mut devices = IndexMap::new();
        for (number, configured) in configured.into_iter().enumerate() {
            let makings = Makings { parts, number: number as u64, options: &configured.options };
            let driver = configured.recipe.driver(&makings);
            let device = Device::new(configured.name.clone(), configured.options, driver, shared.clone());
            devices.insert(configured.name, Arc::new(device));
        }
        Arc::new(Self { devices, shared })
    }

    /// Lets them work.
    pub fn start(self: &Arc<Self>, supervisor: &Supervisor) {
        if self.devices.is_empty() {
            return;
        }
        for device in self.devices.values() {
            let device = device.clone();
            supervisor.spawn(format!("power device {}", device.name), move |stop| worker::run(device.clone(), stop));
        }
        let restarter = self.shared.restarter.clone();
        supervisor.spawn("firmware restart after power", move |stop| restarter.clone().run(stop));
        let power = Arc::downgrade(self);
        self.shared.host.on_event(move |event| {
            if let (HostEvent::Shutdown, Some(power)) = (event, power.upgrade()) {
                power
                    .devices
                    .values()
                    .filter(|device| device.options.off_when_shutdown)
                    .for_each(|device| device.tell(Message::HostShutdown));
            }
        });
        let (power, tasks) = (Arc::downgrade(self), supervisor.tracker().clone());
        let offered = self.shared.host.register_remote_method(REMOTE_METHOD, move |arguments| {
            let power = Weak::clone(&power);
            tasks.spawn(async move { called(&power, &arguments).await });
        });
        if let Err(error) = offered {
            tracing::warn!(%error, "macros cannot switch power devices");
        }
    }

    /// Lets go of everything that would keep the server's parts alive.
    pub fn close(&self) {
        self.shared.host.unregister_remote_method(REMOTE_METHOD);
    }

    /// True when there is at least one device.
    #[must_use]
    pub fn has_devices(&self) -> bool {
        !self.devices.is_empty()
    }

    /// Jobs were added to the queue: some devices go on then.
    pub fn job_queued(&self) {
        for device in self.devices.values().filter(|device| device.options.on_when_job_queued) {
            device.tell(Message::Switch { action: Action::On, forced: false, reply: None });
        }
    }

    /// All devices as they are known, in the order of the configuration.
    pub(crate) fn list(&self, form: protocol::Form) -> Vec<PowerStatus> {
        self.devices.values().map(|device| device.status(form)).collect()
    }

    /// Asks a device.
    ///
    /// # Errors
    /// 400 when there is no such device.
    pub async fn query(&self, name: &str) -> Result<PowerState, ApiError> {
        Ok(self.device(name)?.query().await)
    }

    /// Switches a device; `forced` also while printing.
    ///
    /// # Errors
    /// 400 when there is no such device, when it is locked, and when it does not do it; 504 when it does not answer in time.
    pub async fn switch(&self, name: &str, action: Action, forced: bool) -> Result<PowerState, ApiError> {
        self.device(name)?.switch(action, forced).await
    }

    /// Asks several devices at once, or switches them: their states afterwards. A device that fails says `error` and keeps no other from its turn.
    ///
    /// # Errors
    /// 400 when no device is named.
    pub(crate) async fn batch(&self, names: Vec<String>, action: Option<Action>) -> Result<IndexMap<String, &'static str>, ApiError> {
        if names.is_empty() {
            return Err(ApiError::bad_request("No arguments provided"));
        }
        let each = names.into_iter().map(|name| async move {
            let Some(device) = self.devices.get(&name) else { return (name, NOT_FOUND) };
            let state = match action {
                None => device.query().await,
                Some(action) => device.switch(action, false).await.unwrap_or_else(|error| {
                    tracing::warn!(device = name, %error, "power device not switched");
                    device.state_after_refusal()
                }),
            };
            (name, state.as_str())
        });
        Ok(join_all(each).await.into_iter().collect())
    }

    fn device(&self, name: &str) -> Result<&Arc<Device>, ApiError> {
        self.devices.get(name).ok_or_else(|| ApiError::bad_request(format!("No valid device named {name:.100}")))
    }
}

#[derive(Deserialize)]
struct MacroCall {
    device: String,
    state: MacroState,
    #[serde(default)]
    force: Value,
}

impl MacroCall {
    /// Parameters of macros are texts.
    fn is_forced(&self) -> bool {
        match &self.force {
            Value::Bool(flag) => *flag,
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::String(word) => matches!(word.to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on"),
            _ => false,
        }
    }
}

/// Macros write numbers, words and booleans.
#[derive(Deserialize)]
#[serde(untagged)]
enum MacroState {
    Flag(bool),
    Word(String),
}

impl MacroState {
    fn action(&self) -> Option<Action> {
        match self {
            Self::Flag(true) => Some(Action::On),
            Self::Flag(false) => Some(Action::Off),
            Self::Word(word) => match word.to_ascii_lowercase().as_str() {
                "true" => Some(Action::On),
                "false" => Some(Action::Off),
                word => Action::from_wire(word),
            },
        }
    }
}

/// A macro called; nobody waits for an answer.
pub(super) async fn called(power: &Weak<Power>, arguments: &RawValue) {
    let Some(power) = power.upgrade() else { return };
    let call: MacroCall = match serde_json::from_str(arguments.get()) {
        Ok(call) => call,
        Err(error) => return tracing::warn!(%error, "a macro called set_device_power without a device or a state"),
    };
    let Some(action) = call.state.action() else {
        return tracing::warn!(
            device = call.device,
            "a macro called set_device_power with a state that is none: expected on, off or toggle"
        );
    };
    if let Err(error) = power.switch(&call.device, action, call.is_forced()).await {
        tracing::warn!(device = call.device, %error, "a macro could not switch a power device");
    }
}
