//! Operations, calls, connections: how every request finds its operation and how every client is told what happens.
//!
//! Components declare operations in a [`Registry`]; transports look them up and never know which component answers. A [`Call`] is all that an
//! operation knows about its caller. Notifications go to [`Connections`]; each connection drains its own [`Outbox`].

pub mod args;
pub mod ask;
pub mod audit;
pub mod call;
pub mod connection;
pub mod contract;
mod decode;
pub mod dispatch;
pub mod identity;
pub mod operation;
pub mod outbox;
mod pattern;
pub mod pictures;
pub mod registry;
mod table;
pub mod transfer;

pub use args::{ArgValue, Arguments};
pub use ask::{AskAnswer, Asking};
pub use audit::{Audit, Deed};
pub use call::{Call, Transport};
pub use connection::{ClientInfo, ClientKind, Connection, ConnectionId, ConnectionKind, Connections};
pub use decode::decode;
pub use dispatch::{Dispatcher, Origin};
pub use identity::{Access, Identity, KeyHolder, Peer, Role, User, UserSource};
pub use outbox::{CloseReason, Outbox, StatusHold};
pub use pattern::Captured;
pub use registry::{Answer, DynamicOperations, Operation, Operations, Outcome, Registry, Rendered, UploadRoute, Verb};
