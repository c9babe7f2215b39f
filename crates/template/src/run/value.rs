//! Values while a template runs.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::host::Object;

/// A value. Lists and dictionaries are numbers of places on the [`super::heap::Heap`], so that copies of a value share their content as in Python.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Nothing is known by this name; the text is the name, where there is one.
    Undefined(Option<Arc<str>>),
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
    List(usize),
    Tuple(usize),
    Dict(usize),
    Namespace(usize),
    Range(Range),
    /// The `loop` of a `for`.
    Loop(usize),
    Macro(usize),
    Builtin(Builtin),
    /// A function of the caller.
    Function(Arc<str>),
    Object(Object),
}

/// Numbers with a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: i64,
    pub(crate) step: i64,
    pub(crate) length: usize,
}

impl Range {
    pub(crate) fn get(&self, index: usize) -> Option<i64> {
        let offset = i64::try_from(index).ok().filter(|_| index < self.length)?;
        self.start.checked_add(self.step.checked_mul(offset)?)
    }
}

/// Functions that every template has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builtin {
    Range,
    Dict,
    Namespace,
    RaiseError,
    LogDebug,
}

/// Dictionaries keep their order.
pub(crate) type Map = IndexMap<Key, Value>;

/// What can be a key. `1`, `1.0` and `true` are the same key, as in Python.
#[derive(Debug, Clone)]
pub(crate) enum Key {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
    Tuple(Vec<Key>),
}

impl Key {
    /// The whole number that this key equals.
    fn whole(&self) -> Option<i64> {
        match self {
            Self::Bool(value) => Some(i64::from(*value)),
            Self::Int(value) => Some(*value),
            // Within this range every whole float is an exact integer.
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(*value as i64),
            _ => None,
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Tuple(a), Self::Tuple(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits() || a == b,
            _ => matches!((self.whole(), other.whole()), (Some(a), Some(b)) if a == b),
        }
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if let Some(whole) = self.whole() {
            return (1, whole).hash(state);
        }
        match self {
            Self::Float(value) => (2, value.to_bits()).hash(state),
            Self::Text(text) => (3, text).hash(state),
            Self::Tuple(parts) => (4, parts).hash(state),
            Self::None | Self::Bool(_) | Self::Int(_) => 0.hash(state),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl Value {
    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Undefined(_) => "an undefined value",
            Self::None => "none",
            Self::Bool(_) => "true or false",
            Self::Int(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Tuple(_) => "a tuple",
            Self::Dict(_) => "a dictionary",
            Self::Namespace(_) => "a namespace",
            Self::Range(_) => "a range",
            Self::Loop(_) => "`loop`",
            Self::Macro(_) => "a macro",
            Self::Builtin(_) | Self::Function(_) => "a function",
            Self::Object(object) => object.kind,
        }
    }

    /// As a number for arithmetic: truth counts as 0 and 1.
    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bool(value) => Some(i64::from(*value)),
            _ => None,
        }
    }

    /// As a floating-point number.
    pub(crate) fn as_float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            other => other.as_int().map(|value| value as f64),
        }
    }
}
