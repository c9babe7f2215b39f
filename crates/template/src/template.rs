//! Templates and expressions, compiled.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::error::{Error, Result};
use crate::host::{Context, Entry, Host};
use crate::run::Machine;
use crate::syntax;
use crate::syntax::ast::{Expr, Stmt};

/// A template, ready to be rendered any number of times, also by several threads at once.
#[derive(Clone)]
pub struct Template {
    source: Arc<str>,
    origin: Option<Arc<str>>,
    statements: Arc<[Stmt]>,
}

impl Template {
    /// Compiles the value of an option; white space at its ends is dropped.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Syntax`] with the line within the value.
    pub fn compile(source: &str) -> Result<Self> {
        let source = source.trim();
        Ok(Self { source: source.into(), origin: None, statements: syntax::template(source)?.into() })
    }

    /// A template that is just this text.
    pub(crate) fn plain(text: &str) -> Self {
        Self { source: text.into(), origin: None, statements: [Stmt::Text(text.into())].into() }
    }

    /// Names the option in errors: `[button fan] on_press`.
    #[must_use]
    pub fn of(mut self, origin: &str) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// The text as written in the configuration.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Renders the template; white space at the ends of the result is dropped.
    ///
    /// Blocks while the host does. Kept variables of the context have their new values afterwards, also after an error.
    ///
    /// # Errors
    /// What is wrong, where, without the values of secrets.
    pub fn render(&self, context: &mut Context, host: &mut dyn Host) -> Result<String> {
        let text = carry_out(context, host, |machine| machine.render(&self.statements));
        self.finished(text)
    }

    /// Renders the template if it takes no more than [`crate::limits::MAX_QUICK_STEPS`] steps and [`crate::limits::MAX_QUICK_MEMORY`] bytes, which
    /// is some dozens of microseconds; none otherwise. Then it is to be rendered again, where it may take its time: the host must not have done
    /// anything that counts, and what it logs is logged again. Waking a thread for a usual template costs more than rendering it.
    ///
    /// # Errors
    /// As for [`Template::render`].
    pub fn render_quickly(&self, context: &mut Context, host: &mut dyn Host) -> Option<Result<String>> {
        let mut was_cut = false;
        let text = carry_out(context, host, |machine| {
            machine.heap.hurry();
            let text = machine.render(&self.statements);
            was_cut = machine.heap.is_exhausted();
            text
        });
        (!was_cut).then(|| self.finished(text))
    }

    fn finished(&self, text: Result<String>) -> Result<String> {
        let text = text.map_err(|error| Error { origin: self.origin.clone(), ..error })?;
        Ok(text.trim().to_owned())
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Templates are equal when their sources are.
impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

/// A single expression without braces, such as `payload|fromjson`.
#[derive(Debug, Clone)]
pub struct Expression {
    expr: Arc<Expr>,
}

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Syntax`] with the line within the source.
    pub fn compile(source: &str) -> Result<Self> {
        Ok(Self { expr: Arc::new(syntax::expression(source.trim())?) })
    }

    /// The value of the expression; undefined gives null.
    ///
    /// # Errors
    /// As for [`Template::render`], and for values that JSON does not have.
    pub fn evaluate(&self, context: &mut Context, host: &mut dyn Host) -> Result<Json> {
        carry_out(context, host, |machine| {
            let value = machine.evaluate(&self.expr)?;
            match value {
                crate::run::Value::Undefined(_) => Ok(Json::Null),
                value => machine.heap.export(&value).map_err(|error| error.at(self.expr.line)),
            }
        })
    }
}

fn carry_out<T>(context: &mut Context, host: &mut dyn Host, work: impl FnOnce(&mut Machine<'_>) -> Result<T>) -> Result<T> {
    let mut machine = Machine::new(context, host);
    let mut result = work(&mut machine);
    let mut kept = Vec::new();
    for (name, entry) in &context.entries {
        if let (Entry::Kept(_), Some(value)) = (entry, machine.context_value(name)) {
            match machine.heap.export(&value) {
                Ok(json) => kept.push((name.clone(), json)),
                Err(error) => result = result.and(Err(Error::render(format!("`{name}` cannot be kept: {}", error.message)))),
            }
        }
    }
    for (name, json) in kept {
        context.entries.insert(name, Entry::Kept(json));
    }
    result.map_err(|error| Error { message: context.blot(&error.message), ..error })
}
