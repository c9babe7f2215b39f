//! From text to a tree: lexer and parser.

pub(crate) mod ast;
mod expressions;
mod lexer;
mod parser;
mod strings;

pub(crate) use parser::{expression, template};
