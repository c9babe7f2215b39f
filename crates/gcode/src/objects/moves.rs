//! Where a move lays down filament.

/// End point (X, Y in mm) of a `G` command that extrudes: it has X, Y and an E above 0, as written.
pub(super) fn extrusion_end(line: &[u8]) -> Option<(f64, f64)> {
    let (b'G' | b'g', mut words) = line.split_first()? else { return None };
    let (mut x, mut y, mut e) = (None, None, None);
    while let Some((letter, rest)) = words.split_first() {
        words = rest;
        let axis = match letter {
            b'X' | b'x' => &mut x,
            b'Y' | b'y' => &mut y,
            b'E' | b'e' => &mut e,
            b';' => break,
            _ => continue,
        };
        let (value, rest) = number(words);
        *axis = value;
        words = rest;
    }
    if e? > 0.0 { Some((x?, y?)) } else { None }
}

/// Powers of ten that a double holds exactly, and so divides by with one rounding.
const EXACT_POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// The number at the beginning of `text` (sign, digits, point, digits; no exponent) and what follows it.
fn number(text: &[u8]) -> (Option<f64>, &[u8]) {
    let negative = text.first() == Some(&b'-');
    let signed = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let mut mantissa = 0u64;
    let (mut digits, mut decimals, mut point) = (0, 0, 0);
    let mut length = signed;
    for byte in &text[signed..] {
        match byte {
            b'0'..=b'9' => {
                mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                digits += 1;
                decimals += point;
            }
            b'.' if point == 0 => point = 1,
            _ => break,
        }
        length += 1;
    }
    let (number, rest) = text.split_at(length);
    let value = match digits {
        0 => None,
        1..=15 => {
            let value = mantissa as f64 / EXACT_POWERS[decimals];
            Some(if negative { -value } else { value })
        }
        _ => std::str::from_utf8(number).ok().and_then(|number| number.parse().ok()).filter(|value: &f64| value.is_finite()),
    };
    (value, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn finds_the_end_of_extruding_moves_only() {
        assert_eq!(extrusion_end(b"G1 X1.5 Y-2 E.03"), Some((1.5, -2.0)));
        assert_eq!(extrusion_end(b"g1x1y2e3"), Some((1.0, 2.0)));
        assert_eq!(extrusion_end(b"G1 X1 Y2 E1 ; then X9 Y9"), Some((1.0, 2.0)));
        assert_eq!(extrusion_end(b"G2 X1 Y2 I5 J6 E1 F3000"), Some((1.0, 2.0)));
        for line in ["G1 X1 Y2", "G1 X1 Y2 E-1", "G1 X1 Y2 E0", "G1 X1 E1", "G1 X Y2 E1", "M1 X1 Y2 E1", "G1 ; X1 Y2 E1", ""] {
            assert_eq!(extrusion_end(line.as_bytes()), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_the_standard_library_reads_them(text in "[-+]?([0-9]{1,20}\\.[0-9]{0,20}|\\.[0-9]{1,20}|[0-9]{1,25})") {
            let expected: f64 = text.parse().unwrap();
            let (value, rest) = number(text.as_bytes());
            prop_assert_eq!(value.map(f64::to_bits), Some(expected.to_bits()));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut line = b"G1 ".to_vec();
            line.extend(bytes);
            extrusion_end(&line);
        }
    }
}
