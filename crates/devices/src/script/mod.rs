//! Between templates and the server: rendering with functions that take their time, among them `call_method`.
//!
//! Templates are synchronous and know nothing of this server (crate `template`). [`Scripts::render`] renders one on a thread that may wait;
//! what it calls is answered by its [`Functions`], at once or [`Pending::Later`]. Everything is bounded: renderings at one time, the time of
//! each, its calls, the size of what a call answers; computing and output are bounded by [`template::limits`]. Templates that call nothing
//! slow need none of this and are rendered as they are. Source: document 1 *Templates*, wire/3-devices.md section 1.1.

mod render;
mod server;

pub use render::{CALL_METHOD, Functions, MAX_CALLS, MAX_RENDERINGS, Pending, Rendering, at_once};
pub use server::{MAX_ANSWER, Methods, Scripts};
