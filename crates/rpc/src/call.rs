//! Who calls, by which way, in which vocabulary: all that an operation may know about a request.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use protocol::{ApiError, ErrorKind, Form};

use crate::connection::Connection;
use crate::identity::{Identity, Peer};

/// The way by which a call came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// HTTP, also JSON-RPC over HTTP.
    Http,
    /// The primary websocket or the unix socket.
    Socket,
    /// MQTT.
    Mqtt,
    /// From within the service.
    Internal,
}

impl Transport {
    /// Name in error texts.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Socket => "WEBSOCKET",
            Self::Mqtt => "MQTT",
            Self::Internal => "INTERNAL",
        }
    }

    pub(crate) const fn bit(self) -> u8 {
        match self {
            Self::Http => 1,
            Self::Socket => 2,
            Self::Mqtt => 4,
            Self::Internal => 8,
        }
    }
}

/// One call of an operation.
pub struct Call {
    /// Who calls.
    pub identity: Identity,
    /// By which way.
    pub transport: Transport,
    /// Which form of two-form values the caller reads.
    pub form: Form,
    /// Where the caller sits; none on the unix socket.
    pub peer: Option<Peer>,
    /// The persistent connection that the call came over, or names (`connection_id` over HTTP).
    pub connection: Option<Arc<Connection>>,
    /// Kept until the answer is in the connection's queue.
    guards: Mutex<Vec<Box<dyn Send>>>,
}

impl Call {
    /// A call over HTTP.
    #[must_use]
    pub fn http(identity: Identity, form: Form, peer: Option<Peer>) -> Self {
        Self { identity, transport: Transport::Http, form, peer, connection: None, guards: Mutex::default() }
    }

    /// A call over a persistent connection.
    #[must_use]
    pub fn on(connection: &Arc<Connection>) -> Self {
        Self {
            identity: connection.identity(),
            transport: Transport::Socket,
            form: connection.form(),
            peer: connection.peer,
            connection: Some(connection.clone()),
            guards: Mutex::default(),
        }
    }

    /// A call over MQTT, in the form that the topic stands for.
    #[must_use]
    pub fn mqtt(connection: &Arc<Connection>, form: Form) -> Self {
        Self { transport: Transport::Mqtt, form, ..Self::on(connection) }
    }

    /// A call from within the service.
    #[must_use]
    pub fn internal() -> Self {
        Self {
            identity: Identity::Internal,
            transport: Transport::Internal,
            form: Form::Neutral,
            peer: None,
            connection: None,
            guards: Mutex::default(),
        }
    }

    /// The persistent connection of this call.
    ///
    /// # Errors
    /// 400 when the call came without one.
    pub fn connection(&self) -> Result<&Arc<Connection>, ApiError> {
        self.connection.as_ref().ok_or_else(|| ApiError::new(ErrorKind::BadRequest, "No connection associated with this request"))
    }

    /// Keeps `guard` alive until the answer of this call is in the connection's queue; what must not overtake the answer waits for it.
    pub fn hold_until_answered(&self, guard: impl Send + 'static) {
        self.guards.lock().push(Box::new(guard));
    }

    /// Does `work` when the answer of this call is in the connection's queue: notifications about what a call did follow its answer.
    pub fn after_answer(&self, work: impl FnOnce() + Send + 'static) {
        self.hold_until_answered(AfterAnswer(Some(work)));
    }
}

/// Work that waits for the answer.
struct AfterAnswer<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for AfterAnswer<F> {
    fn drop(&mut self) {
        if let Some(work) = self.0.take() {
            work();
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("identity", &self.identity)
            .field("transport", &self.transport)
            .field("form", &self.form)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}
