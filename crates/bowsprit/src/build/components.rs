//! Everything that has operations, and the names under which clients look components up.

use std::sync::Arc;

use access::{Accounts, AuditLog};
use devices::power::Power;
use files::Files;
use integrations::{Agents, Announcements, MqttService, SlicerApi, Webcams};
use machine::Machine;
use printer::Printer;
use rpc::{Operations, Registry};
use server::{Administration, Database};

use crate::instruments::Instruments;
use crate::jobs::Jobs;
use crate::settings::Settings;

/// Components that are always there, under every name that clients look up (wire/4-clients.md section 5).
pub const COMPONENTS: &[&str] = &[
    "application",
    "websockets",
    "jsonrpc",
    "internal_transport",
    "secrets",
    "fwhost_connection",
    "klippy_connection",
    "fwhost_apis",
    "klippy_apis",
    "database",
    "file_manager",
    "data_store",
    "job_state",
    "machine",
    "proc_stats",
    "shell_command",
    "dbus_manager",
    "history",
    "job_queue",
    "extensions",
    "http_client",
    "webcam",
    "authorization",
    "announcements",
];

/// Everything that has operations.
pub struct Components {
    pub administration: Arc<Administration>,
    pub printer: Arc<Printer>,
    pub database: Arc<Database>,
    pub files: Arc<Files>,
    pub jobs: Arc<Jobs>,
    pub machine: Arc<Machine>,
    pub agents: Arc<Agents>,
    pub webcams: Arc<Webcams>,
    /// Absent without devices, as other groups that nobody configured.
    pub power: Option<Arc<Power>>,
    pub mqtt: Option<Arc<MqttService>>,
    /// Unless it is switched off.
    pub slicer_api: Option<Arc<SlicerApi>>,
    pub audit: Arc<AuditLog>,
    pub accounts: Arc<Accounts>,
    pub announcements: Arc<Announcements>,
    pub instruments: Arc<Instruments>,
}

impl Components {
    /// All operations; also what the contract is written from.
    ///
    /// # Errors
    /// When two declarations have the same name.
    pub fn operations(&self) -> Result<Operations, String> {
        let mut registry = Registry::default();
        self.administration.register(&mut registry);
        self.printer.register(&mut registry);
        self.database.register(&mut registry);
        self.files.register(&mut registry);
        self.jobs.register(&mut registry);
        self.machine.register(&mut registry);
        self.agents.register(&mut registry);
        self.webcams.register(&mut registry);
        if let Some(power) = &self.power {
            power.register(&mut registry);
        }
        if let Some(mqtt) = &self.mqtt {
            mqtt.register(&mut registry);
        }
        if let Some(slicer_api) = &self.slicer_api {
            slicer_api.register(&mut registry);
        }
        self.audit.register(&mut registry);
        self.accounts.register(&mut registry);
        registry.set_audit(self.audit.clone());
        self.announcements.register(&mut registry);
        self.instruments.register(&mut registry);
        registry.build()
    }
}

/// What is there, under every name that clients look up.
pub(super) fn component_names(settings: &Settings, instruments: &Instruments) -> Arc<[String]> {
    let configured = [
        settings.mqtt.as_ref().map(|_| "mqtt"),
        settings.ldap.as_ref().map(|_| "ldap"),
        settings.discovery.as_ref().map(|_| "zeroconf"),
        settings.power.first().map(|_| "power"),
    ];
    let slicer_api = settings.slicer_api.enabled.then_some(["slicer_api", "octoprint_compat"]);
    let configured = configured.into_iter().flatten().chain(slicer_api.into_iter().flatten());
    COMPONENTS.iter().copied().chain(configured).chain(instruments.components()).map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_folder::DataFolder;

    /// Builds operations over a scratch data folder.
    fn scratch_operations() -> Operations {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::prepare(folder.path()).unwrap();
        let settings = Settings::load(&data, None);
        crate::contract::operations_of(&data, &settings).unwrap()
    }

    #[tokio::test]
    async fn methods_that_templates_in_the_documentation_call_exist() {
        let operations = scratch_operations();
        let mut seen = 0;
        for page in [include_str!("../../../../docs/buttons.md"), include_str!("../../../../docs/templates.md")] {
            for rest in page.split("call_method(\"").skip(1) {
                let method = rest.split('"').next().unwrap();
                assert!(operations.method(method).is_some(), "{method}");
                seen += 1;
            }
        }
        assert!(seen > 5);
    }

    #[tokio::test]
    async fn no_two_operations_share_a_name() {
        assert!(scratch_operations().all().len() > 25);
    }
}
