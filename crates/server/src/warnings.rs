//! What the owner should know: warnings of the start and of operation, shown by server info.

use std::sync::Arc;

use indexmap::IndexMap;
use parking_lot::Mutex;

/// Warnings kept; later ones are only counted.
const MAX_WARNINGS: usize = 200;

/// The list of warnings, in the order in which they were added. Cheap to clone.
#[derive(Clone, Default)]
pub struct Warnings(Arc<Mutex<List>>);

#[derive(Default)]
struct List {
    texts: IndexMap<String, String>,
    dropped: usize,
}

impl Warnings {
    /// Adds a warning that stays until the next start.
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        self.set(text.clone(), text);
    }

    /// Adds, or replaces, the warning with this id.
    pub fn set(&self, id: impl Into<String>, text: impl Into<String>) {
        let mut list = self.0.lock();
        let id = id.into();
        if list.texts.len() >= MAX_WARNINGS && !list.texts.contains_key(&id) {
            list.dropped += 1;
        } else {
            list.texts.insert(id, text.into());
        }
    }

    /// Withdraws the warning with this id.
    pub fn clear(&self, id: &str) {
        self.0.lock().texts.shift_remove(id);
    }

    /// All texts.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        let list = self.0.lock();
        let more = (list.dropped > 0).then(|| format!("{} more warnings are in the log", list.dropped));
        list.texts.values().cloned().chain(more).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_can_be_withdrawn_and_are_bounded() {
        let warnings = Warnings::default();
        warnings.add("a");
        warnings.set("path", "b");
        warnings.set("path", "c");
        assert_eq!(warnings.texts(), ["a", "c"]);
        warnings.clear("path");
        assert_eq!(warnings.texts(), ["a"]);
        for index in 0..MAX_WARNINGS + 10 {
            warnings.add(index.to_string());
        }
        let texts = warnings.texts();
        assert_eq!(texts.len(), MAX_WARNINGS + 1);
        assert_eq!(texts[MAX_WARNINGS], "11 more warnings are in the log");
    }
}
