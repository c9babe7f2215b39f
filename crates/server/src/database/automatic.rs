//! Automatic backups: one a day unless configured otherwise, when something was stored since the last one, and never during a print.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::backups::Backups;
use super::{Database, Maintenance};

/// Time between looks at whether a backup is due.
const LOOK_EVERY: Duration = Duration::from_secs(300);

/// Time between looks while it is not known whether the printer prints.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Time after the start from which on a printer that does not answer counts as one that does not print.
const PATIENCE: Duration = Duration::from_secs(120);

/// Id of the warning about a backup that failed.
const WARNING: &str = "database_backup";

impl Database {
    /// Makes backups from time to time until told to stop. One that has begun is finished.
    pub async fn make_backups(self: Arc<Self>, stop: CancellationToken) {
        if self.maintenance.parts.options.automatic_backups == 0
            || stop.run_until_cancelled(self.maintenance.wait_for_the_printer()).await.is_none()
        {
            return;
        }
        loop {
            self.maintenance.back_up_when_due(SystemTime::now()).await;
            if stop.run_until_cancelled(sleep(LOOK_EVERY)).await.is_none() {
                return;
            }
        }
    }
}

impl Maintenance {
    /// A restart in the middle of a print must not begin with a backup.
    async fn wait_for_the_printer(&self) {
        let known = async {
            while self.parts.printing.is_printing().is_none() {
                sleep(ASK_AGAIN).await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, known).await;
    }

    /// Makes a backup if it is time. A failure is shown until a later one succeeds.
    pub(super) async fn back_up_when_due(&self, now: SystemTime) {
        if self.parts.printing.is_printing() == Some(true) {
            return;
        }
        let store = self.store.clone();
        let look = move |backups: &Backups| Ok((backups.last_automatic().unwrap_or_default(), store.last_change()));
        let (last, changed) = self.disk(look).await.unwrap_or_default();
        let interval = Duration::from_secs_f64(self.parts.options.automatic_backup_interval * 3600.0);
        if !is_due(last, changed, now, interval) {
            return;
        }
        match self.automatic_backup().await {
            Ok(()) => self.parts.warnings.clear(WARNING),
            Err(store::StoreError::NoFile | store::StoreError::Closed) => {}
            Err(error) => {
                tracing::warn!(%error, "the automatic backup of the database failed");
                self.parts.warnings.set(WARNING, format!("The automatic backup of the database failed: {error}"));
            }
        }
    }
}

/// Whether `interval` has passed since the last backup and something has changed. A clock that was put back (boards without a battery
/// start in the past) makes a backup due, too: the times say nothing then.
fn is_due(last: Option<SystemTime>, changed: Option<SystemTime>, now: SystemTime, interval: Duration) -> bool {
    let Some(last) = last else { return true };
    match now.duration_since(last) {
        Ok(passed) => passed >= interval && changed.is_none_or(|changed| changed > last),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_due_after_the_interval_and_a_change() {
        let now = SystemTime::now();
        let hour = Duration::from_secs(3600);
        let ago = |hours: u32| Some(now - hour * hours);
        assert!(is_due(None, None, now, hour * 24));
        assert!(is_due(ago(24), ago(1), now, hour * 24));
        assert!(!is_due(ago(23), ago(1), now, hour * 24), "too early");
        assert!(!is_due(ago(30), ago(40), now, hour * 24), "nothing changed");
        assert!(is_due(ago(30), None, now, hour * 24), "not known");
        assert!(is_due(Some(now + hour), ago(2), now, hour * 24), "the clock was put back");
    }
}
