//! Taking over the database of an existing installation: one module per kind of thing. docs/import.md

mod history;
mod namespaces;
mod users;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use protocol::vocabulary::FOREIGN_DATABASE;
use store::{Foreign, Store};

/// What is in the folder of databases of versions that are too old.
const OLD_DATABASE: &str = "data.mdb";

/// The database file that is meant: the file itself, or that of a data folder.
///
/// # Errors
/// When there is none.
pub fn find(from: &Path) -> anyhow::Result<PathBuf> {
    let about = std::fs::metadata(from).with_context(|| format!("{} cannot be read", from.display()))?;
    if about.is_file() {
        return Ok(from.to_owned());
    }
    let folders = [from.join("database"), from.to_owned()];
    let files = folders.iter().flat_map(|folder| [FOREIGN_DATABASE.upstream, FOREIGN_DATABASE.neutral].map(|name| folder.join(name)));
    if let Some(file) = files.into_iter().find(|path| path.is_file()) {
        return Ok(file);
    }
    if folders.iter().any(|folder| folder.join(OLD_DATABASE).is_file()) {
        bail!("{} has a database of an old format: start a newer version of its server once, which converts it", from.display());
    }
    bail!("there is no database in {}: expected database/{}", from.display(), FOREIGN_DATABASE.upstream);
}

/// Imports and returns the report, line by line. What is there already is backed up before it is changed. `gcodes` is the folder of gcode files.
///
/// # Errors
/// Those of either database.
pub async fn run(source: &Path, store: &Store, backups: &Path, gcodes: &Path) -> anyhow::Result<Vec<String>> {
    // Everything is read before anything is written.
    let foreign = Foreign::open(source).with_context(|| format!("{} cannot be read as a database", source.display()))?;
    if !foreign.has_table("namespace_store")? {
        bail!("{} is not the database of a print server", source.display());
    }
    let namespaces = namespaces::Plan::read(&foreign)?;
    let users = users::Plan::read(&foreign)?;
    let history = history::Plan::read(&foreign)?;
    drop(foreign);

    let mut report = Vec::new();
    if namespaces.replaces_something(store).await? {
        let name = format!("before-import-{}.db", jiff::Zoned::now().strftime("%Y%m%d-%H%M%S"));
        store.backup(backups.join(&name)).await?;
        report.push(format!("backup of the state before: {name}"));
    }
    report.extend(namespaces.carry_out(store).await?);
    report.extend(users.carry_out(store).await?);
    report.extend(history.carry_out(store, gcodes).await?);
    Ok(report)
}

#[cfg(test)]
mod tests;
