//! `bowsprit check-config`: every problem at once, with file and line.

use std::process::ExitCode;

use anyhow::Context;

use super::say;
use crate::cli::{CheckArgs, ServeArgs};
use crate::data_folder::DataFolder;
use crate::settings::Settings;

/// Exit code for a configuration with problems.
const BAD_CONFIG: u8 = 64;

/// Reads the configuration as `serve` would and reports.
///
/// # Errors
/// When the data folder cannot be used.
pub fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let serve = ServeArgs { datapath: args.datapath, configfile: args.configfile, ..ServeArgs::default() }.or_environment();
    let path = serve.data_path();
    let data = DataFolder::existing(&path).with_context(|| format!("the data folder {} cannot be used", path.display()))?;
    let config = serve.configfile.clone().or_else(|| data.config_file());
    let Some(config) = config else {
        say(&format!("there is no configuration file in {}", data.path().join("config").display()));
        return Ok(ExitCode::from(BAD_CONFIG));
    };
    let problems = Settings::check(&data, &config);
    for problem in &problems {
        say(problem);
    }
    Ok(match problems.len() {
        0 => {
            say(&format!("{}: no problems", config.display()));
            ExitCode::SUCCESS
        }
        count => {
            say(&format!("{}: {count} problem{}", config.display(), if count == 1 { "" } else { "s" }));
            ExitCode::from(BAD_CONFIG)
        }
    })
}
