//! What is wrong with a configuration and where: one line a user can act on.

use std::fmt;

use crate::limits::MAX_SHOWN_VALUE;

/// A position in the configuration as users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// File relative to the main file's folder, absolute when outside of it.
    pub file: String,
    /// Line counted from 1; `None` when the whole file is meant.
    pub line: Option<u32>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

/// One fault or warning, shown as `file:line: [section] option: what was expected`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it was found.
    pub place: Place,
    /// The section concerned, if any.
    pub section: Option<String>,
    /// The option concerned, if any.
    pub option: Option<String>,
    /// What was expected and, where harmless, what was found instead.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        match (&self.section, &self.option) {
            (Some(section), Some(option)) => write!(f, "[{section}] {option}: ")?,
            (Some(section), None) => write!(f, "[{section}]: ")?,
            (None, Some(option)) => write!(f, "{option}: ")?,
            (None, None) => {}
        }
        f.write_str(&self.message)
    }
}

/// A value made fit for one line of a message: newlines become spaces, long text is cut.
pub(crate) fn shown(value: &str) -> String {
    let mut chars = value.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut text: String = chars.by_ref().take(MAX_SHOWN_VALUE).collect();
    if chars.next().is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: Option<u32>, section: Option<&str>, option: Option<&str>) -> String {
        Problem {
            place: Place { file: "parts/a.conf".into(), line },
            section: section.map(Into::into),
            option: option.map(Into::into),
            message: "expected a path".into(),
        }
        .to_string()
    }

    #[test]
    fn names_file_line_section_and_option() {
        assert_eq!(problem(Some(3), Some("power led"), Some("pin")), "parts/a.conf:3: [power led] pin: expected a path");
        assert_eq!(problem(Some(3), Some("server"), None), "parts/a.conf:3: [server]: expected a path");
        assert_eq!(problem(None, None, None), "parts/a.conf: expected a path");
    }

    #[test]
    fn shown_values_stay_on_one_short_line() {
        assert_eq!(shown("\na\nb"), "a b");
        assert_eq!(shown(&"é".repeat(500)).chars().count(), MAX_SHOWN_VALUE + 1);
    }
}
