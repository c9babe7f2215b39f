//! Messages of one sensor that wait to be read. No I/O.

use std::collections::VecDeque;

use bytes::Bytes;

/// Messages that wait for one sensor; further ones are lost, and a line of the log counts them.
pub const MAX_WAITING: usize = 1024;

/// Bytes of messages that wait for one sensor.
pub const MAX_WAITING_BYTES: usize = 2 * 1024 * 1024;

/// Waiting messages of one sensor with which reading begins before the second is over.
pub const MANY_WAITING: usize = 64;

/// A message that waits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) payload: Bytes,
    /// The connection to the broker that brought it.
    pub(super) epoch: u64,
}

#[derive(Debug, Default)]
pub(super) struct Inbox {
    letters: VecDeque<Letter>,
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
    pub(super) fn add(&mut self, letter: Letter) -> Added {
        if self.letters.len() >= MAX_WAITING || self.bytes + letter.payload.len() > MAX_WAITING_BYTES {
            return Added::Lost;
        }
        self.bytes += letter.payload.len();
        self.letters.push_back(letter);
        if self.letters.len() == MANY_WAITING { Added::Many } else { Added::Waits }
    }

    /// The oldest one.
    pub(super) fn take(&mut self) -> Option<Letter> {
        let letter = self.letters.pop_front()?;
        self.bytes -= letter.payload.len();
        Some(letter)
    }

    pub(super) fn len(&self) -> usize {
        self.letters.len()
    }

    /// Puts back what [`Inbox::take`] gave.
    pub(super) fn put_back(&mut self, letter: Letter) {
        self.bytes += letter.payload.len();
        self.letters.push_front(letter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(payload: impl Into<Bytes>) -> Letter {
        Letter { payload: payload.into(), epoch: 0 }
    }

    #[test]
    fn number_and_size_are_bounded_and_order_is_kept() {
        let mut inbox = Inbox::default();
        let added: Vec<_> = (0..=MAX_WAITING).map(|n| inbox.add(letter(n.to_string()))).collect();
        assert_eq!((added[0], added[MANY_WAITING - 2], added[MANY_WAITING - 1]), (Added::Waits, Added::Waits, Added::Many));
        assert_eq!((added[MAX_WAITING - 1], added[MAX_WAITING]), (Added::Waits, Added::Lost));
        let first = inbox.take().unwrap();
        inbox.put_back(first);
        let all: Vec<_> = std::iter::from_fn(|| inbox.take()).collect();
        assert_eq!(all, (0..MAX_WAITING).map(|n| letter(n.to_string())).collect::<Vec<_>>());
        let big = Bytes::from(vec![b'x'; MAX_WAITING_BYTES / 2]);
        assert_eq!([0; 3].map(|_| inbox.add(letter(big.clone()))), [Added::Waits, Added::Waits, Added::Lost]);
        inbox.take();
        assert_eq!(inbox.add(letter(big)), Added::Waits);
    }
}
