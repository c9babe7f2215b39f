//! Persistent connections: websockets and unix-socket peers, who they are, and telling all of them something.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use protocol::{ApiError, Event, Form};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ask::Asked;
use crate::identity::{Identity, Peer};
use crate::outbox::{CloseReason, Outbox};

/// Calls of one connection that may be under way at once.
pub const MAX_PENDING_CALLS: usize = 512;

/// Number of a connection: positive, never reused within a run, below 2^53.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionId(pub u64);

/// What a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionKind {
    /// A primary websocket.
    Websocket,
    /// A peer on the unix socket.
    Unix,
    /// Everybody who calls over MQTT, together. It is in no table: it gets no notifications but the status that was subscribed.
    Mqtt,
}

/// Kinds of clients (document 1, *Identify rules*).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientKind {
    /// A web front end.
    Web,
    /// A phone app.
    Mobile,
    /// A desktop program.
    Desktop,
    /// A screen at the printer.
    Display,
    /// A bot.
    Bot,
    /// A program that offers methods to others.
    Agent,
    /// Anything else.
    Other,
}

/// How a client introduced itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientInfo {
    /// Program name.
    pub name: String,
    /// Program version.
    pub version: String,
    /// Kind.
    pub kind: ClientKind,
    /// Home page.
    pub url: String,
}

/// One persistent connection.
#[derive(Debug)]
pub struct Connection {
    /// Its number.
    pub id: ConnectionId,
    /// What it is.
    pub kind: ConnectionKind,
    /// Where the client sits; none on the unix socket.
    pub peer: Option<Peer>,
    /// What waits to be written to it.
    pub outbox: Arc<Outbox>,
    identity: RwLock<Identity>,
    client: RwLock<Option<ClientInfo>>,
    upstream_form: AtomicBool,
    pending_calls: AtomicUsize,
    pub(crate) asked: Asked,
}

impl Connection {
    /// Who is at the other end.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity.read().clone()
    }

    /// Sets who is at the other end.
    pub fn set_identity(&self, identity: Identity) {
        *self.identity.write() = identity;
    }

    /// True when notifications may be sent to it.
    #[must_use]
    pub fn is_authorised(&self) -> bool {
        self.identity.read().is_authorised()
    }

    /// Which form of two-form values it reads.
    #[must_use]
    pub fn form(&self) -> Form {
        if self.upstream_form.load(Ordering::Relaxed) { Form::Upstream } else { Form::Neutral }
    }

    /// Sets the form of two-form values.
    pub fn set_form(&self, form: Form) {
        self.upstream_form.store(form == Form::Upstream, Ordering::Relaxed);
    }

    /// How the client introduced itself, if it did.
    #[must_use]
    pub fn client(&self) -> Option<ClientInfo> {
        self.client.read().clone()
    }

    /// Counts a call as under way until the guard is dropped; `None` when too many are.
    #[must_use]
    pub fn begin_call(self: &Arc<Self>) -> Option<PendingCall> {
        let before = self.pending_calls.fetch_add(1, Ordering::Relaxed);
        let call = PendingCall(self.clone());
        (before < MAX_PENDING_CALLS).then_some(call)
    }
}

/// A call under way on a connection.
pub struct PendingCall(Arc<Connection>);

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.0.pending_calls.fetch_sub(1, Ordering::Relaxed);
    }
}

type Listener = Box<dyn Fn(&Connection) + Send + Sync>;
type IdentifyListener = Box<dyn Fn(&Arc<Connection>, &ClientInfo) -> Result<(), ApiError> + Send + Sync>;

/// All persistent connections.
#[derive(Default)]
pub struct Connections {
    all: RwLock<HashMap<ConnectionId, Arc<Connection>>>,
    last_id: AtomicU64,
    on_close: Mutex<Vec<Listener>>,
    on_revoke: Mutex<Vec<Listener>>,
    on_identify: Mutex<Vec<IdentifyListener>>,
    default_form: AtomicBool,
}

/// Keeps a connection in the table; dropping it removes the connection and tells those who listen.
pub struct Registered {
    table: Arc<Connections>,
    /// The connection.
    pub connection: Arc<Connection>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.table.all.write().remove(&self.connection.id);
        // First of all: what is still under way for it must see that it is gone.
        self.connection.outbox.close(CloseReason::Gone);
        self.connection.asked.clear();
        for listener in self.table.on_close.lock().iter() {
            listener(&self.connection);
        }
    }
}

impl Connections {
    /// Sets the form of two-form values for callers that do not say which they read.
    pub fn set_default_form(&self, form: Form) {
        self.default_form.store(form == Form::Upstream, Ordering::Relaxed);
    }

    /// The form of two-form values for callers that do not say which they read.
    #[must_use]
    pub fn default_form(&self) -> Form {
        if self.default_form.load(Ordering::Relaxed) { Form::Upstream } else { Form::Neutral }
    }

    /// Adds a connection.
    #[must_use]
    pub fn register(self: &Arc<Self>, kind: ConnectionKind, identity: Identity, peer: Option<Peer>) -> Registered {
        let connection = self.detached(kind, identity, peer);
        self.all.write().insert(connection.id, connection.clone());
        Registered { table: self.clone(), connection }
    }

    /// A connection that is in no table: nobody tells it anything that it did not ask for.
    #[must_use]
    pub fn detached(&self, kind: ConnectionKind, identity: Identity, peer: Option<Peer>) -> Arc<Connection> {
        Arc::new(Connection {
            id: ConnectionId(self.last_id.fetch_add(1, Ordering::Relaxed) + 1),
            kind,
            peer,
            outbox: Arc::default(),
            identity: RwLock::new(identity),
            client: RwLock::new(None),
            upstream_form: AtomicBool::new(self.default_form() == Form::Upstream),
            pending_calls: AtomicUsize::new(0),
            asked: Asked::default(),
        })
    }

    /// Calls `listener` whenever a connection has ended.
    pub fn on_close(&self, listener: impl Fn(&Connection) + Send + Sync + 'static) {
        self.on_close.lock().push(Box::new(listener));
    }

    /// Calls `listener` whenever a connection has lost its identity: what was set up for it in that name must end.
    pub fn on_revoke(&self, listener: impl Fn(&Connection) + Send + Sync + 'static) {
        self.on_revoke.lock().push(Box::new(listener));
    }

    /// Takes the identity of all connections away for which `is_lost` says so: a websocket becomes a stranger's, a peer on the unix socket is
    /// just local again. Their subscriptions end, also those under way. Gives these connections.
    pub fn revoke(&self, is_lost: impl Fn(&Identity) -> bool) -> Vec<Arc<Connection>> {
        let revoked = self.change(|connection, identity| {
            is_lost(identity).then_some(match connection.kind {
                ConnectionKind::Websocket | ConnectionKind::Mqtt => Identity::Stranger,
                ConnectionKind::Unix => Identity::Local,
            })
        });
        for connection in revoked.iter().filter(|connection| !connection.is_authorised()) {
            // A subscription that is still on its way must find that it is not wanted any more.
            connection.outbox.next_subscription();
            // Whoever comes next may introduce itself anew.
            *connection.client.write() = None;
            connection.asked.clear();
            for listener in self.on_revoke.lock().iter() {
                listener(connection);
            }
            connection.outbox.drop_status();
        }
        revoked
    }

    /// Gives connections another identity where `change` has one: the role of a user changed. Gives these connections.
    pub fn change_identity(&self, change: impl Fn(&Identity) -> Option<Identity>) -> Vec<Arc<Connection>> {
        self.change(|_, identity| change(identity))
    }

    fn change(&self, change: impl Fn(&Connection, &Identity) -> Option<Identity>) -> Vec<Arc<Connection>> {
        let mut changed = Vec::new();
        for connection in self.all.read().values() {
            let mut identity = connection.identity.write();
            if let Some(other) = change(connection, &identity) {
                *identity = other;
                drop(identity);
                changed.push(connection.clone());
            }
        }
        changed
    }

    /// Calls `listener` with every client that introduces itself; its error refuses the introduction. It must not ask who the client is.
    pub fn on_identify(&self, listener: impl Fn(&Arc<Connection>, &ClientInfo) -> Result<(), ApiError> + Send + Sync + 'static) {
        self.on_identify.lock().push(Box::new(listener));
    }

    /// Takes down how the client behind a connection introduces itself. One that was refused may try again.
    ///
    /// # Errors
    /// 400 when it did before, and what listeners say.
    pub fn identify(&self, connection: &Arc<Connection>, info: ClientInfo) -> Result<(), ApiError> {
        let mut client = connection.client.write();
        if client.is_some() {
            return Err(ApiError::bad_request("Connection already identified"));
        }
        self.on_identify.lock().iter().try_for_each(|listener| listener(connection, &info))?;
        *client = Some(info);
        Ok(())
    }

    /// The connection with this number.
    #[must_use]
    pub fn get(&self, id: ConnectionId) -> Option<Arc<Connection>> {
        self.all.read().get(&id).cloned()
    }

    /// How many connections there are: websockets and unix-socket peers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.all.read().len()
    }

    /// How many connections `wanted` picks.
    #[must_use]
    pub fn count_where(&self, wanted: impl Fn(&Connection) -> bool) -> usize {
        self.all.read().values().filter(|connection| wanted(connection)).count()
    }

    /// Tells all authorised connections.
    pub fn emit(&self, event: &Event) {
        self.emit_where(event, |_| true);
    }

    /// Tells all authorised connections but one: what an agent causes is no news to it.
    pub fn emit_except(&self, event: &Event, without: ConnectionId) {
        self.emit_where(event, |connection| connection.id != without);
    }

    /// Tells all authorised connections something that has values with two forms: each reads its own.
    pub fn emit_in_form(&self, event: impl Fn(Form) -> Event) {
        for form in [Form::Neutral, Form::Upstream] {
            self.emit_where(&event(form), |connection| connection.form() == form);
        }
    }

    fn emit_where(&self, event: &Event, wanted: impl Fn(&Connection) -> bool) {
        // Made when there is somebody to hear it.
        let frames = LazyCell::new(|| event.frames());
        for connection in self.all.read().values().filter(|connection| connection.is_authorised() && wanted(connection)) {
            connection.outbox.push_all(&frames);
        }
    }

    /// Tells all authorised connections, and `others` as well: those that just lost their identity learn why.
    pub fn emit_also(&self, event: &Event, others: &[Arc<Connection>]) {
        self.emit(event);
        let frames = event.frames();
        for connection in others.iter().filter(|connection| !connection.is_authorised()) {
            connection.outbox.push_all(&frames);
        }
    }

    /// Asks all connections to end.
    pub fn close_all(&self, reason: CloseReason) {
        for connection in self.all.read().values() {
            connection.outbox.close(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Role, User, UserSource};
    use protocol::ErrorKind;

    fn drained(connection: &Connection) -> usize {
        let mut out = Vec::new();
        connection.outbox.take(&mut out, usize::MAX);
        out.len()
    }

    #[test]
    fn strangers_get_no_notifications() {
        let table = Arc::new(Connections::default());
        let stranger = table.register(ConnectionKind::Websocket, Identity::Stranger, None);
        let local = table.register(ConnectionKind::Unix, Identity::Local, None);
        table.emit(&Event::FwhostReady);
        assert_eq!((drained(&stranger.connection), drained(&local.connection)), (0, 2));
    }

    #[test]
    fn a_dropped_connection_leaves_the_table_and_is_told() {
        let table = Arc::new(Connections::default());
        let closed = Arc::new(Mutex::new(Vec::new()));
        let seen = closed.clone();
        table.on_close(move |connection| seen.lock().push(connection.id));
        let registered = table.register(ConnectionKind::Unix, Identity::Local, None);
        let id = registered.connection.id;
        assert!(table.get(id).is_some());
        drop(registered);
        assert!(table.get(id).is_none());
        assert_eq!(*closed.lock(), [id]);
    }

    #[test]
    fn a_revoked_connection_is_a_strangers_and_its_subscription_ends() {
        let table = Arc::new(Connections::default());
        let user = |name: &str| {
            Identity::User(Arc::new(User { name: name.into(), source: UserSource::Core, role: Role::Admin, session: "s".into() }))
        };
        let (anna, bob) =
            (table.register(ConnectionKind::Websocket, user("anna"), None), table.register(ConnectionKind::Websocket, user("bob"), None));
        let local = table.register(ConnectionKind::Unix, user("anna"), None);
        let ended = Arc::new(Mutex::new(Vec::new()));
        let seen = ended.clone();
        table.on_revoke(move |connection| seen.lock().push(connection.id));
        let subscription = anna.connection.outbox.next_subscription();
        let revoked = table.revoke(|identity| identity.name() == Some("anna"));
        assert_eq!(revoked.len(), 2);
        assert_eq!((anna.connection.identity(), local.connection.identity()), (Identity::Stranger, Identity::Local));
        assert_eq!((bob.connection.identity(), *ended.lock() == [anna.connection.id]), (user("bob"), true));
        assert!(!anna.connection.outbox.is_current(subscription));
        table.emit_also(&Event::FwhostReady, &revoked);
        table.emit(&Event::FwhostReady);
        assert_eq!((drained(&anna.connection), drained(&bob.connection), drained(&local.connection)), (2, 4, 4));
    }

    #[test]
    fn identify_works_once() {
        let table = Arc::new(Connections::default());
        let one = table.register(ConnectionKind::Unix, Identity::Local, None);
        let info = ClientInfo { name: "a".into(), version: "1".into(), kind: ClientKind::Bot, url: String::new() };
        table.on_identify(|_, info| if info.name == "b" { Err(ApiError::forbidden("b")) } else { Ok(()) });
        let refused = ClientInfo { name: "b".into(), ..info.clone() };
        assert_eq!(table.identify(&one.connection, refused).unwrap_err().kind, ErrorKind::Forbidden);
        table.identify(&one.connection, info.clone()).unwrap();
        assert_eq!(table.identify(&one.connection, info).unwrap_err().kind, ErrorKind::BadRequest);
    }

    #[test]
    fn calls_under_way_are_bounded() {
        let table = Arc::new(Connections::default());
        let one = table.register(ConnectionKind::Unix, Identity::Local, None);
        let calls: Vec<_> = (0..MAX_PENDING_CALLS).map(|_| one.connection.begin_call().unwrap()).collect();
        assert!(one.connection.begin_call().is_none());
        drop(calls);
        assert!(one.connection.begin_call().is_some());
    }
}
