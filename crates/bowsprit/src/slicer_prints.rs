//! Files and the job as the emulated slicer API sees them.

use std::sync::Arc;

use files::{Files, PrintControl, Transfer};
use integrations::slicer_api::Prints;
use protocol::ApiError;
use rpc::Call;
use rpc::transfer::{Boxed, FileTransfer};

use crate::print_control::PrinterControl;

/// Lets slicers print files that are there.
pub struct SlicerPrints {
    /// Where the files are.
    pub files: Arc<Files>,
    /// What prints them.
    pub control: Arc<PrinterControl>,
    /// Files for which there is no time now wait in the queue.
    pub queues: bool,
}

impl Prints for SlicerPrints {
    fn has(&self, filename: String) -> Boxed<'static, bool> {
        let opened = Transfer(self.files.clone()).open(format!("gcodes/{filename}"));
        Box::pin(async move { opened.await.is_ok() })
    }

    fn start(&self, filename: String, call: Arc<Call>) -> Boxed<'static, Result<(), ApiError>> {
        self.control.start(filename, call)
    }

    fn queue(&self, filename: String, call: Arc<Call>) -> Option<Boxed<'static, Result<(), ApiError>>> {
        self.queues.then(|| self.control.queue(filename, call))
    }
}
