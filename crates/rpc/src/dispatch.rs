//! From a JSON-RPC document to answers: the part of every message transport that is not framing.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use protocol::envelope::{self, Document, Incoming, Request};
use protocol::{ApiError, ErrorKind, Form, Frame};
use serde_json::value::RawValue;
use tokio_util::task::TaskTracker;

use crate::args::Arguments;
use crate::call::Call;
use crate::connection::Connection;
use crate::identity::{Identity, Peer};
use crate::registry::{Answer, Operation, Operations, Outcome, Working};

/// Bytes of answers to one batch; members after that are refused.
const MAX_BATCH_ANSWER: usize = 8 * 1024 * 1024;

/// Calls operations for the transports.
pub struct Dispatcher {
    /// What can be called.
    pub operations: Arc<Operations>,
    /// Calls that outlive their request's first poll; drained at the stop of the server.
    pub tasks: TaskTracker,
}

/// Where a document came from.
#[derive(Clone)]
pub enum Origin {
    /// A persistent connection.
    Connection(Arc<Connection>),
    /// A message over MQTT.
    Mqtt {
        /// What stands for all callers over MQTT.
        connection: Arc<Connection>,
        /// The form of values that the topic stands for.
        form: Form,
    },
    /// An HTTP request.
    Http {
        /// Who sent it.
        identity: Identity,
        /// The form of values that it reads.
        form: Form,
        /// Where it came from.
        peer: Option<Peer>,
    },
}

impl Origin {
    fn call(&self, by_upstream_name: bool) -> Call {
        let mut call = match self {
            Self::Connection(connection) => Call::on(connection),
            Self::Mqtt { connection, form } => Call::mqtt(connection, *form),
            Self::Http { identity, form, peer } => Call::http(identity.clone(), *form, *peer),
        };
        if by_upstream_name {
            call.form = Form::Upstream;
        }
        call
    }
}

impl Dispatcher {
    /// Handles a message of a persistent connection: the answer, if there is one, goes to its outbox, at once or later. Never waits.
    pub fn message(self: &Arc<Self>, connection: &Arc<Connection>, text: &Bytes) {
        let document = envelope::parse(text);
        // Not counted: a client with many calls under way may well be waiting for what it is about to answer.
        if let Document::Single(Incoming::Reply(reply)) = &document {
            return connection.take_answer(reply);
        }
        let Some(pending) = connection.begin_call() else {
            connection.outbox.push(too_many(text));
            return;
        };
        let origin = Origin::Connection(connection.clone());
        let work = match document {
            Document::Single(Incoming::Request(request)) => {
                let (call, outcome) = self.invoke(&origin, &request);
                let id = request.id.map(RawValue::to_owned);
                match outcome {
                    Outcome::Done(result) => {
                        connection.outbox.push_all(answer(result, id.as_deref()).as_slice());
                        return drop(call);
                    }
                    Outcome::Working(work) => {
                        let connection = connection.clone();
                        async move {
                            let result = work.await;
                            connection.outbox.push_all(answer(result, id.as_deref()).as_slice());
                            // What the call holds back may follow its answer, not precede it.
                            drop((call, pending));
                        }
                        .boxed()
                    }
                }
            }
            Document::Single(Incoming::Invalid(error)) => return connection.outbox.push(error),
            Document::Single(Incoming::Reply(_)) => return,
            Document::Batch(_) => {
                let (dispatcher, connection, text) = (self.clone(), connection.clone(), text.clone());
                async move {
                    let (answers, calls) = dispatcher.document(&origin, &text).await;
                    connection.outbox.push_all(answers.as_slice());
                    drop((calls, pending));
                }
                .boxed()
            }
        };
        self.finish(work);
    }

    /// Polls once right here, since most calls only look something up, and hands the rest to a task that no disconnect cancels.
    fn finish(&self, work: impl Future<Output = ()> + Send + Unpin + 'static) {
        let mut work = work;
        if (&mut work).now_or_never().is_none() {
            self.tasks.spawn(work);
        }
    }

    /// Carries work to its end in a task of its own: a client that leaves cancels nothing.
    ///
    /// # Errors
    /// 500 when the work panicked.
    pub async fn to_the_end<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T, ApiError> {
        self.tasks.spawn(work).await.map_err(|_| internal())
    }

    /// Handles a whole document one member after the other; no frame when nothing is to be answered. The calls are to be dropped when the
    /// answer is on its way: what they hold back may follow it, not precede it.
    pub async fn document(&self, origin: &Origin, text: &Bytes) -> (Option<Frame>, Vec<Arc<Call>>) {
        let mut calls = Vec::new();
        let frame = match envelope::parse(text) {
            Document::Single(member) => self.member(origin, member, &mut calls).await,
            Document::Batch(members) => {
                let (mut answers, mut bytes) = (Vec::new(), 0);
                for member in members {
                    let answer = if bytes > MAX_BATCH_ANSWER { too_long(&member) } else { self.member(origin, member, &mut calls).await };
                    bytes += answer.as_ref().map_or(0, Frame::len);
                    answers.extend(answer);
                    // Most members answer without waiting, and others want to be served meanwhile.
                    tokio::task::yield_now().await;
                }
                (!answers.is_empty()).then(|| envelope::batch(&answers))
            }
        };
        (frame, calls)
    }

    async fn member(&self, origin: &Origin, member: Incoming<'_>, calls: &mut Vec<Arc<Call>>) -> Option<Frame> {
        let request = match member {
            Incoming::Request(request) => request,
            Incoming::Invalid(error) => return Some(error),
            Incoming::Reply(reply) => {
                if let Origin::Connection(connection) = origin {
                    connection.take_answer(&reply);
                }
                return None;
            }
        };
        let (call, outcome) = self.invoke(origin, &request);
        let result = match outcome {
            Outcome::Done(result) => result,
            Outcome::Working(work) => work.await,
        };
        calls.push(call);
        answer(result, request.id)
    }

    fn invoke(&self, origin: &Origin, request: &Request<'_>) -> (Arc<Call>, Outcome) {
        let found = self.operations.method(&request.method);
        let call = Arc::new(origin.call(found.as_ref().is_some_and(|found| found.by_upstream_name)));
        let outcome = match (found, Arguments::from_json(request.params)) {
            // A stranger must not learn which methods exist, beyond those that are open.
            (None, _) if !call.identity.is_authorised() => Outcome::Done(Err(ApiError::unauthorized())),
            (None, _) => Outcome::Done(Err(ApiError::method_not_found())),
            (_, Err(error)) => Outcome::Done(Err(error)),
            (Some(found), Ok(arguments)) => invoke(&self.operations, &found.operation, &call, &arguments),
        };
        (call, outcome)
    }
}

/// Calls an operation; a panic in it becomes an error for this caller alone.
pub fn invoke(operations: &Operations, operation: &Operation, call: &Arc<Call>, arguments: &Arguments<'_>) -> Outcome {
    match std::panic::catch_unwind(AssertUnwindSafe(|| operations.invoke(operation, call, arguments))) {
        Ok(Outcome::Working(work)) => Outcome::Working(guarded(work, operation.method.clone())),
        Ok(done) => done,
        Err(_) => Outcome::Done(Err(panicked(&operation.method))),
    }
}

fn guarded(work: Working, method: String) -> Working {
    Box::pin(async move { AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| Err(panicked(&method))) })
}

fn panicked(method: &str) -> ApiError {
    tracing::error!(method, "an operation panicked");
    internal()
}

fn internal() -> ApiError {
    ApiError::internal("Internal error; the log has details")
}

fn answer(result: Result<Answer, ApiError>, id: Option<&RawValue>) -> Option<Frame> {
    let id = id?;
    Some(match result {
        Ok(result) => envelope::success(&result, id),
        Err(error) => envelope::failure(&error, Some(id)),
    })
}

/// The answer to a member for which the batch has no room left.
fn too_long(member: &Incoming<'_>) -> Option<Frame> {
    let Incoming::Request(request) = member else { return None };
    let error =
        ApiError::new(ErrorKind::TooLarge, format!("Not carried out: the answers before it in this batch have {MAX_BATCH_ANSWER} bytes"));
    request.id.map(|id| envelope::failure(&error, Some(id)))
}

fn too_many(text: &Bytes) -> Frame {
    let error = ApiError::new(ErrorKind::TooMany, "Too many requests of this connection are waiting for an answer");
    match envelope::parse(text) {
        Document::Single(Incoming::Request(request)) => envelope::failure(&error, request.id),
        _ => envelope::failure(&error, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Transport;
    use crate::connection::{ConnectionKind, Connections, MAX_PENDING_CALLS, Registered};
    use crate::identity::Access;
    use crate::registry::Registry;

    struct Service;

    fn dispatcher() -> Arc<Dispatcher> {
        let mut registry = Registry::default();
        let service = Arc::new(Service);
        registry.op("a.now").access(Access::View).answer(&service, |_, _, (): ()| Ok("now"));
        registry.op("a.later").access(Access::View).handle(&service, |_, _, (): ()| async move {
            tokio::task::yield_now().await;
            Ok("later")
        });
        registry.op("a.big").access(Access::View).answer(&service, |_, _, (): ()| Ok("x".repeat(1024 * 1024)));
        registry.op("a.never").access(Access::View).handle(&service, |_, _, (): ()| std::future::pending::<Result<(), ApiError>>());
        #[allow(clippy::panic)]
        registry.op("a.panic").access(Access::View).answer(&service, |_, _, (): ()| -> Result<(), ApiError> { panic!("on purpose") });
        registry.op("a.open").only(&[Transport::Socket]).access(Access::Open).answer(&service, |_, _, (): ()| Ok("open"));
        Arc::new(Dispatcher { operations: Arc::new(registry.build().unwrap()), tasks: TaskTracker::new() })
    }

    fn connection(identity: Identity) -> Registered {
        Arc::new(Connections::default()).register(ConnectionKind::Websocket, identity, None)
    }

    async fn answers(dispatcher: &Arc<Dispatcher>, identity: Identity, text: &str) -> Vec<String> {
        let registered = connection(identity);
        dispatcher.message(&registered.connection, &Bytes::copy_from_slice(text.as_bytes()));
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let mut out = Vec::new();
        registered.connection.outbox.take(&mut out, usize::MAX);
        out.iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect()
    }

    fn call(method: &str, id: u32) -> String {
        format!(r#"{{"jsonrpc":"2.0","method":"{method}","id":{id}}}"#)
    }

    #[tokio::test]
    async fn answers_come_at_once_or_later() {
        let dispatcher = dispatcher();
        assert_eq!(answers(&dispatcher, Identity::Local, &call("a.now", 0)).await, [r#"{"jsonrpc":"2.0","result":"now","id":0}"#]);
        assert_eq!(answers(&dispatcher, Identity::Local, &call("a.later", 1)).await, [r#"{"jsonrpc":"2.0","result":"later","id":1}"#]);
    }

    #[tokio::test]
    async fn nothing_answers_a_request_without_id() {
        let dispatcher = dispatcher();
        for method in ["a.now", "a.later", "a.unknown"] {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
            assert!(answers(&dispatcher, Identity::Local, &text).await.is_empty());
        }
        assert!(answers(&dispatcher, Identity::Local, r#"{"jsonrpc":"2.0","result":1,"id":5}"#).await.is_empty());
    }

    #[tokio::test]
    async fn batches_are_one_array_in_order() {
        let dispatcher = dispatcher();
        let text = format!("[{}, {}, 7, {{\"jsonrpc\":\"2.0\",\"method\":\"a.now\"}}]", call("a.later", 1), call("a.now", 2));
        let answers = answers(&dispatcher, Identity::Local, &text).await;
        assert_eq!(answers.len(), 1);
        let array: Vec<serde_json::Value> = serde_json::from_str(&answers[0]).unwrap();
        assert_eq!(array.len(), 3);
        assert_eq!(
            (&array[0]["result"], &array[1]["result"], &array[2]["error"]["code"]),
            (&"later".into(), &"now".into(), &(-32600).into())
        );
    }

    #[tokio::test]
    async fn the_answer_to_a_batch_is_bounded() {
        let dispatcher = dispatcher();
        let members: Vec<String> = (0..20).map(|id| call("a.big", id)).collect();
        let origin = Origin::Connection(connection(Identity::Local).connection.clone());
        let (frame, _) = dispatcher.document(&origin, &format!("[{}]", members.join(",")).into()).await;
        let frame = frame.unwrap();
        assert!(frame.len() < MAX_BATCH_ANSWER + 2 * 1024 * 1024, "{}", frame.len());
        let answers: Vec<serde_json::Value> = serde_json::from_slice(&frame).unwrap();
        assert_eq!((answers.len(), &answers[19]["error"]["code"]), (20, &413.into()));
    }

    #[tokio::test]
    async fn strangers_may_call_only_what_is_open() {
        let dispatcher = dispatcher();
        assert!(answers(&dispatcher, Identity::Stranger, &call("a.open", 1)).await[0].contains("\"open\""));
        for method in ["a.now", "a.unknown"] {
            assert_eq!(
                answers(&dispatcher, Identity::Stranger, &call(method, 1)).await,
                [r#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"Unauthorized"},"id":1}"#]
            );
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_error_for_its_caller_only() {
        let dispatcher = dispatcher();
        assert!(answers(&dispatcher, Identity::Local, &call("a.panic", 1)).await[0].contains("\"code\":500"));
        assert!(answers(&dispatcher, Identity::Local, &call("a.now", 2)).await[0].contains("now"));
    }

    #[tokio::test]
    async fn calls_under_way_are_bounded_per_connection() {
        let dispatcher = dispatcher();
        let registered = connection(Identity::Local);
        for id in 0..=MAX_PENDING_CALLS {
            let text = call("a.never", u32::try_from(id).unwrap());
            dispatcher.message(&registered.connection, &Bytes::copy_from_slice(text.as_bytes()));
        }
        let mut out = Vec::new();
        registered.connection.outbox.take(&mut out, usize::MAX);
        assert_eq!(out.len(), 1);
        assert!(String::from_utf8(out[0].to_vec()).unwrap().contains("429"));
    }
}
