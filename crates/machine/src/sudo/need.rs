//! What sudo is needed for: shown to people until somebody gives the password.
//!
//! ```text
//! ask ─► needed ─► told: notification, line of the console, announcement
//!          └─ the right password ─► met
//! ```

use std::sync::Arc;

use parking_lot::Mutex;
use protocol::Event;
use protocol::machine::SudoAlert;
use rpc::Connections;

use super::Turn;
use crate::ports::{Alert, AlertBoard};

const TITLE: &str = "The password for sudo is needed";

/// A reason to ask for the password. It changes within a turn only: a password counts for what was asked for when it was sent, and for nothing else.
pub(crate) struct Need {
    reason: Mutex<Option<&'static str>>,
    /// Looking at the reason and showing it are one step: what is shown last is what is true.
    showing: tokio::sync::Mutex<()>,
    connections: Arc<Connections>,
    board: Arc<dyn AlertBoard>,
}

impl Need {
    pub(crate) fn new(connections: Arc<Connections>, board: Arc<dyn AlertBoard>) -> Self {
        Self { reason: Mutex::default(), showing: tokio::sync::Mutex::default(), connections, board }
    }

    /// What the password is needed for, in sentences.
    pub(crate) fn reasons(&self) -> Vec<String> {
        self.reason.lock().iter().map(ToString::to_string).collect()
    }

    /// Asks people for the password: `reason` is a sentence.
    pub(crate) async fn ask(&self, turn: Turn<'_>, reason: &'static str) {
        *self.reason.lock() = Some(reason);
        // Who is told may answer at once.
        drop(turn);
        tracing::warn!(reason, "the password for sudo is needed");
        self.tell();
        self.connections.emit(&Event::GcodeResponse(format!("!! {TITLE}: {reason}").into()));
        self.show().await;
    }

    /// Nothing is asked for any more; true when something was. Clients are told by [`Need::tell`].
    pub(crate) async fn met(&self, _turn: &Turn<'_>) -> bool {
        let was_needed = self.reason.lock().take().is_some();
        self.show().await;
        was_needed
    }

    /// Tells all clients what is needed.
    pub(crate) fn tell(&self) {
        let request_messages = self.reasons();
        self.connections.emit(&Event::SudoAlert(SudoAlert { sudo_requested: !request_messages.is_empty(), request_messages }));
    }

    /// Brings the announcement in line with what is needed, also one that an earlier run of the server left.
    async fn show(&self) {
        let _one = self.showing.lock().await;
        let alert = |reason: &str| Alert { title: TITLE.to_owned(), description: reason.to_owned() };
        let alert = self.reason.lock().map(alert);
        self.board.show(alert).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpc::transfer::Boxed;
    use rpc::{ConnectionKind, Identity};

    use crate::sudo::Sudo;

    /// What is shown, and whether a password could be given meanwhile.
    struct Board(Arc<Sudo>, Mutex<Vec<(Option<String>, bool)>>);

    impl AlertBoard for Board {
        fn show(&self, alert: Option<Alert>) -> Boxed<'_, ()> {
            self.1.lock().push((alert.map(|alert| alert.description), self.0.turn_now().is_ok()));
            Box::pin(async {})
        }
    }

    #[tokio::test]
    async fn people_are_told_until_it_is_met() {
        let (connections, sudo) = (Arc::<Connections>::default(), Arc::new(Sudo::default()));
        let board = Arc::new(Board(sudo.clone(), Mutex::default()));
        let client = connections.register(ConnectionKind::Unix, Identity::Local, None);
        let need = Need::new(connections, board.clone());
        let turn = sudo.turn().await;
        assert!(!need.met(&turn).await, "nothing was asked for");
        need.ask(turn, "Why.").await;
        assert_eq!(need.reasons(), ["Why."]);
        let turn = sudo.turn_now().unwrap();
        assert!(need.met(&turn).await && need.reasons().is_empty());
        need.tell();
        assert_eq!(*board.1.lock(), [(None, false), (Some("Why.".to_owned()), true), (None, false)], "who is told may answer at once");
        let mut frames = Vec::new();
        client.connection.outbox.take(&mut frames, usize::MAX);
        let texts: Vec<String> = frames.iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect();
        let expected = [
            r#""method":"notify_sudo_alert","params":[{"sudo_requested":true,"request_messages":["Why."]}]"#,
            r#""params":["!! The password for sudo is needed: Why."]"#,
            r#"{"sudo_requested":false,"request_messages":[]}"#,
        ];
        assert_eq!(texts.len(), expected.len(), "{texts:?}");
        assert!(texts.iter().zip(expected).all(|(text, expected)| text.contains(expected)), "{texts:?}");
    }
}
