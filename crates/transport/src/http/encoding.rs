//! Which codings of a body a client accepts.

use http::{HeaderMap, header};

/// True when the client names `coding` and does not refuse it in the same breath (`gzip;q=0`).
pub(super) fn accepts(request: &HeaderMap, coding: &str) -> bool {
    request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(
        |known| {
            let (name, weight) = known.split_once(';').unwrap_or((known, ""));
            let weight = weight.trim().trim_start_matches("q=").parse::<f32>().unwrap_or(1.0);
            name.trim().eq_ignore_ascii_case(coding) && weight > 0.0
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings_are_named_and_refused() {
        for (header, coding, expected) in [
            ("gzip, deflate, br", "gzip", true),
            ("gzip, deflate, br", "br", true),
            ("br;q=1, GZIP;q=0.5", "gzip", true),
            ("gzip;q=0", "gzip", false),
            ("identity", "gzip", false),
            ("", "br", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, header.parse().unwrap())]);
            assert_eq!(accepts(&headers, coding), expected, "{header} {coding}");
        }
        assert!(!accepts(&HeaderMap::new(), "gzip"));
    }
}
