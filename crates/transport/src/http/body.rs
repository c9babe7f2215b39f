//! Bodies that we send: finished bytes, or a file read piece by piece as the client takes it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::task::{JoinHandle, spawn_blocking};

use super::cameras::Parts;
use crate::limits::DOWNLOAD_PIECE;

/// The body of an answer.
#[derive(Debug)]
pub enum Body {
    /// All there is.
    Whole(Option<Bytes>),
    /// A part of a file.
    File(FilePart),
    /// Pictures of a camera, until it or the client leaves.
    Pictures(Parts),
}

/// A part of a file on its way out. Between two pieces no thread waits: a client that takes them slowly costs nothing but the open file.
#[derive(Debug)]
pub struct FilePart {
    file: Arc<File>,
    position: u64,
    left: u64,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl Body {
    /// No body.
    #[must_use]
    pub fn empty() -> Self {
        Self::Whole(None)
    }

    /// `length` bytes of `file` from `start`.
    #[must_use]
    pub fn file(file: File, start: u64, length: u64) -> Self {
        Self::File(FilePart { file: Arc::new(file), position: start, left: length, reading: None })
    }
}

impl FilePart {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let reading = self.reading.get_or_insert_with(|| {
            let (file, position, left) = (self.file.clone(), self.position, self.left);
            spawn_blocking(move || read_piece(&file, position, left))
        });
        let piece = ready!(Pin::new(reading).poll(cx)).unwrap_or_else(|error| Err(io::Error::other(error)));
        self.reading = None;
        if let Ok(piece) = &piece {
            self.position += piece.len() as u64;
            self.left -= piece.len() as u64;
        }
        Poll::Ready(Some(piece))
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
            Self::File(part) => part.poll_piece(cx).map(|piece| piece.map(|piece| piece.map(Frame::data))),
            Self::Pictures(parts) => parts.poll_piece(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Self::File(part) => part.left == 0,
            Self::Pictures(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::File(part) => SizeHint::with_exact(part.left),
            Self::Pictures(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::io::Write;

    #[tokio::test]
    async fn a_part_of_a_file_arrives_whole() {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..3 * DOWNLOAD_PIECE + 17).map(|index| (index % 251) as u8).collect();
        file.write_all(&content).unwrap();
        let body = Body::file(file, 5, content.len() as u64 - 10);
        assert_eq!(http_body::Body::size_hint(&body).exact(), Some(content.len() as u64 - 10));
        let sent = body.collect().await.unwrap().to_bytes();
        assert_eq!(&sent[..], &content[5..content.len() - 5]);
    }

    #[tokio::test]
    async fn a_file_that_became_shorter_breaks_the_body_off() {
        let file = tempfile::tempfile().unwrap();
        assert!(Body::file(file, 0, 10).collect().await.is_err());
    }
}
