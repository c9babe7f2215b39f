//! The state of one rendering.

use std::collections::HashMap;
use std::sync::Arc;

use super::heap::Heap;
use super::value::{Builtin, Map, Value};
use crate::error::{Error, ErrorKind, Result};
use crate::host::{Answer, Context, Entry, Failure, Host};
use crate::limits::{MAX_OUTPUT, MAX_RUN_DEPTH, STEPS_BETWEEN_CHECKS};
use crate::syntax::ast::Macro;

/// Carries one template out.
pub(crate) struct Machine<'r> {
    pub(crate) heap: Heap,
    pub(crate) host: &'r mut dyn Host,
    pub(crate) context: &'r Context,
    pub(super) frames: Vec<Frame>,
    frames_made: u64,
    pub(super) loops: Vec<LoopState>,
    pub(super) macros: Vec<BoundMacro>,
    /// What `Captured` stands for; the innermost last.
    pub(super) captured: Vec<Value>,
    pub(super) out: String,
    depth: usize,
    checked: usize,
}

/// Variables of a block; looked for in the parent when not here.
pub(super) struct Frame {
    id: u64,
    parent: Option<usize>,
    names: HashMap<Arc<str>, Value>,
}

/// A macro and the block it was defined in.
#[derive(Clone)]
pub(super) struct BoundMacro {
    pub(super) definition: Arc<Macro>,
    pub(super) frame: usize,
    pub(super) frame_id: u64,
}

/// What `loop` tells.
#[derive(Default)]
pub(super) struct LoopState {
    pub(super) index: usize,
    pub(super) length: usize,
    pub(super) previous: Option<Value>,
    pub(super) next: Option<Value>,
    pub(super) seen: Option<Vec<Value>>,
}

impl<'r> Machine<'r> {
    /// A machine with the variables of the context. Those that no template asks for cost nothing: see [`Self::lookup`].
    pub(crate) fn new(context: &'r Context, host: &'r mut dyn Host) -> Self {
        let mut machine = Self {
            heap: Heap::default(),
            host,
            context,
            frames: Vec::new(),
            frames_made: 0,
            loops: Vec::new(),
            macros: Vec::new(),
            captured: Vec::new(),
            out: String::new(),
            depth: 0,
            checked: 0,
        };
        machine.enter(None);
        machine
    }

    /// The present value of a variable of the context, if the template has used it.
    pub(crate) fn context_value(&self, name: &str) -> Option<Value> {
        self.frames.first().and_then(|frame| frame.names.get(name)).cloned()
    }

    /// Opens a block of variables.
    pub(super) fn enter(&mut self, parent: Option<usize>) {
        self.frames_made += 1;
        self.frames.push(Frame { id: self.frames_made, parent, names: HashMap::new() });
    }

    /// Opens a block within the present one.
    pub(super) fn enter_block(&mut self) {
        self.enter(Some(self.frames.len() - 1));
    }

    pub(super) fn leave(&mut self) {
        self.frames.pop();
    }

    /// Number and id of the present block.
    pub(super) fn here(&self) -> (usize, u64) {
        let last = self.frames.len() - 1;
        (last, self.frames[last].id)
    }

    pub(super) fn is_alive(&self, frame: usize, id: u64) -> bool {
        self.frames.get(frame).is_some_and(|frame| frame.id == id)
    }

    pub(super) fn assign(&mut self, name: &Arc<str>, value: Value) {
        if let Some(frame) = self.frames.last_mut() {
            frame.names.insert(name.clone(), value);
        }
    }

    /// The value of a name.
    pub(super) fn lookup(&mut self, name: &Arc<str>) -> Result<Value> {
        let mut at = Some(self.frames.len() - 1);
        while let Some(frame) = at.map(|at| &self.frames[at]) {
            if let Some(value) = frame.names.get(name) {
                return Ok(value.clone());
            }
            at = frame.parent;
        }
        let context = self.context;
        let value = match (context.entries.get(name), &**name) {
            (Some(Entry::Value(json) | Entry::Kept(json)), _) => self.heap.import(json)?,
            (Some(Entry::Function), _) => return Ok(Value::Function(name.clone())),
            (Some(Entry::Object(object)), _) => return Ok(Value::Object(object.clone())),
            (None, "secrets") => {
                let members = context.secrets.iter();
                let members = members.map(|(name, value)| Ok((super::value::Key::Text(name.as_str().into()), self.heap.import(value)?)));
                let members = members.collect::<Result<Map>>()?;
                self.heap.dict(members)?
            }
            (None, "range") => return Ok(Value::Builtin(Builtin::Range)),
            (None, "dict") => return Ok(Value::Builtin(Builtin::Dict)),
            (None, "namespace") => return Ok(Value::Builtin(Builtin::Namespace)),
            (None, "raise_error") => return Ok(Value::Builtin(Builtin::RaiseError)),
            (None, "log_debug") => return Ok(Value::Builtin(Builtin::LogDebug)),
            (None, _) => return Ok(Value::Undefined(Some(name.clone()))),
        };
        self.frames[0].names.insert(name.clone(), value.clone());
        Ok(value)
    }

    /// Counts a step and, from time to time, asks the host whether to go on.
    pub(super) fn step(&mut self) -> Result<()> {
        self.heap.spend(1)?;
        if self.heap.steps - self.checked >= STEPS_BETWEEN_CHECKS {
            self.checked = self.heap.steps;
            self.host.check().map_err(failed)?;
        }
        Ok(())
    }

    /// Counts a step and goes one level deeper.
    pub(super) fn descend(&mut self) -> Result<()> {
        self.step()?;
        self.depth += 1;
        if self.depth > MAX_RUN_DEPTH { Err(Error::limit("macros call each other too deeply")) } else { Ok(()) }
    }

    pub(super) fn ascend(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn write(&mut self, text: &str) -> Result<()> {
        if self.out.len() + text.len() > MAX_OUTPUT {
            return Err(Error::limit(format!("the output has more than {MAX_OUTPUT} bytes")));
        }
        self.out.push_str(text);
        Ok(())
    }

    /// What the caller answered, as a value.
    pub(super) fn answered(&mut self, answer: Answer) -> Result<Value> {
        match answer {
            Answer::Value(json) => self.heap.import(&json),
            Answer::Object(object) => Ok(Value::Object(object)),
        }
    }
}

/// A failure of the caller as an error.
pub(super) fn failed(failure: Failure) -> Error {
    Error::new(ErrorKind::Host(failure.status), 0, failure.message)
}
