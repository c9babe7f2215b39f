//! Objects on the bed that can be left out of a print.

use serde_json::{Map, Value, json};

/// Objects kept per print.
pub(super) const MAX_OBJECTS: usize = 1000;

/// State of the `exclude_object` object. Names are in capitals.
#[derive(Debug, Clone, Default)]
pub(super) struct Exclude {
    /// Defined objects: name, optional centre and polygon.
    pub(super) objects: Vec<Map<String, Value>>,
    /// Names of the left-out ones.
    pub(super) excluded: Vec<String>,
    /// Object being printed.
    pub(super) current: Option<String>,
}

impl Exclude {
    /// Moves are being skipped.
    pub(super) fn skipping(&self) -> bool {
        self.current.as_ref().is_some_and(|name| self.excluded.contains(name))
    }

    /// Adds or replaces an object, keeping them sorted by name.
    pub(super) fn define(&mut self, name: &str, details: Map<String, Value>) {
        let mut object = details;
        object.insert("name".to_owned(), json!(name));
        self.objects.retain(|known| known.get("name") != object.get("name"));
        if self.objects.len() < MAX_OBJECTS {
            self.objects.push(object);
            self.objects.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
        }
    }

    /// Leaves an object out; false if it was left out before.
    pub(super) fn exclude(&mut self, name: &str) -> bool {
        if self.excluded.iter().any(|known| known == name) || self.excluded.len() >= MAX_OBJECTS {
            return false;
        }
        self.excluded.push(name.to_owned());
        self.excluded.sort();
        true
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}
