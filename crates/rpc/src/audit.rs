//! What is kept of every call that changes something: who, from where, by which way, what, and how it ended. Never a secret.

use std::net::IpAddr;
use std::sync::Arc;

use protocol::ApiError;
use protocol::envelope::write_string;

use crate::args::{ArgValue, Arguments};
use crate::call::{Call, Transport};
use crate::connection::ConnectionKind;
use crate::identity::Identity;
use crate::operation::{Answer, Operation, Outcome};

/// Arguments that say what a call was about and are never secret. Deny by default: whatever is not listed is not kept.
const KEPT: &[&str] = &[
    "action",
    "agent",
    "application",
    "client_name",
    "commands",
    "dest",
    "device",
    "event",
    "filename",
    "filenames",
    "id",
    "job_ids",
    "method",
    "method_name",
    "name",
    "namespace",
    "path",
    "role",
    "root",
    "script",
    "service",
    "session",
    "session_id",
    "source",
    "uid",
    "username",
];

/// Bytes kept of one argument.
const MAX_ARGUMENT: usize = 160;

/// Bytes kept of the text of an error.
const MAX_ERROR: usize = 240;

/// One finished call.
#[derive(Debug, Clone)]
pub struct Deed {
    /// Who called.
    pub identity: Identity,
    /// From where; none on the unix socket and from within.
    pub address: Option<IpAddr>,
    /// By which way: `http`, `websocket`, `unix`, `mqtt` or `internal`.
    pub way: &'static str,
    /// Neutral method name.
    pub method: String,
    /// What is kept of the arguments: a JSON object.
    pub arguments: String,
    /// HTTP status of the outcome, whatever the way; 200 for success.
    pub status: u16,
    /// Text of the error.
    pub error: Option<String>,
}

/// Keeps deeds. Called on the path of requests, so it must neither wait nor fail.
pub trait Audit: Send + Sync {
    /// Takes down a finished call.
    fn note(&self, deed: Deed);
}

impl Deed {
    /// A call that begins; it has failed until [`Deed::ended`] says otherwise.
    pub(crate) fn begun(call: &Call, method: &str, arguments: &Arguments<'_>) -> Self {
        Self {
            identity: call.identity.clone(),
            address: call.peer.map(|peer| peer.address),
            way: way(call),
            method: method.to_owned(),
            arguments: kept(arguments),
            status: 500,
            error: Some("broken off".to_owned()),
        }
    }

    pub(crate) fn ended<T>(&mut self, result: &Result<T, ApiError>) {
        (self.status, self.error) = match result {
            Ok(_) => (200, None),
            Err(error) => (error.kind.http_status(), Some(cut(&error.message, MAX_ERROR).to_owned())),
        };
    }
}

/// A deed that is noted when it is dropped: also when the call panics or is broken off.
struct Noted {
    deed: Option<Deed>,
    audit: Arc<dyn Audit>,
}

impl Noted {
    fn end(mut self, result: &Result<Answer, ApiError>) {
        if let Some(deed) = &mut self.deed {
            deed.ended(result);
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(deed) = self.deed.take() {
            self.audit.note(deed);
        }
    }
}

/// Calls an operation and notes how it ends.
pub(crate) fn invoke(audit: &Arc<dyn Audit>, operation: &Operation, call: &Arc<Call>, arguments: &Arguments<'_>) -> Outcome {
    let deed = Deed::begun(call, &operation.method, arguments);
    let noted = Noted { deed: Some(deed), audit: audit.clone() };
    match operation.invoke(call, arguments) {
        Outcome::Done(result) => {
            noted.end(&result);
            Outcome::Done(result)
        }
        Outcome::Working(work) => Outcome::Working(Box::pin(async move {
            let result = work.await;
            noted.end(&result);
            result
        })),
    }
}

fn way(call: &Call) -> &'static str {
    match (call.transport, &call.connection) {
        (Transport::Socket, Some(connection)) if connection.kind == ConnectionKind::Unix => "unix",
        (Transport::Socket, _) => "websocket",
        (Transport::Mqtt, _) => "mqtt",
        // Some routes call operations that have no HTTP form of their own.
        (Transport::Internal, _) if call.identity == Identity::Internal => "internal",
        (Transport::Http | Transport::Internal, _) => "http",
    }
}

fn kept(arguments: &Arguments<'_>) -> String {
    let mut out = b"{".to_vec();
    for (name, value) in arguments.iter().filter(|(name, _)| KEPT.contains(name)) {
        if out.len() > 1 {
            out.push(b',');
        }
        write_string(&mut out, name);
        out.push(b':');
        let text = match value {
            ArgValue::Text(text) => text.to_string(),
            json => match serde_json::from_str(&json.to_json()) {
                Ok(serde_json::Value::String(text)) => text,
                _ => json.to_json().into_owned(),
            },
        };
        write_string(&mut out, cut(&text, MAX_ARGUMENT));
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_default()
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Connections;
    use crate::identity::Access;
    use crate::registry::Registry;
    use parking_lot::Mutex;
    use protocol::Form;

    #[derive(Default)]
    struct Seen(Mutex<Vec<Deed>>);

    impl Audit for Seen {
        fn note(&self, deed: Deed) {
            self.0.lock().push(deed);
        }
    }

    struct Service;

    fn operations(audit: Arc<dyn Audit>) -> crate::Operations {
        let mut registry = Registry::default();
        let service = Arc::new(Service);
        registry.op("a.read").access(Access::View).answer(&service, |_, _, (): ()| Ok(1));
        registry.op("a.write").access(Access::Control).answer(&service, |_, _, (): ()| Ok(1));
        registry.op("a.login").access(Access::Open).audited().answer(&service, |_, _, (): ()| Ok(1));
        registry.op("a.later").access(Access::Admin).handle(&service, |_, _, (): ()| async { Err::<(), _>(ApiError::not_found("none")) });
        registry.op("a.never").access(Access::Admin).handle(&service, |_, _, (): ()| std::future::pending::<Result<(), ApiError>>());
        registry.set_audit(audit);
        registry.build().unwrap()
    }

    fn invoke(operations: &crate::Operations, method: &str, identity: Identity, arguments: &[(&str, &str)]) -> Outcome {
        let mut given = Arguments::none();
        for (name, value) in arguments {
            given.add((*name).to_owned().into(), ArgValue::Text((*value).to_owned().into())).unwrap();
        }
        let found = operations.method(method).unwrap();
        operations.invoke(&found.operation, &Arc::new(Call::http(identity, Form::Neutral, None)), &given)
    }

    #[tokio::test]
    async fn calls_that_change_something_are_noted_with_their_end() {
        let seen = Arc::new(Seen::default());
        let operations = operations(seen.clone());
        for method in ["a.read", "a.write", "a.login"] {
            drop(invoke(&operations, method, Identity::Trusted, &[]));
        }
        let Outcome::Working(work) = invoke(&operations, "a.later", Identity::Local, &[]) else { panic!() };
        assert!(work.await.is_err());
        drop(invoke(&operations, "a.never", Identity::Local, &[]));
        drop(invoke(&operations, "a.write", Identity::Stranger, &[]));
        let seen: Vec<_> = seen.0.lock().iter().map(|deed| (deed.method.clone(), deed.status)).collect();
        let expected = [("a.write", 200), ("a.login", 200), ("a.later", 404), ("a.never", 500), ("a.write", 401)];
        assert_eq!(seen, expected.map(|(method, status)| (method.to_owned(), status)));
    }

    #[test]
    fn only_harmless_arguments_are_kept_and_little_of_them() {
        let seen = Arc::new(Seen::default());
        let operations = operations(seen.clone());
        let long = "ü".repeat(500);
        let arguments = [("password", "geheim"), ("filename", long.as_str()), ("token", "t"), ("value", "v"), ("username", "a\"b")];
        drop(invoke(&operations, "a.write", Identity::Trusted, &arguments));
        let deed = seen.0.lock()[0].clone();
        let kept: serde_json::Value = serde_json::from_str(&deed.arguments).unwrap();
        assert_eq!(kept, serde_json::json!({"filename": "ü".repeat(MAX_ARGUMENT / 2), "username": "a\"b"}));
    }

    #[test]
    fn ways_are_told_apart() {
        let table = Arc::new(Connections::default());
        let unix = table.register(ConnectionKind::Unix, Identity::Local, None);
        let websocket = table.register(ConnectionKind::Websocket, Identity::Trusted, None);
        let http = Call::http(Identity::Trusted, Form::Neutral, None);
        let calls = [Call::on(&unix.connection), Call::on(&websocket.connection), http, Call::internal()];
        assert_eq!(calls.each_ref().map(way), ["unix", "websocket", "http", "internal"]);
    }
}
