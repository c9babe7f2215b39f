//! The store on a real disk: opening, damage, versions, and what survives a process that is killed.

#[cfg(test)]
mod backups;
#[cfg(test)]
mod files;
#[cfg(test)]
mod killed;
