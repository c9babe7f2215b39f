//! Jobs, wired to the files and the printer, which they know only as traits.

use std::sync::Arc;

use files::Files;
use fwhost::FwHost;
use jobs::{FileStamp, History, JobFiles, PrintStarter};
use printer::{PrintStart, PrintTarget, Printer};
use protocol::ApiError;
use rpc::transfer::Boxed;
use rpc::{Connections, Registry};
use runtime::Supervisor;
use store::Store;

/// History and queue.
pub struct Jobs {
    /// What became of jobs.
    pub history: Arc<History>,
}

impl Jobs {
    /// Builds both; nothing runs yet.
    pub fn new(host: &FwHost, store: &Store, connections: &Arc<Connections>, files: &Arc<Files>, printer: &Arc<Printer>) -> Self {
        let job_files: Arc<dyn JobFiles> = Arc::new(FilesOfJobs(files.clone()));
        let history = History::new(host, store.clone(), job_files, connections.clone());
        let asked = history.clone();
        printer.on_start(move |start| match start {
            PrintStart::Asked { filename, user } => asked.asked_for(filename, user),
            PrintStart::Refused { filename } => asked.not_started(filename),
        });
        Self { history }
    }

    /// Lets them work.
    pub fn start(&self, supervisor: &Supervisor) {
        self.history.start(supervisor);
    }

    /// Declares the operations.
    pub fn register(&self, registry: &mut Registry) {
        self.history.register(registry);
    }

    /// Lets go of everything that would keep the server's parts alive.
    pub fn close(&self) {
        self.history.forget_listeners();
    }
}

/// The file manager, as jobs see it.
struct FilesOfJobs(Arc<Files>);

impl JobFiles for FilesOfJobs {
    fn unchanged(&self, list: Vec<FileStamp>) -> Boxed<'static, Vec<bool>> {
        let files = self.0.clone();
        let list = list.into_iter().map(|file| (file.filename, file.size, file.modified)).collect();
        Box::pin(async move { files.unchanged(list).await })
    }

    fn metadata(&self, filename: String) -> Boxed<'static, Option<String>> {
        let files = self.0.clone();
        Box::pin(async move { files.kept_metadata(filename).await })
    }

    fn printed(&self, filename: String, start_time: f64, job_id: String) -> Boxed<'static, ()> {
        let files = self.0.clone();
        Box::pin(async move { files.printed(filename, start_time, job_id).await })
    }
}

/// The printer, as jobs see it.
#[allow(dead_code)]
struct Starter(Arc<Printer>);

impl PrintStarter for Starter {
    fn start(&self, filename: String, user: Option<String>) -> Boxed<'static, Result<(), ApiError>> {
        let printer = self.0.clone();
        Box::pin(async move { printer.start_print(&PrintTarget::parse(&filename)?, user.as_deref()).await })
    }
}
