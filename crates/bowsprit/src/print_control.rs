//! The print job as the file manager sees it.

use std::sync::Arc;

use files::PrintControl;
use printer::{PrintTarget, Printer};
use protocol::ApiError;
use rpc::Call;
use rpc::transfer::Boxed;

/// Lets uploads start prints and keeps loaded files from being changed.
pub struct PrinterControl(pub Arc<Printer>);

impl PrintControl for PrinterControl {
    fn loaded_file(&self) -> Option<String> {
        self.0.loaded_file()
    }

    fn can_start(&self) -> bool {
        self.0.can_start()
    }

    fn start(&self, filename: String, call: Arc<Call>) -> Boxed<'static, Result<(), ApiError>> {
        let printer = self.0.clone();
        Box::pin(async move { printer.start_print(&PrintTarget::parse(&filename)?, call.identity.name()).await })
    }

    fn queue(&self, _: String, _: Arc<Call>) -> Boxed<'static, Result<(), ApiError>> {
        Box::pin(async { Err(ApiError::unavailable("No job queue")) })
    }
}
