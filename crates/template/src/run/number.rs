//! Numbers as Python writes, reads and rounds them.

use crate::limits::MAX_DIGITS;

/// The shortest text that reads back as the same number: `0.1`, `1e-07`, `1e+16`, `3.0`.
pub(crate) fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 || (-4..16).contains(&exponent) { format!("{value:?}") } else { with_exponent(mantissa, exponent) }
}

/// `1.5e-07`: the exponent has a sign and two digits or more.
fn with_exponent(mantissa: &str, exponent: i32) -> String {
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// The float that a text is, as Python's `float` reads it.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    text.trim().replace('_', "").parse().ok()
}

/// The whole number that a text is, with a prefix such as `0x` when the base is 16 or 0.
pub(crate) fn parse_int(text: &str, base: u32) -> Option<i64> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let prefixed =
        [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find(|(prefix, of)| lower.starts_with(prefix) && (base == *of || base == 0));
    let (digits, base) = match prefixed {
        Some((prefix, of)) => (lower[prefix.len()..].to_owned(), of),
        None => (lower, if base == 0 { 10 } else { base }),
    };
    if !(2..=36).contains(&base) || digits.starts_with(['+', '-', '_']) || digits.ends_with('_') {
        return None;
    }
    let magnitude = i128::from_str_radix(&digits.replace('_', ""), base).ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// Towards zero, when it fits.
pub(crate) fn truncate(value: f64) -> Option<i64> {
    let whole = value.trunc();
    // 2^63 itself does not fit.
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole).then_some(whole as i64)
}

/// Python's `round`: correctly, ties to even.
pub(crate) fn round(value: f64, digits: i64) -> f64 {
    if !value.is_finite() {
        return value;
    }
    match usize::try_from(digits) {
        Ok(digits) if digits > MAX_DIGITS => value,
        // Formatting rounds the exact binary value, ties to even, as Python does.
        Ok(digits) => format!("{value:.digits$}").parse().unwrap_or(value),
        Err(_) => {
            let scale = 10f64.powi(i32::try_from(digits.saturating_neg()).unwrap_or(400));
            if scale.is_infinite() { 0.0 } else { (value / scale).round_ties_even() * scale }
        }
    }
}

/// `%e`.
pub(crate) fn scientific(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => with_exponent(mantissa, exponent.parse().unwrap_or(0)),
        None => text,
    }
}

/// `%g`: the shorter of fixed and scientific, without trailing zeros unless `keep_zeros`.
pub(crate) fn general(value: f64, digits: usize, keep_zeros: bool) -> String {
    if !value.is_finite() {
        return float_text(value);
    }
    let digits = digits.max(1);
    let text = format!("{value:.*e}", digits - 1);
    let exponent: i32 = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let precision = i32::try_from(digits).unwrap_or(i32::MAX);
    let clean = |text: &str| {
        if keep_zeros || !text.contains('.') { text.to_owned() } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
    };
    if exponent < -4 || exponent >= precision {
        let mantissa = text.split_once('e').map_or("", |(mantissa, _)| mantissa);
        with_exponent(&clean(mantissa), exponent)
    } else {
        let decimals = usize::try_from(precision - 1 - exponent).unwrap_or(0);
        clean(&format!("{value:.decimals$}"))
    }
}

/// A group of three digits after another, separated.
pub(crate) fn grouped(digits: &str, separator: char) -> String {
    let (whole, rest) = digits.split_at(digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()));
    let mut text = String::with_capacity(digits.len() * 2);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text + rest
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn floats_look_as_in_python() {
        for (value, expected) in [
            (0.1 + 0.2, "0.30000000000000004"),
            (1e-7, "1e-07"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (-0.0, "-0.0"),
            (1e100, "1e+100"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(float_text(value), expected);
        }
    }

    #[test]
    fn rounding_takes_the_exact_value() {
        for (value, digits, expected) in
            [(2.5, 0, 2.0), (3.5, 0, 4.0), (2.675, 2, 2.67), (1234.5, -2, 1200.0), (-0.5, 0, -0.0), (1.0, 400, 1.0)]
        {
            assert_eq!(round(value, digits), expected, "{value} {digits}");
        }
    }

    #[test]
    fn whole_numbers_are_read_in_many_bases() {
        assert_eq!(parse_int(" -0x1F ", 16), Some(-31));
        assert_eq!(parse_int("0b101", 0), Some(5));
        assert_eq!(parse_int("1_000", 10), Some(1000));
        assert_eq!(parse_int("-9223372036854775808", 10), Some(i64::MIN));
        for text in ["", "-", "--1", "0x1F", "1.5", "99999999999999999999", "_1"] {
            assert_eq!(parse_int(text, 10), None, "{text}");
        }
    }
}
