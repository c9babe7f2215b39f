//! The bowsprit binary: command line, build order, wiring, demo. The only place that knows every crate.

#![allow(unreachable_pub, reason = "nothing outside a binary can reach it anyway")]

mod build;
mod cli;
mod commands;
mod contract;
mod data_folder;
mod demo;
mod device_services;
mod discovery;
mod disk;
mod host_paths;
mod import;
mod instruments;
mod jobs;
mod log_header;
mod machine_board;
mod mqtt;
mod page;
mod print_control;
mod secure;
mod settings;
mod slicer_prints;
mod web;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

/// The name of this machine.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        None => commands::serve::run(&cli.serve.or_environment()),
        Some(Command::Serve(args)) => commands::serve::run(&args.or_environment()),
        Some(Command::Demo(args)) => demo::run(&args),
        Some(Command::Simulate(args)) => commands::simulate::run(args),
        Some(Command::CheckConfig(args)) => commands::check_config::run(args),
        Some(Command::Contract(args)) => commands::contract::run(&args),
        Some(Command::Metadata(args)) => commands::metadata::run(&args),
        Some(Command::Import(args)) => commands::import::run(&args),
        Some(Command::ConfigReference) => commands::reference::run(),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            commands::complain(&format!("bowsprit: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
