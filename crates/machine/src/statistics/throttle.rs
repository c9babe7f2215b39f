//! Whether a Raspberry Pi slows its processor down: the firmware's flags.
//!
//! The kernel's driver offers them as a file. Where it does not, the board's own tool is asked; the request to the firmware itself
//! would need a system call that Rust can only make with `unsafe`.

use std::path::PathBuf;
use std::time::Duration;

use protocol::machine::Throttled;
use runtime::command::Command;

use crate::Roots;
use crate::roots::text_of;

/// The file of the kernel's driver.
const FILE: &str = "/sys/devices/platform/soc/soc:firmware/get_throttled";
/// The board's tool, and the device that it talks to.
const TOOL: &str = "/usr/bin/vcgencmd";
const MAILBOX: &str = "/dev/vcio";

/// Time for the tool to answer.
const TOOL_LIMIT: Duration = Duration::from_secs(2);

/// Meaning of the bits.
const FLAGS: &[(u32, &str)] = &[
    (0, "Under-Voltage Detected"),
    (1, "Frequency Capped"),
    (2, "Currently Throttled"),
    (3, "Temperature Limit Active"),
    (16, "Previously Under-Volted"),
    (17, "Previously Frequency Capped"),
    (18, "Previously Throttled"),
    (19, "Previously Temperature Limited"),
];

/// Where the flags come from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Source {
    File(PathBuf),
    Tool(PathBuf),
}

/// The source of this machine, if it is such a board.
pub(super) fn source(roots: &Roots) -> Option<Source> {
    let file = roots.path(FILE);
    if file.exists() {
        return Some(Source::File(file));
    }
    let tool = roots.path(TOOL);
    (tool.exists() && roots.path(MAILBOX).exists()).then_some(Source::Tool(tool))
}

impl Source {
    /// The flags now; `?` when they cannot be had.
    pub(super) async fn read(&self) -> Throttled {
        let text = match self {
            Self::File(path) => text_of(path),
            Self::Tool(path) => Command::new(path).arg("get_throttled").limit(TOOL_LIMIT).text().await.ok(),
        };
        text.and_then(|text| bits(&text)).map_or_else(|| Throttled { bits: 0, flags: vec!["?"] }, throttled)
    }
}

fn throttled(bits: u32) -> Throttled {
    Throttled { bits, flags: FLAGS.iter().filter(|(bit, _)| bits & (1 << bit) != 0).map(|(_, flag)| *flag).collect() }
}

/// `throttled=0x50005`, or the number alone.
fn bits(text: &str) -> Option<u32> {
    let number = text.trim().rsplit('=').next()?;
    u32::from_str_radix(number.strip_prefix("0x").unwrap_or(number), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::tests::tree;
    use proptest::prelude::*;

    #[test]
    fn bits_have_names() {
        assert_eq!(
            throttled(bits("throttled=0x50005\n").unwrap()).flags,
            ["Under-Voltage Detected", "Currently Throttled", "Previously Under-Volted", "Previously Throttled",]
        );
        assert_eq!((bits("0"), bits("80000"), bits("error"), bits("")), (Some(0), Some(0x80000), None, None));
    }

    #[tokio::test]
    async fn the_file_is_preferred_and_a_broken_one_says_so() {
        let (_keep, roots) = tree(&[(FILE, "50000\n"), (TOOL, ""), (MAILBOX, "")]);
        let found = source(&roots).unwrap();
        assert_eq!(found.read().await.flags, ["Previously Under-Volted", "Previously Throttled"]);
        std::fs::write(roots.path(FILE), "none").unwrap();
        assert_eq!(found.read().await, Throttled { bits: 0, flags: vec!["?"] });
        assert_eq!(source(&tree(&[(TOOL, "")]).1), None);
    }

    #[tokio::test]
    async fn the_tool_is_asked_where_there_is_no_file() {
        use std::os::unix::fs::PermissionsExt;
        let (_keep, roots) = tree(&[(TOOL, "#!/bin/sh\n[ \"$1\" = get_throttled ] && echo throttled=0x2\n"), (MAILBOX, "")]);
        std::fs::set_permissions(roots.path(TOOL), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(source(&roots).unwrap().read().await.flags, ["Frequency Capped"]);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(text in "(throttled=)?(0x)?[0-9a-fA-Fx=+-]{0,12}|.{0,20}") {
            if let Some(bits) = bits(&text) {
                prop_assert_eq!(throttled(bits).bits, bits);
            }
        }

        #[test]
        fn bits_are_read_as_they_are_written(bits: u32) {
            prop_assert_eq!(super::bits(&format!("throttled={bits:#x}\n")), Some(bits));
        }
    }
}
