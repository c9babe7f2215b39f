//! The way to a controller.

use std::time::Duration;

use outbound::{Client, Method, OutboundError, Request};
use serde_json::{Map, Value};
use tokio::time::sleep;

use super::model::Command;
use super::options::{LedKind, LedOptions};
use super::serial::Serial;

/// Attempts to send one command to an LED strip over HTTP.
pub const ATTEMPTS: u32 = 3;

/// Pause between two attempts to send a command to an LED strip.
const PAUSE: Duration = Duration::from_millis(100);

/// Longest answer of an LED strip in bytes that is read.
const MAX_BODY: usize = 256 * 1024;

pub(super) enum Link {
    Http { client: Client, url: String, timeout: Duration },
    Serial(Serial),
}

impl Link {
    pub(super) fn new(options: &LedOptions, client: &Client) -> Self {
        match (options.r#type, &options.serial) {
            (LedKind::Serial, Some(path)) => Self::Serial(Serial::new(path.clone(), options.baud)),
            // Its own lane: one that hangs must not keep others waiting.
            _ => Self::Http { client: client.lane(1), url: options.url().unwrap_or_default(), timeout: options.timeout },
        }
    }

    /// How long one command may take.
    pub(super) fn patience(options: &LedOptions) -> Duration {
        match options.r#type {
            LedKind::Http => (options.timeout + PAUSE) * ATTEMPTS,
            LedKind::Serial => super::serial::ANSWER_TIMEOUT * 2,
        }
    }

    /// Sends a command.
    ///
    /// # Errors
    /// A sentence for people.
    pub(super) async fn send(&mut self, command: &Command) -> Result<(), String> {
        let body = serde_json::to_vec(command).map_err(|error| error.to_string())?;
        match self {
            Self::Serial(serial) => serial.send(&body, command.v.is_some()).await,
            Self::Http { client, url, timeout } => {
                let mut outcome = Ok(());
                for attempt in 1..=ATTEMPTS {
                    outcome = post(client, url, *timeout, &body).await;
                    if outcome.is_ok() {
                        break;
                    }
                    if attempt < ATTEMPTS {
                        sleep(PAUSE).await;
                    }
                }
                outcome
            }
        }
    }
}

async fn post(client: &Client, url: &str, timeout: Duration, body: &[u8]) -> Result<(), String> {
    let request = Request::new(Method::POST, url).and_then(|request| request.header("Content-Type", "application/json"));
    let request = request.map_err(|error| error.to_string())?.body(body.to_vec()).timeout(timeout).max_body(MAX_BODY).max_redirects(0);
    let answer = client.send(request).await.map_err(|error| match error {
        OutboundError::Redirect(_) => "it redirects to another address".to_owned(),
        other => other.to_string(),
    })?;
    if !answer.is_success() {
        return Err(format!("it answered with status {}", answer.status));
    }
    understood(&answer.body)
}

/// Controllers answer `{"success":true}`, their state, or `{"error":9}`; whatever else answers is no controller.
fn understood(body: &[u8]) -> Result<(), String> {
    let answer: Map<String, Value> =
        serde_json::from_slice(body).map_err(|_| "its answer is not the JSON of such a controller".to_owned())?;
    match answer.get("error") {
        None | Some(Value::Null) => Ok(()),
        Some(error) => Err(format!("it refused the command (error {:.40})", error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_answer_is_understood_or_a_reason(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..200),
                r#"\{"(error|success|state)":(true|null|9|"[a-z ]{0,300}"|\[[0-9,]{0,99}\])\}"#.prop_map(String::into_bytes),
            ],
        ) {
            if let Err(reason) = understood(&bytes) {
                prop_assert!(reason.len() < 100, "{reason}");
            }
        }
    }

    #[test]
    fn answers_of_other_things_are_told_apart() {
        for fine in [r#"{"success":true}"#, r#"{"state":{"on":true},"info":{}}"#, "{}"] {
            assert_eq!(understood(fine.as_bytes()), Ok(()));
        }
        assert_eq!(understood(br#"{"error":9}"#), Err("it refused the command (error 9)".to_owned()));
        for bad in ["", "<html>hello</html>", r#"{"success":tr"#, "[1]", "\u{feff}{}"] {
            assert!(understood(bad.as_bytes()).unwrap_err().contains("not the JSON"));
        }
    }
}
