//! What is wrong with a template and where. Messages name variables, filters and types, never values: a value may be a secret.

use std::fmt;
use std::sync::Arc;

/// The kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The source is not a template; found when it is compiled.
    Syntax,
    /// An expression cannot be evaluated.
    Render,
    /// A limit of [`crate::limits`] was reached.
    Limit,
    /// The template called `raise_error`; the number is the status it asked for, 400 unless given.
    Raised(u16),
    /// A function of the caller failed with this status.
    Host(u16),
}

/// A fault of a template: `[button fan] on_press, line 3: what was expected`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What kind of fault.
    pub kind: ErrorKind,
    /// The option that holds the template, when known.
    pub origin: Option<Arc<str>>,
    /// Line within the option's value, counted from 1; 0 when no line is to blame.
    pub line: u32,
    /// What was expected.
    pub message: String,
}

/// Result of everything that can go wrong with a template.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, line: u32, message: impl Into<String>) -> Self {
        Self { kind, origin: None, line, message: message.into() }
    }

    pub(crate) fn render(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Render, 0, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, 0, message)
    }

    pub(crate) fn at(mut self, line: u32) -> Self {
        if self.line == 0 {
            self.line = line;
        }
        self
    }

    /// Status for the client that caused the rendering: what the template or the function called asked for, else 500.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self.kind {
            ErrorKind::Raised(status) | ErrorKind::Host(status) => status,
            ErrorKind::Syntax | ErrorKind::Render | ErrorKind::Limit => 500,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.origin, self.line) {
            (Some(origin), 0) => write!(f, "{origin}: ")?,
            (Some(origin), line) => write!(f, "{origin}, line {line}: ")?,
            (None, 0) => {}
            (None, line) => write!(f, "line {line}: ")?,
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
