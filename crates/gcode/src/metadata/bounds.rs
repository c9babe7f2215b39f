//! Where the commands of a file begin and end (section 3.8), as positions in the file's own bytes.
//!
//! A command line is a line feed, `M` or `G`, digits, one white space, and anything up to the next line feed. The white
//! space may be the line feed itself, and then the whole next line belongs to it.

use super::pattern::is_space;
use super::windows::Windows;

/// Position of the line feed before the first command of the head.
pub(super) fn start(windows: &Windows) -> Option<u64> {
    let head = windows.head();
    let feed = memchr::memchr_iter(b'\n', head).find(|&feed| command_end(head, feed).is_some())?;
    Some(feed as u64)
}

/// Position just after the last command line of the tail.
pub(super) fn end(windows: &Windows) -> Option<u64> {
    let tail = windows.tail();
    let end = memchr::memrchr_iter(b'\n', tail).find_map(|feed| command_end(tail, feed))?;
    Some(windows.after_tail(end))
}

/// If a command line begins with the line feed at `feed`: where it ends, its closing line feed included.
fn command_end(text: &[u8], feed: usize) -> Option<usize> {
    let line = text.get(feed + 1..)?;
    let (b'M' | b'G') = *line.first()? else { return None };
    let digits = line[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let space = 1 + digits;
    if digits == 0 || !is_space(*line.get(space)?) {
        return None;
    }
    let closing = memchr::memchr(b'\n', &line[space + 1..])?;
    Some(feed + 1 + space + 1 + closing + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::WINDOW_BYTES;

    fn bounds(text: &[u8]) -> Option<(u64, u64)> {
        let windows = Windows::read(text).unwrap();
        Some((start(&windows)?, end(&windows)?))
    }

    #[test]
    fn the_examples_of_the_specification() {
        assert_eq!(bounds(b"a\nG1 X1\nG1 X2\nM84\n; filament used = 3\n; more\n"), Some((1, 38)));
        assert_eq!(bounds(b"a\nG1 X1\nG1 X2\nM84 X\n; filament used = 3\n; more\n"), Some((1, 20)));
        assert_eq!(bounds(b"G28\nG1 X1\n"), Some((3, 10)));
    }

    #[test]
    fn no_command_no_bounds() {
        for text in [&b""[..], b"\n", b"G1", b"\nG1 X1", b"; G1 X1\n", b"\nGX 1\n", b"\nT0 \n", b"\nG"] {
            assert_eq!(bounds(text), None, "{text:?}");
        }
    }

    #[test]
    fn undecodable_bytes_are_counted() {
        assert_eq!(bounds(b"\xff\xfe\nG1 X1\n"), Some((2, 9)));
    }

    #[test]
    fn positions_beyond_the_missing_middle() {
        let mut text = vec![b'x'; 3 * WINDOW_BYTES];
        text[10..17].copy_from_slice(b"\nG1 X1\n");
        let last = text.len() - 20;
        text[last..last + 7].copy_from_slice(b"\nG1 X2\n");
        assert_eq!(bounds(&text), Some((10, last as u64 + 7)));
        text[last..last + 7].fill(b'x');
        assert_eq!(bounds(&text), None, "the head is not part of the tail");
    }
}
