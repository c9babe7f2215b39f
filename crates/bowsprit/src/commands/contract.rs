//! `bowsprit contract`: the API as documents.

use std::process::ExitCode;

use anyhow::anyhow;

use crate::cli::ContractArgs;
use crate::contract::operations_of;
use crate::data_folder::DataFolder;
use crate::settings::Settings;

/// Prints the document.
///
/// # Errors
/// When operations collide, which a test excludes.
pub fn run(args: &ContractArgs) -> anyhow::Result<ExitCode> {
    super::say(&document(args.rpc)?);
    Ok(ExitCode::SUCCESS)
}

/// The document as pretty JSON.
///
/// # Errors
/// As [`run`].
pub fn document(rpc: bool) -> anyhow::Result<String> {
    let folder = tempfile::tempdir()?;
    let data = DataFolder::prepare(folder.path())?;
    let operations = operations_of(&data, &Settings::load(&data, None)).map_err(|error| anyhow!(error))?;
    let document = if rpc { rpc::contract::methods(&operations) } else { rpc::contract::openapi(&operations) };
    Ok(serde_json::to_string_pretty(&document)?)
}
