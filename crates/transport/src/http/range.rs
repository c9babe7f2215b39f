//! Byte ranges of downloads. wire/2-files-jobs.md section 1.4.

/// What part of a file a `Range` header asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Everything: no header, several ranges, a malformed header, or a range that covers the file.
    All,
    /// From the first to the last byte, both included.
    Part {
        /// First byte.
        first: u64,
        /// Last byte.
        last: u64,
    },
    /// A range that the file does not have.
    Beyond,
}

/// Reads a `Range` header for a file of `size` bytes.
pub(super) fn wanted(range: Option<&str>, size: u64) -> Wanted {
    let Some((first, last)) = range.and_then(bounds) else { return Wanted::All };
    let (first, last) = match (first, last) {
        (None, None) => return Wanted::All,
        (None, Some(0)) => return Wanted::Beyond,
        (None, Some(count)) => (size.saturating_sub(count), size.saturating_sub(1)),
        (Some(first), last) => (first, last.unwrap_or(u64::MAX).min(size.saturating_sub(1))),
    };
    if first >= size {
        Wanted::Beyond
    } else if first > last || (first == 0 && last == size - 1) {
        Wanted::All
    } else {
        Wanted::Part { first, last }
    }
}

fn bounds(range: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (first, last) = range.trim().strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| match text.trim() {
        "" => Some(None),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok().map(Some),
        _ => None,
    };
    Some((number(first)?, number(last)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_as_clients_send_them() {
        let part = |first, last| Wanted::Part { first, last };
        for (header, expected) in [
            (None, Wanted::All),
            (Some("bytes=0-9"), part(0, 9)),
            (Some("bytes=90-"), part(90, 99)),
            (Some("bytes=-10"), part(90, 99)),
            (Some("bytes=-1000"), Wanted::All),
            (Some("bytes=50-1000"), part(50, 99)),
            (Some("bytes=0-99"), Wanted::All),
            (Some("bytes=0-"), Wanted::All),
            (Some("bytes=100-"), Wanted::Beyond),
            (Some("bytes=-0"), Wanted::Beyond),
            (Some("bytes=0-1,5-6"), Wanted::All),
            (Some("bytes=9-3"), Wanted::All),
            (Some("lines=1-2"), Wanted::All),
            (Some("bytes=+1-2"), Wanted::All),
            (Some("bytes=99999999999999999999999-"), Wanted::All),
        ] {
            assert_eq!(wanted(header, 100), expected, "{header:?}");
        }
        assert_eq!(wanted(Some("bytes=0-0"), 0), Wanted::Beyond);
    }

    proptest! {
        #[test]
        fn parts_lie_within_the_file(header in "bytes=[0-9]{0,4}-[0-9]{0,4}", size in 0u64..3000) {
            if let Wanted::Part { first, last } = wanted(Some(&header), size) {
                prop_assert!(first <= last && last < size);
            }
        }

        #[test]
        fn any_header_is_survived(header in ".{0,40}", size in any::<u64>()) {
            let _ = wanted(Some(&header), size);
        }
    }
}
