//! What to do before lines go to the log file: pure rules over size and day.

use jiff::civil::Date;

/// Largest log file in bytes. With the old files kept, logs take at most three times as much of the card.
pub const MAX_FILE_BYTES: u64 = 20 * 1024 * 1024;

/// The file that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Current {
    /// Local day of its first lines of this process; for a file found at the start the day of its last change.
    pub(super) day: Date,
    /// Its size.
    pub(super) bytes: u64,
}

/// What to do with incoming lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Write them to the current file.
    Append,
    /// Put the current file aside first.
    Rotate,
    /// Do not write them: the file is full and cannot be put aside.
    Refuse,
}

/// Decides about `incoming` bytes on the local day `today`. `on_hold`: a rotation failed a short while ago.
///
/// The clock of a board without battery starts in the past and jumps forward when the network is up, therefore only a
/// later day rotates, never an earlier one. An empty file is never put aside.
pub(super) fn plan(current: Current, today: Date, incoming: u64, max_bytes: u64, on_hold: bool) -> Action {
    let full = current.bytes.saturating_add(incoming) > max_bytes;
    let due = current.bytes > 0 && (full || today > current.day);
    match (due, on_hold) {
        (false, _) => Action::Append,
        (true, false) => Action::Rotate,
        (true, true) if full => Action::Refuse,
        (true, true) => Action::Append,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    #[test]
    fn table() {
        use Action::{Append, Refuse, Rotate};
        let (yesterday, today, tomorrow) = (date(2026, 12, 31), date(2027, 1, 1), date(2027, 1, 2));
        // file's day, its bytes, incoming, on hold -> action; 1000 bytes fit
        let table = [
            ("room left", today, 400, 100, false, Append),
            ("exactly full", today, 900, 100, false, Append),
            ("one too many", today, 901, 100, false, Rotate),
            ("one too many, on hold", today, 901, 100, true, Refuse),
            ("a new day", yesterday, 1, 1, false, Rotate),
            ("a new day, on hold", yesterday, 1, 1, true, Append),
            ("a new day and full, on hold", yesterday, 1000, 1, true, Refuse),
            ("the clock went back", tomorrow, 400, 100, false, Append),
            ("the clock went back and full", tomorrow, 1000, 1, false, Rotate),
            ("empty since yesterday", yesterday, 0, 100, false, Append),
            ("more than a file holds", today, 0, 5000, false, Append),
            ("nothing overflows", today, u64::MAX, u64::MAX, false, Rotate),
        ];
        for (case, day, bytes, incoming, on_hold, expected) in table {
            assert_eq!(plan(Current { day, bytes }, today, incoming, 1000, on_hold), expected, "{case}");
        }
    }
}
