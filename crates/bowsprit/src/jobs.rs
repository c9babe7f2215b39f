//! Jobs, wired to the files and the printer, which they know only as traits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use files::Files;
use fwhost::FwHost;
use jobs::{FileStamp, History, JobFiles, JobQueueOptions, Looked, PrintStarter, Queue};
use printer::{PrintStart, PrintTarget, Printer};
use protocol::ApiError;
use protocol::status::{Fields, Selection};
use rpc::transfer::Boxed;
use rpc::{Connections, Registry};
use runtime::Supervisor;
use store::Store;

use crate::print_control::PrinterControl;

/// A printer that does not say within this time what it does is not free.
const LOOK: Duration = Duration::from_secs(5);

/// History and queue.
pub struct Jobs {
    /// What became of jobs.
    pub history: Arc<History>,
    /// Which come next.
    pub queue: Arc<Queue>,
}

impl Jobs {
    /// Builds both; nothing runs yet.
    pub fn new(
        host: &FwHost,
        store: &Store,
        connections: &Arc<Connections>,
        files: &Arc<Files>,
        control: &PrinterControl,
        options: &JobQueueOptions,
    ) -> Self {
        let job_files: Arc<dyn JobFiles> = Arc::new(FilesOfJobs(files.clone()));
        let history = History::new(host, store.clone(), job_files, connections.clone());
        let asked = history.clone();
        control.printer.on_start(move |start| match start {
            PrintStart::Asked { filename, user } => asked.asked_for(filename, user),
            PrintStart::Refused { filename } => asked.not_started(filename),
        });
        let queue = Queue::new(options.clone(), &history, Arc::new(Starter(control.printer.clone())));
        // Cannot be set yet: there is one queue per build.
        let _ = control.queue.set(Arc::downgrade(&queue));
        Self { history, queue }
    }

    /// Lets them work.
    pub fn start(&self, supervisor: &Supervisor) {
        self.history.start(supervisor);
        self.queue.start_task(supervisor);
    }

    /// Declares the operations.
    pub fn register(&self, registry: &mut Registry) {
        self.history.register(registry);
        self.queue.register(registry);
    }

    /// Lets go of everything that would keep the server's parts alive.
    pub fn close(&self) {
        self.queue.close();
        self.history.forget_listeners();
    }
}

/// The file manager, as jobs see it.
struct FilesOfJobs(Arc<Files>);

impl JobFiles for FilesOfJobs {
    fn unchanged(&self, list: Vec<FileStamp>) -> Boxed<'static, Looked> {
        let files = self.0.clone();
        let list = list.into_iter().map(|file| (file.filename, file.size, file.modified)).collect();
        Box::pin(async move {
            let (unchanged, mark) = files.unchanged(list).await;
            Looked { unchanged, mark }
        })
    }

    fn is_current(&self, mark: u64) -> bool {
        self.0.news_mark() == Some(mark)
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
struct Starter(Arc<Printer>);

impl PrintStarter for Starter {
    fn is_free(&self) -> Boxed<'static, bool> {
        let printer = self.0.clone();
        Box::pin(async move {
            let job = Selection(BTreeMap::from([("print_stats".into(), Fields::All)]));
            let asked = tokio::time::timeout(LOOK, printer.host.query(&job)).await;
            asked.is_ok_and(|answer| answer.is_ok()) && printer.can_start()
        })
    }

    fn start(&self, filename: String, user: Option<String>) -> Boxed<'static, Result<(), ApiError>> {
        let printer = self.0.clone();
        Box::pin(async move { printer.start_print(&PrintTarget::parse(&filename)?, user.as_deref()).await })
    }
}
