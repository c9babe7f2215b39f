//! Texts of `/proc` (pure). Lines that look different than expected are passed over: a kernel may always say more.

use std::str::from_utf8;

/// Time of a processor in ticks since the start of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTimes {
    /// All ticks.
    pub total: u64,
    /// Ticks without work.
    pub idle: u64,
}

impl CpuTimes {
    /// Percent of the time since `before` that was work, with two decimals. 0 when no time passed or counters went back.
    #[must_use]
    pub fn usage_since(self, before: Self) -> f64 {
        let total = self.total.saturating_sub(before.total);
        let idle = self.idle.saturating_sub(before.idle).min(total);
        if total == 0 { 0.0 } else { two_decimals(100.0 * (total - idle) as f64 / total as f64) }
    }
}

/// Counters of one line of `/proc/net/dev`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounters {
    /// Bytes received and sent.
    pub bytes: [u64; 2],
    /// Packets received and sent.
    pub packets: [u64; 2],
    /// Faulty packets.
    pub errors: [u64; 2],
    /// Dropped packets.
    pub drops: [u64; 2],
}

/// `number` rounded to hundredths.
#[must_use]
pub fn two_decimals(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// The lines `cpu`, `cpu0`, … of `/proc/stat`, in their order.
pub fn cpus(text: &[u8]) -> impl Iterator<Item = (&str, CpuTimes)> {
    // A text that was cut at the end of the buffer has a last line without an end, which is not to be believed.
    complete_lines(text).filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let name =
            words.next().filter(|name| name.strip_prefix("cpu").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit())))?;
        let mut times = CpuTimes::default();
        for (index, word) in words.enumerate() {
            let ticks: u64 = word.parse().ok()?;
            times.total = times.total.checked_add(ticks)?;
            if index == 3 {
                times.idle = ticks;
            }
        }
        (times.total > 0).then_some((name, times))
    })
}

/// The interfaces of `/proc/net/dev`, in their order, with their whole names.
pub fn links(text: &[u8]) -> impl Iterator<Item = (&str, LinkCounters)> {
    complete_lines(text).filter_map(|line| {
        let (name, counters) = line.rsplit_once(':')?;
        let name = name.trim();
        let mut numbers = [0; 16];
        let mut words = counters.split_ascii_whitespace();
        for number in &mut numbers {
            *number = next_number(&mut words)?;
        }
        let pair = |index: usize| [numbers[index], numbers[index + 8]];
        (!name.is_empty()).then_some((name, LinkCounters { bytes: pair(0), packets: pair(1), errors: pair(2), drops: pair(3) }))
    })
}

/// Number and unit of a line such as `MemTotal:  123 kB`.
#[must_use]
pub fn amount<'t>(text: &'t [u8], name: &str) -> Option<(u64, &'t str)> {
    complete_lines(text).find_map(|line| {
        let mut words = line.strip_prefix(name)?.strip_prefix(':')?.split_ascii_whitespace();
        Some((next_number(&mut words)?, words.next().unwrap_or("")))
    })
}

/// The second number of `/proc/self/statm`: pages of ours that are in memory.
#[must_use]
pub fn resident_pages(text: &[u8]) -> Option<u64> {
    let mut words = from_utf8(text).ok()?.split_ascii_whitespace().skip(1);
    next_number(&mut words)
}

fn next_number<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<u64> {
    words.next()?.parse().ok()
}

fn complete_lines(text: &[u8]) -> impl Iterator<Item = &str> {
    text.split_inclusive(|byte| *byte == b'\n').filter_map(|line| from_utf8(line.strip_suffix(b"\n")?).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &[u8] = b"cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 5 0 5 35 5 0 0 0 0 0\ncpufreq 1\ncpu1 x\nintr 5 0 0\nctxt 7\ncpu3 1 2 3";
    const NET: &[u8] = b"Inter-|   Receive  |  Transmit\n face |bytes packets\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\nwlan-0.5:100 2 0 0 0 0 0 0 50 1 0 0 0 0 0 0\n bad: 1 2\n";

    #[test]
    fn processors_are_read_and_other_lines_passed_over() {
        let found: Vec<_> = cpus(STAT).collect();
        assert_eq!(found, [("cpu", CpuTimes { total: 100, idle: 70 }), ("cpu0", CpuTimes { total: 50, idle: 35 })]);
        let before = CpuTimes { total: 70, idle: 50 };
        assert_eq!(found[0].1.usage_since(before), 33.33);
        assert_eq!((before.usage_since(before), before.usage_since(found[0].1)), (0.0, 0.0));
    }

    #[test]
    fn interfaces_keep_their_whole_names() {
        let found: Vec<_> = links(NET).collect();
        assert_eq!(found[0], ("lo", LinkCounters { bytes: [1, 9], packets: [2, 10], errors: [3, 11], drops: [4, 12] }));
        assert_eq!((found[1].0, found[1].1.bytes, found.len()), ("wlan-0.5", [100, 50], 2));
    }

    #[test]
    fn amounts_are_found_by_their_whole_name() {
        let text = b"MemTotalX: 1 kB\nMemTotal:  2048 kB\nRss: 5\nMemAvailable: 7";
        assert_eq!((amount(text, "MemTotal"), amount(text, "Rss")), (Some((2048, "kB")), Some((5, ""))));
        assert_eq!((resident_pages(b"20 7 1\n"), resident_pages(b"20"), resident_pages(b"a b")), (Some(7), None, None));
        assert_eq!((amount(text, "MemAvailable"), amount(text, "Mem")), (None, None));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = (cpus(&text).count(), links(&text).count(), amount(&text, "a"));
        }

        #[test]
        fn usage_is_a_percentage(a in any::<(u64, u64)>(), b in any::<(u64, u64)>()) {
            let usage = CpuTimes { total: a.0, idle: a.1 }.usage_since(CpuTimes { total: b.0, idle: b.1 });
            prop_assert!((0.0..=100.0).contains(&usage));
        }

        #[test]
        fn what_the_kernel_writes_is_read_back(ticks in prop::collection::vec(0u64..1_000_000, 4..10), counters in prop::array::uniform16(any::<u64>())) {
            let words = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
            let text = format!("cpu7 {}\n", words(&ticks));
            let total = ticks.iter().sum();
            let expected = (total > 0).then_some(("cpu7", CpuTimes { total, idle: ticks[3] }));
            prop_assert_eq!(cpus(text.as_bytes()).next(), expected);
            let text = format!("eth0: {}\n", words(&counters));
            prop_assert_eq!(links(text.as_bytes()).next().unwrap().1.drops, [counters[3], counters[11]]);
        }
    }
}
