//! stderr as a place for log lines, and what its reader does with them.

use std::env;
use std::io::{self, IsTerminal, Write};

use super::line::Style;
use super::outlet::{Moment, Sink};

/// Writes to stderr from the writer thread, so that a terminal that was stopped (Ctrl-S) stops nobody else.
pub(super) struct Stderr;

impl Sink for Stderr {
    fn write(&mut self, lines: &[u8], lost: u64, _: Moment) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        if lost > 0 {
            stderr.write_all(&Style::Text.note("WARN", &format!("{lost} log lines before this one were lost")))?;
        }
        stderr.write_all(lines)
    }

    fn roll_over(&mut self, _: Moment) -> Result<(), String> {
        Err("stderr has no file".to_owned())
    }
}

/// Colours only on a terminal, and only if its owner has not asked for none (no-color.org).
pub(super) fn is_colourful() -> bool {
    io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether whoever reads stderr stamps the lines with the time: the journal of systemd does.
pub(super) fn is_stamped_by_reader() -> bool {
    !io::stderr().is_terminal() && env::var_os("JOURNAL_STREAM").is_some()
}
