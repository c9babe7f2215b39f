//! `bowsprit config-reference`: every option, from the option structs themselves.

use std::process::ExitCode;

use crate::settings::sections;

/// Prints the reference.
///
/// # Errors
/// Never.
pub fn run() -> anyhow::Result<ExitCode> {
    super::say(config::reference(&sections()).trim_end());
    Ok(ExitCode::SUCCESS)
}
