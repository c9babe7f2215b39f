//! `bowsprit serve`: build, run, and after a restart request build again in the same process.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use parking_lot::Mutex;
use protocol::version::CORE_VERSION;
use runtime::shutdown::{FORCED_EXIT_CODE, Signals};
use runtime::{Ending, Lifecycle, LogOptions, Verbosity};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::build::{self, Environment};
use crate::cli::ServeArgs;
use crate::data_folder::DataFolder;

/// Time for the answer of a restart request to leave before connections end.
const ANSWER_FIRST: Duration = Duration::from_millis(100);

/// Time for the last log lines when the process is interrupted twice.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Files and connections that may be open at once: what the limits of the edge add up to, and room for the rest. Systems often begin with 1024.
const OPEN_FILES: u64 = 8192;

/// Runs until a signal.
///
/// # Errors
/// When the data folder or the port cannot be used.
pub fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let path = args.data_path();
    let data = DataFolder::prepare(&path).with_context(|| format!("the data folder {} cannot be used", path.display()))?;
    let _lock = data.lock().with_context(|| format!("another server uses the data folder {}", data.path().display()))?;
    let log_file = (!args.nologfile).then(|| args.logfile.clone().unwrap_or_else(|| data.log_file()));
    let verbosity = match (args.verbose, args.debug) {
        (false, _) => Verbosity::Normal,
        (true, false) => Verbosity::Verbose,
        (true, true) => Verbosity::Debug,
    };
    let logging = runtime::log::init(&LogOptions { file: log_file, json: args.structured_logging, verbosity });
    allow_open_files();
    tracing::info!(version = CORE_VERSION, data = %data.path().display(), "starting");
    let lifecycle = Lifecycle::new();
    let environment = Environment {
        config: args.configfile.clone(),
        socket: args.unixsocket.clone(),
        log: logging.handle.clone(),
        lifecycle: lifecycle.clone(),
        debug: args.debug,
        warnings: logging.warnings,
        last_address: Mutex::default(),
        data,
    };
    watch_signals(&environment)?;
    let outcome = super::run(serve(&environment))?;
    // Into the log as well: it is what the owner of a service reads.
    Ok(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    })
}

/// Allows ourselves [`OPEN_FILES`], or as many as the system lets us have.
fn allow_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(OPEN_FILES, |most| most.min(OPEN_FILES));
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(wanted);
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, wanted, "no more files may be open at once than at the start");
        }
    }
}

/// Lets signals end the process: the first one in order, a second interrupt at once.
///
/// # Errors
/// When the handlers cannot be installed, or there is no thread for them.
pub fn watch_signals(environment: &Environment) -> std::io::Result<()> {
    let log = environment.log.clone();
    let force = move || {
        log.flush(LAST_LINES);
        std::process::exit(FORCED_EXIT_CODE);
    };
    // A thread of their own: they must also be heard when the main thread is stuck.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let signals = runtime.block_on(async { Signals::install() })?;
    let watching = signals.watch(environment.lifecycle.clone(), force);
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(watching))?;
    Ok(())
}

/// Serves until the lifecycle ends; restarts on request.
///
/// # Errors
/// When a server cannot be built.
pub async fn serve(environment: &Environment) -> anyhow::Result<()> {
    loop {
        environment.lifecycle.begin();
        let server = build::build(environment).await.map_err(|error| anyhow!(error.0))?;
        let ending = environment.lifecycle.wait().await;
        // The answer to the request that asked for it leaves first.
        tokio::time::sleep(ANSWER_FIRST).await;
        server.stop().await;
        match ending {
            Ending::Stop => return Ok(()),
            Ending::Restart => tracing::info!("restarting"),
        }
    }
}
