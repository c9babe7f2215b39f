//! The handle of everything here, and its operations.

use std::sync::Arc;

use rpc::{Access, Connections, Registry};
use runtime::Supervisor;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Roots;
use crate::statistics::Statistics;
use crate::system::virtualization::Virtualization;
use crate::system::{KnownServices, System, SystemInfo};

/// The host machine.
pub struct Machine {
    statistics: Arc<Statistics>,
    system: System,
    roots: Roots,
}

#[derive(Serialize, JsonSchema)]
struct SystemInfoAnswer {
    system_info: SystemInfo,
}

impl Machine {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(connections: Arc<Connections>, roots: Roots) -> Arc<Self> {
        let statistics = Arc::new(Statistics::new(connections, roots.clone()));
        Arc::new(Self { statistics, system: System::new(roots.clone()), roots })
    }

    /// Begins to measure.
    pub fn start(self: &Arc<Self>, supervisor: &Supervisor) {
        let statistics = self.statistics.clone();
        supervisor.spawn("process statistics", move |stop| statistics.clone().run(stop));
    }

    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("machine.system_info")
            .get("/machine/system_info")
            .access(Access::View)
            .doc("What the host machine is: processor, operating system, network, services.")
            .handle(self, |machine, _, (): ()| async move { Ok(SystemInfoAnswer { system_info: machine.system_info().await }) });
        registry
            .op("machine.proc_stats")
            .get("/machine/proc_stats")
            .access(Access::View)
            .doc("What this process and the machine used in the last half minute.")
            .answer(self, |machine, _, (): ()| Ok(machine.statistics.report()));
    }

    async fn system_info(&self) -> SystemInfo {
        let services = KnownServices { provider: "none", ..KnownServices::default() };
        let virtualization = Virtualization::container(&self.roots).unwrap_or_else(Virtualization::unknown);
        self.system.info(services, virtualization).await
    }
}
