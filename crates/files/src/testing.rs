//! What the tests of this crate share: a file manager over a temporary data folder, a printer that says what it is told to, a client that listens.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use protocol::ApiError;
use rpc::connection::Registered;
use rpc::transfer::{Boxed, Download, FileTransfer, Upload, Uploaded};
use rpc::{Call, ConnectionKind, Connections, Identity};
use serde_json::Value;
use store::Store;
use tempfile::TempDir;

use crate::print::PrintControl;
use crate::service::{Files, Transfer};
use crate::settings::{FilesSettings, Observer};
use crate::upload::SPOOL_FOLDER;

/// A printer that the test controls.
#[derive(Default)]
pub(crate) struct FakePrinter {
    pub(crate) loaded: Mutex<Option<String>>,
    pub(crate) free: AtomicBool,
    pub(crate) refuses: AtomicBool,
    pub(crate) started: Mutex<Vec<String>>,
    pub(crate) queued: Mutex<Vec<String>>,
}

impl PrintControl for FakePrinter {
    fn loaded_file(&self) -> Option<String> {
        self.loaded.lock().clone()
    }

    fn can_start(&self) -> bool {
        self.free.load(Ordering::Relaxed)
    }

    fn start(&self, filename: String, _: Arc<Call>) -> Boxed<'static, Result<(), ApiError>> {
        let result = if self.refuses.load(Ordering::Relaxed) { Err(ApiError::bad_request("no")) } else { Ok(()) };
        self.started.lock().push(filename);
        Box::pin(async { result })
    }

    fn queue(&self, filename: String, _: Arc<Call>) -> Boxed<'static, Result<(), ApiError>> {
        self.queued.lock().push(filename);
        Box::pin(async { Ok(()) })
    }
}

pub(crate) struct Bench {
    pub(crate) data: TempDir,
    pub(crate) files: Arc<Files>,
    pub(crate) printer: Arc<FakePrinter>,
    pub(crate) connections: Arc<Connections>,
    listener: Registered,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// A bench whose settings `change` adapts; the data folder is in them.
    pub(crate) fn with(change: impl FnOnce(&mut FilesSettings)) -> Self {
        Self::over(tempfile::tempdir().unwrap(), Store::in_memory(&[crate::SCHEMA]).unwrap(), change)
    }

    /// A bench over what an earlier one left.
    pub(crate) fn over(data: TempDir, store: Store, change: impl FnOnce(&mut FilesSettings)) -> Self {
        let mut settings = FilesSettings::new(data.path());
        // What tests write by the way is nobody's notification; tests of the observer turn it on.
        settings.options.file_system_observer = Observer::None;
        change(&mut settings);
        let connections = Arc::new(Connections::default());
        let printer = Arc::new(FakePrinter::default());
        let listener = connections.register(ConnectionKind::Unix, Identity::Local, None);
        let files = Files::open(settings, store, connections.clone(), printer.clone()).unwrap();
        settle(&files);
        Self { data, files, printer, connections, listener }
    }

    /// A path in the data folder.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.data.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn link(&self, path: &str, target: impl AsRef<std::path::Path>) {
        std::os::unix::fs::symlink(target, self.path(path)).unwrap();
    }

    pub(crate) fn begin(&self) -> Box<dyn Upload> {
        Transfer(self.files.clone()).begin_upload(None).unwrap()
    }

    pub(crate) async fn upload(&self, name: &str, content: &str, fields: &[(&str, &str)]) -> Result<Uploaded, ApiError> {
        let mut upload = self.begin();
        for (name, value) in fields {
            upload.field(name, (*value).to_owned())?;
        }
        upload.start_file(name).await?;
        upload.chunk(Bytes::copy_from_slice(content.as_bytes())).await?;
        upload.finish(Arc::new(Call::internal())).await
    }

    pub(crate) async fn download(&self, path: &str) -> Result<Download, ApiError> {
        Transfer(self.files.clone()).open(path.to_owned()).await
    }

    /// Unfinished uploads on the disk.
    pub(crate) fn spooled(&self) -> usize {
        fs::read_dir(self.path("gcodes").join(SPOOL_FOLDER)).map_or(0, Iterator::count)
    }

    /// Payloads of the notifications that came since the last look.
    pub(crate) fn notifications(&self) -> Vec<Value> {
        let mut frames = Vec::new();
        self.listener.connection.outbox.take(&mut frames, usize::MAX);
        let parsed = frames.iter().map(|frame| serde_json::from_slice::<Value>(frame).unwrap());
        parsed.map(|mut message| message["params"][0].take()).collect()
    }
}

/// Waits until what the start found is scanned, so that no test sees the notification about it.
pub(crate) fn settle(files: &Files) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while !files.scans.is_settled() || !files.signal.is_ready() {
        assert!(std::time::Instant::now() < deadline, "the start never ended");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// The JSON of an answer.
pub(crate) fn json(done: &Uploaded) -> Value {
    serde_json::from_slice(&done.body).unwrap()
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "the condition never came true");
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}
