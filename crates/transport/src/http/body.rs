//! Bodies that we send: finished bytes, or a file read ahead in bounded pieces.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

use crate::limits::{DOWNLOAD_AHEAD, DOWNLOAD_PIECE};

/// The body of an answer.
#[derive(Debug)]
pub enum Body {
    /// All there is.
    Whole(Option<Bytes>),
    /// Pieces of a file that a blocking thread reads ahead.
    File {
        /// Pieces, or the error that cut the file short.
        pieces: mpsc::Receiver<io::Result<Bytes>>,
        /// Bytes still to come.
        left: u64,
    },
}

impl Body {
    /// No body.
    #[must_use]
    pub fn empty() -> Self {
        Self::Whole(None)
    }

    /// `length` bytes of `file` from `start`; reading stops when the peer goes away.
    #[must_use]
    pub fn file(file: File, start: u64, length: u64) -> Self {
        let (sender, pieces) = mpsc::channel(DOWNLOAD_AHEAD);
        tokio::task::spawn_blocking(move || {
            let mut position = start;
            let end = start + length;
            while position < end {
                let piece = read_piece(&file, position, end - position);
                let size = piece.as_ref().map_or(0, Bytes::len) as u64;
                position += size;
                if sender.blocking_send(piece).is_err() || size == 0 {
                    break;
                }
            }
        });
        Self::File { pieces, left: length }
    }
}

fn read_piece(file: &File, position: u64, left: u64) -> io::Result<Bytes> {
    let size = usize::try_from(left).unwrap_or(usize::MAX).min(DOWNLOAD_PIECE);
    let mut piece = vec![0; size];
    let read = file.read_at(&mut piece, position)?;
    if read == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter while it was sent"));
    }
    piece.truncate(read);
    Ok(piece.into())
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Whole(Some(bytes.into()))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(Some(bytes))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes)))),
            Self::File { pieces, left } => pieces.poll_recv(cx).map(|piece| {
                piece.map(|piece| {
                    piece.map(|bytes| {
                        *left = left.saturating_sub(bytes.len() as u64);
                        Frame::data(bytes)
                    })
                })
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Self::File { left, .. } => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::File { left, .. } => SizeHint::with_exact(*left),
        }
    }
}
