//! The samples of the last half minute, and the task that takes one each second.

use std::collections::VecDeque;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use protocol::Event;
use protocol::machine::{CpuUsage, MemoryUse, Network, ProcStatUpdate, ProcessSample, Throttled};
use rpc::Connections;
use runtime::StopToken;
use rustix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::sampler::{Reading, Sampler};
use super::throttle;
use crate::Roots;

/// Samples that are kept.
pub(super) const SAMPLES: usize = 30;
/// Time between two samples.
const PERIOD: Duration = Duration::from_secs(1);
/// Time before measuring begins again after a fault.
const PAUSE: Duration = Duration::from_secs(10);
/// Time between two looks at the throttling flags.
const THROTTLE_PERIOD: Duration = Duration::from_secs(10);

/// *Process statistics* of document 1.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProcStats {
    /// Oldest first.
    core_stats: Vec<ProcessSample>,
    throttled_state: Option<Throttled>,
    cpu_temp: Option<f64>,
    #[schemars(with = "std::collections::BTreeMap<String, protocol::machine::NetworkCounters>")]
    network: Network,
    #[schemars(with = "std::collections::BTreeMap<String, f64>")]
    system_cpu_usage: CpuUsage,
    /// Seconds since the start of the machine.
    system_uptime: f64,
    system_memory: MemoryUse,
    websocket_connections: usize,
}

/// What was measured.
pub(crate) struct Statistics {
    connections: Arc<Connections>,
    roots: Roots,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    samples: VecDeque<ProcessSample>,
    latest: Option<Reading>,
    throttled: Option<Throttled>,
}

impl Statistics {
    pub(crate) fn new(connections: Arc<Connections>, roots: Roots) -> Self {
        Self { connections, roots, state: Mutex::default() }
    }

    /// Everything, as it was measured last.
    pub(crate) fn report(&self) -> ProcStats {
        let state = self.state.lock();
        let latest = state.latest.as_ref();
        let uptime = clock_gettime(ClockId::Boottime);
        ProcStats {
            core_stats: state.samples.iter().copied().collect(),
            throttled_state: state.throttled.clone(),
            cpu_temp: latest.and_then(|reading| reading.temperature),
            network: latest.map(|reading| reading.network.clone()).unwrap_or_default(),
            system_cpu_usage: latest.map(|reading| reading.cpu_usage.clone()).unwrap_or_default(),
            system_uptime: uptime.tv_sec as f64 + uptime.tv_nsec as f64 / 1e9,
            system_memory: latest.map(|reading| reading.memory).unwrap_or_default(),
            websocket_connections: self.connections.count(),
        }
    }

    /// Measures until the stop.
    pub(crate) async fn run(self: Arc<Self>, stop: StopToken) {
        let measuring = async {
            loop {
                self.clone().measure_in_thread().await;
                tracing::error!("process statistics ended; they begin again");
                sleep(PAUSE).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.watch_throttling() => {}
            () = measuring => {}
        }
    }

    /// Measures in a thread of its own; ready when that has ended, which only a fault makes it do.
    async fn measure_in_thread(self: Arc<Self>) {
        // Each end notices when the other one is dropped.
        let (_running, ended) = mpsc::channel::<()>();
        let (alive, over) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("statistics".to_owned()).spawn(move || {
            let _alive = alive;
            self.measure(&ended);
        });
        if let Err(error) = thread {
            tracing::error!(%error, "no thread for process statistics");
        }
        let _ = over.await;
    }

    async fn watch_throttling(&self) {
        let Some(throttling) = throttle::source(&self.roots) else { return std::future::pending().await };
        let mut ticks = interval(THROTTLE_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.set_throttled(throttling.read().await);
        }
    }

    /// A thread of its own: a sensor on a slow bus makes its reader wait, and nobody else has to be woken each second.
    fn measure(&self, ended: &mpsc::Receiver<()>) {
        let mut sampler = Sampler::new(&self.roots);
        let mut before = Instant::now();
        let mut wait = Duration::ZERO;
        while ended.recv_timeout(wait) == Err(mpsc::RecvTimeoutError::Timeout) {
            let elapsed = before.elapsed();
            before = Instant::now();
            let reading = sampler.look(elapsed).clone();
            self.tell(&reading);
            self.keep(reading);
            wait = PERIOD.saturating_sub(before.elapsed());
        }
    }

    fn tell(&self, reading: &Reading) {
        if self.connections.count_where(rpc::Connection::is_authorised) == 0 {
            return;
        }
        self.connections.emit(&Event::ProcStatUpdate(Box::new(ProcStatUpdate {
            core_stats: reading.process,
            cpu_temp: reading.temperature,
            network: reading.network.clone(),
            system_cpu_usage: reading.cpu_usage.clone(),
            system_memory: reading.memory,
            websocket_connections: self.connections.count(),
        })));
    }

    fn keep(&self, reading: Reading) {
        let mut state = self.state.lock();
        if state.samples.len() == SAMPLES {
            state.samples.pop_front();
        }
        state.samples.push_back(reading.process);
        state.latest = Some(reading);
    }

    fn set_throttled(&self, throttled: Throttled) {
        let before = self.state.lock().throttled.replace(throttled.clone());
        if before.is_some_and(|before| before.bits != throttled.bits) {
            tracing::warn!(flags = ?throttled.flags, "the board changed the throttling of its processor");
            self.connections.emit(&Event::CpuThrottled(throttled));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpc::{ConnectionKind, Identity};

    fn reading(time: f64) -> Reading {
        Reading {
            process: ProcessSample { time, cpu_usage: 1.0, memory: Some(2), mem_units: Some("kB") },
            temperature: None,
            network: Network::new(),
            cpu_usage: CpuUsage::new(),
            memory: MemoryUse::default(),
        }
    }

    #[test]
    fn thirty_samples_are_kept_oldest_first() {
        let statistics = Statistics::new(Arc::default(), Roots::default());
        (0..40).for_each(|time| statistics.keep(reading(f64::from(time))));
        let report = statistics.report();
        assert_eq!((report.core_stats.len(), report.core_stats[0].time, report.core_stats[29].time), (SAMPLES, 10.0, 39.0));
        assert!(report.system_uptime > 0.0 && report.throttled_state.is_none());
        let text = String::from_utf8(protocol::dual::to_vec(&report).unwrap()).unwrap();
        assert!(text.contains(r#""moonraker_stats":[{"time":10.0"#) && text.contains(r#""system_memory":{}"#), "{text}");
    }

    #[test]
    fn throttling_is_told_when_it_changes() {
        let connections: Arc<Connections> = Arc::default();
        let local = connections.register(ConnectionKind::Unix, Identity::Local, None);
        let statistics = Statistics::new(connections, Roots::default());
        for bits in [0, 0, 1, 1] {
            statistics.set_throttled(Throttled { bits, flags: Vec::new() });
        }
        let mut out = Vec::new();
        local.connection.outbox.take(&mut out, usize::MAX);
        assert_eq!(out.len(), 1);
    }
}
