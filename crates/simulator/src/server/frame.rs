//! Framing: a JSON object and one ETX byte (wire document 5, section 1).

use serde_json::Value;

use crate::model::BARE_WORD;

/// End of a message.
pub(crate) const ETX: u8 = 3;

/// Longest request that is collected, bytes; a client that sends more is disconnected.
const MAX_REQUEST: usize = 16 * 1024 * 1024;

/// A message as bytes with its ETX. Texts marked as bare words lose their quotes.
pub(crate) fn encode(message: &Value) -> Vec<u8> {
    let mut text = message.to_string();
    let mark = Value::from(BARE_WORD).to_string();
    let mark = mark.trim_end_matches('"');
    while let Some(start) = text.find(mark) {
        let word = start + mark.len();
        let end = text[word..].find('"').map_or(text.len(), |at| word + at);
        let bare = text[word..end].to_owned();
        text.replace_range(start..(end + 1).min(text.len()), &bare);
    }
    let mut bytes = text.into_bytes();
    bytes.push(ETX);
    bytes
}

/// Collects bytes into frames.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    rest: Vec<u8>,
}

/// A request grew beyond the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Splitter {
    /// Takes in bytes and returns the frames that they complete, without their ETX.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut frames = Vec::new();
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(ETX, rest) {
            self.rest.extend_from_slice(&rest[..end]);
            frames.push(std::mem::take(&mut self.rest));
            rest = &rest[end + 1..];
        }
        self.rest.extend_from_slice(rest);
        if self.rest.len() > MAX_REQUEST { Err(TooLong) } else { Ok(frames) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn bare_words_lose_their_quotes() {
        let value = json!({ "a": format!("{BARE_WORD}NaN"), "b": [format!("{BARE_WORD}-Infinity")], "c": "NaN" });
        assert_eq!(encode(&value), b"{\"a\":NaN,\"b\":[-Infinity],\"c\":\"NaN\"}\x03");
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_frames(frames in prop::collection::vec("[a-z{}\"]{0,20}", 0..8), cuts in prop::collection::vec(1_usize..9, 1..30)) {
            let stream: Vec<u8> = frames.iter().flat_map(|f| f.bytes().chain([ETX])).collect();
            let mut splitter = Splitter::default();
            let mut found = Vec::new();
            let mut rest = &stream[..];
            for cut in cuts.iter().cycle().take(stream.len()) {
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                found.extend(splitter.push(now).unwrap());
                rest = later;
            }
            let expected: Vec<Vec<u8>> = frames.into_iter().map(String::into_bytes).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn endless_requests_are_refused() {
        assert_eq!(Splitter::default().push(&vec![b'x'; MAX_REQUEST + 1]), Err(TooLong));
    }
}
