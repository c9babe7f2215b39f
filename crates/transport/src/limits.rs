//! Limits of the edge, each with its reason. wire/1-core.md section 8.13 has the incumbent's.

use std::time::Duration;

/// Body of a request that is no upload, from an authorised caller.
pub const MAX_BODY: usize = 50 * 1024 * 1024;

/// Body of a request from a stranger: enough for a login, useless for filling memory.
pub const MAX_STRANGER_BODY: usize = 64 * 1024;

/// Head of a request: request line and all headers.
pub const MAX_HEAD: usize = 64 * 1024;

/// Headers in one request.
pub const MAX_HEADERS: usize = 100;

/// HTTP connections open at once, websockets included.
pub const MAX_TCP_CONNECTIONS: usize = 2048;

/// Connections by TLS that may be open at once beside all websockets that the owner allows. They hold more memory each than others.
pub const MAX_TLS_BESIDE_WEBSOCKETS: usize = 128;

/// Connections of one port that may be on their way: not secured yet, or without a place. The oldest one gives way to the next, so that nobody
/// keeps others out by connecting and staying silent. More than the clients that usually come back at the same moment after a restart.
pub const MAX_ARRIVING: usize = 512;

/// A head must arrive within this time; an idle kept-alive connection is closed after it.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(75);

/// The next piece of a body must arrive within this time.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes that we sent must be acknowledged within this time, in milliseconds; half-open peers end here.
pub const TCP_USER_TIMEOUT_MS: u32 = 60_000;

/// Incoming websocket message.
pub const MAX_WEBSOCKET_MESSAGE: usize = 10 * 1024 * 1024;

/// Message of a stranger's websocket: enough for identify and login.
pub const MAX_STRANGER_MESSAGE: usize = 64 * 1024;

/// Incoming message on the unix socket.
pub const MAX_UNIX_MESSAGE: usize = 20 * 1024 * 1024;

/// Peers on the unix socket at once.
pub const MAX_UNIX_CONNECTIONS: usize = 128;

/// Websockets of strangers open at once, beside the configured limit for all websockets.
pub const MAX_STRANGERS: usize = 32;

/// Of these, websockets from one address: nobody keeps all others from logging in.
pub const MAX_STRANGERS_PER_ADDRESS: usize = 8;

/// A websocket is closed when nobody has logged in on it for this time: long enough to type a password.
pub const STRANGER_TIMEOUT: Duration = Duration::from_secs(180);

/// Buffer for reading one connection; every idle connection keeps it.
pub const READ_BUFFER: usize = 4 * 1024;

/// Messages handled from one connection before what they caused is written.
pub const READ_BATCH: usize = 64;

/// Bytes waiting for a connection from which on they are written before anything more is read from it.
pub const WRITE_FIRST: usize = 256 * 1024;

/// Head of one part of a multipart body, and what precedes it.
pub const MAX_FORM_HEAD: usize = 256 * 1024;

/// Messages written to one connection before it is read again.
pub const WRITE_BATCH: usize = 64;

/// We ping a websocket after this much time.
pub const PING_INTERVAL: Duration = Duration::from_secs(10);

/// A websocket from which nothing came for this time is dead.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(35);

/// A connection that does not take its messages for this time is closed.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time to say goodbye to a peer.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Time that a connection gets for the request under way when the server stops.
pub const STOP_GRACE: Duration = Duration::from_secs(1);

/// Text part of a multipart upload.
pub const MAX_FORM_FIELD: u64 = 64 * 1024;

/// What a client may say of an upload that can be continued, in its header.
pub const MAX_UPLOAD_METADATA: usize = 16 * 1024;

/// Piece in which files are read for sending.
pub const DOWNLOAD_PIECE: usize = 128 * 1024;
