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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_are_head_and_tail_at_once() {
        let mut windows = Windows::read(&b"a\r\nb\rc\n"[..]).unwrap();
        assert_eq!(windows.head(), windows.tail());
        windows.unify_line_ends();
        assert_eq!((windows.head(), windows.tail(), windows.all()), (&b"a\nbc\n"[..], &b"a\nbc\n"[..], &b"a\nbc\n"[..]));
    }

    #[test]
    fn windows_overlap_in_files_of_less_than_two() {
        let text: Vec<u8> = (0..WINDOW_BYTES + 1000).map(|at| if at % 50 < 2 { b'\r' } else { (at % 251) as u8 | 0x80 }).collect();
        let mut windows = Windows::read(text.as_slice()).unwrap();
        assert_eq!((windows.head(), windows.tail()), (&text[..WINDOW_BYTES], &text[1000..]));
        assert_eq!(windows.place(1_048_000..1_049_000), 1_048_000..1_049_000);
        assert_eq!(windows.after_tail(WINDOW_BYTES), text.len() as u64);
        windows.unify_line_ends();
        let without = |part: &[u8]| part.iter().copied().filter(|&byte| byte != b'\r').collect::<Vec<_>>();
        assert_eq!((windows.head(), windows.tail()), (&without(&text[..WINDOW_BYTES])[..], &without(&text[1000..])[..]));
    }

    #[test]
    fn the_middle_of_long_files_is_missing() {
        let mut text = vec![b'm'; 2 * WINDOW_BYTES + 500];
        text[WINDOW_BYTES - 1] = b'h';
        text[WINDOW_BYTES + 500] = b't';
        let windows = Windows::read(text.as_slice()).unwrap();
        assert_eq!((windows.head().last(), windows.tail().first()), (Some(&b'h'), Some(&b't')));
        let (head, size) = (WINDOW_BYTES as u64, text.len() as u64);
        assert_eq!(windows.place(0..WINDOW_BYTES), 0..head);
        assert_eq!(windows.place(WINDOW_BYTES..2 * WINDOW_BYTES), head + 500..size);
        assert_eq!(windows.after_tail(WINDOW_BYTES), size);
    }
}
