//! HTTP/1: one listener loop, one function from request to answer.

mod answer;
mod arguments;
mod body;
mod cameras;
mod cors;
mod download;
mod encoding;
mod listener;
mod page;
mod range;
mod routes;
mod site;
mod tus;
mod upload;

pub(crate) use arguments::query_value;
pub use body::Body;
pub use listener::{bind, serve};
pub use page::{Asset, Page};
pub use routes::DESCRIPTION;
pub use site::Site;

/// A request as hyper gives it.
pub type Request = http::Request<hyper::body::Incoming>;

/// An answer as hyper takes it.
pub type Response = http::Response<Body>;
