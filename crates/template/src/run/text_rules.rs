//! What Python does to texts, on plain strings.

use super::heap::Heap;
use crate::error::Result;

/// First letter large, the others small.
pub(super) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().collect::<String>() + &chars.as_str().to_lowercase())
}

/// Each word with a large letter, as `str.title` does: a word begins after anything that is no letter.
pub(super) fn titled(text: &str) -> String {
    let mut in_word = false;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if in_word {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        in_word = c.is_alphabetic();
    }
    out
}

/// Without white space, or the given characters, at the ends.
pub(super) fn strip<'t>(text: &'t str, chars: Option<&str>, start: bool, end: bool) -> &'t str {
    let goes = |c: char| chars.map_or(c.is_whitespace(), |chars| chars.contains(c));
    let text = if start { text.trim_start_matches(goes) } else { text };
    if end { text.trim_end_matches(goes) } else { text }
}

/// `old` replaced by `new`, at most `limit` times.
pub(super) fn replace(heap: &mut Heap, text: &str, old: &str, new: &str, limit: Option<usize>) -> Result<String> {
    let found = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() };
    let times = found.min(limit.unwrap_or(usize::MAX));
    heap.spend(text.len() / 16)?;
    heap.allot_many(new.len(), times)?;
    heap.allot(text.len())?;
    Ok(text.replacen(old, new, times))
}

/// Parts between separators, at most `limit` cuts, from the right when asked.
pub(super) fn split<'t>(text: &'t str, separator: &str, limit: usize, from_right: bool) -> Vec<&'t str> {
    let parts = limit.saturating_add(1);
    if from_right {
        let mut parts: Vec<&str> = text.rsplitn(parts, separator).collect();
        parts.reverse();
        parts
    } else {
        text.splitn(parts, separator).collect()
    }
}

/// Words, at most `limit` cuts; the rest keeps its white space inside.
pub(super) fn split_whitespace(text: &str, limit: usize, from_right: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        rest = if from_right { rest.trim_end() } else { rest.trim_start() };
        if rest.is_empty() {
            break;
        }
        let cut = if from_right { rest.rfind(char::is_whitespace) } else { rest.find(char::is_whitespace) };
        let Some(at) = cut.filter(|_| parts.len() < limit) else {
            parts.push(rest);
            break;
        };
        let (before, after) = rest.split_at(at);
        let (part, left) = if from_right { (after.trim_start(), before) } else { (before, after) };
        parts.push(part);
        rest = left;
    }
    if from_right {
        parts.reverse();
    }
    parts
}

/// `& < > " '` as HTML writes them.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&#34;").replace('\'', "&#39;")
}

/// Percent-encoding of everything but letters, digits, `_.-~` and what is in `safe`.
pub(super) fn percent_encoded(text: &str, safe: &str, space_as_plus: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || "_.-~".contains(c) || (c.is_ascii() && safe.contains(c)) {
            out.push(c);
        } else if c == ' ' && space_as_plus {
            out.push('+');
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Without tags and comments, white space collapsed.
pub(super) fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        out.push_str(&rest[..open]);
        let end = if rest[open..].starts_with("<!--") {
            rest[open..].find("-->").map(|at| at + 3)
        } else {
            rest[open..].find('>').map(|at| at + 1)
        };
        let Some(end) = end else {
            rest = &rest[open..];
            break;
        };
        rest = &rest[open + end..];
    }
    out.push_str(rest);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}
