//! What waits for sudo to work: shown to people until somebody gives the password.
//!
//! ```text
//! add ─► waiting ─► told: notification, line of the console, announcement
//!           ▲ │
//!           │ └─ the right password: each is carried out in turn ─► done
//!           └──────────────────────────────────────────── failed ─┘
//! ```

use std::sync::Arc;

use parking_lot::Mutex;
use protocol::Event;
use protocol::machine::SudoAlert;
use rpc::Connections;
use rpc::transfer::Boxed;

use crate::ports::{Alert, AlertBoard};

/// Requests for sudo that wait at one time; further ones are only logged.
const MAX_WAITING: usize = 32;

const TITLE: &str = "The password for sudo is needed";

/// What is done once sudo works: what became of it, or why it failed, in a sentence.
pub(crate) type Task = Arc<dyn Fn() -> Boxed<'static, Result<String, String>> + Send + Sync>;

#[derive(Clone)]
struct Request {
    message: String,
    task: Task,
}

pub(crate) struct Requests {
    waiting: Mutex<Vec<Request>>,
    connections: Arc<Connections>,
    board: Arc<dyn AlertBoard>,
}

/// What became of the requests that waited.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) responses: Vec<String>,
    pub(crate) failures: Vec<String>,
}

impl Requests {
    pub(crate) fn new(connections: Arc<Connections>, board: Arc<dyn AlertBoard>) -> Self {
        Self { waiting: Mutex::default(), connections, board }
    }

    /// What is waited for, one sentence each.
    pub(crate) fn messages(&self) -> Vec<String> {
        self.waiting.lock().iter().map(|request| request.message.clone()).collect()
    }

    /// Waits for sudo to do `task`, and tells people why: `message` is a sentence.
    pub(crate) async fn add(&self, message: &str, task: Task) {
        {
            let mut waiting = self.waiting.lock();
            if waiting.iter().any(|request| request.message == message) {
                return;
            }
            if waiting.len() >= MAX_WAITING {
                return tracing::warn!(message, "too many requests wait for the password for sudo");
            }
            waiting.push(Request { message: message.to_owned(), task });
        }
        tracing::warn!(message, "the password for sudo is needed");
        self.tell();
        self.connections.emit(&Event::GcodeResponse(format!("!! {TITLE}: {message}").into()));
        self.show().await;
    }

    /// Carries out what waits, in order; what fails waits on.
    pub(crate) async fn carry_out(&self) -> Outcome {
        let mut outcome = Outcome::default();
        let all = self.waiting.lock().clone();
        for Request { message, task } in all {
            match task().await {
                Ok(response) => {
                    outcome.responses.push(response);
                    self.waiting.lock().retain(|request| request.message != message);
                }
                Err(failure) => outcome.failures.push(failure),
            }
        }
        self.show().await;
        outcome
    }

    /// Tells all clients what waits.
    pub(crate) fn tell(&self) {
        let request_messages = self.messages();
        self.connections.emit(&Event::SudoAlert(SudoAlert { sudo_requested: !request_messages.is_empty(), request_messages }));
    }

    /// Brings the announcement in line with what waits, also one that an earlier run of the server left.
    pub(crate) async fn show(&self) {
        let messages = self.messages();
        let alert = (!messages.is_empty()).then(|| Alert { title: TITLE.to_owned(), description: messages.join("\n") });
        self.board.show(alert).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpc::{ConnectionKind, Identity};

    #[derive(Default)]
    struct Board(Mutex<Vec<Option<String>>>);

    impl AlertBoard for Board {
        fn show(&self, alert: Option<Alert>) -> Boxed<'_, ()> {
            self.0.lock().push(alert.map(|alert| alert.description));
            Box::pin(async {})
        }
    }

    fn task(outcome: Arc<Mutex<Result<&'static str, &'static str>>>) -> Task {
        Arc::new(move || {
            let outcome = *outcome.lock();
            Box::pin(async move { outcome.map(str::to_owned).map_err(str::to_owned) })
        })
    }

    #[tokio::test]
    async fn what_fails_waits_on_and_the_rest_is_done() {
        let (connections, board) = (Arc::<Connections>::default(), Arc::new(Board::default()));
        let client = connections.register(ConnectionKind::Unix, Identity::Local, None);
        let requests = Requests::new(connections, board.clone());
        let fate = Arc::new(Mutex::new(Err("no")));
        requests.add("First.", task(Arc::new(Mutex::new(Ok("done"))))).await;
        requests.add("Second.", task(fate.clone())).await;
        requests.add("Second.", task(fate.clone())).await;
        assert_eq!(requests.messages(), ["First.", "Second."]);
        let outcome = requests.carry_out().await;
        assert_eq!(outcome, Outcome { responses: vec!["done".into()], failures: vec!["no".into()] });
        assert_eq!(requests.messages(), ["Second."]);
        *fate.lock() = Ok("yes");
        assert_eq!(requests.carry_out().await.responses, ["yes"]);
        requests.tell();
        let shown = ["First.", "First.\nSecond.", "Second."].map(|text| Some(text.to_owned())).into_iter().chain([None]);
        assert_eq!(*board.0.lock(), shown.collect::<Vec<_>>());
        let mut frames = Vec::new();
        client.connection.outbox.take(&mut frames, usize::MAX);
        let texts: Vec<String> = frames.iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect();
        assert!(
            texts[0].contains(r#""method":"notify_sudo_alert","params":[{"sudo_requested":true,"request_messages":["First."]}]"#),
            "{texts:?}"
        );
        assert!(texts[1].contains(r#""params":["!! The password for sudo is needed: First."]"#), "{texts:?}");
        assert!(texts.last().unwrap().contains(r#"{"sudo_requested":false,"request_messages":[]}"#), "{texts:?}");
    }

    #[tokio::test]
    async fn the_number_that_waits_is_bounded() {
        let requests = Requests::new(Arc::default(), Arc::new(Board::default()));
        for number in 0..MAX_WAITING + 3 {
            requests.add(&number.to_string(), task(Arc::new(Mutex::new(Ok(""))))).await;
        }
        assert_eq!(requests.messages().len(), MAX_WAITING);
    }
}
