//! What the host machine does, as clients see it. Source: document 1 *Process statistics*, wire/1-core.md sections 4.6 and 5.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

/// What this process used, measured once a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ProcessSample {
    /// Unix seconds.
    pub time: f64,
    /// Percent of one core since the sample before.
    pub cpu_usage: f64,
    /// Memory in `mem_units`.
    pub memory: Option<u64>,
    /// `kB`.
    pub mem_units: Option<&'static str>,
}

/// Counters of a network interface since it came up, and what it does now.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct NetworkCounters {
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets received damaged.
    pub rx_errs: u64,
    /// Packets that could not be sent.
    pub tx_errs: u64,
    /// Received packets that were dropped.
    pub rx_drop: u64,
    /// Packets to be sent that were dropped.
    pub tx_drop: u64,
    /// Bytes per second, both ways together.
    pub bandwidth: f64,
}

/// Memory of the machine in kB; empty where it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct MemoryUse {
    /// All of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What programs can have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available: Option<u64>,
    /// What they have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
}

/// Counters by interface.
pub type Network = IndexMap<Arc<str>, NetworkCounters>;
/// Percent by `cpu` (all cores), `cpu0`, `cpu1`, …
pub type CpuUsage = IndexMap<Arc<str>, f64>;

/// Payload of `notify_proc_stat_update`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProcStatUpdate {
    /// The newest sample.
    pub core_stats: ProcessSample,
    /// Degrees Celsius; null when the machine does not tell.
    pub cpu_temp: Option<f64>,
    /// Interfaces.
    #[schemars(with = "BTreeMap<String, NetworkCounters>")]
    pub network: Network,
    /// Processors.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub system_cpu_usage: CpuUsage,
    /// Memory.
    pub system_memory: MemoryUse,
    /// Open connections.
    pub websocket_connections: usize,
}

/// Whether the board slows its processor down, and why. Payload of `notify_cpu_throttled`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Throttled {
    /// As the board says it.
    pub bits: u32,
    /// What the bits mean; `?` when the board did not answer.
    pub flags: Vec<&'static str>,
}

/// What a service of the machine does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnitState {
    /// `active`, `inactive`, `failed`, `activating`, …; `unknown` when it cannot be had.
    pub active_state: String,
    /// `running`, `dead`, …
    pub sub_state: String,
}

/// Payload of `notify_sudo_alert`: what waits for the password for sudo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SudoAlert {
    /// True while something waits.
    pub sudo_requested: bool,
    /// What it is wanted for, one sentence each.
    pub request_messages: Vec<String>,
}
