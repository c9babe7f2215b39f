//! A file as lines, through one window of fixed size: memory does not grow with the file or its longest line.

use memchr::memchr;

use super::ObjectsError;
use crate::Source;

/// Size of the window, and so of the longest line seen whole.
pub(super) const WINDOW_BYTES: usize = 256 * 1024;

/// Where a piece of text stands in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// The complete line.
    Whole,
    /// The beginning of a line longer than the window.
    First,
    /// More of such a line.
    Rest,
}

/// A line without its end, or a piece of one that is longer than the window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'w> {
    /// The bytes, without LF or CRLF.
    pub(super) text: &'w [u8],
    /// Whether a line end follows; false for the last line of a file without one.
    pub(super) ended: bool,
    piece: Piece,
}

impl<'w> Line<'w> {
    /// The text if the line is complete. Marks and moves are read from complete lines only.
    pub(super) fn whole(&self) -> Option<&'w [u8]> {
        (self.piece == Piece::Whole).then_some(self.text)
    }

    /// Whether the text starts at the beginning of a line.
    pub(super) fn is_start(&self) -> bool {
        self.piece != Piece::Rest
    }
}

/// Reads lines one after the other.
pub(super) struct Lines<'s, S: ?Sized> {
    source: &'s S,
    keep_going: &'s dyn Fn() -> bool,
    window: Vec<u8>,
    /// Unread part of the window.
    start: usize,
    end: usize,
    /// Where the next read starts in the file.
    offset: u64,
    at_end: bool,
    /// The next bytes belong to a line of which pieces were given out.
    inside: bool,
}

impl<'s, S: Source + ?Sized> Lines<'s, S> {
    pub(super) fn new(source: &'s S, keep_going: &'s dyn Fn() -> bool) -> Self {
        Self { source, keep_going, window: vec![0; WINDOW_BYTES], start: 0, end: 0, offset: 0, at_end: false, inside: false }
    }

    /// How many bytes of the file have been given out.
    pub(super) fn position(&self) -> u64 {
        self.offset - (self.end - self.start) as u64
    }

    /// The next line, or `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, ObjectsError> {
        loop {
            let unread = &self.window[self.start..self.end];
            if let Some(length) = memchr(b'\n', unread) {
                return Ok(Some(self.take(length, 1, true)));
            }
            if self.at_end {
                let length = unread.len();
                return Ok((length > 0).then(|| self.take(length, 0, true)));
            }
            if unread.len() == self.window.len() {
                // A carriage return stays back: a line feed may follow.
                let length = unread.len() - usize::from(unread.ends_with(b"\r"));
                return Ok(Some(self.take(length, 0, false)));
            }
            self.fill()?;
        }
    }

    /// Gives out `length` bytes and steps over `feed` more.
    fn take(&mut self, length: usize, feed: usize, last_piece: bool) -> Line<'_> {
        let start = self.start;
        self.start += length + feed;
        let piece = match (self.inside, last_piece) {
            (false, true) => Piece::Whole,
            (false, false) => Piece::First,
            (true, _) => Piece::Rest,
        };
        self.inside = !last_piece;
        let mut text = &self.window[start..start + length];
        let ended = feed > 0;
        if ended {
            text = text.strip_suffix(b"\r").unwrap_or(text);
        }
        Line { text, ended, piece }
    }

    /// Moves the unread bytes to the front and reads until the window is full or the file ends.
    fn fill(&mut self) -> Result<(), ObjectsError> {
        if !(self.keep_going)() {
            return Err(ObjectsError::Cancelled);
        }
        self.window.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < self.window.len() {
            let count = self.source.read_at(self.offset, &mut self.window[self.end..]).map_err(ObjectsError::Read)?;
            if count == 0 {
                self.at_end = true;
                break;
            }
            // A source that claims more than it was given room for must not lead us out of the window.
            let count = count.min(self.window.len() - self.end);
            self.end += count;
            self.offset += count as u64;
        }
        Ok(())
    }
}
