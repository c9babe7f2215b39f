//! `bowsprit import`: takes over the database of an existing installation.

use std::process::ExitCode;

use anyhow::Context;
use files::root::GCODES;
use store::Store;

use super::say;
use crate::build::SCHEMAS;
use crate::cli::{ImportArgs, ServeArgs};
use crate::data_folder::DataFolder;
use crate::import;

/// Imports and says what was taken. Doing it again changes nothing more.
///
/// # Errors
/// When there is nothing to import, when a server uses the data folder, and faults of the databases.
pub fn run(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let source = import::find(&args.from)?;
    let serve = ServeArgs { datapath: args.datapath.clone(), ..ServeArgs::default() }.or_environment();
    let path = serve.data_path();
    let data = DataFolder::prepare(&path).with_context(|| format!("the data folder {} cannot be used", path.display()))?;
    let _lock = data.lock().with_context(|| format!("a server uses the data folder {}: stop it first", data.path().display()))?;
    super::run(async {
        let opened = Store::open_or_restore(&data.database_file(), &data.database_backups(), SCHEMAS)?;
        opened.warnings.iter().for_each(|warning| say(warning));
        let outcome = import::run(&source, &opened.store, &data.database_backups(), &data.path().join(GCODES)).await;
        opened.store.close().await;
        say(&format!("From {}:", source.display()));
        for line in outcome? {
            say(&format!("  {line}"));
        }
        Ok(ExitCode::SUCCESS)
    })?
}
