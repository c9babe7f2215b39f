//! The JSON-RPC 2.0 envelope: reading requests without building a tree, writing answers and notifications.
//!
//! Parameters and ids stay raw text: an id is echoed exactly as it came (0, a string, a fraction), and parameters are decoded once, by the
//! operation that they belong to. Source: document 1 *JSON-RPC conventions*, wire/1-core.md section 3.4.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::Frame;
use crate::error::{ApiError, RPC_INVALID_PARAMS, RPC_INVALID_REQUEST, RPC_PARSE_ERROR};

/// Members of one batch; the largest batch seen from a real client has 100.
pub const MAX_BATCH: usize = 1000;

/// A request for an operation.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// Method name as the client spelled it.
    pub method: Cow<'a, str>,
    /// Raw parameters; absent when the client sent none or null.
    pub params: Option<&'a RawValue>,
    /// Raw id; absent when the client sent none or null, and then nothing is answered.
    pub id: Option<&'a RawValue>,
}

/// An answer of a client to something that we asked it (agents).
#[derive(Debug, Clone)]
pub struct Reply<'a> {
    /// The id of our request.
    pub id: Option<&'a RawValue>,
    /// The result, or the error object.
    pub outcome: Result<&'a RawValue, &'a RawValue>,
}

/// One member of an incoming document.
#[derive(Debug, Clone)]
pub enum Incoming<'a> {
    /// A call of an operation.
    Request(Request<'a>),
    /// An answer to one of our requests.
    Reply(Reply<'a>),
    /// Not a request: the finished error answer.
    Invalid(Frame),
}

/// A whole incoming document.
#[derive(Debug, Clone)]
pub enum Document<'a> {
    /// One message.
    Single(Incoming<'a>),
    /// Several messages, to be answered by one array.
    Batch(Vec<Incoming<'a>>),
}

/// Reads a document. Whatever is not a request becomes the error answer that it deserves, so this never fails.
#[must_use]
pub fn parse(text: &[u8]) -> Document<'_> {
    match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Document::Single(parse_member(text)),
        Some(b'[') => parse_batch(text),
        _ => {
            let is_json = serde_json::from_slice::<IgnoredAny>(text).is_ok();
            let code = if is_json { RPC_INVALID_REQUEST } else { RPC_PARSE_ERROR };
            Document::Single(Incoming::Invalid(protocol_error(code, None)))
        }
    }
}

fn parse_batch(text: &[u8]) -> Document<'_> {
    match serde_json::from_slice::<Vec<&RawValue>>(text) {
        Err(_) => Document::Single(Incoming::Invalid(protocol_error(RPC_PARSE_ERROR, None))),
        Ok(members) if members.is_empty() || members.len() > MAX_BATCH => {
            Document::Single(Incoming::Invalid(protocol_error(RPC_INVALID_REQUEST, None)))
        }
        Ok(members) => Document::Batch(members.into_iter().map(|raw| parse_member(raw.get().as_bytes())).collect()),
    }
}

fn parse_member(text: &[u8]) -> Incoming<'_> {
    let raw = match serde_json::from_slice::<RawMessage<'_>>(text) {
        Ok(raw) => raw,
        Err(error) if error.is_data() => return Incoming::Invalid(protocol_error(RPC_INVALID_REQUEST, None)),
        Err(_) => return Incoming::Invalid(protocol_error(RPC_PARSE_ERROR, None)),
    };
    let id = raw.id.filter(|id| id.get() != "null");
    if raw.version.is_none_or(|version| string_of(version).as_deref() != Some("2.0")) {
        return Incoming::Invalid(protocol_error(RPC_INVALID_REQUEST, id));
    }
    match (raw.method, raw.result, raw.error) {
        (Some(method), _, _) => match string_of(method) {
            Some(method) => request(method, raw.params, id),
            None => Incoming::Invalid(protocol_error(RPC_INVALID_REQUEST, id)),
        },
        // Some libraries always send both members, one of them null.
        (None, _, Some(error)) if error.get() != "null" => Incoming::Reply(Reply { id, outcome: Err(error) }),
        (None, Some(result), _) => Incoming::Reply(Reply { id, outcome: Ok(result) }),
        (None, None, _) => Incoming::Invalid(protocol_error(RPC_INVALID_REQUEST, id)),
    }
}

fn request<'a>(method: Cow<'a, str>, params: Option<&'a RawValue>, id: Option<&'a RawValue>) -> Incoming<'a> {
    match params.map(RawValue::get) {
        None | Some("null") => Incoming::Request(Request { method, params: None, id }),
        Some(text) if text.starts_with('{') => Incoming::Request(Request { method, params, id }),
        Some(_) => {
            Incoming::Invalid(error_with_code(RPC_INVALID_PARAMS, "Invalid params: expected an object of named arguments", None, id))
        }
    }
}

fn string_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str::<String>(text).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// The members of an envelope, last one wins; unknown members are ignored.
#[derive(Default)]
struct RawMessage<'a> {
    version: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl<'de: 'a, 'a> Deserialize<'de> for RawMessage<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = RawMessage<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON-RPC message object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut message = RawMessage::default();
                while let Some(name) = map.next_key::<Name>()? {
                    let slot = match name {
                        Name::Jsonrpc => &mut message.version,
                        Name::Method => &mut message.method,
                        Name::Params => &mut message.params,
                        Name::Id => &mut message.id,
                        Name::Result => &mut message.result,
                        Name::Error => &mut message.error,
                        Name::Other => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    *slot = Some(map.next_value()?);
                }
                Ok(message)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Name {
    Jsonrpc,
    Method,
    Params,
    Id,
    Result,
    Error,
    #[serde(other)]
    Other,
}

/// `{"jsonrpc":"2.0","result":…,"id":…}` for a result that is JSON text already.
#[must_use]
pub fn success(result: &[u8], id: &RawValue) -> Frame {
    let id = id.get().as_bytes();
    let mut out = Vec::with_capacity(result.len() + id.len() + 34);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","result":"#);
    out.extend_from_slice(result);
    out.extend_from_slice(br#","id":"#);
    out.extend_from_slice(id);
    out.push(b'}');
    out.into()
}

/// The error answer of an operation.
#[must_use]
pub fn failure(error: &ApiError, id: Option<&RawValue>) -> Frame {
    error_with_code(error.kind.rpc_code(), &error.message, error.data.as_deref(), id)
}

/// The answer to something that is no request: `Parse error`, `Invalid Request`.
#[must_use]
pub fn protocol_error(code: i32, id: Option<&RawValue>) -> Frame {
    let text = if code == RPC_PARSE_ERROR { "Parse error" } else { "Invalid Request" };
    error_with_code(code, text, None, id)
}

fn error_with_code(code: i32, message: &str, data: Option<&RawValue>, id: Option<&RawValue>) -> Frame {
    let mut out = format!(r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":"#).into_bytes();
    write_string(&mut out, message);
    if let Some(data) = data {
        out.extend_from_slice(br#","data":"#);
        out.extend_from_slice(data.get().as_bytes());
    }
    out.extend_from_slice(br#"},"id":"#);
    out.extend_from_slice(id.map_or("null", RawValue::get).as_bytes());
    out.push(b'}');
    out.into()
}

/// A request of ours to a client (agents): `{"jsonrpc":"2.0","method":…,"id":…,"params":…}`.
#[must_use]
pub fn question(method: &str, id: u64, params: Option<&RawValue>) -> Frame {
    let mut out = Vec::with_capacity(method.len() + params.map_or(0, |params| params.get().len()) + 64);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
    write_string(&mut out, method);
    out.extend_from_slice(format!(r#","id":{id}"#).as_bytes());
    if let Some(params) = params {
        out.extend_from_slice(br#","params":"#);
        out.extend_from_slice(params.get().as_bytes());
    }
    out.push(b'}');
    out.into()
}

/// `{"jsonrpc":"2.0","method":…,"params":[…]}`; without `params` when there are none (clients index into it whenever it is there).
#[must_use]
pub fn notification(method: &str, params: Option<&[u8]>) -> Frame {
    let mut out = Vec::with_capacity(method.len() + params.map_or(0, <[u8]>::len) + 48);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
    write_string(&mut out, method);
    if let Some(params) = params {
        out.extend_from_slice(br#","params":"#);
        out.extend_from_slice(params);
    }
    out.push(b'}');
    out.into()
}

/// Several finished answers as one array.
#[must_use]
pub fn batch(answers: &[Frame]) -> Frame {
    let mut out = Vec::with_capacity(answers.iter().map(|answer| answer.len() + 1).sum::<usize>() + 1);
    out.push(b'[');
    for (index, answer) in answers.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(answer);
    }
    out.push(b']');
    out.into()
}

/// Appends `text` as a JSON string.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    // Writing a str into a Vec cannot fail.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(text: &str) -> Incoming<'_> {
        match parse(text.as_bytes()) {
            Document::Single(member) => member,
            Document::Batch(_) => panic!("a batch"),
        }
    }

    fn request_of(text: &str) -> Request<'_> {
        match single(text) {
            Incoming::Request(request) => request,
            other => panic!("{other:?}"),
        }
    }

    fn invalid(text: &str) -> String {
        match single(text) {
            Incoming::Invalid(frame) => String::from_utf8(frame.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ids_are_echoed_as_they_came() {
        for id in ["0", "1.50", "\"a\\u0041\"", "[1, 2]", "{\"x\":null}", "18446744073709551616"] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"m","id":{id}}}"#);
            let request = request_of(&text);
            assert_eq!(request.id.unwrap().get(), id);
            let frame = success(b"1", request.id.unwrap());
            assert_eq!(&frame[..], format!(r#"{{"jsonrpc":"2.0","result":1,"id":{id}}}"#).as_bytes());
        }
    }

    #[test]
    fn null_id_and_null_params_mean_absent() {
        let request = request_of(r#"{"jsonrpc":"2.0","method":"m","params":null,"id":null}"#);
        assert!(request.id.is_none() && request.params.is_none());
    }

    #[test]
    fn last_duplicate_wins_and_escapes_are_read() {
        let request = request_of(r#"{"jsonrpc":"2.0","method":"a","method":"server\u002einfo","id":1,"extra":[{}]}"#);
        assert_eq!(request.method, "server.info");
    }

    #[test]
    fn faults_get_the_code_they_deserve() {
        assert!(invalid("nonsense").contains("-32700"));
        assert!(invalid("{\"jsonrpc\":\"2.0\",").contains("-32700"));
        assert!(invalid("").contains("-32700"));
        assert!(invalid("12").contains("-32600"));
        assert!(invalid("[]").contains("-32600"));
        assert_eq!(invalid(r#"{"method":"m","id":7}"#), r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":7}"#);
        assert!(invalid(r#"{"jsonrpc":2.0,"method":"m","id":7}"#).contains("-32600"));
        assert!(invalid(r#"{"jsonrpc":"2.0","method":5,"id":7}"#).contains("-32600"));
        assert!(invalid(r#"{"jsonrpc":"2.0","method":"m","params":[1],"id":7}"#).contains("-32602"));
    }

    #[test]
    fn answers_of_clients_are_told_from_requests() {
        let outcome = |members: &str| match single(&format!(r#"{{"jsonrpc":"2.0",{members},"id":3}}"#)) {
            Incoming::Reply(reply) => reply.outcome.map(|raw| raw.get().to_owned()).map_err(|raw| raw.get().to_owned()),
            other => panic!("{other:?}"),
        };
        assert_eq!(outcome(r#""result":null"#), Ok("null".into()));
        assert_eq!(outcome(r#""result":{"a":1},"error":null"#), Ok(r#"{"a":1}"#.into()));
        assert_eq!(outcome(r#""result":null,"error":{"code":1}"#), Err(r#"{"code":1}"#.into()));
        assert!(invalid(r#"{"jsonrpc":"2.0","error":null,"id":3}"#).contains("-32600"));
    }

    #[test]
    fn batches_keep_good_members_beside_bad_ones() {
        let text = br#"[{"jsonrpc":"2.0","method":"a","id":1}, 3, {"jsonrpc":"2.0","result":{},"id":2}]"#;
        let Document::Batch(members) = parse(text) else { panic!() };
        assert!(matches!(members[0], Incoming::Request(_)));
        assert!(matches!(members[1], Incoming::Invalid(_)));
        assert!(matches!(members[2], Incoming::Reply(_)));
    }

    #[test]
    fn deep_nesting_does_not_overflow() {
        let deep = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"a":{}{}}},"id":1}}"#, "[".repeat(200_000), "]".repeat(200_000));
        // Accepted as raw text or refused: either way without recursion.
        let _ = parse(deep.as_bytes());
        let _ = parse(&b"[".repeat(1_000_000));
    }

    #[test]
    fn notifications_without_data_have_no_params() {
        assert_eq!(&notification("notify_x", None)[..], br#"{"jsonrpc":"2.0","method":"notify_x"}"#);
    }
}
