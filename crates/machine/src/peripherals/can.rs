//! Boards on a CAN bus that have no number yet: asked by the firmware's query, answered with their identity (wire/3-devices.md section 10.8).

use std::io;
use std::time::{Duration, Instant};

use protocol::ApiError;
use protocol::error::ApiResult;
use schemars::JsonSchema;
use serde::Serialize;
use socketcan::{CanDataFrame, CanFilter, CanSocket, EmbeddedFrame, Frame, Socket, SocketOptions};

/// The query, and the answers to it.
const QUERY_ID: u32 = 0x3f0;
const ANSWER_ID: u32 = 0x3f1;
/// Bits of a number that the filter compares: all 11.
const ALL_BITS: u32 = 0x7ff;
/// First byte of an answer.
const NEED_NUMBER: u8 = 0x20;

/// Time in which answers are gathered.
const GATHER: Duration = Duration::from_secs(2);
/// Boards that are listed.
const MAX_BOARDS: usize = 256;
/// Longest name of an interface, as the kernel has it.
const MAX_INTERFACE: usize = 15;

/// A board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct CanNode {
    /// 12 hexadecimal digits.
    uuid: String,
    /// `Klipper`, `Katapult` or `Unknown`.
    application: &'static str,
}

/// Asks the boards on this interface; takes two seconds.
pub(super) fn scan(interface: &str) -> ApiResult<Vec<CanNode>> {
    let is_name = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
    if interface.is_empty() || interface.len() > MAX_INTERFACE || !interface.bytes().all(is_name) {
        return Err(ApiError::argument("Invalid value for 'interface': expected the name of a CAN interface"));
    }
    ask(interface).map_err(|error| ApiError::internal(format!("CAN interface '{interface}': {error}")))
}

fn ask(interface: &str) -> io::Result<Vec<CanNode>> {
    let socket = CanSocket::open(interface)?;
    socket.set_filters(&[CanFilter::new(ANSWER_ID, ALL_BITS)])?;
    let query = CanDataFrame::from_raw_id(QUERY_ID, &[0]).ok_or(io::ErrorKind::InvalidInput)?;
    socket.write_frame(&query)?;
    let end = Instant::now() + GATHER;
    let mut found: Vec<CanNode> = Vec::new();
    while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        match socket.read_frame_timeout(left) {
            Ok(frame) => {
                let answer = (frame.raw_id() == ANSWER_ID).then(|| node(frame.data())).flatten();
                found.extend(answer.filter(|node| !found.contains(node) && found.len() < MAX_BOARDS));
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The board that answers with these bytes.
fn node(data: &[u8]) -> Option<CanNode> {
    let (first, rest) = data.split_first()?;
    let identity = rest.get(..6).filter(|_| *first == NEED_NUMBER)?;
    let application = match rest.get(6) {
        Some(0x01) => "Klipper",
        Some(0x11) => "Katapult",
        _ => "Unknown",
    };
    Some(CanNode { uuid: identity.iter().map(|byte| format!("{byte:02x}")).collect(), application })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn answers_name_board_and_application() {
        let found = |data: &[u8]| node(data).map(|node| (node.uuid, node.application));
        assert_eq!(found(&[0x20, 1, 2, 3, 0xab, 0xcd, 0xef, 0x01]), Some(("010203abcdef".to_owned(), "Klipper")));
        assert_eq!(found(&[0x20, 1, 2, 3, 4, 5, 6, 0x11]).unwrap().1, "Katapult");
        assert_eq!(found(&[0x20, 1, 2, 3, 4, 5, 6]).unwrap().1, "Unknown");
        assert_eq!((found(&[0x21, 1, 2, 3, 4, 5, 6, 1]), found(&[0x20, 1, 2, 3, 4, 5]), found(&[])), (None, None, None));
    }

    #[test]
    fn interfaces_that_are_not_there_are_errors() {
        assert_eq!(scan("nocan9").unwrap_err().kind.http_status(), 500);
        for name in ["", "a/b", "a name", "sixteen-letters-"] {
            assert!(scan(name).unwrap_err().message.contains("'interface'"));
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_a_board_or_nothing(data in proptest::collection::vec(any::<u8>(), 0..70)) {
            if let Some(node) = node(&data) {
                prop_assert!(data.len() >= 7 && node.uuid.len() == 12);
            }
        }
    }
}
