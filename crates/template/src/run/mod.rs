//! Carries a template out.

mod arguments;
mod builtins;
mod calls;
mod expressions;
mod filters;
mod format;
mod heap;
mod json;
mod lists;
mod machine;
mod methods;
mod number;
mod operators;
mod parse_json;
mod percent;
mod statements;
mod tests;
mod text;
mod text_rules;
mod value;

pub(crate) use filters::{FilterFn, filter_named};
pub(crate) use machine::Machine;
pub(crate) use tests::{TestFn, test_named};
pub(crate) use value::Value;
