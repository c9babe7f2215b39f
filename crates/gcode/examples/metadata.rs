//! Prints the metadata of sliced files, and on standard error what reading them cost.
//!
//! `cargo run --release -p gcode --example metadata -- FILE...`; the cost is the processor time of this process and its
//! largest resident size, both from `/proc`.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::time::Instant;

use gcode::Source;
use gcode::metadata::{Options, read};

struct OnDisk {
    file: File,
    size: u64,
}

impl Source for OnDisk {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(buffer, position)
    }
}

fn main() -> io::Result<()> {
    for path in std::env::args().skip(1) {
        let before = peak_memory();
        let file = File::open(&path)?;
        let size = file.metadata()?.len();
        let name = path.rsplit('/').next().unwrap_or(&path);
        let started = Instant::now();
        let scan = read(&OnDisk { file, size }, &Options::new(name))?;
        let took = started.elapsed();
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, &scan.metadata)?;
        writeln!(out)?;
        let mut log = io::stderr().lock();
        for warning in &scan.warnings {
            writeln!(log, "{name}: {warning}")?;
        }
        writeln!(log, "{name}: {took:?}, peak memory before and after: {before} / {}", peak_memory())?;
    }
    Ok(())
}

/// Largest resident size so far, as the system words it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or("unknown").trim().to_owned()
}
