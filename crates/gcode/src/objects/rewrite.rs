//! Second pass: copies the file and inserts definitions, starts and ends.

use std::io::Write;

use super::known::{ObjectId, Objects};
use super::lines::{Line, WINDOW_BYTES};
use super::marks::Mark;
use super::{Family, ObjectsError, PROCESSED_MARK};

/// Version of the established tool whose output this is, byte for byte.
const COMPATIBLE_VERSION: &str = "v0.2.0";

/// Where the definitions go, unless an object begins before that.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    BeforeFirstCommand,
    AfterFirstCommand,
    BeforeFirstMark,
}

/// The second pass over a file.
pub(super) struct Rewriter<'a> {
    found: &'a Objects,
    out: Output<'a>,
    /// Where the definitions go; `None` once they are written.
    definitions: Option<Place>,
    /// The object that has been started and not ended.
    current: Option<ObjectId>,
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(found: &'a Objects, out: &'a mut dyn Write) -> Self {
        let place = match (found.family, found.declared) {
            (Family::M486, Some(_)) => Place::BeforeFirstMark,
            (Family::IdeaMaker, _) => Place::AfterFirstCommand,
            _ => Place::BeforeFirstCommand,
        };
        Self { found, out: Output::new(out), definitions: Some(place), current: None }
    }

    /// Writes one line and what belongs around it.
    #[inline]
    pub(super) fn line(&mut self, line: Line<'_>) -> Result<(), ObjectsError> {
        let mark = line.whole().and_then(|text| self.found.family.mark(text));
        if self.definitions.is_some() {
            return self.early_line(line, mark);
        }
        match mark {
            None => self.out.line(line),
            Some(mark) => self.marked_line(line, mark),
        }
    }

    /// A line at the top of the file, where the definitions are still to be written.
    fn early_line(&mut self, line: Line<'_>, mark: Option<Mark<'_>>) -> Result<(), ObjectsError> {
        let command = line.is_start() && is_command(line.text);
        let before = matches!(mark, Some(Mark::Begin { .. } | Mark::End(_)))
            || match self.definitions {
                Some(Place::BeforeFirstCommand) => command,
                Some(Place::BeforeFirstMark) => mark.is_some(),
                Some(Place::AfterFirstCommand) | None => false,
            };
        let after = self.definitions == Some(Place::AfterFirstCommand) && command && line.ended;
        if before {
            self.define()?;
        }
        match mark {
            None => self.out.line(line)?,
            Some(mark) => self.marked_line(line, mark)?,
        }
        if after && !before {
            self.define()?;
            self.out.text("\n\n")?;
        }
        Ok(())
    }

    fn define(&mut self) -> Result<(), ObjectsError> {
        self.definitions = None;
        let objects = self.found.all();
        self.out.text(&format!("\n\n{PROCESSED_MARK}{COMPATIBLE_VERSION}\n; {} known objects\n", objects.len()))?;
        for object in objects.iter().filter(|object| !object.hidden) {
            self.out.text(&object.definition())?;
            self.out.text("\n")?;
        }
        Ok(())
    }

    fn marked_line(&mut self, line: Line<'_>, mark: Mark<'_>) -> Result<(), ObjectsError> {
        match self.found.family {
            Family::PrusaSlicer => {
                self.out.line(line)?;
                match mark {
                    Mark::Begin { key, .. } => self.insert("START", self.found.id(key)),
                    Mark::End(key) => self.insert("END", self.found.id(key)),
                    _ => Ok(()),
                }
            }
            Family::M486 => {
                if let Mark::Begin { key, .. } = mark {
                    self.switch(self.found.id(key))?;
                }
                // The firmware does not know the command.
                self.out.text("; ")?;
                self.out.line(line)
            }
            Family::Cura | Family::IdeaMaker => {
                self.out.line(line)?;
                match mark {
                    Mark::Begin { key, .. } => self.switch(self.found.id(key)),
                    Mark::NoObject => self.switch(None),
                    Mark::Clock if line.text == self.found.last_clock => self.switch(None),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Ends the current object and starts the next.
    fn switch(&mut self, next: Option<ObjectId>) -> Result<(), ObjectsError> {
        self.insert("END", self.current)?;
        self.current = next;
        self.insert("START", next)
    }

    fn insert(&mut self, verb: &str, object: Option<ObjectId>) -> Result<(), ObjectsError> {
        match object.and_then(|id| self.found.get(id)) {
            Some(object) if !object.hidden => {
                self.out.end_line()?;
                self.out.text(&format!("EXCLUDE_OBJECT_{verb} NAME={}\n", object.name))
            }
            _ => Ok(()),
        }
    }

    /// Ends what is open and writes everything out; the size of the output in bytes.
    pub(super) fn finish(mut self) -> Result<u64, ObjectsError> {
        if matches!(self.found.family, Family::Cura | Family::IdeaMaker) {
            self.switch(None)?;
        }
        self.out.finish()
    }
}

/// Whether a line is neither a comment nor blank.
fn is_command(text: &[u8]) -> bool {
    !matches!(text.trim_ascii_start().first(), None | Some(b';'))
}

/// The output, gathered into large writes.
struct Output<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
    written: u64,
    line_open: bool,
}

impl<'a> Output<'a> {
    fn new(out: &'a mut dyn Write) -> Self {
        Self { out, buffer: Vec::with_capacity(WINDOW_BYTES), written: 0, line_open: false }
    }

    #[inline]
    fn line(&mut self, line: Line<'_>) -> Result<(), ObjectsError> {
        // One byte for the line feed.
        if self.buffer.len() + line.text.len() >= WINDOW_BYTES {
            self.flush()?;
        }
        self.buffer.extend_from_slice(line.text);
        if line.ended {
            self.buffer.push(b'\n');
        }
        self.line_open = !line.ended;
        Ok(())
    }

    /// Writes text of our own; what ends it ends the line.
    fn text(&mut self, text: &str) -> Result<(), ObjectsError> {
        if self.buffer.len() + text.len() > WINDOW_BYTES {
            self.flush()?;
        }
        self.buffer.extend_from_slice(text.as_bytes());
        self.line_open = !text.ends_with('\n');
        Ok(())
    }

    /// Ends a line that the file left open.
    fn end_line(&mut self) -> Result<(), ObjectsError> {
        if self.line_open { self.text("\n") } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ObjectsError> {
        self.out.write_all(&self.buffer).map_err(ObjectsError::Write)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<u64, ObjectsError> {
        self.flush()?;
        self.out.flush().map_err(ObjectsError::Write)?;
        Ok(self.written)
    }
}
