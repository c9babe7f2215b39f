//! The one error that clients see, and its two mappings: HTTP status and JSON-RPC code.
//!
//! Components choose a kind and write a text that names the offending field and what was expected; no component writes a number.
//! Sources: document 1 *Errors*, wire/1-core.md sections 1.8, 3.2 and 3.4, wire/4-clients.md section 6.

use serde_json::value::RawValue;

/// What went wrong, from the caller's point of view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// An argument is missing or has the wrong type. HTTP 400, JSON-RPC -32602.
    Argument,
    /// The request cannot be carried out as asked. 400 in both.
    BadRequest,
    /// The caller is not known or not allowed to know. HTTP 401, JSON-RPC -32602 (clients compare it).
    Unauthorized,
    /// The caller is known and may not do this. 403.
    Forbidden,
    /// The thing asked for does not exist. HTTP 404, JSON-RPC -32601 (clients compare it).
    NotFound,
    /// The operation does not exist for this verb or target. 405.
    NotAllowed,
    /// Something else is under way. 409.
    Conflict,
    /// More bytes than the limit allows. 413.
    TooLarge,
    /// A range that the file does not have. 416.
    RangeNotSatisfiable,
    /// The content does not match its checksum. 422.
    Checksum,
    /// An agent answered with an error, which is carried as data. 424.
    Agent,
    /// The caller has too much under way. 429.
    TooMany,
    /// A fault of ours; the cause is in the log. 500.
    Internal,
    /// A part that is needed is not there now. 503.
    Unavailable,
    /// A part that is needed did not answer in time. 504.
    Timeout,
    /// The disk cannot hold it. 507.
    Storage,
    /// A queue on the way out is full. 529.
    Overloaded,
}

/// JSON-RPC: the text was not JSON.
pub const RPC_PARSE_ERROR: i32 = -32700;
/// JSON-RPC: JSON, but no request.
pub const RPC_INVALID_REQUEST: i32 = -32600;
/// JSON-RPC: no such method, or the thing asked for does not exist.
pub const RPC_NOT_FOUND: i32 = -32601;
/// JSON-RPC: bad arguments, or not authorised.
pub const RPC_INVALID_PARAMS: i32 = -32602;

impl ErrorKind {
    /// The HTTP status of this kind.
    #[must_use]
    pub fn http_status(self) -> u16 {
        match self {
            Self::Argument | Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::NotAllowed => 405,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::RangeNotSatisfiable => 416,
            Self::Checksum => 422,
            Self::Agent => 424,
            Self::TooMany => 429,
            Self::Internal => 500,
            Self::Unavailable => 503,
            Self::Timeout => 504,
            Self::Storage => 507,
            Self::Overloaded => 529,
        }
    }

    /// The JSON-RPC code of this kind: 401, 404 and argument faults have codes of the standard, all others are the HTTP status.
    #[must_use]
    pub fn rpc_code(self) -> i32 {
        match self {
            Self::NotFound => RPC_NOT_FOUND,
            Self::Unauthorized | Self::Argument => RPC_INVALID_PARAMS,
            other => i32::from(other.http_status()),
        }
    }
}

/// An error for a client: a kind and a text that a person can act on.
#[derive(Debug, Clone)]
pub struct ApiError {
    /// Decides status and code.
    pub kind: ErrorKind,
    /// Shown to people by the front ends.
    pub message: String,
    /// Further data for JSON-RPC callers (`error.data`), for example an agent's own error object.
    pub data: Option<Box<RawValue>>,
}

impl ApiError {
    /// An error of the given kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), data: None }
    }

    /// A missing or malformed argument; the text names it.
    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Argument, message)
    }

    /// A request that cannot be carried out as asked.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::BadRequest, message)
    }

    /// The text that front ends compare to decide that a login is needed.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(ErrorKind::Unauthorized, "Unauthorized")
    }

    /// A known caller without the right.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, message)
    }

    /// Something that does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// The text that clients compare for an unknown method.
    #[must_use]
    pub fn method_not_found() -> Self {
        Self::new(ErrorKind::NotFound, "Method not found")
    }

    /// A needed part is absent.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// A fault of ours. The text must be safe to show; log the cause where it happened.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// The HTTP body: `{"error":{"code":…,"message":…}}`.
    #[must_use]
    pub fn http_body(&self) -> Vec<u8> {
        http_error_body(self.kind.http_status(), &self.message)
    }
}

/// The HTTP error body for a status and a text.
#[must_use]
pub fn http_error_body(status: u16, message: &str) -> Vec<u8> {
    let mut body = format!("{{\"error\":{{\"code\":{status},\"message\":").into_bytes();
    crate::envelope::write_string(&mut body, message);
    body.extend_from_slice(b"}}");
    body
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

/// What nearly every operation returns.
pub type ApiResult<T> = Result<T, ApiError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_clients_compare() {
        assert_eq!(ApiError::unauthorized().kind.rpc_code(), -32602);
        assert_eq!(ApiError::unauthorized().kind.http_status(), 401);
        assert_eq!(ApiError::method_not_found().kind.rpc_code(), -32601);
        assert_eq!(ApiError::unavailable("Klippy Disconnected").kind.rpc_code(), 503);
        assert_eq!(ApiError::argument("x").kind.rpc_code(), -32602);
        assert_eq!(ApiError::argument("x").kind.http_status(), 400);
    }

    #[test]
    fn body_escapes_the_text() {
        let body = ApiError::not_found("a \"b\"\n").http_body();
        assert_eq!(String::from_utf8(body).unwrap(), r#"{"error":{"code":404,"message":"a \"b\"\n"}}"#);
    }
}
