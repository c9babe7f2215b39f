//! What the caller puts into a template: variables, functions and objects, and who answers when they are called.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

/// Answers calls of functions and objects that the caller put into the [`Context`].
///
/// Calls block: render on a thread that may wait and let the implementation wait for asynchronous work, with a time limit of its own.
/// Values travel as JSON; what a template gets is a copy.
pub trait Host {
    /// A function of the context or a method of an object is called.
    ///
    /// # Errors
    /// Ends the rendering; the status reaches [`crate::Error::status`].
    fn call(&mut self, call: &Call<'_>) -> Result<Answer, Failure>;

    /// An attribute of an object is read; `None` makes it undefined.
    ///
    /// # Errors
    /// Ends the rendering.
    fn attribute(&mut self, object: &Object, name: &str) -> Result<Option<Answer>, Failure> {
        let _ = (object, name);
        Ok(None)
    }

    /// The template called `log_debug`. Texts of the secrets file are already blotted out.
    fn log_debug(&mut self, message: &str) {
        let _ = message;
    }

    /// Asked every [`crate::limits::STEPS_BETWEEN_CHECKS`] steps whether rendering may go on: the place for a time limit.
    ///
    /// # Errors
    /// Ends the rendering.
    fn check(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// For templates whose context has no functions.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn call(&mut self, call: &Call<'_>) -> Result<Answer, Failure> {
        Err(Failure::new(500, format!("`{}` cannot be called here", call.name)))
    }
}

/// A call from a template.
#[derive(Debug)]
pub struct Call<'a> {
    /// The object whose method is called; `None` for a function of the context.
    pub object: Option<&'a Object>,
    /// Name of the function or method.
    pub name: &'a str,
    /// Arguments by position.
    pub positional: Vec<Json>,
    /// Arguments by name.
    pub named: Map<String, Json>,
}

impl Call<'_> {
    /// Reads the arguments of `call_method(method, name=value, …)` or `call_method(method, {…})`: the method and its parameters
    /// (Document 1, Templates).
    ///
    /// # Errors
    /// 400 when the first argument is no text, or parameters are no mapping.
    pub fn method(&self) -> Result<(&str, Map<String, Json>), Failure> {
        let expected = || Failure::new(400, "call_method: expected the name of a method and its arguments by name, or one dictionary");
        let mut parameters = match self.positional.as_slice() {
            [Json::String(_)] => Map::new(),
            [Json::String(_), Json::Object(parameters)] => parameters.clone(),
            [Json::String(_), Json::Null] => Map::new(),
            _ => return Err(expected()),
        };
        parameters.extend(self.named.clone());
        let method = self.positional.first().and_then(Json::as_str).ok_or_else(expected)?;
        Ok((method, parameters))
    }

    /// The arguments as the values of `names`, by position or by name; what is not given is `None`.
    ///
    /// # Errors
    /// 400 for too many arguments, an unknown name, or one that is given twice.
    pub fn arguments<const N: usize>(&self, names: [&str; N]) -> Result<[Option<&Json>; N], Failure> {
        let refuse = |what: String| Err(Failure::new(400, format!("{}: {what}", self.name)));
        if self.positional.len() > N {
            return refuse(format!("expected at most {N} arguments"));
        }
        let mut values = [None; N];
        for (slot, value) in values.iter_mut().zip(&self.positional) {
            *slot = Some(value);
        }
        for (name, value) in &self.named {
            match names.iter().position(|known| known == name) {
                Some(index) if values[index].is_none() => values[index] = Some(value),
                Some(_) => return refuse(format!("argument `{name}` is given twice")),
                None => return refuse(format!("there is no argument `{name}`")),
            }
        }
        Ok(values)
    }
}

/// What a call or an attribute gives.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A value.
    Value(Json),
    /// An object of the caller's, such as a response.
    Object(Object),
}

impl From<Json> for Answer {
    fn from(value: Json) -> Self {
        Self::Value(value)
    }
}

/// Something that stays with the caller; the template calls its methods and reads its attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The caller's number for it.
    pub id: u64,
    /// What it is, for messages: `http_request`.
    pub kind: &'static str,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Status for the client, as in HTTP.
    pub status: u16,
    /// What went wrong.
    pub message: String,
}

impl Failure {
    /// A failure with a status, as in HTTP.
    #[must_use]
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }
}

/// The names that a template can use.
#[derive(Clone, Default)]
pub struct Context {
    pub(crate) entries: IndexMap<Arc<str>, Entry>,
    pub(crate) secrets: Arc<Map<String, Json>>,
}

#[derive(Debug, Clone)]
pub(crate) enum Entry {
    Value(Json),
    Kept(Json),
    Function,
    Object(Object),
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("names", &self.entries.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

impl Context {
    /// A context with the variable `secrets` and nothing else. Its texts are blotted out in error messages and in the log.
    #[must_use]
    pub fn new(secrets: &config::Secrets) -> Self {
        Self { entries: IndexMap::new(), secrets: Arc::new(secrets.as_map().clone()) }
    }

    /// Adds a variable. Changes that the template makes to it are lost.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: impl Into<Json>) {
        self.entries.insert(name.into(), Entry::Value(value.into()));
    }

    /// Adds a variable whose changes are kept: read them with [`Self::kept`] after rendering.
    #[must_use]
    pub fn with_kept(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.entries.insert(name.into(), Entry::Kept(value.into()));
        self
    }

    /// The present value of a variable of [`Self::with_kept`].
    #[must_use]
    pub fn kept(&self, name: &str) -> Option<&Json> {
        match self.entries.get(name) {
            Some(Entry::Kept(value)) => Some(value),
            _ => None,
        }
    }

    /// Adds a function; [`Host::call`] answers it.
    #[must_use]
    pub fn with_function(mut self, name: &str) -> Self {
        self.entries.insert(name.into(), Entry::Function);
        self
    }

    /// Adds an object; [`Host::call`] and [`Host::attribute`] answer for it.
    #[must_use]
    pub fn with_object(mut self, name: &str, object: Object) -> Self {
        self.entries.insert(name.into(), Entry::Object(object));
        self
    }

    /// `text` with every text of the secrets file replaced by `***`; very short ones only where they stand alone.
    pub(crate) fn blot(&self, text: &str) -> String {
        let mut secrets = Vec::new();
        self.secrets.values().for_each(|value| leaves(value, &mut secrets));
        secrets.sort_by_key(|secret: &String| std::cmp::Reverse(secret.len()));
        secrets.iter().fold(text.to_owned(), |text, secret| blot(&text, secret))
    }
}

/// Shortest secret in bytes that is also blotted out within words: `me` would take parts of every sentence.
const SHORTEST_WITHIN_WORDS: usize = 4;

fn blot(text: &str, secret: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(secret) {
        let (before, after) = (&rest[..at], &rest[at + secret.len()..]);
        let in_word = out.chars().chain(before.chars()).next_back().is_some_and(char::is_alphanumeric)
            || after.chars().next().is_some_and(char::is_alphanumeric);
        out.push_str(before);
        out.push_str(if in_word && secret.len() < SHORTEST_WITHIN_WORDS { secret } else { "***" });
        rest = after;
    }
    out + rest
}

fn leaves(value: &Json, found: &mut Vec<String>) {
    match value {
        Json::String(text) if !text.is_empty() => found.push(text.clone()),
        Json::Number(number) => found.push(number.to_string()),
        Json::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Json::Object(members) => members.values().for_each(|member| leaves(member, found)),
        Json::String(_) | Json::Null | Json::Bool(_) => {}
    }
}
