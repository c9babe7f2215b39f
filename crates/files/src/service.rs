//! The handle that others hold: async at the outside, every disk access on a blocking thread.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use protocol::event::{FileAction, FileItem, FilelistChange, SourceItem};
use protocol::vocabulary::SECRETS_FILE;
use protocol::{ApiError, Event};
use rpc::transfer::{Append, Boxed, Download, FileTransfer, NewUpload, Upload, UploadStatus};
use rpc::{Access, Call, Connections};
use store::Store;
use tokio::sync::Semaphore;

use crate::disk;
use crate::download::{self, Log, LogPaths};
use crate::item::FileInfo;
use crate::kind;
use crate::lane::Lane;
use crate::library::{Library, Need};
use crate::list::{self, Directory};
use crate::metadata::{self as scanning, Queue, Table};
use crate::path::RelPath;
use crate::print::PrintControl;
use crate::root::{CONFIG, GCODES, LOGS, Reserved, Root};
use crate::settings::FilesSettings;
use crate::upload::{self, Resumables, Spool};
use crate::watch::{self, News, Own, Signal};

mod changes;
mod metadata;

/// Folders of the data folder that clients never see.
const RESERVED_FOLDERS: &[&str] = &["database", "certs", "systemd", "backup"];

/// Copies, moves and archives that write at the same time: more of them would only wait for the same disk.
const MAX_LONG_CHANGES: usize = 2;

/// Why there is no file manager.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data folder cannot be used.
    #[error("data folder {path}: {source}")]
    DataFolder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The file manager.
pub struct Files {
    pub(crate) settings: FilesSettings,
    pub(crate) library: Library,
    pub(crate) spool: Arc<Spool>,
    /// Uploads that can be continued.
    pub(crate) resumables: Resumables,
    pub(crate) print: Arc<dyn PrintControl>,
    /// What the scans found.
    pub(crate) metadata: Table,
    /// Files that wait for a scan.
    pub(crate) scans: Arc<Queue>,
    /// What our own changes left, for the observer.
    pub(crate) own: Arc<Own>,
    /// The observer's.
    pub(crate) signal: Arc<Signal>,
    /// Whether anything may have changed.
    pub(crate) news: News,
    /// Held by everything that changes files, one after the other.
    pub(crate) changes: Arc<tokio::sync::Mutex<()>>,
    /// For short looks at the disk.
    pub(crate) lane: Lane,
    /// Held by copies, moves and archives while they write aside.
    pub(crate) long_changes: Semaphore,
    logs: LogPaths,
    connections: Arc<Connections>,
    warnings: Mutex<Vec<String>>,
}

impl Files {
    /// Registers the roots of the data folder, makes missing folders, sweeps what unfinished uploads left, and begins to scan in the background.
    /// `store` must have been opened with [`SCHEMA`](crate::SCHEMA). Blocks: called once, at start.
    ///
    /// # Errors
    /// When the data folder is no folder. A root that cannot be used is only a warning.
    pub fn open(
        settings: FilesSettings,
        store: Store,
        connections: Arc<Connections>,
        print: Arc<dyn PrintControl>,
    ) -> Result<Arc<Self>, OpenError> {
        let data_folder = |source| OpenError::DataFolder { path: settings.data_path.clone(), source };
        let data = settings.data_path.canonicalize().map_err(data_folder)?;
        if !data.is_dir() {
            return Err(data_folder(io::ErrorKind::NotADirectory.into()));
        }
        let files = Self {
            library: Library::new(&settings.link_targets),
            spool: Arc::default(),
            resumables: Resumables::default(),
            print,
            metadata: Table::new(store),
            scans: Arc::default(),
            own: Arc::default(),
            signal: Arc::default(),
            news: News::default(),
            changes: Arc::default(),
            lane: Lane::default(),
            long_changes: Semaphore::new(MAX_LONG_CHANGES),
            logs: LogPaths::default(),
            connections,
            warnings: Mutex::default(),
            settings,
        };
        let secrets = [SECRETS_FILE.neutral, SECRETS_FILE.upstream];
        for (name, file) in RESERVED_FOLDERS.iter().map(|name| (*name, *name)).chain(secrets.iter().map(|file| (*file, *file))) {
            files.library.reserve(Reserved { name: name.to_owned(), path: data.join(file), readable: false });
        }
        for reserved in &files.settings.reserved {
            files.library.reserve(reserved.clone());
        }
        let write = files.settings.write_access;
        for (name, writable) in [(CONFIG, write && files.settings.options.enable_config_write_access), (LOGS, false), (GCODES, write)] {
            let path = data.join(name);
            if let Err(error) = disk::ensure_folder(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot make a folder");
            }
            if let Err(warning) = files.library.register(name, &path, writable) {
                files.warn(warning);
            }
        }
        if let Some(gcodes) = files.library.root(GCODES) {
            files.resumables.load(&files.spool.settle(&gcodes.path));
        }
        let files = Arc::new(files);
        upload::forget_in_time(&files);
        if let Err(error) = scanning::start(&files) {
            files.warn(format!("There will be no metadata of gcode files: no thread for it: {error}"));
            files.scans.stop();
        }
        if let Err(error) = watch::start(&files) {
            files.warn(format!("Changes by other programs are not seen: no thread for it: {error}"));
        }
        Ok(files)
    }

    /// Ends the threads. What they have begun, they finish first; requests are served all the same.
    pub fn close(&self) {
        self.scans.stop();
        self.signal.stop();
    }

    /// Adds a root, or moves a known one; clients learn of a move by `root_update`. A folder that cannot be a root gives a warning.
    pub async fn register_root(self: &Arc<Self>, name: String, path: PathBuf, writable: bool) {
        let writable = writable && self.settings.write_access;
        let files = self.clone();
        let moved = blocking(move || {
            let moved = files.library.register(&name, &path, writable).map_err(|warning| {
                files.warn(warning.clone());
                ApiError::internal(warning)
            })?;
            let root = files.library.resolve(&name, RelPath::default(), Need::Read);
            Ok(root.ok().filter(|_| moved).and_then(|root| files.library.item(&root).ok()))
        });
        if let Ok(Some(item)) = moved.await {
            self.announce(FilelistChange { action: FileAction::RootUpdate, item, source_item: None });
        }
    }

    /// Reserves a path that is known only at run time, the firmware's folder for example. The same name again replaces it.
    pub async fn reserve(self: &Arc<Self>, reserved: Reserved) {
        let files = self.clone();
        // Cannot fail: a path that does not resolve is reserved as it stands.
        let _ = blocking(move || {
            files.library.reserve(reserved);
            Ok(())
        })
        .await;
    }

    /// Says where a log with a fixed path is.
    pub fn set_log_path(&self, log: Log, path: PathBuf) {
        self.logs.set(log, path);
    }

    /// Names of the roots in the order of their registration, for the server's info.
    #[must_use]
    pub fn registered_directories(&self) -> Vec<String> {
        self.library.roots().iter().map(|root| root.name.clone()).collect()
    }

    /// The roots in the order of their registration.
    #[must_use]
    pub fn roots(&self) -> Vec<Arc<Root>> {
        self.library.roots()
    }

    /// What is wrong, in sentences for the owner.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().clone()
    }

    /// All files of a root; of `gcodes`, only gcode files.
    ///
    /// # Errors
    /// 400 when there is no such root.
    pub async fn list(self: &Arc<Self>, root: String) -> Result<Vec<FileInfo>, ApiError> {
        let files = self.clone();
        blocking(move || match files.library.root(&root) {
            Some(root) => Ok(list::list(&files.library, &root)),
            None => Err(ApiError::bad_request(format!("Failed to build file list, invalid path: {root}"))),
        })
        .await
    }

    /// The entries of one folder, named with its root; `extended` adds the metadata of gcode files as far as it is there.
    ///
    /// # Errors
    /// 400 and 403 as for all paths; 400 when it is no folder.
    pub async fn directory(self: &Arc<Self>, path: String, extended: bool) -> Result<Directory, ApiError> {
        let files = self.clone();
        self.lane.look(move || list::directory(&files, &path, extended)).await
    }

    /// Tells all clients of a change once the call that made it is answered.
    pub(crate) fn announce_after(self: &Arc<Self>, call: &Call, action: FileAction, item: FileItem, source_item: Option<SourceItem>) {
        self.news.add();
        call.hold_until_answered(Announcement { files: self.clone(), change: Some(FilelistChange { action, item, source_item }) });
    }

    pub(crate) fn announce(&self, change: FilelistChange) {
        self.news.add();
        self.connections.emit(&Event::FilelistChanged(change));
    }

    pub(crate) fn warn(&self, warning: String) {
        tracing::warn!("{warning}");
        let mut warnings = self.warnings.lock();
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.close();
    }
}

/// A notification that is sent when it is dropped.
struct Announcement {
    files: Arc<Files>,
    change: Option<FilelistChange>,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        if let Some(change) = self.change.take() {
            self.files.announce(change);
        }
    }
}

/// The handle as the transport holds it.
#[derive(Clone)]
pub struct Transfer(pub Arc<Files>);

impl FileTransfer for Transfer {
    fn reading(&self, path: &str) -> Access {
        kind::reading(path)
    }

    fn open(&self, path: String) -> Boxed<'static, Result<Download, ApiError>> {
        let files = self.0.clone();
        Box::pin(blocking(move || download::open(&files.library, &files.logs, &path)))
    }

    fn begin_upload(&self, announced: Option<u64>) -> Result<Box<dyn Upload>, ApiError> {
        Ok(Box::new(upload::begin(&self.0, announced)?))
    }

    fn max_upload_size(&self) -> u64 {
        self.0.settings.max_upload_size
    }

    fn create_upload(&self, new: NewUpload) -> Boxed<'static, Result<UploadStatus, ApiError>> {
        let files = self.0.clone();
        Box::pin(blocking(move || upload::create(&files, new)))
    }

    fn upload_status(&self, id: String) -> Boxed<'static, Result<UploadStatus, ApiError>> {
        let files = self.0.clone();
        Box::pin(async move { Ok(files.resumables.take(&id).await?.status()) })
    }

    fn append(&self, id: String, offset: u64, announced: Option<u64>) -> Boxed<'static, Result<Box<dyn Append>, ApiError>> {
        let files = self.0.clone();
        Box::pin(async move { Ok(Box::new(upload::append(&files, &id, offset, announced).await?) as Box<dyn Append>) })
    }

    fn cancel_upload(&self, id: String) -> Boxed<'static, Result<(), ApiError>> {
        let files = self.0.clone();
        Box::pin(async move {
            let turn = files.resumables.take(&id).await?;
            blocking(move || {
                turn.cancel();
                Ok(())
            })
            .await?;
            files.resumables.prune();
            Ok(())
        })
    }
}

pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, ApiError> + Send + 'static) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(ended_abnormally(&error)))
}

/// For what panicked on its thread.
pub(crate) fn ended_abnormally(error: &(dyn std::error::Error + 'static)) -> ApiError {
    tracing::error!(error, "a file operation ended abnormally");
    ApiError::internal("The file operation failed")
}

#[cfg(test)]
mod tests;
