//! The part of BER that LDAP uses: definite lengths and tags of one byte (RFC 4511 section 5.1).

use std::fmt;

/// Boolean.
pub(super) const BOOLEAN: u8 = 0x01;
/// Integer.
pub(super) const INTEGER: u8 = 0x02;
/// Octet string.
pub(super) const OCTETS: u8 = 0x04;
/// Enumerated.
pub(super) const ENUMERATED: u8 = 0x0a;
/// Sequence.
pub(super) const SEQUENCE: u8 = 0x30;

/// What a server sent is no LDAP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what answers there is no LDAP server")
    }
}

/// An element: tag, length, content.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    if content.len() < 0x80 {
        out.push(content.len() as u8);
    } else {
        let length = (content.len() as u32).to_be_bytes();
        let skipped = length.iter().take_while(|byte| **byte == 0).count();
        out.push(0x80 | (length.len() - skipped) as u8);
        out.extend(&length[skipped..]);
    }
    out.extend(content);
    out
}

/// An element made of elements.
pub(super) fn group<T: AsRef<[u8]>>(tag: u8, parts: impl IntoIterator<Item = T>) -> Vec<u8> {
    let content = parts.into_iter().fold(Vec::new(), |mut content, part| {
        content.extend(part.as_ref());
        content
    });
    element(tag, &content)
}

/// A number that is not negative, as integer or enumerated.
pub(super) fn number(tag: u8, number: u32) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let skipped = bytes.iter().take(3).take_while(|byte| **byte == 0).count();
    let rest = &bytes[skipped..];
    // The highest bit would be a sign.
    if rest.first().is_some_and(|byte| byte & 0x80 != 0) { group(tag, [&[0], rest]) } else { element(tag, rest) }
}

/// Elements that stand one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements<'a>(pub(super) &'a [u8]);

impl<'a> Elements<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Takes the next element: its tag and content.
    pub(super) fn next(&mut self) -> Result<(u8, &'a [u8]), Malformed> {
        let head = head(self.0)?.ok_or(Malformed)?;
        let end = head.size.checked_add(head.length).ok_or(Malformed)?;
        let content = self.0.get(head.size..end).ok_or(Malformed)?;
        let tag = *self.0.first().ok_or(Malformed)?;
        self.0 = &self.0[end..];
        Ok((tag, content))
    }

    /// Takes the next element, which has to have this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Result<&'a [u8], Malformed> {
        let (found, content) = self.next()?;
        if found == tag { Ok(content) } else { Err(Malformed) }
    }

    /// Takes a number that is not negative.
    pub(super) fn number(&mut self, tag: u8) -> Result<u32, Malformed> {
        let content = self.expect(tag)?;
        if content.is_empty() || content.len() > 5 || content.first().is_some_and(|byte| byte & 0x80 != 0) {
            return Err(Malformed);
        }
        let number = content.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        u32::try_from(number).map_err(|_| Malformed)
    }
}

/// What stands before the content of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Bytes of tag and length.
    pub(super) size: usize,
    /// Bytes of the content.
    pub(super) length: usize,
}

/// The head of the first element; `None` while more bytes are needed.
pub(super) fn head(bytes: &[u8]) -> Result<Option<Head>, Malformed> {
    let [tag, first, rest @ ..] = bytes else { return Ok(None) };
    if tag & 0x1f == 0x1f {
        return Err(Malformed);
    }
    if *first < 0x80 {
        return Ok(Some(Head { size: 2, length: usize::from(*first) }));
    }
    let count = usize::from(first & 0x7f);
    if !(1..=4).contains(&count) {
        return Err(Malformed);
    }
    let Some(bytes) = rest.get(..count) else { return Ok(None) };
    let length = bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    Ok(Some(Head { size: 2 + count, length }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_and_numbers_are_as_short_as_can_be() {
        assert_eq!(element(OCTETS, b"ab"), b"\x04\x02ab");
        assert_eq!(element(OCTETS, &[7; 200])[..3], [0x04, 0x81, 200]);
        assert_eq!(element(OCTETS, &[7; 300])[..4], [0x04, 0x82, 1, 44]);
        assert_eq!(number(INTEGER, 0), [2, 1, 0]);
        assert_eq!(number(INTEGER, 128), [2, 2, 0, 128]);
        assert_eq!(number(ENUMERATED, 256), [0x0a, 2, 1, 0]);
    }

    #[test]
    fn faults_are_refused() {
        for bytes in [&[0x30, 0x80][..], &[0x30, 0x85, 0, 0, 0, 0, 1], &[0x3f, 1, 1]] {
            assert_eq!(head(bytes), Err(Malformed), "{bytes:?}");
        }
        assert_eq!(head(&[0x30, 0x82, 1]), Ok(None));
        for bytes in [&[2, 0][..], &[2, 1, 0x80], &[2, 5, 1, 0, 0, 0, 0], &[2, 2, 1]] {
            assert_eq!(Elements(bytes).number(INTEGER), Err(Malformed), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(n: u32, content in proptest::collection::vec(any::<u8>(), 0..400)) {
            let bytes = group(SEQUENCE, [number(INTEGER, n), element(OCTETS, &content)]);
            let mut outer = Elements(&bytes);
            let mut inner = Elements(outer.expect(SEQUENCE).unwrap());
            prop_assert_eq!(inner.number(INTEGER), Ok(n));
            prop_assert_eq!(inner.expect(OCTETS), Ok(&content[..]));
            prop_assert!(inner.is_empty() && outer.is_empty());
        }
    }
}
