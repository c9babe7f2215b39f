//! Names of old log files: `core.log.2026-11-21`, further ones of the same day `core.log.2026-11-21.2`, `.3`, ...

use jiff::civil::Date;

/// Old log files that are kept beside the current one (wire document 1, section 8.7).
pub const KEPT_FILES: usize = 2;

/// Place of an archive in the order of time: its day and its number within the day.
type Rank = (Date, u32);

/// Name for the next archive of the log `base` that holds lines of `day`, beside the files `present`.
pub(super) fn next_name(base: &str, day: Date, present: &[String]) -> String {
    let of_the_day = present.iter().filter_map(|name| rank(base, name)).filter(|rank| rank.0 == day);
    match of_the_day.map(|rank| rank.1).max() {
        None => format!("{base}.{day}"),
        Some(last) => format!("{base}.{day}.{}", last.saturating_add(1)),
    }
}

/// Which of the files `present` are archives of `base` that are no longer kept, now that `fresh` has been made.
///
/// The fresh one is kept even if a wrong clock gave it an early day. Files with any other name are never touched.
pub(super) fn expired(base: &str, fresh: &str, present: &[String]) -> Vec<String> {
    let mut older: Vec<(Rank, &String)> =
        present.iter().filter(|name| *name != fresh).filter_map(|name| Some((rank(base, name)?, name))).collect();
    older.sort_unstable_by(|a, b| b.cmp(a));
    older.into_iter().skip(KEPT_FILES - 1).map(|(_, name)| name.clone()).collect()
}

/// The rank of `name` among the archives of `base`; `None` if it is not written exactly as an archive's name is.
fn rank(base: &str, name: &str) -> Option<Rank> {
    let suffix = name.strip_prefix(base)?.strip_prefix('.')?;
    let (day, number) = suffix.split_once('.').map_or((suffix, 1), |(day, number)| (day, number.parse().unwrap_or(0)));
    let day: Date = day.parse().ok()?;
    let written_by_us = match number {
        0 => return None,
        1 => day.to_string(),
        number => format!("{day}.{number}"),
    };
    (written_by_us == suffix).then_some((day, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;
    use proptest::prelude::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn further_archives_of_a_day_are_numbered() {
        let day = date(2026, 11, 21);
        assert_eq!(next_name("core.log", day, &[]), "core.log.2026-11-21");
        assert_eq!(next_name("core.log", day, &names(&["core.log.2026-11-20.7"])), "core.log.2026-11-21");
        assert_eq!(next_name("core.log", day, &names(&["core.log.2026-11-21"])), "core.log.2026-11-21.2");
        assert_eq!(next_name("core.log", day, &names(&["core.log.2026-11-21.9", "core.log.2026-11-21.10"])), "core.log.2026-11-21.11");
    }

    #[test]
    fn two_are_kept() {
        let present = names(&["l.2026-11-21.10", "l.2026-11-19", "l.2026-11-21.9", "l.2026-11-21", "l"]);
        assert_eq!(expired("l", "l.2026-11-21.10", &present), ["l.2026-11-21", "l.2026-11-19"]);
        let early = names(&["l.1970-01-01", "l.2026-11-20", "l.2026-11-19"]);
        assert_eq!(expired("l", "l.1970-01-01", &early), ["l.2026-11-19"]);
    }

    #[test]
    fn files_of_others_are_never_touched() {
        let foreign = names(&[
            "core.log",
            "core.log.1",
            "core.log.gz",
            "core.log.2026-11-21.gz",
            "core.log.2026-11-21.0",
            "core.log.2026-11-21.1",
            "core.log.2026-11-21.02",
            "core.log.2026-11-21.-2",
            "core.log.20261121",
            "core.log.2026-11-21T00",
            "core.log.2026-02-30",
            "klippy.log.2026-11-21",
            "xcore.log.2026-11-21",
        ]);
        assert_eq!(expired("core.log", "", &foreign), names(&[]));
    }

    proptest! {
        #[test]
        fn a_made_name_is_read_back(year in 1970_i16..3000, month in 1_i8..=12, day in 1_i8..=28, last in 1_u32..1000) {
            let day = date(year, month, day);
            let first = next_name("a.log", day, &[]);
            prop_assert_eq!(rank("a.log", &first), Some((day, 1)));
            let next = next_name("a.log", day, &[first, format!("a.log.{day}.{}", last + 1)]);
            prop_assert_eq!(rank("a.log", &next), Some((day, last + 2)));
        }

        #[test]
        fn any_name_is_read_without_a_panic(name in "(a\\.)?[0-9.-]{0,24}|\\PC{0,20}") {
            let _: Option<Rank> = rank("a", &name);
        }
    }
}
