//! What stands at the top of each log file after the first: whoever reads such a file alone sees what wrote it, and where. wire/1-core.md
//! section 8.7.

use std::sync::Arc;

use machine::Machine;
use protocol::version::CORE_VERSION;
use runtime::{LogHandle, Supervisor};

/// Sets the header, and completes it as soon as the machine is described.
pub fn set(log: &LogHandle, machine: &Arc<Machine>, supervisor: &Supervisor) {
    let arguments: Vec<String> = std::env::args().collect();
    let program = format!("Bowsprit {CORE_VERSION}\nArguments: {}", arguments.join(" "));
    log.set_header(&*program);
    let (log, machine) = (log.clone(), machine.clone());
    supervisor.spawn_once("log header", async move {
        log.set_header(format!("{program}\n{}", machine.description().await));
    });
}
