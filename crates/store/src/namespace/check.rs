//! What a value must satisfy beyond being JSON, so that every reader can take it apart again later.
//!
//! The text of a value is stored as it came (member order and number spelling stay). JSON allows more than readers
//! bear: integers of any length, floats beyond the range, halves of surrogate pairs, nesting without end.

use crate::StoreError;

/// Bytes of a record at most, as JSON text.
pub const MAX_VALUE_BYTES: usize = 10 * 1024 * 1024;

/// Nested arrays and objects in a value at most. Below the 128 at which `serde_json` refuses to build a tree, so that
/// the value still decodes inside an answer.
pub const MAX_VALUE_DEPTH: usize = 100;

/// Checks `json`, which must be well-formed JSON text.
pub(crate) fn check(json: &str) -> Result<(), StoreError> {
    if json.len() > MAX_VALUE_BYTES {
        return Err(bad(format!("longer than {MAX_VALUE_BYTES} bytes")));
    }
    let bytes = json.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = skip_string(bytes, at)?,
            b'-' | b'0'..=b'9' => {
                let end = at + bytes[at..].iter().take_while(|byte| is_number_byte(**byte)).count();
                check_number(&json[at..end])?;
                at = end;
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_VALUE_DEPTH {
            return Err(bad(format!("nested deeper than {MAX_VALUE_DEPTH}")));
        }
        at += 1;
    }
    Ok(())
}

/// From the opening quote to the closing one; `\u` escapes of surrogates must come in pairs.
fn skip_string(bytes: &[u8], open: usize) -> Result<usize, StoreError> {
    let mut at = open + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return Ok(at),
            b'\\' => at += escape_length(&bytes[at..])?,
            _ => at += 1,
        }
    }
    Ok(at)
}

fn escape_length(escape: &[u8]) -> Result<usize, StoreError> {
    match (code_unit(escape), escape.get(6..).and_then(code_unit)) {
        (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => Ok(12),
        (Some(0xD800..=0xDFFF), _) => Err(bad("half of a surrogate pair in a string".to_owned())),
        (Some(_), _) => Ok(6),
        (None, _) => Ok(2),
    }
}

/// The value of a `\uXXXX` at the beginning of `escape`.
fn code_unit(escape: &[u8]) -> Option<u16> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn is_number_byte(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

fn check_number(text: &str) -> Result<(), StoreError> {
    let fits = if text.contains(['.', 'e', 'E']) {
        text.parse::<f64>().is_ok_and(f64::is_finite)
    } else {
        text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()
    };
    let shown: String = text.chars().take(40).collect();
    if fits { Ok(()) } else { Err(bad(format!("number out of range: {shown}"))) }
}

fn bad(reason: String) -> StoreError {
    StoreError::BadValue(reason)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, value::RawValue};

    use super::*;

    #[test]
    fn numbers_must_fit() {
        for good in ["0", "-9223372036854775808", "18446744073709551615", "1e20", "[1.5, -0.0, 1E-400]"] {
            check(good).unwrap();
        }
        for wrong in ["18446744073709551616", "-9223372036854775809", r#"{"a":[100000000000000000000]}"#, "1e999"] {
            assert!(check(wrong).unwrap_err().to_string().contains("out of range"), "{wrong}");
        }
    }

    #[test]
    fn strings_are_not_numbers() {
        check(r#"{"18446744073709551616":"-99999999999999999999 \" 99999999999999999999 \\"}"#).unwrap();
    }

    #[test]
    fn surrogates_come_in_pairs() {
        check(r#""\ud83d\ude00 \u00e4 \n""#).unwrap();
        for wrong in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83d\u0041""#, r#"["\ud83d\n"]"#] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        check(&nested(MAX_VALUE_DEPTH)).unwrap();
        assert!(check(&nested(MAX_VALUE_DEPTH + 1)).is_err());
        let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        check(&text(MAX_VALUE_BYTES)).unwrap();
        assert!(check(&text(MAX_VALUE_BYTES + 1)).is_err());
    }

    proptest! {
        /// Whatever passes can be read as a tree, with the same integers.
        #[test]
        fn what_passes_can_be_read(text in r#"[\[\]{}",:0-9eE.+\-ud8-f\\ ]{0,24}"#) {
            if let Ok(raw) = serde_json::from_str::<Box<RawValue>>(&text)
                && check(raw.get()).is_ok()
            {
                prop_assert!(serde_json::from_str::<Value>(raw.get()).is_ok(), "{}", raw);
            }
        }

        /// Values whose strings and numbers come from a decoded tree always pass.
        #[test]
        fn encoded_values_pass(texts in prop::collection::vec(".{0,12}", 0..4), number: i64, float: f64) {
            let json = serde_json::to_string(&(texts, number, float)).unwrap();
            prop_assert!(check(&json).is_ok(), "{}", json);
        }
    }
}
