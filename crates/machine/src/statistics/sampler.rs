//! Reads the files of the kernel, which stay open, into buffers, which stay allocated.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use indexmap::IndexMap;
use protocol::machine::{CpuUsage, MemoryUse, Network, NetworkCounters, ProcessSample};
use rustix::time::{ClockId, clock_gettime};

use super::parse::{self, CpuTimes, LinkCounters, two_decimals};
use super::temperature;
use crate::Roots;

/// Bytes of a file of the kernel that are looked at: `/proc/stat` of a machine with a hundred processors, up to where its long lines begin.
const WINDOW: usize = 16 * 1024;
/// Processors and interfaces that are told about.
const MAX_NAMES: usize = 256;

/// One look at the machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    pub(crate) process: ProcessSample,
    pub(crate) temperature: Option<f64>,
    pub(crate) network: Network,
    pub(crate) cpu_usage: CpuUsage,
    pub(crate) memory: MemoryUse,
}

/// Remembers what was read before, because most numbers are differences.
pub(super) struct Sampler {
    stat: KernelFile,
    net: KernelFile,
    memory: KernelFile,
    /// Much cheaper than `smaps_rollup`, for which the kernel would walk through all of our pages.
    own_memory: KernelFile,
    /// Bytes of a page, in which the kernel counts our memory.
    page: u64,
    temperature: Option<KernelFile>,
    buffer: Vec<u8>,
    process_before: Option<(f64, f64)>,
    cpus: IndexMap<Arc<str>, CpuTimes>,
    links: IndexMap<Arc<str>, (LinkCounters, u64)>,
    round: u64,
    reading: Reading,
}

impl Sampler {
    pub(super) fn new(roots: &Roots) -> Self {
        let file = |path: &str| KernelFile::new(roots.path(path));
        Self {
            stat: file("/proc/stat"),
            net: file("/proc/net/dev"),
            memory: file("/proc/meminfo"),
            own_memory: file("/proc/self/statm"),
            page: rustix::param::page_size() as u64,
            temperature: temperature::file(roots).map(KernelFile::new),
            buffer: vec![0; WINDOW],
            process_before: None,
            cpus: IndexMap::new(),
            links: IndexMap::new(),
            round: 0,
            reading: Reading {
                process: ProcessSample { time: 0.0, cpu_usage: 0.0, memory: None, mem_units: None },
                temperature: None,
                network: Network::new(),
                cpu_usage: CpuUsage::new(),
                memory: MemoryUse::default(),
            },
        }
    }

    /// Looks at everything. `elapsed`: time since the look before.
    pub(super) fn look(&mut self, elapsed: Duration) -> &Reading {
        self.round += 1;
        self.look_at_process();
        self.look_at_cpus();
        self.look_at_network(elapsed.as_secs_f64());
        let text = self.memory.read(&mut self.buffer);
        let (total, available) = (parse::amount(text, "MemTotal"), parse::amount(text, "MemAvailable"));
        self.reading.memory = match (total, available) {
            (Some((total, _)), Some((available, _))) => {
                MemoryUse { total: Some(total), available: Some(available), used: Some(total.saturating_sub(available)) }
            }
            _ => MemoryUse::default(),
        };
        self.reading.temperature = self.temperature.as_mut().and_then(|file| temperature::degrees(file.read(&mut self.buffer)));
        &self.reading
    }

    fn look_at_process(&mut self) {
        let seconds = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
        };
        let (used, now) = (seconds(ClockId::ProcessCPUTime), seconds(ClockId::Monotonic));
        let usage = match self.process_before.replace((used, now)) {
            Some((used_before, before)) if now > before => 100.0 * (used - used_before) / (now - before),
            _ => 0.0,
        };
        let memory = parse::resident_pages(self.own_memory.read(&mut self.buffer)).map(|pages| pages.saturating_mul(self.page) / 1024);
        self.reading.process = ProcessSample {
            time: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64()),
            cpu_usage: two_decimals(usage),
            memory,
            mem_units: memory.map(|_| "kB"),
        };
    }

    fn look_at_cpus(&mut self) {
        let usage = &mut self.reading.cpu_usage;
        let mut seen = 0;
        for (name, times) in parse::cpus(self.stat.read(&mut self.buffer)).take(MAX_NAMES) {
            seen += 1;
            if let Some(before) = self.cpus.get_mut(name) {
                if let Some(value) = usage.get_mut(name) {
                    *value = times.usage_since(*before);
                }
                *before = times;
            } else {
                let name: Arc<str> = name.into();
                usage.insert(name.clone(), 0.0);
                self.cpus.insert(name, times);
            }
        }
        // A processor went off-line: start anew with those that are left.
        if seen < self.cpus.len() {
            self.cpus.clear();
            usage.clear();
        }
    }

    fn look_at_network(&mut self, elapsed: f64) {
        let network = &mut self.reading.network;
        for (name, now) in parse::links(self.net.read(&mut self.buffer)).take(MAX_NAMES) {
            let shown = NetworkCounters {
                rx_bytes: now.bytes[0],
                tx_bytes: now.bytes[1],
                rx_packets: now.packets[0],
                tx_packets: now.packets[1],
                rx_errs: now.errors[0],
                tx_errs: now.errors[1],
                rx_drop: now.drops[0],
                tx_drop: now.drops[1],
                bandwidth: 0.0,
            };
            if let Some((before, round)) = self.links.get_mut(name) {
                let moved: u64 = (0..2).map(|way| now.bytes[way].saturating_sub(before.bytes[way])).fold(0, u64::saturating_add);
                let bandwidth = if elapsed > 0.0 { two_decimals(moved as f64 / elapsed) } else { 0.0 };
                (*before, *round) = (now, self.round);
                if let Some(value) = network.get_mut(name) {
                    *value = NetworkCounters { bandwidth, ..shown };
                }
            } else {
                let name: Arc<str> = name.into();
                network.insert(name.clone(), shown);
                self.links.insert(name, (now, self.round));
            }
        }
        let round = self.round;
        self.links.retain(|_, (_, seen)| *seen == round);
        if network.len() != self.links.len() {
            network.retain(|name, _| self.links.contains_key(name));
        }
    }
}

/// A file that is read again and again. It is opened when needed: an interface or sensor can come later, or go.
struct KernelFile {
    path: PathBuf,
    file: Option<File>,
}

impl KernelFile {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// The beginning of the file; nothing when it cannot be read.
    fn read<'b>(&mut self, buffer: &'b mut [u8]) -> &'b [u8] {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &self.file else { return &[] };
        let mut filled = 0;
        loop {
            match file.read_at(&mut buffer[filled..], filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(_) => {
                    self.file = None;
                    filled = 0;
                    break;
                }
            }
            if filled == buffer.len() {
                break;
            }
        }
        &buffer[..filled]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::tests::tree;

    #[test]
    fn differences_come_with_the_second_look_and_what_went_away_is_forgotten() {
        let lines = |eth: u64| format!("h\n lo: {0}\neth0: {eth} 1 0 0 0 0 0 0 {eth} 2 0 0 0 0 0 0\n", ["0"; 16].join(" "));
        let (_keep, roots) = tree(&[
            ("/proc/stat", "cpu 0 0 0 100\ncpu0 0 0 0 100\n"),
            ("/proc/net/dev", &lines(1000)),
            ("/proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n"),
            ("/proc/self/statm", "20000 1000 500 10 0 300 0\n"),
            ("/sys/class/thermal/thermal_zone0/temp", "45500\n"),
        ]);
        let mut sampler = Sampler::new(&roots);
        let first = sampler.look(Duration::from_secs(1)).clone();
        assert_eq!((first.cpu_usage["cpu"], first.network["eth0"].bandwidth, first.temperature), (0.0, 0.0, Some(45.5)));
        let own = 1000 * rustix::param::page_size() as u64 / 1024;
        assert_eq!((first.memory.used, first.process.memory, first.process.mem_units), (Some(600), Some(own), Some("kB")));
        std::fs::write(roots.path("/proc/stat"), "cpu 50 0 0 150\ncpu0 50 0 0 150\n").unwrap();
        std::fs::write(roots.path("/proc/net/dev"), lines(1500)).unwrap();
        let second = sampler.look(Duration::from_secs(2)).clone();
        assert_eq!((second.cpu_usage["cpu0"], second.network["eth0"].bandwidth, second.network["eth0"].tx_packets), (50.0, 500.0, 2));
        assert!(second.process.time > 0.0);
        std::fs::write(roots.path("/proc/net/dev"), " lo: 1 1\n").unwrap();
        std::fs::write(roots.path("/proc/stat"), "cpu 60 0 0 150\n").unwrap();
        sampler.look(Duration::from_secs(1));
        let last = sampler.look(Duration::from_secs(1)).clone();
        assert!(last.network.is_empty());
        assert_eq!(last.cpu_usage.keys().map(|name| &**name).collect::<Vec<_>>(), ["cpu"]);
    }

    #[test]
    fn many_cores_and_no_network_are_told_whole() {
        let cores: String = (0..64).map(|core| format!("cpu{core} {} 0 0 18446744073709 0 0 0 0 0 0\n", 1_234_567_890 + core)).collect();
        let interrupts = "0 ".repeat(20_000);
        let head = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes packets\n";
        let (_keep, roots) = tree(&[("/proc/stat", &format!("cpu  1 2 3 4\n{cores}intr {interrupts}\n")), ("/proc/net/dev", head)]);
        let mut sampler = Sampler::new(&roots);
        sampler.look(Duration::from_secs(1));
        let reading = sampler.look(Duration::from_secs(2));
        assert_eq!((reading.cpu_usage.len(), reading.cpu_usage.get("cpu63"), reading.network.len()), (65, Some(&0.0), 0));
    }

    #[test]
    fn a_machine_without_these_files_gives_empty_values() {
        let (_keep, roots) = tree(&[]);
        let mut sampler = Sampler::new(&roots);
        let reading = sampler.look(Duration::from_secs(1));
        assert_eq!((reading.temperature, reading.process.memory, reading.process.mem_units), (None, None, None));
        assert!(reading.network.is_empty() && reading.cpu_usage.is_empty() && reading.memory == MemoryUse::default());
    }

    #[test]
    fn this_machine_is_read() {
        let mut sampler = Sampler::new(&Roots::default());
        let reading = sampler.look(Duration::from_secs(1));
        assert!(reading.cpu_usage.contains_key("cpu0") && reading.network.contains_key("lo"));
        assert!(reading.memory.total > reading.memory.used && reading.process.memory > Some(100));
    }
}
