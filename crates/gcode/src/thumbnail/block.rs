//! Finding thumbnail blocks in the comments of a sliced file.
//!
//! ```text
//! ; thumbnail begin 32x32 1232
//! ; iVBORw0KGgo...
//! ; thumbnail end
//! ```

use std::ops::Range;

use super::base64;
use super::image::Format;
use super::{MAX_THUMBNAILS, Warnings};

/// One block whose text was whole; its image may still be damaged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) format: Format,
    /// Size in pixels as announced in the block's first line.
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Where the block lies in the file, its marks included.
    pub(crate) range: Range<u64>,
    /// The image's bytes.
    pub(crate) data: Vec<u8>,
}

/// A mark of a block's begin or end.
struct Mark<'t> {
    start: usize,
    /// Just after the mark's line, its line feed not included.
    end: usize,
    kind: Kind<'t>,
}

enum Kind<'t> {
    /// Format named after `thumbnail_` (empty without one) and the rest of the line.
    Begin {
        suffix: &'t [u8],
        header: &'t [u8],
    },
    End,
}

const KEYWORD: &[u8] = b"; thumbnail";

/// Longest part of a begin line that is looked at, in bytes.
const MAX_HEADER: usize = 256;

/// All whole blocks in file order. `place` tells where bytes of the text lie in the file.
pub(crate) fn find(text: &[u8], warnings: &mut Warnings, place: impl Fn(Range<usize>) -> Range<u64>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Mark<'_>> = None;
    let marks = memchr::memmem::find_iter(text, KEYWORD).filter_map(|start| mark(text, start));
    for found in marks {
        match (&found.kind, open.take()) {
            (Kind::Begin { .. }, before) => {
                if before.is_some() {
                    warnings.add("a thumbnail has no end and was skipped".to_owned());
                }
                open = Some(found);
            }
            (Kind::End, Some(begin)) if blocks.len() < MAX_THUMBNAILS => match read(text, &begin, found.start) {
                Ok((format, width, height, data)) => {
                    blocks.push(Block { format, width, height, range: place(begin.start..found.end), data });
                }
                Err(reason) => warnings.add(format!("a thumbnail was skipped: {reason}")),
            },
            (Kind::End, Some(_)) => warnings.add(format!("a thumbnail was skipped: more than {MAX_THUMBNAILS} in one file")),
            (Kind::End, None) => {}
        }
    }
    if open.is_some() {
        warnings.add("a thumbnail has no end and was skipped".to_owned());
    }
    blocks
}

/// Reads the mark whose keyword stands at `start`; nothing if it is other text.
fn mark(text: &[u8], start: usize) -> Option<Mark<'_>> {
    let rest = &text[start + KEYWORD.len()..];
    let line_end = memchr::memchr(b'\n', &rest[..rest.len().min(MAX_HEADER)]).unwrap_or(rest.len().min(MAX_HEADER));
    let line = &rest[..line_end];
    let (suffix, line) = match line.strip_prefix(b"_") {
        Some(named) => named.split_at(named.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count()),
        None => (&line[..0], line),
    };
    let kind = if let Some(header) = line.strip_prefix(b" begin") {
        Kind::Begin { suffix, header }
    } else if line.starts_with(b" end") {
        Kind::End
    } else {
        return None;
    };
    Some(Mark { start, end: start + KEYWORD.len() + line_end, kind })
}

/// Reads what stands between two marks.
fn read(text: &[u8], begin: &Mark<'_>, end: usize) -> Result<(Format, u32, u32, Vec<u8>), &'static str> {
    let Kind::Begin { suffix, header } = begin.kind else { return Err("no begin") };
    let format = Format::from_suffix(suffix).ok_or("unknown image format")?;
    let [width, height, length] = numbers(header)[..] else { return Err("its header does not have three numbers") };
    let (Ok(width), Ok(height)) = (u32::try_from(width), u32::try_from(height)) else { return Err("its size is too large") };
    let encoded = payload(text.get(begin.end..end).unwrap_or_default());
    if encoded.len() as u64 != length {
        return Err("its length is not the announced one");
    }
    let data = base64::decode(&encoded).ok_or("it is not base64")?;
    Ok((format, width, height, data))
}

/// All numbers of a header; one that is too large is counted as the largest.
fn numbers(header: &[u8]) -> Vec<u64> {
    let digits = header.split(|byte| !byte.is_ascii_digit()).filter(|digits| !digits.is_empty());
    digits.map(|digits| std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(u64::MAX)).collect()
}

/// The lines joined, without their comment marks and line ends.
fn payload(lines: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(lines.len());
    for line in lines.split(|&byte| byte == b'\n') {
        let line = line.strip_prefix(b";").unwrap_or(line);
        joined.extend_from_slice(line.trim_ascii());
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> (Vec<Block>, Vec<String>) {
        let mut warnings = Warnings::default();
        let blocks = find(text.as_bytes(), &mut warnings, |range| range.start as u64..range.end as u64);
        (blocks, warnings.into_list())
    }

    #[test]
    fn a_block_with_either_line_end_and_any_end_mark() {
        for text in [
            "x\n; thumbnail begin 2x3 8\n; AQID\n; BAUG\n; thumbnail end\n",
            "x\n; thumbnail_png begin 2 by 3, 8\n; AQID\n; BAUG\n; thumbnail_QOI end\n",
        ] {
            let crlf = text.replace('\n', "\r\n");
            for text in [text, &crlf] {
                let (blocks, warnings) = found(text);
                assert_eq!(warnings, [""; 0]);
                let Block { format, width, height, range, data } = &blocks[0];
                assert_eq!((*format, *width, *height, &data[..]), (Format::Png, 2, 3, &[1, 2, 3, 4, 5, 6][..]));
                let place = &text[range.start as usize..range.end as usize];
                assert!(place.starts_with("; thumbnail") && place.trim_end().ends_with("end"), "{place}");
            }
        }
    }

    #[test]
    fn formats_by_suffix() {
        for (suffix, format) in
            [("_JPG", Format::Jpg), ("_jpg", Format::Jpg), ("_QOI", Format::Qoi), ("_PNG", Format::Png), ("", Format::Png)]
        {
            let (blocks, _) = found(&format!("; thumbnail{suffix} begin 1x1 4\n; AQID\n; thumbnail{suffix} end"));
            assert_eq!(blocks[0].format, format);
        }
    }

    #[test]
    fn damaged_blocks_leave_the_others() {
        let good = "; thumbnail begin 1x1 4\n; AQID\n; thumbnail end\n";
        for bad in [
            "; thumbnail begin 1x1 5\n; AQID\n; thumbnail end\n",
            "; thumbnail begin 1x1 4\n; A*ID\n; thumbnail end\n",
            "; thumbnail begin 1x1\n; AQID\n; thumbnail end\n",
            "; thumbnail begin 1x1 4 4\n; AQID\n; thumbnail end\n",
            "; thumbnail begin 99999999999999999999x1 4\n; AQID\n; thumbnail end\n",
            "; thumbnail_BMP begin 1x1 4\n; AQID\n; thumbnail end\n",
            "; thumbnail begin 1x1 4\n; AQID\n",
        ] {
            let (blocks, warnings) = found(&format!("{bad}{good}"));
            assert_eq!((blocks.len(), warnings.len()), (1, 1), "before: {bad}");
            let (blocks, warnings) = found(&format!("{good}{bad}"));
            assert_eq!((blocks.len(), warnings.len()), (1, 1), "after: {bad}");
        }
    }

    #[test]
    fn numbers_of_blocks_and_warnings_are_bounded() {
        let (blocks, warnings) = found(&"; thumbnail begin 1x1 4\n; AQID\n; thumbnail end\n".repeat(100));
        assert_eq!((blocks.len(), warnings.len()), (MAX_THUMBNAILS, super::super::MAX_WARNINGS));
        assert_eq!(warnings.last().unwrap(), "53 more warnings");
    }

    #[test]
    fn other_comments_are_no_marks() {
        assert_eq!(found("; thumbnails = 1x1\n; thumbnail_size = 50x50\n; thumbnail end\n").0.len(), 0);
    }
}
