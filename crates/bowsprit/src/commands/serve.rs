//! `bowsprit serve`: build, run, and after a restart request build again in the same process.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use protocol::version::CORE_VERSION;
use runtime::shutdown::{FORCED_EXIT_CODE, Signals};
use runtime::{Ending, Lifecycle};

use crate::build::{self, Environment};
use crate::cli::ServeArgs;
use crate::data_folder::DataFolder;
use crate::logging;

/// Runs until a signal.
///
/// # Errors
/// When the data folder or the port cannot be used.
pub fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let path = args.data_path();
    let data = DataFolder::prepare(&path).with_context(|| format!("the data folder {} cannot be used", path.display()))?;
    let _lock = data.lock().with_context(|| format!("another server uses the data folder {}", data.path().display()))?;
    let log_file = (!args.nologfile).then(|| args.logfile.clone().unwrap_or_else(|| data.log_file()));
    let (log, warnings) = logging::start(log_file.clone(), args.structured_logging, args.verbose);
    tracing::info!(version = CORE_VERSION, data = %data.path().display(), "starting");
    let lifecycle = Lifecycle::new();
    let environment = Environment {
        config: args.configfile.clone(),
        socket: args.unixsocket.clone(),
        roll_over: {
            let log = log.clone();
            Arc::new(move || log.roll_over())
        },
        log_file,
        lifecycle: lifecycle.clone(),
        warnings,
        data,
    };
    let outcome = super::runtime()?.block_on(async {
        let flushed = log.clone();
        let force = move || {
            flushed.flush();
            std::process::exit(FORCED_EXIT_CODE);
        };
        tokio::spawn(Signals::install()?.watch(lifecycle.clone(), force));
        serve(&environment).await
    });
    log.flush();
    outcome.map(|()| ExitCode::SUCCESS)
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
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        server.stop().await;
        match ending {
            Ending::Stop => return Ok(()),
            Ending::Restart => tracing::info!("restarting"),
        }
    }
}
