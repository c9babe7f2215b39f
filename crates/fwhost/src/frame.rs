//! Cutting the byte stream at 0x03 into frames: one growable buffer, every byte looked at once, sizes bounded.
//!
//! Pure: bytes come from anywhere through [`Splitter::buffer`] (reading straight into it) or [`Splitter::extend`] (tests, fuzzing).

use bytes::{Buf, BytesMut};

/// The end of a message in both directions. It cannot occur inside JSON, where control characters are escaped.
pub const END: u8 = 0x03;

/// Largest message of the host. The largest one seen is some hundred kilobytes; what is larger is a fault and ends the connection.
pub const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;

/// Free space offered to each read.
const READ_BYTES: usize = 64 * 1024;

/// A buffer that grew beyond this is given back once it is empty.
const KEEP_BYTES: usize = 1024 * 1024;

/// A message without an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("message larger than {0} bytes")]
pub struct TooLarge(pub usize);

/// Splits a stream into frames.
#[derive(Debug)]
pub struct Splitter {
    buffer: BytesMut,
    /// Start of the frame that is being looked for; everything before it has been handed out.
    start: usize,
    /// No end stands between `start` and here.
    scanned: usize,
    limit: usize,
}

impl Splitter {
    /// An empty splitter that refuses frames of more than `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), start: 0, scanned: 0, limit }
    }

    /// Where the next bytes go, with room for a read. Call only when [`Splitter::next_frame`] has nothing more.
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.buffer.reserve(READ_BYTES);
        &mut self.buffer
    }

    /// Adds bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete frame, without its end.
    ///
    /// # Errors
    /// When what has come so far cannot become a frame within the limit.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, TooLarge> {
        if let Some(distance) = memchr::memchr(END, &self.buffer[self.scanned..]) {
            let frame = self.start..self.scanned + distance;
            self.start = frame.end + 1;
            self.scanned = self.start;
            return if frame.len() > self.limit { Err(TooLarge(self.limit)) } else { Ok(Some(&self.buffer[frame])) };
        }
        self.forget_consumed();
        if self.buffer.len() > self.limit { Err(TooLarge(self.limit)) } else { Ok(None) }
    }

    /// Bytes of a message whose end has not come.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.buffer.len() - self.start
    }

    fn forget_consumed(&mut self) {
        self.buffer.advance(self.start);
        self.start = 0;
        self.scanned = self.buffer.len();
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP_BYTES {
            self.buffer = BytesMut::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(splitter: &mut Splitter) -> Result<Vec<Vec<u8>>, TooLarge> {
        let mut frames = Vec::new();
        while let Some(frame) = splitter.next_frame()? {
            frames.push(frame.to_vec());
        }
        Ok(frames)
    }

    #[test]
    fn a_giant_frame_in_small_reads_is_scanned_once() {
        let mut splitter = Splitter::new(MAX_FRAME_BYTES);
        let chunk = vec![b'x'; 4096];
        // 32 MiB in 8192 pieces: rescanning from the start would take minutes.
        for _ in 0..8192 {
            splitter.extend(&chunk);
            assert_eq!(splitter.next_frame(), Ok(None));
        }
        assert_eq!(splitter.unfinished(), 8192 * 4096);
        splitter.extend(&[END, b'y']);
        assert_eq!(splitter.next_frame().unwrap().map(<[u8]>::len), Some(8192 * 4096));
        assert_eq!(splitter.next_frame(), Ok(None));
        splitter.extend(&[END]);
        assert_eq!(splitter.next_frame().unwrap(), Some(&b"y"[..]));
        assert_eq!(splitter.next_frame(), Ok(None));
        assert!(splitter.buffer.capacity() <= KEEP_BYTES, "memory is given back");
    }

    #[test]
    fn oversize_is_refused_with_and_without_an_end() {
        let mut splitter = Splitter::new(10);
        splitter.extend(b"0123456789\x03");
        assert_eq!(all(&mut splitter).unwrap().len(), 1);
        splitter.extend(b"0123456789a");
        assert_eq!(splitter.next_frame(), Err(TooLarge(10)));
        let mut splitter = Splitter::new(10);
        splitter.extend(b"0123456789a\x03");
        assert_eq!(splitter.next_frame(), Err(TooLarge(10)));
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(
            frames in proptest::collection::vec(proptest::collection::vec((0u8..=255).prop_filter("end", |byte| *byte != END), 0..40), 0..12),
            cuts in proptest::collection::vec(1usize..17, 1..20),
            rest in proptest::collection::vec(4u8..=255, 0..9),
        ) {
            let mut stream: Vec<u8> = frames.iter().flat_map(|frame| frame.iter().copied().chain([END])).collect();
            stream.extend(&rest);
            let mut splitter = Splitter::new(64);
            let (mut seen, mut at) = (Vec::new(), 0);
            for cut in cuts.iter().cycle() {
                if at >= stream.len() {
                    break;
                }
                let end = (at + cut).min(stream.len());
                splitter.extend(&stream[at..end]);
                seen.extend(all(&mut splitter).unwrap());
                at = end;
            }
            prop_assert_eq!(seen, frames);
            prop_assert_eq!(splitter.unfinished(), rest.len());
        }
    }
}
