//! `bowsprit simulate`: a simulated firmware host on a unix socket.

use std::process::ExitCode;

use anyhow::Context;
use runtime::Lifecycle;
use runtime::shutdown::{FORCED_EXIT_CODE, Signals};
use simulator::{Options, Simulator};
use tokio_util::sync::CancellationToken;

use crate::cli::SimulateArgs;

/// Runs until a signal.
///
/// # Errors
/// When the socket cannot be opened.
pub fn run(args: SimulateArgs) -> anyhow::Result<ExitCode> {
    let mut options = Options::new(&args.socket);
    options.speed = args.speed;
    options.faults = args.fault;
    if let Some(gcodes) = args.gcodes {
        options.gcodes = gcodes;
    }
    super::say(&format!("simulated firmware host on {}, files from {}", args.socket.display(), options.gcodes.display()));
    super::run(async {
        let simulator = Simulator::start(options).await.with_context(|| format!("cannot listen on {}", args.socket.display()))?;
        let lifecycle = Lifecycle::new();
        tokio::spawn(Signals::install()?.watch(lifecycle.clone(), || std::process::exit(FORCED_EXIT_CODE)));
        let stop = CancellationToken::new();
        let ended = stop.clone();
        tokio::spawn(async move {
            lifecycle.wait().await;
            ended.cancel();
        });
        simulator.run_until(stop).await;
        Ok(ExitCode::SUCCESS)
    })?
}
