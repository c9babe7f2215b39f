//! Making a client's parameters fit for the host.
//!
//! The host never answers what it cannot read (wire/5-fwhost.md section 1.1), and pass-through requests have no time limit: so everything
//! that it would drop is refused here. And it calls back whatever method a `response_template` names: so that is taken out.

use std::borrow::Cow;

use protocol::ApiError;
use protocol::envelope::write_string;
use protocol::error::ApiResult;
use protocol::raw::RawMembers;
use protocol::status::Selection;
use serde_json::Value;
use serde_json::value::RawValue;

/// The parameter that clients may not give.
const TEMPLATE: &str = "response_template";

/// Endpoints that would change our own connection.
const RESERVED: [&str; 4] = ["list_endpoints", "gcode/subscribe_output", "register_remote_method", "objects/subscribe"];

/// Endpoints that change nothing: the cache stays true after them.
const HARMLESS: [&str; 6] = ["info", "objects/list", "objects/query", "gcode/help", "query_endstops/status", "bed_mesh/dump_mesh"];

/// True when clients may not use the endpoint through this connection.
pub(crate) fn is_reserved(endpoint: &str) -> bool {
    RESERVED.contains(&endpoint)
}

/// True when the printer may be different after the endpoint's answer.
pub(crate) fn is_command(endpoint: &str) -> bool {
    !HARMLESS.contains(&endpoint)
}

/// The parameters as the host gets them.
///
/// # Errors
/// When they are no object, or hold what the host's parser refuses (nesting beyond 127 levels, half characters, numbers beyond all bounds).
pub(crate) fn for_host(params: &RawValue) -> ApiResult<Cow<'_, str>> {
    let text = params.get();
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) if !object.contains_key(TEMPLATE) => Ok(Cow::Borrowed(text)),
        Ok(Value::Object(_)) => without_template(text),
        _ => Err(unreadable()),
    }
}

/// The `objects` argument of a query.
///
/// # Errors
/// When it is missing or no selection.
pub(crate) fn selection(params: Option<&RawValue>) -> ApiResult<Selection> {
    let members: RawMembers<'_> =
        params.map(|params| serde_json::from_str(params.get())).transpose().map_err(|_| unreadable())?.unwrap_or_default();
    let objects = members.0.iter().rev().find(|(name, _)| name == "objects");
    Selection::from_json(objects.ok_or_else(|| ApiError::argument("Missing argument [objects]"))?.1.get())
}

fn without_template(text: &str) -> ApiResult<Cow<'_, str>> {
    let members: RawMembers<'_> = serde_json::from_str(text).map_err(|_| unreadable())?;
    let mut out = vec![b'{'];
    for (name, value) in members.0.iter().filter(|(name, _)| name != TEMPLATE) {
        if out.len() > 1 {
            out.push(b',');
        }
        write_string(&mut out, name);
        out.push(b':');
        out.extend_from_slice(value.get().as_bytes());
    }
    out.push(b'}');
    String::from_utf8(out).map(Cow::Owned).map_err(|_| unreadable())
}

fn unreadable() -> ApiError {
    ApiError::bad_request("Invalid parameters: expected a JSON object that the firmware host can read")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(json: &str) -> Option<String> {
        for_host(&RawValue::from_string(json.into()).unwrap()).ok().map(Cow::into_owned)
    }

    #[test]
    fn templates_are_taken_out_however_they_are_spelled() {
        assert_eq!(sent(r#"{"a":1.50}"#).as_deref(), Some(r#"{"a":1.50}"#));
        assert_eq!(sent(r#"{"response_template":{"method":"x"}}"#).as_deref(), Some("{}"));
        assert_eq!(
            sent(r#"{"name":"\u0041", "response\u005ftemplate":{}, "b":[1, 2],"response_template":5}"#).as_deref(),
            Some(r#"{"name":"\u0041","b":[1, 2]}"#)
        );
        assert_eq!(sent(r#"{"inner":{"response_template":1}}"#).as_deref(), Some(r#"{"inner":{"response_template":1}}"#));
    }

    #[test]
    fn what_the_host_would_never_answer_is_refused() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(500), "]".repeat(500));
        for json in ["[]", "null", "5", "\"x\"", r#"{"a":"\ud800"}"#, &deep] {
            assert_eq!(sent(json), None, "{json}");
        }
    }

    #[test]
    fn selections_of_queries() {
        let read = |json: &str| selection(Some(&RawValue::from_string(json.into()).unwrap()));
        assert_eq!(read(r#"{"objects":{"fan":null},"response_template":{}}"#).unwrap().to_json(), r#"{"fan":null}"#);
        assert!(read(r#"{"objects":5}"#).is_err() && read("{}").is_err() && read("[]").is_err() && selection(None).is_err());
    }

    #[test]
    fn endpoints() {
        assert!(is_reserved("objects/subscribe") && !is_reserved("objects/query"));
        assert!(is_command("gcode/script") && !is_command("info"));
    }
}
