//! Messages of one sensor that wait to be read. No I/O.

use std::collections::VecDeque;

use bytes::Bytes;

/// Messages that wait for one sensor; further ones are lost, and a line of the log counts them.
pub const MAX_WAITING: usize = 1024;

/// Bytes of messages that wait for one sensor.
pub const MAX_WAITING_BYTES: usize = 2 * 1024 * 1024;

/// Waiting messages of one sensor with which reading begins before the second is over.
pub const MANY_WAITING: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Inbox {
    messages: VecDeque<Bytes>,
    bytes: usize,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// It waits.
    Waits,
    /// It waits, and with it there are many.
    Many,
    /// There was no room for it.
    Lost,
}

impl Inbox {
    pub(super) fn add(&mut self, payload: Bytes) -> Added {
        if self.messages.len() >= MAX_WAITING || self.bytes + payload.len() > MAX_WAITING_BYTES {
            return Added::Lost;
        }
        self.bytes += payload.len();
        self.messages.push_back(payload);
        if self.messages.len() == MANY_WAITING { Added::Many } else { Added::Waits }
    }

    /// The oldest one.
    pub(super) fn take(&mut self) -> Option<Bytes> {
        let payload = self.messages.pop_front()?;
        self.bytes -= payload.len();
        Some(payload)
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Puts back what [`Inbox::take`] gave.
    pub(super) fn put_back(&mut self, payload: Bytes) {
        self.bytes += payload.len();
        self.messages.push_front(payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_size_are_bounded_and_order_is_kept() {
        let mut inbox = Inbox::default();
        let added: Vec<_> = (0..=MAX_WAITING).map(|n| inbox.add(Bytes::from(n.to_string()))).collect();
        assert_eq!((added[0], added[MANY_WAITING - 2], added[MANY_WAITING - 1]), (Added::Waits, Added::Waits, Added::Many));
        assert_eq!((added[MAX_WAITING - 1], added[MAX_WAITING]), (Added::Waits, Added::Lost));
        let first = inbox.take().unwrap();
        inbox.put_back(first);
        let all: Vec<_> = std::iter::from_fn(|| inbox.take()).collect();
        assert_eq!(all, (0..MAX_WAITING).map(|n| Bytes::from(n.to_string())).collect::<Vec<_>>());
        let big = Bytes::from(vec![b'x'; MAX_WAITING_BYTES / 2]);
        assert_eq!([0; 3].map(|_| inbox.add(big.clone())), [Added::Waits, Added::Waits, Added::Lost]);
        inbox.take();
        assert_eq!(inbox.add(big), Added::Waits);
    }
}
