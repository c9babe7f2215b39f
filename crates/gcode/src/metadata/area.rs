//! Search areas and the questions asked of them: the first number, the largest, the text behind a mark, a list.

use super::list;
use super::pattern::{Match, Pattern, number_length};
use super::windows::Windows;

/// The areas of section 3.2 that fields are looked for in.
pub(super) struct Areas<'t> {
    /// The first window.
    pub(super) head: Area<'t>,
    /// The last window; the same as the head in small files.
    pub(super) tail: Area<'t>,
}

impl<'t> Areas<'t> {
    pub(super) fn new(windows: &'t Windows) -> Self {
        Self { head: Area(windows.head()), tail: Area(windows.tail()) }
    }
}

/// A part of the text. All questions give nothing when the pattern does not occur or its value is out of range.
#[derive(Clone, Copy)]
pub(super) struct Area<'t>(pub(super) &'t [u8]);

impl<'t> Area<'t> {
    /// What the pattern captures where it occurs first.
    pub(super) fn captured(self, pattern: &str) -> Option<&'t [u8]> {
        Some(&self.0[self.find(pattern)?.captured])
    }

    /// First place of the pattern.
    pub(super) fn find(self, pattern: &str) -> Option<Match> {
        Pattern::new(pattern).find(self.0, 0)
    }

    /// The part after the first place of the pattern.
    pub(super) fn after(self, pattern: &str) -> Option<Self> {
        Some(Self(&self.0[self.find(pattern)?.end..]))
    }

    /// First number.
    pub(super) fn float(self, pattern: &str) -> Option<f64> {
        float(self.captured(pattern)?)
    }

    /// First integer.
    pub(super) fn integer(self, pattern: &str) -> Option<u64> {
        text(self.captured(pattern)?).parse().ok()
    }

    /// First text, without the quotes around it.
    pub(super) fn string(self, pattern: &str) -> Option<String> {
        Some(text(self.captured(pattern)?).trim_matches('"').to_owned())
    }

    /// Elements of the first list; nothing if the setting is absent, no elements if it is empty.
    pub(super) fn list(self, pattern: &str) -> Option<Vec<String>> {
        Some(list::elements(&text(self.captured(pattern)?)))
    }

    /// All numbers in the first captured text.
    pub(super) fn floats(self, pattern: &str) -> Option<Vec<f64>> {
        Some(floats(self.captured(pattern)?))
    }

    /// Largest of all numbers captured.
    pub(super) fn largest(self, pattern: &str) -> Option<f64> {
        self.every_float(pattern).into_iter().reduce(f64::max)
    }

    /// Smallest of all numbers captured.
    pub(super) fn smallest(self, pattern: &str) -> Option<f64> {
        self.every_float(pattern).into_iter().reduce(f64::min)
    }

    /// Sum of all numbers captured; nothing without any.
    pub(super) fn sum(self, pattern: &str) -> Option<f64> {
        sum(&self.every_float(pattern))
    }

    /// All numbers captured, wherever the pattern occurs.
    pub(super) fn every_float(self, pattern: &str) -> Vec<f64> {
        Pattern::new(pattern).find_all(self.0).filter_map(|found| float(&self.0[found.captured])).collect()
    }
}

/// A captured number; nothing if it is too large for a float.
pub(super) fn float(digits: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}

/// All numbers in a text.
pub(super) fn floats(mut text: &[u8]) -> Vec<f64> {
    let mut found = Vec::new();
    while !text.is_empty() {
        let length = number_length(text);
        found.extend(float(&text[..length]));
        text = &text[length.max(1)..];
    }
    found
}

/// Sum in order of appearance; nothing for an empty list.
pub(super) fn sum(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum()).filter(|total: &f64| total.is_finite())
}

/// Bytes as text; what is not UTF-8 is dropped (section 3.2).
pub(super) fn text(bytes: &[u8]) -> String {
    bytes.utf8_chunks().map(|chunk| chunk.valid()).collect()
}

/// Rounds to a number of decimals the way decimal text is rounded.
pub(super) fn rounded(value: f64, decimals: usize) -> Option<f64> {
    format!("{value:.decimals$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_no_values() {
        let digits = "9".repeat(400);
        let text = format!("n = {digits}\n");
        let area = Area(text.as_bytes());
        assert_eq!(area.float("n = ⟨F⟩"), None);
        assert_eq!(area.integer("n = ⟨D⟩"), None);
        assert_eq!(area.sum("n = ⟨F⟩"), None);
    }

    #[test]
    fn texts_lose_quotes_and_undecodable_bytes() {
        assert_eq!(Area(b"a = \"x\xffy\"\n").string("a = ⟨S⟩").as_deref(), Some("xy"));
    }

    #[test]
    fn extremes_and_sums() {
        let area = Area(b"G1 Z2 F1\nG1 Z10.5 F1\nG1 Z.5 F1\n");
        assert_eq!(area.largest("G1·Z⟨F⟩·F"), Some(10.5));
        assert_eq!(area.smallest("G1·Z⟨F⟩·F"), Some(0.5));
        assert_eq!(area.sum("G1·Z⟨F⟩·F"), Some(13.0));
        assert_eq!(floats(b"1, 2.5;x.5 7."), [1.0, 2.5, 0.5, 7.0]);
        assert_eq!(rounded(0.123_456_789, 6), Some(0.123_457));
    }
}
