//! Requests and answers of LDAP, as far as logins need them (RFC 4511 section 4).

use super::ber::{ENUMERATED, Elements, INTEGER, Malformed, OCTETS, SEQUENCE, element, group, number};
use super::filter::{Filter, boolean};

/// Seconds that the server may search.
const TIME_LIMIT: u32 = 10;

const DEREF_ALWAYS: u32 = 3;
const WHOLE_SUBTREE: u32 = 2;

const SUCCESS: u32 = 0;
const SIZE_LIMIT_EXCEEDED: u32 = 4;
const INVALID_CREDENTIALS: u32 = 49;

const BIND: u8 = 0x60;
const BIND_ANSWER: u8 = 0x61;
const UNBIND: u8 = 0x42;
const SEARCH: u8 = 0x63;
const ENTRY: u8 = 0x64;
const SEARCH_DONE: u8 = 0x65;
const REFERENCE: u8 = 0x73;
const SIMPLE_PASSWORD: u8 = 0x80;
const SET: u8 = 0x31;

/// How an operation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Result code of RFC 4511 appendix A.
    pub code: u32,
    /// What the server says about it.
    pub text: String,
}

impl Outcome {
    /// All is well.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.code == SUCCESS
    }

    /// A search gave as much as was asked for, and there is more.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        self.code == SIZE_LIMIT_EXCEEDED
    }

    /// A bind had a wrong password.
    #[must_use]
    pub fn is_wrong_password(&self) -> bool {
        self.code == INVALID_CREDENTIALS
    }
}

/// An entry of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its distinguished name.
    pub dn: String,
    /// Names and values of attributes.
    attributes: Vec<(String, Vec<Vec<u8>>)>,
}

impl Entry {
    /// The values of an attribute that are text. Options such as `;range=0-9` do not belong to the name.
    pub fn values<'a>(&'a self, attribute: &'a str) -> impl Iterator<Item = &'a str> {
        let is_wanted = move |name: &str| name.split(';').next().is_some_and(|name| name.eq_ignore_ascii_case(attribute));
        let wanted = self.attributes.iter().filter(move |(name, _)| is_wanted(name));
        wanted.flat_map(|(_, values)| values).filter_map(|value| std::str::from_utf8(value).ok())
    }
}

/// What a server sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A bind ended.
    Bound(Outcome),
    /// A search found an entry.
    Found(Entry),
    /// A search ended.
    Done(Outcome),
    /// A search would go on elsewhere; we stay.
    Elsewhere,
}

fn message(id: u32, operation: Vec<u8>) -> Vec<u8> {
    group(SEQUENCE, [number(INTEGER, id), operation])
}

/// Logs in; nobody in particular with an empty name.
pub(super) fn bind(id: u32, dn: &str, password: &str) -> Vec<u8> {
    let parts = [number(INTEGER, 3), element(OCTETS, dn.as_bytes()), element(SIMPLE_PASSWORD, password.as_bytes())];
    message(id, group(BIND, parts))
}

/// Says good-bye.
pub(super) fn unbind(id: u32) -> Vec<u8> {
    message(id, element(UNBIND, &[]))
}

/// Searches everything below `base` for one entry.
pub(super) fn search(id: u32, base: &str, filter: &Filter, attributes: &[&str]) -> Vec<u8> {
    let parts = [
        element(OCTETS, base.as_bytes()),
        number(ENUMERATED, WHOLE_SUBTREE),
        number(ENUMERATED, DEREF_ALWAYS),
        number(INTEGER, 1),
        number(INTEGER, TIME_LIMIT),
        boolean(false),
        filter.encode(),
        group(SEQUENCE, attributes.iter().map(|attribute| element(OCTETS, attribute.as_bytes()))),
    ];
    message(id, group(SEARCH, parts))
}

/// Reads one message: the number of the request that it answers, and the answer.
pub(super) fn read(bytes: &[u8]) -> Result<(u32, Answer), Malformed> {
    let mut message = Elements(Elements(bytes).expect(SEQUENCE)?);
    let id = message.number(INTEGER)?;
    let (tag, content) = message.next()?;
    let mut content = Elements(content);
    let answer = match tag {
        BIND_ANSWER => Answer::Bound(outcome(&mut content)?),
        SEARCH_DONE => Answer::Done(outcome(&mut content)?),
        ENTRY => Answer::Found(entry(&mut content)?),
        REFERENCE => Answer::Elsewhere,
        _ => return Err(Malformed),
    };
    Ok((id, answer))
}

fn outcome(content: &mut Elements<'_>) -> Result<Outcome, Malformed> {
    let code = content.number(ENUMERATED)?;
    content.expect(OCTETS)?;
    let text = content.expect(OCTETS)?;
    Ok(Outcome { code, text: String::from_utf8_lossy(text).into_owned() })
}

fn entry(content: &mut Elements<'_>) -> Result<Entry, Malformed> {
    let dn = String::from_utf8(content.expect(OCTETS)?.to_vec()).map_err(|_| Malformed)?;
    let mut list = Elements(content.expect(SEQUENCE)?);
    let mut attributes = Vec::new();
    while !list.is_empty() {
        let mut attribute = Elements(list.expect(SEQUENCE)?);
        let name = String::from_utf8(attribute.expect(OCTETS)?.to_vec()).map_err(|_| Malformed)?;
        let mut set = Elements(attribute.expect(SET)?);
        let mut values = Vec::new();
        while !set.is_empty() {
            values.push(set.expect(OCTETS)?.to_vec());
        }
        attributes.push((name, values));
    }
    Ok(Entry { dn, attributes })
}

/// Reads one message from a server, for the fuzzer: anything is read or refused.
#[must_use]
pub fn accepts(bytes: &[u8]) -> bool {
    read(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn octets(text: &str) -> Vec<u8> {
        element(OCTETS, text.as_bytes())
    }

    fn found(attributes: &[(&str, &[&str])]) -> Vec<u8> {
        let attributes = attributes.iter().map(|(name, values)| {
            let values = group(SET, values.iter().map(|value| octets(value)));
            group(SEQUENCE, [octets(name), values])
        });
        message(2, group(ENTRY, [octets("uid=anna,dc=x"), group(SEQUENCE, attributes)]))
    }

    #[test]
    fn requests_travel_as_the_standard_says() {
        assert_eq!(bind(1, "", ""), b"\x30\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\x00\x80\x00");
        assert_eq!(unbind(3), b"\x30\x05\x02\x01\x03\x42\x00");
        let searched = search(2, "dc=x", &Filter::equal("uid", "a"), &["uid"]);
        let expected = b"\x30\x2b\x02\x01\x02\x63\x26\x04\x04dc=x\x0a\x01\x02\x0a\x01\x03\x02\x01\x01\x02\x01\x0a\x01\x01\x00\xa3\x08\x04\x03uid\x04\x01a\x30\x05\x04\x03uid";
        assert_eq!(searched, expected);
    }

    #[test]
    fn answers_are_read() {
        let refused = message(1, group(BIND_ANSWER, [number(ENUMERATED, 49), octets(""), octets("no")]));
        assert_eq!(read(&refused), Ok((1, Answer::Bound(Outcome { code: 49, text: "no".into() }))));
        let Ok((2, Answer::Found(entry))) = read(&found(&[("UID", &["anna", "ann"]), ("memberOf;range=0-1", &["cn=x"])])) else {
            panic!("no entry")
        };
        assert_eq!(entry.dn, "uid=anna,dc=x");
        assert_eq!(entry.values("uid").collect::<Vec<_>>(), ["anna", "ann"]);
        assert_eq!(entry.values("memberof").collect::<Vec<_>>(), ["cn=x"]);
        assert_eq!(entry.values("mail").count(), 0);
        assert_eq!(read(&message(2, element(REFERENCE, b"ldap://x"))), Ok((2, Answer::Elsewhere)));
    }

    proptest! {
        #[test]
        fn a_damaged_answer_is_read_or_refused(at in 0_usize..60, byte: u8, length in 0_usize..80) {
            let mut bytes = found(&[("uid", &["anna"]), ("memberOf", &["cn=makers"])]);
            if let Some(slot) = bytes.get_mut(at) { *slot = byte; }
            bytes.truncate(length);
            let _ = read(&bytes);
        }
    }
}
