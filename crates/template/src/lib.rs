//! The Jinja subset that configurations use.
//!
//! A [`Template`] is compiled once and rendered with a [`Context`]: variables, functions and objects of the caller. Statements stand in `{% %}`,
//! expressions in single braces `{ }`, comments in `{# #}`. The language is described for users in `docs/templates.md`; values follow Python's
//! rules, lists and dictionaries can be changed, and every rendering is bounded by [`limits`].
//!
//! The crate does no I/O. What a template may do beyond computing is what its [`Host`] does; calls block, so a caller with an asynchronous
//! runtime renders on a thread for blocking work and lets its host wait there:
//!
//! ```
//! use serde_json::json;
//! use template::{Answer, Call, Context, Failure, Host, Template};
//!
//! struct Bridge;
//! impl Host for Bridge {
//!     fn call(&mut self, call: &Call<'_>) -> Result<Answer, Failure> {
//!         let (method, _parameters) = call.method()?;
//!         // Here: `handle.block_on(timeout(…, registry.call(method, parameters)))`.
//!         Ok(json!({ "state": method }).into())
//!     }
//! }
//!
//! let template = Template::compile("{% set info = call_method('printer.info') %}State: { info.state }")?.of("[button fan] on_press");
//! let mut context = Context::default().with_function("call_method");
//! assert_eq!(template.render(&mut context, &mut Bridge)?, "State: printer.info");
//! # Ok::<(), template::Error>(())
//! ```
//!
//! Options are declared with [`Template`] (rendered per event) or [`Rendered`] (rendered once, when the configuration is read) as their type.
//!
//! `docs/templates.md` lists the differences from Jinja 2; `tests/jinja.py` compares the table of tests with Jinja 2 itself.

mod error;
mod host;
pub mod limits;
mod option;
mod run;
mod syntax;
mod template;

pub use error::{Error, ErrorKind, Result};
pub use host::{Answer, Call, Context, Failure, Host, NoHost, Object};
pub use option::{Rendered, RenderedPath};
pub use template::{Expression, Template};
