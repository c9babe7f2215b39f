//! A connection without a network: what a broker sent, through reader and session. For fuzzing.

use super::Version;
use super::codec::ConnAck;
use super::reader::Reader;
use super::session::Session;

/// What `bytes` of a broker cause when they arrive in pieces of `step` bytes: each packet and its effect, what we would send, and the fault that
/// ends the connection.
#[must_use]
pub fn replay(version: Version, bytes: &[u8], step: usize) -> (Vec<String>, Vec<u8>, Option<&'static str>) {
    let mut reader = Reader::new(version);
    let mut session = Session::<u8>::new(version, ConnAck::default());
    let mut effects = Vec::new();
    for piece in bytes.chunks(step.max(1)) {
        reader.buffer.extend_from_slice(piece);
        loop {
            let taken = match reader.next() {
                Ok(Some(packet)) => session.take(packet),
                Ok(None) => break,
                Err(fault) => Err(fault),
            };
            match taken {
                Ok(effect) => effects.push(format!("{effect:?}")),
                Err(fault) => return (effects, session.out.to_vec(), Some(fault.0)),
            }
        }
    }
    (effects, session.out.to_vec(), None)
}
