//! Lines to the console, with the prefixes that tell information from errors (wire document 5, section 6.3).

use super::{Effect, Model};

impl Model {
    /// Adds a console line.
    pub(super) fn respond(&mut self, text: impl Into<String>) {
        self.effects.push(Effect::Output(text.into()));
    }

    /// Adds an information text: every line gets its prefix.
    pub(super) fn respond_info(&mut self, text: &str) {
        let lines: Vec<String> = text.trim().lines().map(|l| format!("// {}", l.trim())).collect();
        self.respond(lines.join("\n"));
    }

    /// Adds an error text: all lines as information if there are several, then the first as error.
    pub(super) fn respond_error(&mut self, text: &str) {
        let mut lines = text.trim().lines();
        let first = lines.next().unwrap_or("").to_owned();
        if lines.next().is_some() {
            self.respond_info(text);
        }
        self.respond(format!("!! {}", first.trim()));
    }
}
