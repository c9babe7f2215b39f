//! Gathers what the readers tell. What cannot change is read once; interfaces are read anew when the last look is old.

use std::collections::BTreeMap;
use std::time::Duration;

use indexmap::IndexMap;
use protocol::machine::UnitState;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

use super::cpu::{self, CpuInfo};
use super::distribution::{self, Distribution};
use super::network::{self, CanBus, Interface, Interfaces};
use super::python::{self, Python};
use super::sd_card::{self, SdCard};
use super::unit;
use super::virtualization::Virtualization;
use crate::Roots;

/// Age at which the list of interfaces is read anew.
const INTERFACES_FOR: Duration = Duration::from_secs(10);

/// Name of the service of this server when it cannot be found out.
pub(crate) const DEFAULT_CORE: &str = "moonraker";

/// *System Info* of document 1.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SystemInfo {
    python: Python,
    cpu_info: CpuInfo,
    sd_info: Card,
    distribution: Distribution,
    virtualization: Virtualization,
    #[schemars(with = "BTreeMap<String, Interface>")]
    network: IndexMap<String, Interface>,
    #[schemars(with = "BTreeMap<String, CanBus>")]
    canbus: IndexMap<String, CanBus>,
    provider: &'static str,
    available_services: Vec<String>,
    service_state: BTreeMap<String, UnitState>,
    instance_ids: InstanceIds,
}

/// A card, or an empty object.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
enum Card {
    Present(SdCard),
    Absent {},
}

/// The services of the two applications, under both of their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct InstanceIds {
    core: String,
    moonraker: String,
    firmware: String,
    klipper: String,
}

impl InstanceIds {
    pub(crate) fn new(core: String, firmware: String) -> Self {
        Self { core: core.clone(), moonraker: core, firmware: firmware.clone(), klipper: firmware }
    }
}

/// Services, as their provider knows them.
#[derive(Debug, Default)]
pub(crate) struct KnownServices {
    pub(crate) provider: &'static str,
    pub(crate) available: Vec<String>,
    pub(crate) states: BTreeMap<String, UnitState>,
}

struct Fixed {
    python: Python,
    cpu: CpuInfo,
    card: Card,
    distribution: Distribution,
    own_unit: Option<String>,
}

/// The machine's description.
pub(crate) struct System {
    roots: Roots,
    fixed: OnceCell<Fixed>,
    interfaces: Mutex<Option<(Instant, Interfaces)>>,
}

impl System {
    pub(crate) fn new(roots: Roots) -> Self {
        Self { roots, fixed: OnceCell::new(), interfaces: Mutex::new(None) }
    }

    pub(crate) async fn info(&self, services: KnownServices, virtualization: Virtualization, instance_ids: InstanceIds) -> SystemInfo {
        let fixed = self.fixed().await;
        let Interfaces { network, canbus } = self.interfaces().await;
        SystemInfo {
            python: fixed.python.clone(),
            cpu_info: fixed.cpu.clone(),
            sd_info: fixed.card.clone(),
            distribution: fixed.distribution.clone(),
            virtualization,
            network,
            canbus,
            provider: services.provider,
            available_services: services.available,
            service_state: services.states,
            instance_ids,
        }
    }

    /// What cannot change, one subject a line. Without python, whose start is worth its time only when a client asks.
    pub(crate) async fn description(&self) -> String {
        let roots = self.roots.clone();
        let lines = move || {
            let fixed = read_fixed(&roots);
            let mut processor = json!(fixed.cpu);
            if let Some(members) = processor.as_object_mut() {
                // Logs are shown to others.
                members.remove("serial_number");
            }
            let subjects = [("System", json!(fixed.distribution)), ("Processor", processor), ("Service", json!(fixed.own_unit))];
            subjects.map(|(subject, value)| format!("{subject}: {value}")).join("\n")
        };
        tokio::task::spawn_blocking(lines).await.unwrap_or_default()
    }

    /// The service that runs this process, if it is one.
    pub(crate) async fn own_unit(&self) -> Option<String> {
        self.fixed().await.own_unit.clone()
    }

    async fn fixed(&self) -> &Fixed {
        self.fixed
            .get_or_init(|| async {
                let roots = self.roots.clone();
                let reading = tokio::task::spawn_blocking(move || read_fixed(&roots));
                let (python, fixed) = tokio::join!(python::read(), reading);
                let fixed = fixed.unwrap_or_else(|_| read_fixed(&Roots::at("/nonexistent".as_ref())));
                Fixed { python, ..fixed }
            })
            .await
    }

    async fn interfaces(&self) -> Interfaces {
        let mut kept = self.interfaces.lock().await;
        match &*kept {
            Some((when, interfaces)) if when.elapsed() < INTERFACES_FOR => interfaces.clone(),
            _ => {
                let interfaces = network::read().await;
                *kept = Some((Instant::now(), interfaces.clone()));
                interfaces
            }
        }
    }
}

fn read_fixed(roots: &Roots) -> Fixed {
    Fixed {
        python: Python::default(),
        cpu: cpu::read(roots),
        card: sd_card::read(roots).map_or(Card::Absent {}, Card::Present),
        distribution: distribution::read(roots),
        own_unit: unit::of_process(roots, "self"),
    }
}
