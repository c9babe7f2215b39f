//! What the HTTP transport needs for pictures of cameras. It knows how pictures are packed for browsers; the implementor knows cameras.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use protocol::ApiError;

use crate::transfer::Boxed;

/// A picture, packed as the camera packed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Media type: `image/` and letters.
    pub media_type: String,
    /// The picture itself.
    pub data: Bytes,
}

/// Pictures as they come. Whoever takes them slowly gets fewer, and the newest each time.
pub type Pictures = Pin<Box<dyn Stream<Item = Arc<Picture>> + Send>>;

/// Which camera is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Camera {
    /// One of the list of webcams, by its `uid` or else by its `name`.
    Listed {
        /// Unique id.
        uid: Option<String>,
        /// Name.
        name: Option<String>,
    },
    /// One that is behind a path of this server, such as `/webcam/?action=stream`.
    At(String),
}

/// Cameras whose pictures are passed on.
pub trait Cameras: Send + Sync {
    /// Moving pictures; ready with the first one. All who watch a camera share one connection to it.
    ///
    /// # Errors
    /// 404 for an unknown camera, 503 when it gives no pictures, 429 for too many viewers.
    fn watch(&self, camera: Camera) -> Boxed<'static, Result<Pictures, ApiError>>;

    /// One picture of now.
    ///
    /// # Errors
    /// As [`Cameras::watch`].
    fn snapshot(&self, camera: Camera) -> Boxed<'static, Result<Arc<Picture>, ApiError>>;
}
