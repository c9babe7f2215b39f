//! The processor and the memory.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Roots;
use crate::statistics::parse;

#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub(crate) struct CpuInfo {
    cpu_count: Option<usize>,
    /// `32bit` or `64bit`.
    bits: &'static str,
    /// Name of the architecture.
    processor: String,
    cpu_desc: String,
    serial_number: String,
    hardware_desc: String,
    model: String,
    total_memory: Option<u64>,
    memory_units: String,
}

pub(super) fn read(roots: &Roots) -> CpuInfo {
    let cpuinfo = roots.text("/proc/cpuinfo").unwrap_or_default();
    let meminfo = roots.text("/proc/meminfo").unwrap_or_default();
    let memory = parse::amount(format!("{meminfo}\n").as_bytes(), "MemTotal").map(|(amount, unit)| (amount, unit.to_owned()));
    let processor = rustix::system::uname().machine().to_string_lossy().into_owned();
    let described = describe(&cpuinfo);
    CpuInfo {
        cpu_count: described.cpu_count.or_else(|| std::thread::available_parallelism().ok().map(Into::into)),
        bits: if cfg!(target_pointer_width = "64") { "64bit" } else { "32bit" },
        processor,
        total_memory: memory.as_ref().map(|(amount, _)| *amount),
        memory_units: memory.map(|(_, unit)| unit).unwrap_or_default(),
        ..described
    }
}

/// What `/proc/cpuinfo` says: a block per processor, and on many boards one for the board at the end.
fn describe(cpuinfo: &str) -> CpuInfo {
    let lines = || cpuinfo.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()));
    let first = |wanted: &str| lines().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned()).unwrap_or_default();
    let board = cpuinfo.trim_end().rsplit("\n\n").next().unwrap_or("");
    let of_board = |wanted: &str| {
        let mut lines = board.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| name.trim() == wanted).map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let count = lines().filter(|(name, _)| *name == "processor").count();
    CpuInfo {
        cpu_count: (count > 0).then_some(count),
        cpu_desc: first("model name"),
        serial_number: of_board("Serial").trim_start_matches('0').to_owned(),
        hardware_desc: of_board("Hardware"),
        model: of_board("Model"),
        ..CpuInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::tests::tree;
    use proptest::prelude::*;

    const BOARD: &str = "processor\t: 0\nmodel name\t: ARMv7 Processor rev 3 (v7l)\nFeatures\t: half\n\nprocessor\t: 1\nmodel name\t: other\n\n\
                         Hardware\t: BCM2711\nRevision\t: c03111\nSerial\t\t: 100000005d9c3abc\nModel\t\t: Raspberry Pi 4 Model B Rev 1.1\n";

    #[test]
    fn a_board_says_what_it_is() {
        let info = read(&tree(&[("/proc/cpuinfo", BOARD), ("/proc/meminfo", "MemTotal:  3884136 kB\n")]).1);
        assert_eq!((info.cpu_count, info.cpu_desc.as_str()), (Some(2), "ARMv7 Processor rev 3 (v7l)"));
        assert_eq!((info.hardware_desc.as_str(), info.model.as_str()), ("BCM2711", "Raspberry Pi 4 Model B Rev 1.1"));
        assert_eq!(
            (info.serial_number.as_str(), info.total_memory, info.memory_units.as_str()),
            ("100000005d9c3abc", Some(3_884_136), "kB")
        );
        assert_eq!(describe(&BOARD.replace("100000005d", "000000005d")).serial_number, "5d9c3abc");
    }

    #[test]
    fn a_large_machine_is_counted_whole() {
        let flags = "abcdef ".repeat(200);
        let core = |core: usize| format!("processor\t: {core}\nmodel name\t: AMD EPYC 7763 64-Core Processor\nflags\t\t: {flags}\n\n");
        let info = read(&tree(&[("/proc/cpuinfo", &(0..64).map(core).collect::<String>())]).1);
        assert_eq!((info.cpu_count, info.cpu_desc.as_str(), info.model.as_str()), (Some(64), "AMD EPYC 7763 64-Core Processor", ""));
    }

    #[test]
    fn a_machine_that_says_nothing_has_empty_fields() {
        let info = read(&tree(&[]).1);
        assert_eq!((info.cpu_desc.as_str(), info.total_memory, info.memory_units.as_str()), ("", None, ""));
        assert!(info.cpu_count > Some(0) && !info.processor.is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_described(text in "(processor|model name|Serial|Hardware|Model|[a-z]{0,4})?[\t ]*:?[ \n0-9a-zA-Z\u{0}\u{e9}]{0,80}", cut in 0_usize..200) {
            let (text, cut) = (format!("{text}\n\n{text}"), cut);
            let cut = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let described = describe(&text[..cut]);
            prop_assert!(described.cpu_count.is_none_or(|count| count > 0));
            prop_assert!(described.cpu_desc.len() <= cut && described.serial_number.len() <= cut);
        }
    }
}
