//! MQTT: one client, shared by operations, macros and the API over topics.

use std::sync::Arc;

use fwhost::{FwHost, HostEvent};
use integrations::MqttService;
use outbound::mqtt::{Mqtt, Worker};
use protocol::FwhostState;
use runtime::Supervisor;
use tokio::sync::watch;
use transport::Gateway;
use transport::mqtt::{MqttSettings, presence_topic};

use crate::settings::Settings;

/// First level of our topics when neither the configuration nor the machine has a name.
const NAMELESS: &str = "printer";

/// Everything about MQTT; nothing runs yet.
pub struct MqttParts {
    /// Operations, macros, devices.
    pub service: Arc<MqttService>,
    worker: Worker,
    settings: MqttSettings,
}

impl MqttParts {
    /// From `[mqtt]`; `None` without such a section.
    ///
    /// # Errors
    /// With a sentence.
    pub fn new(settings: &Settings, host: &FwHost) -> Result<Option<Self>, String> {
        let Some(section) = &settings.mqtt else { return Ok(None) };
        let form = settings.default_form();
        let instance = section.instance_name.clone().unwrap_or_else(host_name);
        let qos = section.default_qos();
        let presence = presence_topic(&instance, form);
        let mut options = section.client_options()?.announce(&presence, r#"{"server":"online"}"#, r#"{"server":"offline"}"#, qos);
        // Whoever stops a job over MQTT does not wait for messages of sensors to be gathered.
        let printer = host.clone();
        options.may_pause = Arc::new(move || printer.print_stats().is_none_or(|stats| !stats.state.is_active()));
        let (client, worker) = Mqtt::new(options);
        let service = MqttService::new(client.clone(), &instance, qos);
        if let Err(error) = service.offer_to_macros(host) {
            tracing::warn!(%error, "macros cannot publish over MQTT");
        }
        let settings = MqttSettings {
            client,
            instance,
            api: section.enable_core_api,
            role: section.role(settings.is_upstream),
            api_qos: section.api_qos(),
            status_qos: qos,
            form,
            status_objects: section.selection(),
            status_interval: section.interval(),
            split_status: section.publish_split_status,
            printer: subscribable(host),
        };
        Ok(Some(Self { service, worker, settings }))
    }

    /// Connects and serves.
    pub fn start(self, gateway: &Gateway, supervisor: &Supervisor) {
        let (dispatcher, connections) = (gateway.dispatcher.clone(), gateway.connections.clone());
        let stop = supervisor.stop_token().clone();
        supervisor.spawn_once("mqtt connection", self.worker.run(stop.clone().cancelled_owned()));
        supervisor.spawn_once("mqtt api", transport::mqtt::serve(dispatcher, connections, self.settings, stop));
    }
}

/// Whether the printer's status can be subscribed: from the end of the start sequence on, or from ready on when the printer becomes so.
fn subscribable(host: &FwHost) -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    host.on_event(move |event| match event {
        HostEvent::Started(state) if *state != FwhostState::Ready => drop(sender.send_replace(true)),
        HostEvent::Ready => drop(sender.send_replace(true)),
        HostEvent::Disconnected => drop(sender.send_replace(false)),
        _ => {}
    });
    receiver
}

/// The name of this machine, as far as topics can have it.
fn host_name() -> String {
    let name = crate::host_name().replace(['+', '#', '/'], "_");
    if name.is_empty() { NAMELESS.to_owned() } else { name }
}
