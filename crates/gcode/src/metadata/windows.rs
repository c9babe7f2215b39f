//! The two ends of a file, in one buffer: the only bytes a scan ever reads.

use std::io;
use std::ops::Range;

use super::WINDOW_BYTES;
use crate::Source;
use crate::source::read_up_to;

/// Head and tail of a file, simply joined (section 3.2). For files over two windows the middle is missing.
pub(super) struct Windows {
    bytes: Vec<u8>,
    /// Where the head ends in `bytes`.
    head_end: usize,
    /// Where the tail begins in `bytes`; before `head_end` in files of less than two windows.
    tail_start: usize,
    /// Where the second read was joined to the first, and how many bytes of the file are missing there.
    joint: usize,
    missing: u64,
}

impl Windows {
    /// Reads at most two windows.
    pub(super) fn read(source: &(impl Source + ?Sized)) -> io::Result<Self> {
        let window = WINDOW_BYTES as u64;
        let mut bytes = Vec::new();
        read_up_to(source, 0, WINDOW_BYTES, &mut bytes)?;
        let head_end = bytes.len();
        let rest = source.size().saturating_sub(window).max(window);
        if head_end == WINDOW_BYTES {
            read_up_to(source, rest, WINDOW_BYTES, &mut bytes)?;
        }
        Ok(Self { head_end, tail_start: bytes.len().saturating_sub(WINDOW_BYTES), joint: head_end, missing: rest - window, bytes })
    }

    /// Both windows.
    pub(super) fn all(&self) -> &[u8] {
        &self.bytes
    }

    /// The first window.
    pub(super) fn head(&self) -> &[u8] {
        &self.bytes[..self.head_end]
    }

    /// The last window.
    pub(super) fn tail(&self) -> &[u8] {
        &self.bytes[self.tail_start..]
    }

    /// Where bytes of [`Self::all`] lie in the file. Meaningful only until line ends are unified.
    pub(super) fn place(&self, range: Range<usize>) -> Range<u64> {
        let missing_before = |last: usize| if last < self.joint { 0 } else { self.missing };
        let start = range.start as u64 + missing_before(range.start);
        let end = range.end as u64 + missing_before(range.end.saturating_sub(1));
        start..end
    }

    /// Position in the file just after the first `count` bytes of [`Self::tail`].
    pub(super) fn after_tail(&self, count: usize) -> u64 {
        self.place(self.tail_start..self.tail_start + count).end
    }

    /// Drops carriage returns, so that all rules see one kind of line end and values never carry one.
    pub(super) fn unify_line_ends(&mut self) {
        let returns_before = |end: usize| memchr::memchr_iter(b'\r', &self.bytes[..end]).count();
        let head_end = self.head_end - returns_before(self.head_end);
        let tail_start = self.tail_start - returns_before(self.tail_start);
        if returns_before(self.bytes.len()) > 0 {
            self.bytes.retain(|&byte| byte != b'\r');
        }
        (self.head_end, self.tail_start) = (head_end, tail_start);
    }
}
