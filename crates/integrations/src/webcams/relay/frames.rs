//! Pictures out of a stream of parts (`multipart/x-mixed-replace`), as a pure state machine.
//!
//! ```text
//! head (up to an empty line) ─► Content-Length ─► so many bytes ─────────┐
//!    ▲                       └► none ─► bytes up to the next delimiter ──┤
//!    └────────────────────────── a picture ◄─────────────────────────────┘
//! ```

use bytes::{Buf, BytesMut};
use rpc::pictures::Picture;

/// Largest picture in bytes; one of 4K is about 2 MiB.
pub const MAX_PICTURE: usize = 8 * 1024 * 1024;

/// Largest head of a part in bytes, with what stands before it.
pub const MAX_PART_HEAD: usize = 8 * 1024;

/// Longest media type in bytes.
const MAX_MEDIA_TYPE: usize = 64;

/// Longest delimiter in bytes (RFC 2046 section 5.1.1).
const MAX_BOUNDARY: usize = 72;

/// Why the rest of a stream cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("a part of the stream has a head of more than {MAX_PART_HEAD} bytes")]
    LongHead,
    #[error("a picture of the stream has more than {MAX_PICTURE} bytes")]
    LargePicture,
    #[error("a part of the stream is no picture")]
    NoPicture,
}

/// The delimiter between parts, from the `Content-Type` of a stream; `None` when it is no stream of parts.
pub(super) fn boundary(content_type: &str) -> Option<String> {
    let mut parts = content_type.split(';').map(str::trim);
    if !parts.next()?.eq_ignore_ascii_case("multipart/x-mixed-replace") {
        return None;
    }
    let value = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then_some(value)
    })?;
    // Some cameras write the hyphens that belong before it into the delimiter itself.
    let bare = value.trim().trim_matches('"').trim_start_matches("--");
    (!bare.is_empty() && bare.len() <= MAX_BOUNDARY).then(|| bare.to_owned())
}

/// A media type of a picture, in small letters; `None` for anything else.
pub(super) fn picture_type(content_type: &str) -> Option<String> {
    let media_type = content_type.split(';').next()?.trim().to_ascii_lowercase();
    let subtype = media_type.strip_prefix("image/")?;
    let is_plain = subtype.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.+".contains(&byte));
    // A drawing may hold scripts.
    (is_plain && !subtype.is_empty() && subtype != "svg+xml" && media_type.len() <= MAX_MEDIA_TYPE).then_some(media_type)
}

/// What the next bytes are.
#[derive(Debug)]
enum State {
    Head,
    Sized {
        media_type: String,
        length: usize,
    },
    /// `searched` bytes do not hold the beginning of the delimiter.
    Delimited {
        media_type: String,
        searched: usize,
    },
}

/// Takes bytes, gives pictures.
#[derive(Debug)]
pub(super) struct Frames {
    delimiter: Vec<u8>,
    state: State,
    buffer: BytesMut,
}

impl Frames {
    pub(super) fn new(boundary: &str) -> Self {
        Self { delimiter: format!("\n--{boundary}").into_bytes(), state: State::Head, buffer: BytesMut::new() }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next picture that is complete.
    ///
    /// # Errors
    /// When the stream cannot be read from here on.
    pub(super) fn next(&mut self) -> Result<Option<Picture>, Malformed> {
        loop {
            match &mut self.state {
                State::Head => {
                    let Some(state) = self.head()? else { return Ok(None) };
                    self.state = state;
                }
                State::Sized { media_type, length } => {
                    if self.buffer.len() < *length {
                        return Ok(None);
                    }
                    let picture = Picture { media_type: std::mem::take(media_type), data: self.buffer.split_to(*length).freeze() };
                    self.state = State::Head;
                    return Ok(Some(picture));
                }
                State::Delimited { media_type, searched } => {
                    let Some(end) = find(&self.buffer[*searched..], &self.delimiter).map(|at| *searched + at) else {
                        if self.buffer.len() > MAX_PICTURE {
                            return Err(Malformed::LargePicture);
                        }
                        *searched = self.buffer.len().saturating_sub(self.delimiter.len());
                        return Ok(None);
                    };
                    let media_type = std::mem::take(media_type);
                    let data = self.buffer.split_to(end).freeze();
                    // The line end before the delimiter belongs to it, and many write it as two bytes.
                    let length = data.strip_suffix(b"\r").map_or(data.len(), <[u8]>::len);
                    let data = data.slice(..length);
                    self.state = State::Head;
                    return Ok(Some(Picture { media_type, data }));
                }
            }
        }
    }

    /// Reads the head of a part, if all of it is there, and what stands before it: the rest of a line, the delimiter.
    fn head(&mut self) -> Result<Option<State>, Malformed> {
        let blank = self.buffer.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.buffer.advance(blank);
        let window = &self.buffer[..self.buffer.len().min(MAX_PART_HEAD)];
        let ends = [find(window, b"\r\n\r\n").map(|at| (at, 4)), find(window, b"\n\n").map(|at| (at, 2))];
        let Some((end, gap)) = ends.into_iter().flatten().min() else {
            return if window.len() < MAX_PART_HEAD { Ok(None) } else { Err(Malformed::LongHead) };
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        self.buffer.advance(end + gap);
        let value = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(':'));
            lines.find_map(|(known, value)| known.trim().eq_ignore_ascii_case(name).then(|| value.trim()))
        };
        // Cameras that do not say send JPEG.
        let media_type = picture_type(value("content-type").unwrap_or("image/jpeg")).ok_or(Malformed::NoPicture)?;
        Ok(Some(match value("content-length").and_then(|length| length.parse::<usize>().ok()) {
            Some(length) if length > MAX_PICTURE => return Err(Malformed::LargePicture),
            Some(length) if length > 0 => State::Sized { media_type, length },
            _ => State::Delimited { media_type, searched: 0 },
        }))
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds a stream in pieces of `size` bytes.
    fn read(stream: &[u8], size: usize) -> Result<Vec<Picture>, Malformed> {
        let mut frames = Frames::new("b");
        let mut pictures = Vec::new();
        for piece in stream.chunks(size.max(1)) {
            frames.push(piece);
            while let Some(picture) = frames.next()? {
                pictures.push(picture);
            }
        }
        Ok(pictures)
    }

    fn texts(pictures: &[Picture]) -> Vec<String> {
        pictures.iter().map(|picture| String::from_utf8_lossy(&picture.data).into_owned()).collect()
    }

    #[test]
    fn streams_as_cameras_write_them() {
        let sized = "--b\r\nContent-Type: image/jpeg\r\nContent-Length: 5\r\nX-Timestamp: 0.1\r\n\r\none\r\n\r\n--b\r\nContent-Type: image/jpeg\r\nContent-Length: 3\r\n\r\ntwo\r\n--b\r\n";
        let unsized_ = "\r\n--b\r\nContent-type: IMAGE/JPEG\r\n\r\none\r\n--b\r\nContent-Type: image/png\r\n\r\ntwo\r\n--b--\r\n";
        let bare = "--b\nContent-Type: image/jpeg\n\none\n--b\n\ntwo\n--b\n";
        for (stream, expected) in [(sized, ["one\r\n", "two"]), (unsized_, ["one", "two"]), (bare, ["one", "two"])] {
            for size in [1, 2, 7, 1000] {
                assert_eq!(texts(&read(stream.as_bytes(), size).unwrap()), expected, "{stream:?} in pieces of {size}");
            }
        }
        assert_eq!(read(unsized_.as_bytes(), 50).unwrap()[1].media_type, "image/png");
    }

    #[test]
    fn delimiters_of_content_types() {
        for (content_type, expected) in [
            ("multipart/x-mixed-replace;boundary=boundarydonotcross", Some("boundarydonotcross")),
            ("multipart/x-mixed-replace; boundary=\"--my b\"; charset=x", Some("my b")),
            ("Multipart/X-Mixed-Replace; Boundary=--frame", Some("frame")),
            ("multipart/x-mixed-replace", None),
            ("multipart/x-mixed-replace; boundary=", None),
            ("multipart/form-data; boundary=b", None),
            ("text/html", None),
        ] {
            assert_eq!(boundary(content_type).as_deref(), expected, "{content_type}");
        }
    }

    #[test]
    fn only_pictures_pass() {
        assert_eq!(picture_type("Image/JPEG; x=1").as_deref(), Some("image/jpeg"));
        for refused in ["text/html", "image/", "image/svg+xml", "image/x\r\ny", "application/json", ""] {
            assert_eq!(picture_type(refused), None, "{refused}");
        }
        let html = b"--b\r\nContent-Type: text/html\r\n\r\n<html>\r\n--b\r\n";
        assert_eq!(read(html, 1000), Err(Malformed::NoPicture));
    }

    #[test]
    fn nothing_grows_without_end() {
        assert_eq!(read(&[b'x'; 2 * MAX_PART_HEAD], 1000), Err(Malformed::LongHead));
        let announced = format!("--b\r\nContent-Length: {}\r\n\r\n", MAX_PICTURE + 1);
        assert_eq!(read(announced.as_bytes(), 1000), Err(Malformed::LargePicture));
        let mut endless = b"--b\r\n\r\n".to_vec();
        endless.resize(MAX_PICTURE + 1000, b'x');
        assert_eq!(read(&endless, 64 * 1024), Err(Malformed::LargePicture));
    }

    proptest! {
        #[test]
        fn any_stream_is_survived(stream in proptest::collection::vec(prop_oneof![Just(b'-'), Just(b'b'), Just(b'\r'), Just(b'\n'), Just(b':'), any::<u8>()], 0..300), size in 1_usize..20) {
            let _ = read(&stream, size);
        }

        #[test]
        fn pieces_do_not_matter(pictures in proptest::collection::vec("[a-y]{1,20}", 1..6), size in 1_usize..40) {
            let mut stream = String::from("--b\r\n");
            for picture in &pictures {
                stream.push_str(&format!("Content-Type: image/jpeg\r\n\r\n{picture}\r\n--b\r\n"));
            }
            prop_assert_eq!(texts(&read(stream.as_bytes(), size).unwrap()), pictures);
        }
    }
}
