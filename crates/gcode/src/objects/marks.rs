//! How each family of slicers marks objects: from a line to its meaning.

/// Which marks a file uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// `M486` commands, whoever wrote them.
    M486,
    /// `; printing object` ... `; stop printing object`: PrusaSlicer and its relatives, Slic3r.
    PrusaSlicer,
    /// `;MESH:`.
    Cura,
    /// `;PRINTING:` and `;PRINTING_ID:`.
    IdeaMaker,
}

/// What a line says about objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark<'l> {
    /// The object with this key begins; on an `M486` line its name may follow.
    Begin { key: &'l [u8], name: Option<&'l [u8]> },
    /// The object with this key ends.
    End(&'l [u8]),
    /// Something begins that is no object: travel, a raft.
    NoObject,
    /// Name of the current object (`M486 A`) or of the next one (IdeaMaker).
    Name(&'l [u8]),
    /// How many objects there are.
    Count(usize),
    /// A line that tells the time; the last one of the file ends its last object.
    Clock,
    /// Another `M486` line.
    Other,
}

impl Family {
    /// The family whose objects this line announces.
    pub(super) fn triggered_by(line: &[u8]) -> Option<Self> {
        match line.first()? {
            b'M' => m486(line).map(|_| Self::M486),
            b';' if line.starts_with(PRINTING_OBJECT) => Some(Self::PrusaSlicer),
            b';' if line.starts_with(b";PRINTING:") => Some(Self::IdeaMaker),
            b';' => matches!(cura(line), Some(Mark::Begin { .. })).then_some(Self::Cura),
            _ => None,
        }
    }

    /// What the line says, in this family's words.
    #[inline]
    pub(super) fn mark(self, line: &[u8]) -> Option<Mark<'_>> {
        match (self, line.first()?) {
            (Self::M486, b'M') => m486(line),
            (Self::PrusaSlicer, b';') => prusaslicer(line),
            (Self::Cura, b';') => cura(line),
            (Self::IdeaMaker, b';') => ideamaker(line),
            _ => None,
        }
    }
}

const PRINTING_OBJECT: &[u8] = b"; printing object";

fn prusaslicer(line: &[u8]) -> Option<Mark<'_>> {
    if let Some(key) = line.strip_prefix(PRINTING_OBJECT) {
        return Some(Mark::Begin { key: key.trim_ascii(), name: None });
    }
    line.strip_prefix(b"; stop printing object").map(|key| Mark::End(key.trim_ascii()))
}

fn cura(line: &[u8]) -> Option<Mark<'_>> {
    if let Some(key) = line.strip_prefix(b";MESH:") {
        let key = key.trim_ascii();
        return Some(if key == b"NONMESH" { Mark::NoObject } else { Mark::Begin { key, name: None } });
    }
    line.starts_with(b";TIME_ELAPSED:").then_some(Mark::Clock)
}

fn ideamaker(line: &[u8]) -> Option<Mark<'_>> {
    if let Some(name) = line.strip_prefix(b";PRINTING:") {
        return Some(Mark::Name(name.trim_ascii()));
    }
    if let Some(key) = line.strip_prefix(b";PRINTING_ID:") {
        let key = key.trim_ascii();
        return Some(if key == b"-1" { Mark::NoObject } else { Mark::Begin { key, name: None } });
    }
    if let Some(count) = line.strip_prefix(b";TOTAL_NUM:") {
        return number(count.trim_ascii()).map(Mark::Count);
    }
    (line.trim_ascii_end() == b";REMAINING_TIME: 0").then_some(Mark::Clock)
}

/// `M486` with S (begin, -1 for none), A (name), T (count); of these S says the most.
fn m486(line: &[u8]) -> Option<Mark<'_>> {
    let mut rest = line.strip_prefix(b"M486")?;
    if rest.first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let (mut key, mut name, mut count) = (None, None, None);
    loop {
        rest = rest.trim_ascii();
        let Some((letter, value)) = rest.split_first().filter(|(letter, _)| **letter != b';') else { break };
        let end = value.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b';').unwrap_or(value.len());
        let (word, after) = value.split_at(end);
        rest = after;
        match letter {
            b'S' if number(word.strip_prefix(b"-").unwrap_or(word)).is_some() => key = Some(word),
            b'T' => count = number(word),
            b'A' => {
                name = Some(m486_name(value));
                break;
            }
            _ => {}
        }
    }
    Some(match (key, name, count) {
        (Some(key), name, _) => Mark::Begin { key, name },
        (None, Some(name), _) => Mark::Name(name),
        (None, None, Some(count)) => Mark::Count(count),
        (None, None, None) => Mark::Other,
    })
}

/// A name takes the rest of the line, in quotes or up to a comment.
fn m486_name(value: &[u8]) -> &[u8] {
    let (value, end) = match value.strip_prefix(b"\"") {
        Some(quoted) => (quoted, b'"'),
        None => (value, b';'),
    };
    value.split(|byte| *byte == end).next().unwrap_or(value).trim_ascii()
}

/// A number in digits only.
fn number(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Too many digits still are a number: let the limit of objects refuse it.
    Some(std::str::from_utf8(digits).ok()?.parse().unwrap_or(usize::MAX))
}
