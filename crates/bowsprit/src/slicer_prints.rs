//! Files and the job as the emulated slicer API sees them.

use std::sync::Arc;

use files::{Files, PrintControl};
use integrations::slicer_api::Prints;
use protocol::ApiError;
use rpc::Call;
use rpc::transfer::Boxed;

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
        let files = self.files.clone();
        Box::pin(async move { files.unchanged(vec![(filename, None, None)]).await.0 == [true] })
    }

    fn start(&self, filename: String, call: Arc<Call>) -> Boxed<'static, Result<(), ApiError>> {
        self.control.start(filename, call)
    }

    fn queue(&self, filename: String, call: Arc<Call>) -> Option<Boxed<'static, Result<(), ApiError>>> {
        self.queues.then(|| self.control.queue(filename, call))
    }
}
