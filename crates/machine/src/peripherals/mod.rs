//! Devices of the machine: what is plugged in, as the kernel's files tell it. Source: document 1 *Peripheral devices*, wire/1-core.md
//! sections 4.7 and 8.9.

mod can;
mod links;
mod serial;
mod usb;
mod usb_ids;
mod video;

pub use usb_ids::UsbIds;

pub(crate) use can::CanNode;
pub(crate) use serial::SerialDevice;
pub(crate) use usb::UsbDevice;
pub(crate) use video::VideoDevice;

use std::path::Path;

use protocol::ApiError;
use protocol::error::ApiResult;
use tokio::sync::Mutex;

use crate::Roots;

/// Devices of one kind that are listed.
const MAX_DEVICES: usize = 1024;

/// Looks at devices, one look at a time: some have to be opened for it.
pub(crate) struct Peripherals {
    roots: Roots,
    data: std::path::PathBuf,
    turn: Mutex<()>,
}

impl Peripherals {
    pub(crate) fn new(roots: Roots, data: &Path) -> Self {
        Self { roots, data: data.to_owned(), turn: Mutex::default() }
    }

    pub(crate) async fn usb(&self) -> ApiResult<Vec<UsbDevice>> {
        let data = self.data.clone();
        self.look(move |roots| usb::list(roots, &UsbIds::find(roots, &data))).await
    }

    pub(crate) async fn serial(&self) -> ApiResult<Vec<SerialDevice>> {
        self.look(serial::list).await
    }

    pub(crate) async fn video(&self) -> ApiResult<Vec<VideoDevice>> {
        self.look(video::list).await
    }

    pub(crate) async fn can(&self, interface: String) -> ApiResult<Vec<CanNode>> {
        self.look(move |_| can::scan(&interface)).await?
    }

    async fn look<T: Send + 'static>(&self, read: impl FnOnce(&Roots) -> T + Send + 'static) -> ApiResult<T> {
        let _turn = self.turn.lock().await;
        let roots = self.roots.clone();
        tokio::task::spawn_blocking(move || read(&roots))
            .await
            .map_err(|error| ApiError::internal(format!("The devices cannot be read: {error}")))
    }
}
