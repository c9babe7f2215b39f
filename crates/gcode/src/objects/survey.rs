//! First pass: which objects there are and where they extrude.

use super::known::{ObjectId, Objects};
use super::marks::Mark;
use super::moves::extrusion_end;
use super::{Family, MAX_NAME_BYTES, MAX_OBJECTS, ObjectsError};

/// The first pass over a file.
pub(super) struct Survey {
    found: Objects,
    /// Whose moves these are.
    current: Option<ObjectId>,
    /// IdeaMaker names an object on the line before its id.
    next_name: Vec<u8>,
}

impl Survey {
    pub(super) fn new(family: Family) -> Self {
        Self { found: Objects::new(family), current: None, next_name: Vec::new() }
    }

    /// Takes note of one line.
    #[inline]
    pub(super) fn line(&mut self, text: &[u8]) -> Result<(), ObjectsError> {
        match (text.first(), self.current) {
            (Some(b'G' | b'g'), Some(current)) => {
                if let Some(point) = extrusion_end(text)
                    && let Some(object) = self.found.get_mut(current)
                {
                    object.outline.add(point);
                }
                Ok(())
            }
            (Some(b';' | b'M'), _) => match self.found.family.mark(text) {
                Some(mark) => self.mark(mark, text),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn mark(&mut self, mark: Mark<'_>, text: &[u8]) -> Result<(), ObjectsError> {
        match mark {
            Mark::Begin { key, name } => {
                let label = if self.next_name.is_empty() { key } else { &self.next_name };
                let id = self.found.intern(key, label)?;
                self.next_name.clear();
                self.current = Some(id);
                name.map_or(Ok(()), |name| self.name(name))
            }
            Mark::Name(name) => self.name(name),
            Mark::End(_) => {
                self.current = None;
                Ok(())
            }
            Mark::Count(count) => self.declare(count),
            Mark::Clock => {
                self.found.last_clock.clear();
                self.found.last_clock.extend_from_slice(&text[..text.len().min(MAX_NAME_BYTES)]);
                Ok(())
            }
            // What is no object does not end the object before it: its next moves still count as the object's.
            Mark::NoObject | Mark::Other => {
                self.next_name.clear();
                Ok(())
            }
        }
    }

    fn name(&mut self, name: &[u8]) -> Result<(), ObjectsError> {
        if name.len() > MAX_NAME_BYTES {
            return Err(ObjectsError::NameTooLong);
        }
        if self.found.family == Family::IdeaMaker {
            self.next_name.clear();
            self.next_name.extend_from_slice(name);
        } else if let Some(object) = self.current.and_then(|current| self.found.get_mut(current))
            && object.given_name.is_none()
        {
            object.given_name = Some(name.into());
        }
        Ok(())
    }

    /// `M486 T` announces numbers: all of them exist from then on, -1 included.
    fn declare(&mut self, count: usize) -> Result<(), ObjectsError> {
        self.found.declared = Some(count);
        if self.found.family != Family::M486 {
            return Ok(());
        }
        if count >= MAX_OBJECTS {
            return Err(ObjectsError::TooManyObjects);
        }
        self.found.intern(b"-1", b"-1")?;
        for number in 0..count {
            let key = number.to_string();
            self.found.intern(key.as_bytes(), key.as_bytes())?;
        }
        Ok(())
    }

    /// The objects, once the file has been read.
    pub(super) fn finish(mut self) -> Result<Objects, ObjectsError> {
        let found = self.found.all().len();
        match (self.found.family, self.found.declared) {
            (Family::IdeaMaker, Some(declared)) if declared != found => {
                return Err(ObjectsError::CountMismatch { declared, found });
            }
            // A file that announces its objects by number keeps the numbers, as the established tool does.
            (Family::M486, None) => self.found.name_as_given(),
            _ => {}
        }
        Ok(self.found)
    }
}
