//! Statements.

use std::sync::Arc;

use super::heap::Items;
use super::machine::{BoundMacro, LoopState, Machine};
use super::value::{Key, Value};
use crate::error::{Error, Result};
use crate::syntax::ast::{Expr, For, Macro, Stmt, Target};

impl Machine<'_> {
    /// Carries a whole template out and gives its text.
    pub(crate) fn render(&mut self, statements: &[Stmt]) -> Result<String> {
        self.run(statements)?;
        Ok(std::mem::take(&mut self.out))
    }

    fn run(&mut self, statements: &[Stmt]) -> Result<()> {
        for statement in statements {
            self.descend()?;
            self.statement(statement)?;
            self.ascend();
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Stmt) -> Result<()> {
        match statement {
            Stmt::Text(text) => self.write(text),
            Stmt::Print(expr) => {
                let value = self.evaluate(expr)?;
                self.print(&value).map_err(|error| error.at(expr.line))
            }
            Stmt::Do(expr) => self.evaluate(expr).map(drop),
            Stmt::Set(target, expr) => {
                let value = self.evaluate(expr)?;
                self.assign_to(target, value).map_err(|error| error.at(expr.line))
            }
            Stmt::SetBlock(target, expr, body) => {
                let text = self.capture(|machine| machine.in_block(body))?;
                let value = self.with_captured(text, expr)?;
                self.assign_to(target, value).map_err(|error| error.at(expr.line))
            }
            Stmt::Filter(expr, body) => {
                let text = self.capture(|machine| machine.in_block(body))?;
                let value = self.with_captured(text, expr)?;
                self.print(&value).map_err(|error| error.at(expr.line))
            }
            Stmt::If(arms, otherwise) => self.if_(arms, otherwise),
            Stmt::For(statement) => self.for_(statement),
            Stmt::With(assignments, body) => {
                let mut values = Vec::with_capacity(assignments.len());
                for (target, expr) in assignments {
                    values.push((target, self.evaluate(expr)?));
                }
                self.enter_block();
                for (target, value) in values {
                    self.assign_to(target, value)?;
                }
                self.run(body)?;
                self.leave();
                Ok(())
            }
            Stmt::Macro(definition) => {
                let value = self.bind_macro(definition);
                self.assign(&definition.name, value);
                Ok(())
            }
            Stmt::Call(call, definition) => {
                let caller = self.bind_macro(definition);
                let value = self.call_with_caller(call, caller)?;
                self.print(&value).map_err(|error| error.at(call.line))
            }
        }
    }

    fn print(&mut self, value: &Value) -> Result<()> {
        let text = self.heap.str(value)?;
        self.write(&text)
    }

    fn in_block(&mut self, body: &[Stmt]) -> Result<()> {
        self.enter_block();
        self.run(body)?;
        self.leave();
        Ok(())
    }

    /// What `body` writes, instead of writing it.
    pub(super) fn capture(&mut self, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<Value> {
        let outer = std::mem::take(&mut self.out);
        body(self)?;
        let text = std::mem::replace(&mut self.out, outer);
        self.heap.text(text)
    }

    fn with_captured(&mut self, text: Value, expr: &Expr) -> Result<Value> {
        self.captured.push(text);
        let value = self.evaluate(expr)?;
        self.captured.pop();
        Ok(value)
    }

    fn bind_macro(&mut self, definition: &Arc<Macro>) -> Value {
        let (frame, frame_id) = self.here();
        self.macros.push(BoundMacro { definition: definition.clone(), frame, frame_id });
        Value::Macro(self.macros.len() - 1)
    }

    fn if_(&mut self, arms: &[(Expr, Vec<Stmt>)], otherwise: &[Stmt]) -> Result<()> {
        for (condition, body) in arms {
            let value = self.evaluate(condition)?;
            if self.heap.truth(&value) {
                return self.run(body);
            }
        }
        self.run(otherwise)
    }

    fn for_(&mut self, statement: &For) -> Result<()> {
        let iterable = self.evaluate(&statement.iterable)?;
        let mut items = self.heap.items(&iterable).map_err(|error| error.at(statement.iterable.line))?;
        if let Some(condition) = &statement.condition {
            items = Items::Values(self.chosen(&items, &statement.target, condition)?);
        }
        if items.len() == 0 {
            return self.in_block(&statement.otherwise);
        }
        let number = self.loops.len();
        self.loops.push(LoopState { length: items.len(), ..LoopState::default() });
        let name: Arc<str> = "loop".into();
        for index in 0..items.len() {
            let Some(item) = items.get(index) else { break };
            self.enter_block();
            if let Some(state) = self.loops.get_mut(number) {
                state.index = index;
                state.previous = index.checked_sub(1).and_then(|index| items.get(index));
                state.next = items.get(index + 1);
            }
            self.assign(&name, Value::Loop(number));
            self.assign_to(&statement.target, item).map_err(|error| error.at(statement.iterable.line))?;
            self.step()?;
            self.run(&statement.body)?;
            self.leave();
        }
        self.loops.truncate(number);
        Ok(())
    }

    fn chosen(&mut self, items: &Items, target: &Target, condition: &Expr) -> Result<Vec<Value>> {
        let mut chosen = Vec::new();
        for index in 0..items.len() {
            let Some(item) = items.get(index) else { break };
            self.enter_block();
            self.assign_to(target, item.clone()).map_err(|error| error.at(condition.line))?;
            let value = self.evaluate(condition)?;
            self.leave();
            if self.heap.truth(&value) {
                chosen.push(item);
            }
        }
        Ok(chosen)
    }

    pub(super) fn assign_to(&mut self, target: &Target, value: Value) -> Result<()> {
        match target {
            Target::Name(name) => {
                self.assign(name, value);
                Ok(())
            }
            Target::Member(of, name) => match self.lookup(of)? {
                Value::Namespace(map) => self.heap.insert(map, Key::Text(name.clone()), value),
                other => Err(Error::render(format!("`{of}.{name} =`: expected a namespace, found {}", other.kind()))),
            },
            Target::Tuple(targets) => {
                let values = self.heap.values(&value)?;
                if values.len() != targets.len() {
                    return Err(Error::render(format!("expected {} values to assign, found {}", targets.len(), values.len())));
                }
                for (target, value) in targets.iter().zip(values) {
                    self.assign_to(target, value)?;
                }
                Ok(())
            }
        }
    }

    /// Carries the body of a macro out; variables are those of the new block.
    pub(super) fn run_macro(&mut self, body: &[Stmt]) -> Result<Value> {
        self.capture(|machine| machine.run(body))
    }
}
