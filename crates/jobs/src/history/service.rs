//! The handle that operations and other components hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fwhost::{FwHost, FwHost as Host};
use parking_lot::Mutex;
use protocol::ApiError;
use protocol::ErrorKind;
use protocol::jobs::JobEntry;
use rpc::Connections;
use runtime::Supervisor;
use store::rusqlite::Connection;
use store::{KeptAnswers, Store, StoreError};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::auxiliary::{Auxiliary, AuxiliaryTotal};
use super::entry;
use super::input::{self, Input};
use super::recent::{Kept, Recent};
use super::record::{parse_id, wire_id};
use super::table::{self, Filter};
use super::totals::{self, Totals};
use super::worker;
use crate::ports::{FileStamp, JobFiles, Looked};
use crate::state::JobEvent;

/// What the firmware host told and the history has not written yet; beyond that, the printer is looked at anew.
const MAX_WAITING: usize = 1024;

/// The user who asked for a start counts for a print of that file that begins within this time.
const USER_GRACE: Duration = Duration::from_secs(60);

/// Largest list or export in bytes of stored text; whoever wants more asks for parts.
const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;

type Listener = Box<dyn Fn(JobEvent) + Send + Sync>;

/// A start that was asked for through us.
struct Asked {
    filename: String,
    user: String,
    at: Instant,
}

/// The history of jobs.
pub struct History {
    pub(crate) host: FwHost,
    pub(crate) store: Store,
    recent: Recent,
    /// The totals with so many fields.
    kept_totals: KeptAnswers<usize, Totals>,
    pub(crate) files: Arc<dyn JobFiles>,
    pub(crate) connections: Arc<Connections>,
    /// Fields of other components.
    pub auxiliary: Auxiliary,
    pub(crate) inbox: tokio::sync::Mutex<mpsc::Receiver<Input>>,
    overflow: Arc<AtomicBool>,
    asked: Mutex<Option<Asked>>,
    listeners: Mutex<Vec<Listener>>,
}

impl History {
    /// A history in `store`, which must have been opened with [`SCHEMA`](crate::SCHEMA). Listens to `host` at once; [`History::start`] lets it work.
    #[must_use]
    pub fn new(host: &Host, store: Store, files: Arc<dyn JobFiles>, connections: Arc<Connections>) -> Arc<Self> {
        let (sender, inbox) = mpsc::channel(MAX_WAITING);
        let overflow = Arc::new(AtomicBool::new(false));
        let (link, full) = (host.clone(), overflow.clone());
        host.on_event(move |event| {
            if let Some(input) = input::input(&link, event)
                && sender.try_send(input).is_err()
            {
                full.store(true, Ordering::Relaxed);
            }
        });
        Arc::new(Self {
            host: host.clone(),
            store,
            recent: Recent::default(),
            kept_totals: KeptAnswers::new(|totals| size_of_val(&*totals.auxiliary)),
            files,
            connections,
            auxiliary: Auxiliary::default(),
            inbox: tokio::sync::Mutex::new(inbox),
            overflow,
            asked: Mutex::default(),
            listeners: Mutex::default(),
        })
    }

    /// Begins to follow the printer.
    pub fn start(self: &Arc<Self>, supervisor: &Supervisor) {
        let history = self.clone();
        supervisor.spawn("job history", move |stop| worker::run(history.clone(), stop));
    }

    /// Calls `listener` for everything that happens to jobs, after it is written. It must be quick and must not block.
    pub fn on_event(&self, listener: impl Fn(JobEvent) + Send + Sync + 'static) {
        self.listeners.lock().push(Box::new(listener));
    }

    /// Forgets all listeners: they hold other components, which hold this handle. For the end of the server.
    pub fn forget_listeners(&self) {
        self.listeners.lock().clear();
    }

    pub(crate) fn tell(&self, event: JobEvent) {
        for listener in self.listeners.lock().iter() {
            listener(event);
        }
    }

    pub(crate) fn take_overflow(&self) -> bool {
        self.overflow.swap(false, Ordering::Relaxed)
    }

    /// Takes down who asks for a print of this file. To be called before the firmware host is asked.
    pub fn asked_for(&self, filename: &str, user: Option<&str>) {
        let filename = filename.strip_prefix('/').unwrap_or(filename).to_owned();
        *self.asked.lock() = user.map(|user| Asked { filename, user: user.to_owned(), at: Instant::now() });
    }

    /// The firmware host refused.
    pub fn not_started(&self, filename: &str) {
        self.user_of(filename);
    }

    /// Who asked for the print of this file that begins now.
    pub(crate) fn user_of(&self, filename: &str) -> Option<String> {
        let filename = filename.strip_prefix('/').unwrap_or(filename);
        let asked = self.asked.lock().take_if(|asked| asked.filename == filename)?;
        (asked.at.elapsed() < USER_GRACE).then_some(asked.user)
    }

    /// Writes to the database. Everything that changes records goes this way.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let write = self.recent.write();
        let (value, _write) = self.store.write(move |conn| Ok((work(conn)?, write))).await?;
        Ok(value)
    }

    /// Jobs that fit.
    pub(crate) async fn list(&self, filter: Filter) -> Result<Arc<[JobEntry]>, ApiError> {
        let writes = self.recent.writes();
        let (entries, files) = match self.recent.get(&filter) {
            Some(kept) if kept.mark.is_some_and(|mark| self.files.is_current(mark)) => return Ok(kept.entries),
            Some(kept) => (kept.entries.to_vec(), kept.files.to_vec()),
            None => self.read_list(&filter).await?,
        };
        let Looked { unchanged, mark } = self.files.unchanged(files.clone()).await;
        let entries = entry::with_files(entries, unchanged);
        self.recent.keep(Kept { writes, filter, entries: entries.clone(), files: files.into(), mark });
        Ok(entries)
    }

    /// Records as the database has them, with the files as they were printed.
    async fn read_list(&self, filter: &Filter) -> Result<(Vec<JobEntry>, Vec<FileStamp>), ApiError> {
        let wanted = filter.clone();
        let mut bytes = 0;
        let jobs = self.store.read(move |conn| {
            let mut jobs = (Vec::new(), Vec::new());
            table::list(conn, &wanted, |record| {
                bytes += record.metadata.len() + record.auxiliary.len();
                jobs.extend([entry::of(record)]);
                if bytes > MAX_LIST_BYTES { Err(StoreError::TooLarge(too_many())) } else { Ok(()) }
            })?;
            Ok(jobs)
        });
        jobs.await.map_err(to_api)
    }

    /// One job.
    ///
    /// # Errors
    /// 404 when there is none.
    pub async fn job(&self, uid: &str) -> Result<JobEntry, ApiError> {
        let id = parse_id(uid).ok_or_else(|| unknown(uid))?;
        let record = self.store.read(move |conn| table::get(conn, id)).await.map_err(to_api)?.ok_or_else(|| unknown(uid))?;
        Ok(entry::entry(&*self.files, record).await)
    }

    /// Forgets a job that is over.
    pub(crate) async fn delete(&self, uid: &str) -> Result<String, ApiError> {
        let id = parse_id(uid).ok_or_else(|| unknown(uid))?;
        let (deleted, left) =
            self.write(move |conn| Ok((table::delete(conn, id)?, table::get(conn, id)?.is_some()))).await.map_err(to_api)?;
        match (deleted, left) {
            (true, _) => Ok(wire_id(id)),
            (false, true) => Err(ApiError::bad_request(format!("Job {} is in progress, cannot delete it", wire_id(id)))),
            (false, false) => Err(unknown(uid)),
        }
    }

    /// Forgets all jobs that are over.
    pub(crate) async fn delete_all(&self) -> Result<Vec<String>, ApiError> {
        let ids = self.write(table::delete_all).await.map_err(to_api)?;
        Ok(ids.into_iter().map(wire_id).collect())
    }

    pub(crate) async fn totals(&self) -> Result<Totals, ApiError> {
        let auxiliary = self.auxiliary.clone();
        // Fields are only ever added.
        let fields = auxiliary.count();
        self.store.recall(&self.kept_totals, fields, move |conn| read_totals(conn, &auxiliary)).await.map_err(to_api)
    }

    /// Sets the totals to zero and answers what they were.
    pub(crate) async fn reset_totals(&self) -> Result<Totals, ApiError> {
        let auxiliary = self.auxiliary.clone();
        let reset = self.write(move |conn| {
            if table::is_busy(conn)? {
                return Ok(None);
            }
            let before = read_totals(conn, &auxiliary)?;
            totals::reset(conn)?;
            Ok(Some(before))
        });
        reset.await.map_err(to_api)?.ok_or_else(|| ApiError::bad_request("Job in progress, cannot reset totals"))
    }
}

fn read_totals(conn: &Connection, auxiliary: &Auxiliary) -> Result<Totals, StoreError> {
    let jobs = table::own_totals(conn)?;
    let auxiliary: Vec<AuxiliaryTotal> = auxiliary.totals(|provider, field| totals::get(conn, provider, field))?;
    Ok(Totals { jobs, auxiliary })
}

fn too_many() -> String {
    "Too many jobs for one answer: ask for fewer with [limit], [since] or [before]".to_owned()
}

fn unknown(uid: &str) -> ApiError {
    ApiError::not_found(format!("Invalid job uid: {uid:.64}"))
}

/// A fault of the store, for clients.
#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub(crate) fn to_api(error: StoreError) -> ApiError {
    let kind = match error.kind() {
        store::ErrorKind::NotFound => ErrorKind::NotFound,
        store::ErrorKind::Invalid => ErrorKind::BadRequest,
        store::ErrorKind::Denied => ErrorKind::Forbidden,
        store::ErrorKind::Unavailable => ErrorKind::Unavailable,
        store::ErrorKind::Internal => ErrorKind::Internal,
    };
    let kind = if matches!(error, StoreError::Full) { ErrorKind::Storage } else { kind };
    ApiError::new(kind, error.to_string())
}
