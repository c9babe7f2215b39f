//! The print job as the file manager sees it.

use std::sync::{Arc, OnceLock, Weak};

use files::PrintControl;
use jobs::Queue;
use printer::{PrintTarget, Printer};
use protocol::ApiError;
use rpc::Call;
use rpc::transfer::Boxed;

/// Lets uploads start prints and keeps loaded files from being changed.
pub struct PrinterControl {
    /// The printer.
    pub printer: Arc<Printer>,
    /// The queue, once it is built: it needs the files, which need this.
    pub queue: OnceLock<Weak<Queue>>,
}

impl PrinterControl {
    /// Without a queue yet.
    pub fn new(printer: Arc<Printer>) -> Arc<Self> {
        Arc::new(Self { printer, queue: OnceLock::new() })
    }
}

impl PrintControl for PrinterControl {
    fn loaded_file(&self) -> Option<String> {
        self.printer.loaded_file()
    }

    fn can_start(&self) -> bool {
        self.printer.can_start()
    }

    fn start(&self, filename: String, call: Arc<Call>) -> Boxed<'static, Result<(), ApiError>> {
        let printer = self.printer.clone();
        Box::pin(async move { printer.start_print(&PrintTarget::parse(&filename)?, call.identity.name()).await })
    }

    fn queue(&self, filename: String, call: Arc<Call>) -> Boxed<'static, Result<(), ApiError>> {
        let queue = self.queue.get().and_then(Weak::upgrade);
        Box::pin(async move {
            let queue = queue.ok_or_else(|| ApiError::unavailable("The job queue is not running"))?;
            queue.add(vec![filename], 1, false, call.identity.name()).await
        })
    }
}
