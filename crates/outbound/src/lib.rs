//! Clients to elsewhere: one HTTP client for the whole server, one for [`mqtt`], and one that asks directories of users ([`ldap`]).
//!
//! A [`Request`] says what to ask for and within which limits; [`Client::send`] answers with a [`Response`] whose body is complete and
//! bounded, or with an [`OutboundError`]. Nothing here waits for ever: connecting, the whole exchange, the size of the body, the number of
//! redirects and the number of exchanges at one time all have limits. Cookies are not kept, bodies are not unpacked, proxies are not used.
//!
//! ```no_run
//! # async fn example() -> Result<(), outbound::OutboundError> {
//! use std::time::Duration;
//! use outbound::{Client, Request};
//!
//! let client = Client::new("Bowsprit/1.0");
//! let answer = client.send(Request::get("http://127.0.0.1/feed.xml")?.timeout(Duration::from_secs(5)).max_body(64 * 1024)).await?;
//! println!("{} {} bytes", answer.status, answer.body.len());
//! # Ok(()) }
//! ```

mod address;
pub mod chance;
mod client;
mod error;
pub mod ldap;
pub mod mqtt;
pub mod own;
pub mod redirect;
mod request;
mod response;
mod retry;
mod tls;

pub use address::parse_url;
pub use client::{CONNECT_TIMEOUT, Client, MAX_EXCHANGES};
pub use error::OutboundError;
pub use http::{Method, header};
pub use request::{DEFAULT_MAX_BODY, DEFAULT_TIMEOUT, MAX_REDIRECTS, Reach, Request};
pub use reqwest::Url;
pub use response::{Incoming, Response, Validators};
pub use retry::Retry;
