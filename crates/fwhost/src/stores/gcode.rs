//! The last lines that went to and came from the firmware host, for consoles that open later (wire/1-core.md section 8.5).

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;

/// Text bytes kept altogether: a few huge scripts must not cost the memory of a thousand lines each.
pub(crate) const MAX_STORE_BYTES: usize = 4 * 1024 * 1024;

/// Text bytes kept of one entry; the rest is cut off.
pub(crate) const MAX_ENTRY_BYTES: usize = 64 * 1024;

/// One entry.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GcodeEntry {
    /// The line or script, as it was.
    pub message: Arc<str>,
    /// Unix seconds.
    pub time: f64,
    /// Direction.
    #[serde(rename = "type")]
    pub kind: GcodeKind,
}

/// Direction of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GcodeKind {
    /// Sent through the script endpoint.
    Command,
    /// Output of the firmware host.
    Response,
}

/// A ring of entries, bounded by number and by bytes.
#[derive(Debug)]
pub(crate) struct GcodeStore {
    entries: VecDeque<GcodeEntry>,
    size: usize,
    bytes: usize,
}

impl GcodeStore {
    pub(crate) fn new(size: usize) -> Self {
        Self { entries: VecDeque::new(), size, bytes: 0 }
    }

    pub(crate) fn add(&mut self, kind: GcodeKind, message: &Arc<str>, time: f64) {
        if self.size == 0 {
            return;
        }
        let message = if message.len() > MAX_ENTRY_BYTES { cut(message).into() } else { message.clone() };
        self.bytes += message.len();
        self.entries.push_back(GcodeEntry { message, time, kind });
        while self.entries.len() > self.size || self.bytes > MAX_STORE_BYTES {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.message.len();
        }
    }

    /// The last `count` entries, oldest first; all of them without a count or with 0.
    pub(crate) fn last(&self, count: Option<usize>) -> Vec<GcodeEntry> {
        let count = count.filter(|count| *count > 0).unwrap_or(self.entries.len());
        self.entries.iter().skip(self.entries.len().saturating_sub(count)).cloned().collect()
    }
}

fn cut(message: &str) -> &str {
    &message[..message.floor_char_boundary(MAX_ENTRY_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(store: &GcodeStore, count: Option<usize>) -> Vec<String> {
        store.last(count).iter().map(|entry| entry.message.to_string()).collect()
    }

    #[test]
    fn keeps_the_last_ones_in_order() {
        let mut store = GcodeStore::new(3);
        for index in 0..5 {
            store.add(GcodeKind::Response, &format!("line {index}").into(), f64::from(index));
        }
        assert_eq!(messages(&store, None), ["line 2", "line 3", "line 4"]);
        assert_eq!(messages(&store, Some(0)), ["line 2", "line 3", "line 4"]);
        assert_eq!(messages(&store, Some(2)), ["line 3", "line 4"]);
        assert_eq!(messages(&store, Some(9)).len(), 3);
    }

    #[test]
    fn is_bounded_by_bytes() {
        let mut store = GcodeStore::new(1000);
        let huge: Arc<str> = "ä".repeat(MAX_ENTRY_BYTES).into();
        for _ in 0..200 {
            store.add(GcodeKind::Command, &huge, 0.0);
        }
        let total: usize = store.last(None).iter().map(|entry| entry.message.len()).sum();
        assert!(total <= MAX_STORE_BYTES && total > MAX_STORE_BYTES / 2, "{total}");
    }

    #[test]
    fn wire_form() {
        let entry = GcodeEntry { message: "M117 hi".into(), time: 1.5, kind: GcodeKind::Command };
        assert_eq!(serde_json::to_string(&entry).unwrap(), r#"{"message":"M117 hi","time":1.5,"type":"command"}"#);
    }

    #[test]
    fn size_nought_keeps_nothing() {
        let mut store = GcodeStore::new(0);
        store.add(GcodeKind::Command, &"x".into(), 0.0);
        assert!(store.last(None).is_empty());
    }
}
