//! What templates see of a response.

use outbound::{OutboundError, Response};
use serde_json::{Map, Value};
use template::limits::MAX_QUICK_TEXT;
use template::{Answer, Call, Failure, Object};

use super::super::Fault;
use super::super::web::failing_status;

/// A response, or why there is none.
pub(super) struct Reply {
    url: String,
    response: Option<Response>,
    error: Option<String>,
}

impl Reply {
    /// What became of a request; nothing when there was no time left.
    pub(super) fn of(url: &str, outcome: Option<Result<Response, OutboundError>>) -> Self {
        let (response, error) = match outcome {
            Some(Ok(response)) => (Some(response), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, Some("there was no time left for an answer".to_owned())),
        };
        Self { url: url.to_owned(), response, error }
    }

    /// True when templates read it quickly.
    pub(super) fn is_short(&self) -> bool {
        self.response.as_ref().is_none_or(|response| response.body.len() <= MAX_QUICK_TEXT)
    }

    /// The object for the response of this number.
    pub(super) fn object(number: u64) -> Object {
        Object { id: number, kind: "http_response" }
    }

    /// Why it is no success.
    pub(super) fn fault(&self) -> Option<Fault> {
        match (&self.response, &self.error) {
            (Some(response), _) if response.status >= 400 => Some(failing_status(response.status)),
            (Some(_), _) => None,
            (None, error) => Some(Fault::new(error.as_deref().unwrap_or("no answer"))),
        }
    }

    fn text(&self) -> String {
        self.response.as_ref().map(|response| String::from_utf8_lossy(&response.body).into_owned()).unwrap_or_default()
    }

    pub(super) fn call(&self, call: &Call<'_>) -> Result<Answer, Failure> {
        match call.name {
            "json" => {
                serde_json::from_str::<Value>(&self.text()).map(Answer::Value).map_err(|_| Failure::new(400, "the response is no JSON"))
            }
            "has_error" => Ok(Answer::Value(self.fault().is_some().into())),
            "raise_for_status" => {
                let message = call.arguments(["message"])?[0].and_then(Value::as_str);
                match self.fault() {
                    Some(fault) => Err(Failure::new(400, message.unwrap_or(&fault.message))),
                    None => Ok(Answer::Value(Value::Null)),
                }
            }
            other => Err(Failure::new(400, format!("http_response has no method `{other}`"))),
        }
    }
}

/// An attribute of a response.
pub(super) fn parts_of_reply(reply: &Reply, name: &str) -> Option<Value> {
    let header = |name: &str| {
        let value = reply.response.as_ref().and_then(|response| response.headers.get(name)).and_then(|value| value.to_str().ok());
        Value::from(value)
    };
    Some(match name {
        "text" | "content" => reply.text().into(),
        "encoding" => "utf-8".into(),
        "status_code" => reply.response.as_ref().map_or(500, |response| response.status).into(),
        "url" => reply.url.as_str().into(),
        "final_url" => reply.response.as_ref().map_or(reply.url.as_str(), |response| response.url.as_str()).into(),
        "etag" => header("etag"),
        "last_modified" => header("last-modified"),
        "error" => reply.fault().map(|fault| fault.message.to_string()).into(),
        "headers" => headers(reply.response.as_ref()),
        _ => return None,
    })
}

/// By name. Case does not count in names of headers, and templates write them in the usual capitals or small: both are there.
fn headers(response: Option<&Response>) -> Value {
    let usual = |name: &str| {
        let words = name.split('-').map(|word| {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_ascii_uppercase() + rest
        });
        words.collect::<Vec<_>>().join("-")
    };
    let headers = response.iter().flat_map(|response| response.headers.iter()).flat_map(|(name, value)| {
        let value = Value::from(String::from_utf8_lossy(value.as_bytes()));
        [(usual(name.as_str()), value.clone()), (name.as_str().to_owned(), value)]
    });
    headers.collect::<Map<_, _>>().into()
}
