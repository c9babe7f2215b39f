//! `bowsprit demo`: everything at once, with a simulated printer, in a temporary folder. Nothing is kept.

mod samples;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use parking_lot::Mutex;
use runtime::{Lifecycle, LogOptions};
use simulator::{Options, Simulator};

use crate::build::Environment;
use crate::cli::DemoArgs;
use crate::commands::serve::{serve, watch_signals};
use crate::commands::{self, say};
use crate::data_folder::{DataFolder, OWN_CONFIG_FILE};

/// Runs until Ctrl-C and cleans up.
///
/// # Errors
/// When the temporary folder or the port cannot be used.
pub fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    let folder = tempfile::Builder::new().prefix("bowsprit-demo-").tempdir().context("a temporary folder cannot be made")?;
    let data = DataFolder::prepare(folder.path())?;
    fill(data.path(), args.port).context("the demo's files cannot be written")?;
    let logging = runtime::log::init(&LogOptions { file: Some(data.log_file()), ..LogOptions::default() });
    let environment = Environment {
        config: None,
        socket: None,
        log: logging.handle.clone(),
        lifecycle: Lifecycle::new(),
        debug: false,
        warnings: logging.warnings,
        last_address: Mutex::default(),
        data,
    };
    watch_signals(&environment)?;
    let outcome = commands::run(async {
        let simulator = Simulator::start(printer_options(folder.path(), args.speed)).await.context("the simulated printer cannot start")?;
        introduce(folder.path(), args.port);
        let outcome = serve(&environment).await;
        simulator.stop().await;
        outcome
    })?;
    drop(logging.flush_at_end);
    folder.close().context("the temporary folder could not be removed")?;
    say("\nThe demo's files are removed.");
    outcome.map(|()| ExitCode::SUCCESS)
}

fn printer_options(data: &Path, speed: f64) -> Options {
    let mut options = Options::new(data.join("comms/firmware.sock"));
    options.speed = speed;
    options
}

fn fill(data: &Path, port: u16) -> std::io::Result<()> {
    let config = format!(
        "# Configuration of the demo. Only programs on this machine are trusted.\n\
         [server]\nhost: 127.0.0.1\nport: {port}\nfwhost_uds_address: {{data_path}}/comms/firmware.sock\n\n\
         [authorization]\ntrusted_clients:\n    127.0.0.1\n    ::1\ncors_domains:\n    http://localhost:*\n    http://127.0.0.1:*\n\n\
         # The demo needs no network.\n[announcements]\nenable_remote_feeds: false\n\n\
         # It leaves the services of this machine alone.\n[machine]\nprovider: none\n"
    );
    std::fs::write(data.join("config").join(OWN_CONFIG_FILE), config)?;
    std::fs::write(data.join("config/printer.cfg"), simulator::printer_cfg(&data.join("gcodes")))?;
    for sample in samples::all() {
        let path = data.join("gcodes").join(sample.path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, sample.gcode)?;
    }
    Ok(())
}

fn introduce(data: &Path, port: u16) {
    let url = format!("http://127.0.0.1:{port}");
    say(&format!(
        "Bowsprit demo: a print server with a simulated printer.\n\n\
         \x20 open      {url}\n\
         \x20 files     {}\n\n\
         Try, in another terminal:\n\
         \x20 curl {url}/server/info\n\
         \x20 curl '{url}/printer/objects/query?print_stats&extruder=temperature,target'\n\
         \x20 curl -F file=@YOUR.gcode -F print=true {url}/server/files/upload\n\
         \x20 curl -X POST '{url}/printer/print/start?filename=cube.gcode'\n\
         \x20 curl -X POST {url}/printer/print/pause\n\
         \x20 curl -X POST {url}/printer/print/resume\n\n\
         Front ends (Mainsail, Fluidd) connect to 127.0.0.1, port {port}. Ctrl-C ends the demo and removes its files.\n",
        data.display()
    ));
}
