//! Calls in the other direction: what the server asks the program behind a connection, and the answers that come back (agents).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use protocol::envelope::{self, Reply};
use protocol::{ApiError, ErrorKind};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::connection::Connection;

/// Questions of ours that one connection may leave unanswered.
pub const MAX_ASKED: usize = 256;

/// The result, or the error object, as the program sent it.
pub type AskAnswer = Result<Box<RawValue>, Box<RawValue>>;

/// What a connection was asked and has not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    waiting: Mutex<HashMap<u64, oneshot::Sender<AskAnswer>>>,
    last_id: AtomicU64,
}

impl Asked {
    /// Gives up all questions: the connection has ended.
    pub(crate) fn clear(&self) {
        self.waiting.lock().clear();
    }
}

/// A question under way; dropping it gives the question up.
pub struct Asking {
    connection: Arc<Connection>,
    id: u64,
    answer: oneshot::Receiver<AskAnswer>,
}

impl Asking {
    /// Waits for the answer; `None` when the connection ended instead.
    pub async fn answer(&mut self) -> Option<AskAnswer> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.connection.asked.waiting.lock().remove(&self.id);
    }
}

impl Connection {
    /// Asks the program behind the connection.
    ///
    /// # Errors
    /// 429 when it leaves too many questions unanswered.
    pub fn ask(self: &Arc<Self>, method: &str, params: Option<&RawValue>) -> Result<Asking, ApiError> {
        let id = self.asked.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        {
            let mut waiting = self.asked.waiting.lock();
            if waiting.len() >= MAX_ASKED {
                return Err(ApiError::new(ErrorKind::TooMany, format!("{MAX_ASKED} requests wait for an answer of this agent already")));
            }
            waiting.insert(id, sender);
        }
        let asking = Asking { connection: self.clone(), id, answer };
        if self.outbox.closed().is_some() {
            // It ended before the question was noted: nobody else gives it up.
            self.asked.clear();
        }
        self.outbox.push(envelope::question(method, id, params));
        Ok(asking)
    }

    /// Hands an answer to whoever asked. One that nobody waits for (late, sent twice, made up) is dropped.
    pub fn take_answer(&self, reply: &Reply<'_>) {
        let asked = reply.id.and_then(|id| id.get().parse().ok()).and_then(|id: u64| self.asked.waiting.lock().remove(&id));
        match asked {
            Some(sender) => drop(sender.send(reply.outcome.map(RawValue::to_owned).map_err(RawValue::to_owned))),
            None => tracing::debug!(connection = self.id.0, "an answer to nothing that was asked"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{ConnectionKind, Connections, Registered};
    use crate::identity::Identity;
    use protocol::envelope::{Document, Incoming};

    fn connection() -> Registered {
        Arc::new(Connections::default()).register(ConnectionKind::Websocket, Identity::Local, None)
    }

    fn answer(connection: &Connection, text: &str) {
        let Document::Single(Incoming::Reply(reply)) = envelope::parse(text.as_bytes()) else { panic!("no reply: {text}") };
        connection.take_answer(&reply);
    }

    #[tokio::test]
    async fn answers_find_their_question_once() {
        let registered = connection();
        let one = &registered.connection;
        let mut first = one.ask("a", None).unwrap();
        let mut second = one.ask("b", Some(&RawValue::from_string("[1]".into()).unwrap())).unwrap();
        let mut sent = Vec::new();
        one.outbox.take(&mut sent, 10);
        assert_eq!(&sent[0][..], br#"{"jsonrpc":"2.0","method":"a","id":1}"#);
        assert_eq!(&sent[1][..], br#"{"jsonrpc":"2.0","method":"b","id":2,"params":[1]}"#);
        for stray in ["7", "\"1\"", "null", "-1", "1.0"] {
            answer(one, &format!(r#"{{"jsonrpc":"2.0","result":"stray","id":{stray}}}"#));
        }
        answer(one, r#"{"jsonrpc":"2.0","error":{"code":5},"id":2}"#);
        answer(one, r#"{"jsonrpc":"2.0","result":"too late","id":2}"#);
        answer(one, r#"{"jsonrpc":"2.0","result":null,"id":1}"#);
        assert_eq!(first.answer().await.unwrap().unwrap().get(), "null");
        assert_eq!(second.answer().await.unwrap().unwrap_err().get(), r#"{"code":5}"#);
    }

    #[tokio::test]
    async fn the_end_of_a_connection_ends_its_questions() {
        let registered = connection();
        let mut asking = registered.connection.ask("a", None).unwrap();
        let left = registered.connection.clone();
        drop(registered);
        assert!(asking.answer().await.is_none());
        assert!(left.ask("a", None).unwrap().answer().await.is_none(), "asked after the end");
    }

    #[test]
    fn unanswered_questions_are_bounded_and_given_up_ones_do_not_count() {
        let registered = connection();
        let one = &registered.connection;
        let mut asked: Vec<Asking> = (0..MAX_ASKED).map(|_| one.ask("a", None).unwrap()).collect();
        assert_eq!(one.ask("a", None).err().unwrap().kind, ErrorKind::TooMany);
        asked.pop();
        assert!(one.ask("a", None).is_ok());
    }
}
