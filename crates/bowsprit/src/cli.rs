//! The command line. The incumbent's flags work without a subcommand, so that a service unit needs only another program name.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// API server for 3D printers.
///
/// Without a command it serves, like `bowsprit serve`. `bowsprit demo` shows everything with a simulated printer.
#[derive(Debug, Parser)]
#[command(name = "bowsprit", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Flags of `serve`.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs the server.
    Serve(ServeArgs),
    /// Runs the server with a simulated printer in a temporary folder; nothing is kept.
    Demo(DemoArgs),
    /// Runs a simulated firmware host.
    Simulate(SimulateArgs),
    /// Reads the configuration and reports every problem with file and line.
    CheckConfig(CheckArgs),
    /// Prints the contract: OpenAPI for HTTP, or the document of all JSON-RPC methods.
    Contract(ContractArgs),
    /// Prints the reference of all configuration options as Markdown.
    ConfigReference,
    /// Prints the metadata of sliced files, one JSON object a line.
    Metadata(MetadataArgs),
    /// Takes over users, settings of front ends and other records of an existing installation.
    Import(ImportArgs),
}

/// Flags of `serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// Data folder [env: CORE_DATA_PATH, MOONRAKER_DATA_PATH] [default: ~/printer_data].
    #[arg(short, long, value_name = "DIR")]
    pub datapath: Option<PathBuf>,
    /// Configuration file [env: CORE_CONFIG_PATH, MOONRAKER_CONFIG_PATH] [default: bowsprit.conf, core.conf or moonraker.conf in DATA/config].
    #[arg(short, long, value_name = "FILE")]
    pub configfile: Option<PathBuf>,
    /// Log file [env: CORE_LOG_PATH, MOONRAKER_LOG_PATH] [default: DATA/logs/core.log].
    #[arg(short, long, value_name = "FILE")]
    pub logfile: Option<PathBuf>,
    /// Unix socket for local clients [env: CORE_UDS_PATH, MOONRAKER_UDS_PATH] [default: DATA/comms/core.sock].
    #[arg(short, long, value_name = "FILE")]
    pub unixsocket: Option<PathBuf>,
    /// Logs to standard error only [env: CORE_DISABLE_FILE_LOG, MOONRAKER_DISABLE_FILE_LOG].
    #[arg(short, long)]
    pub nologfile: bool,
    /// Writes the log as JSON lines [env: CORE_STRUCTURED_LOGGING, MOONRAKER_STRUCTURED_LOGGING].
    #[arg(short, long)]
    pub structured_logging: bool,
    /// Logs more [env: CORE_VERBOSE_LOGGING, MOONRAKER_VERBOSE_LOGGING].
    #[arg(short, long)]
    pub verbose: bool,
    /// Enables debug features [env: CORE_ENABLE_DEBUG, MOONRAKER_ENABLE_DEBUG].
    #[arg(short = 'g', long)]
    pub debug: bool,
    /// Accepted for compatibility; has no effect.
    #[arg(short = 'o', long, hide = true)]
    pub asyncio_debug: bool,
}

/// Flags of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Port on 127.0.0.1.
    #[arg(long, default_value_t = 7125)]
    pub port: u16,
    /// How much faster than a real printer the simulated one is.
    #[arg(long, default_value_t = 10.0, value_name = "N")]
    pub speed: f64,
}

/// Flags of `simulate`.
#[derive(Debug, Args)]
#[command(after_help = fault_help())]
pub struct SimulateArgs {
    /// Unix socket to listen on.
    #[arg(long, value_name = "FILE")]
    pub socket: PathBuf,
    /// Folder with gcode files [default: ../gcodes beside the socket's folder].
    #[arg(long, value_name = "DIR")]
    pub gcodes: Option<PathBuf>,
    /// How much faster than real time.
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    pub speed: f64,
    /// A fault, for example `startup=5`, `config-error`, `hang=10`; may be given several times.
    #[arg(long, value_name = "FAULT")]
    pub fault: Vec<simulator::Fault>,
}

/// Flags of `check-config`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Data folder [default: as for serve].
    #[arg(short, long, value_name = "DIR")]
    pub datapath: Option<PathBuf>,
    /// Configuration file [default: as for serve].
    #[arg(short, long, value_name = "FILE")]
    pub configfile: Option<PathBuf>,
}

/// Flags of `contract`.
#[derive(Debug, Args)]
pub struct ContractArgs {
    /// The document of JSON-RPC methods instead of OpenAPI.
    #[arg(long)]
    pub rpc: bool,
}

/// Flags of `metadata`.
#[derive(Debug, Args)]
pub struct MetadataArgs {
    /// Sliced files, anywhere.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Flags of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Data folder or database file of the existing installation; it is only read, also while its server runs.
    #[arg(long, value_name = "DIR|FILE")]
    pub from: PathBuf,
    /// Data folder to import into [default: as for serve].
    #[arg(short, long, value_name = "DIR")]
    pub datapath: Option<PathBuf>,
}

impl ServeArgs {
    /// Fills what was not given from the environment, under either name.
    #[must_use]
    pub fn or_environment(mut self) -> Self {
        self.datapath = self.datapath.or_else(|| path_variable("DATA_PATH"));
        self.configfile = self.configfile.or_else(|| path_variable("CONFIG_PATH"));
        self.logfile = self.logfile.or_else(|| path_variable("LOG_PATH"));
        self.unixsocket = self.unixsocket.or_else(|| path_variable("UDS_PATH"));
        self.nologfile |= switch_variable("DISABLE_FILE_LOG");
        self.structured_logging |= switch_variable("STRUCTURED_LOGGING");
        self.verbose |= switch_variable("VERBOSE_LOGGING");
        self.debug |= switch_variable("ENABLE_DEBUG");
        self
    }

    /// The data folder to use.
    #[must_use]
    pub fn data_path(&self) -> PathBuf {
        self.datapath.clone().unwrap_or_else(default_data_path)
    }
}

fn fault_help() -> String {
    let lines: Vec<String> = simulator::FAULT_HELP.iter().map(|(usage, meaning)| format!("  {usage:24} {meaning}")).collect();
    format!("Faults:\n{}", lines.join("\n"))
}

/// `~/printer_data`.
pub fn default_data_path() -> PathBuf {
    std::env::var_os("HOME").map_or_else(|| PathBuf::from("."), PathBuf::from).join("printer_data")
}

fn variable(name: &str) -> Option<std::ffi::OsString> {
    ["CORE", "MOONRAKER"].iter().find_map(|program| std::env::var_os(format!("{program}_{name}"))).filter(|value| !value.is_empty())
}

fn path_variable(name: &str) -> Option<PathBuf> {
    variable(name).map(PathBuf::from)
}

fn switch_variable(name: &str) -> bool {
    variable(name).is_some_and(|value| matches!(value.to_string_lossy().to_lowercase().as_str(), "y" | "yes" | "true" | "1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_file_of_the_incumbent_works() {
        let cli = Cli::parse_from([
            "bowsprit",
            "-d",
            "/data",
            "-c",
            "/data/config/moonraker.conf",
            "-l",
            "/l",
            "-u",
            "/u",
            "-n",
            "-s",
            "-v",
            "-g",
            "-o",
        ]);
        assert!(cli.command.is_none());
        assert_eq!(cli.serve.data_path(), PathBuf::from("/data"));
        assert!(cli.serve.nologfile && cli.serve.structured_logging && cli.serve.verbose && cli.serve.debug);
    }

    #[test]
    fn commands_parse() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
        let cli = Cli::parse_from(["bowsprit", "simulate", "--socket", "/s", "--speed", "20", "--fault", "config-error"]);
        assert!(matches!(cli.command, Some(Command::Simulate(args)) if args.fault.len() == 1));
        assert!(matches!(Cli::parse_from(["bowsprit", "serve", "-d", "/x"]).command, Some(Command::Serve(_))));
    }

    #[test]
    fn every_fault_is_documented() {
        let page = include_str!("../../../docs/simulator.md");
        for (usage, meaning) in simulator::FAULT_HELP {
            assert!(page.contains(&format!("| `{usage}` | {meaning} |")), "{usage}");
        }
    }
}
