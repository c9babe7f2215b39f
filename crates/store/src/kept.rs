//! Answers that are still known: clients read the same things whenever they start, and waking a database thread costs more than reading.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// Answers to different questions that are kept at one time; the oldest one goes first.
pub const MAX_KEPT_ANSWERS: usize = 32;

/// Bytes of answers to questions of one kind that are kept; the oldest ones go first, a larger one is not kept at all.
pub const MAX_KEPT_BYTES: usize = 256 * 1024;

/// Answers `T` to questions `Q`, as long as nothing has been committed since they were read; see [`crate::Store::recall`].
#[derive(Debug)]
pub struct KeptAnswers<Q, T> {
    /// Bytes that an answer takes, about.
    weigh: fn(&T) -> usize,
    known: Mutex<VecDeque<Known<Q, T>>>,
}

#[derive(Debug)]
struct Known<Q, T> {
    question: Q,
    /// Commits before it was read.
    commits: u64,
    answer: T,
}

impl<Q: PartialEq, T: Clone> KeptAnswers<Q, T> {
    /// Nothing yet. `weigh` tells how many bytes an answer takes, about.
    #[must_use]
    pub fn new(weigh: fn(&T) -> usize) -> Self {
        Self { weigh, known: Mutex::default() }
    }

    /// The answer, if it was read when there were as many commits.
    pub(crate) fn get(&self, question: &Q, commits: u64) -> Option<T> {
        let known = self.known.lock();
        known.iter().find(|known| known.commits == commits && known.question == *question).map(|known| known.answer.clone())
    }

    /// Keeps an answer. `commits` was noted before it was read.
    pub(crate) fn put(&self, question: Q, commits: u64, answer: &T) {
        let Some(mut room) = MAX_KEPT_BYTES.checked_sub((self.weigh)(answer)) else { return };
        let mut known = self.known.lock();
        known.retain(|known| known.commits >= commits && known.question != question);
        known.push_front(Known { question, commits, answer: answer.clone() });
        // What no longer fits behind the newest one.
        let fits = known.iter().skip(1).take_while(|known| {
            let weight = (self.weigh)(&known.answer);
            let fits = weight <= room;
            room = room.saturating_sub(weight);
            fits
        });
        let fits = fits.count();
        known.truncate((1 + fits).min(MAX_KEPT_ANSWERS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> KeptAnswers<u32, String> {
        KeptAnswers::new(String::len)
    }

    #[test]
    fn an_answer_holds_until_the_next_commit() {
        let kept = kept();
        kept.put(1, 7, &"one".to_owned());
        assert_eq!(kept.get(&1, 7).as_deref(), Some("one"));
        assert_eq!((kept.get(&1, 8), kept.get(&2, 7)), (None, None));
        kept.put(2, 8, &"two".to_owned());
        assert_eq!(kept.known.lock().len(), 1, "what is outdated goes");
        kept.put(2, 8, &"two again".to_owned());
        assert_eq!(kept.get(&2, 8).as_deref(), Some("two again"));
    }

    #[test]
    fn an_answer_that_was_read_late_does_not_drive_out_newer_ones() {
        let kept = kept();
        kept.put(1, 8, &"new".to_owned());
        kept.put(1, 7, &"old".to_owned());
        assert_eq!(kept.get(&1, 8), None, "the same question: read again");
        kept.put(1, 8, &"new".to_owned());
        kept.put(2, 7, &"other".to_owned());
        assert_eq!(kept.get(&1, 8).as_deref(), Some("new"));
    }

    #[test]
    fn number_and_size_are_bounded() {
        let kept = kept();
        for question in 0..100 {
            kept.put(question, 1, &"x".to_owned());
        }
        assert_eq!(kept.known.lock().len(), MAX_KEPT_ANSWERS);
        assert_eq!((kept.get(&99, 1).is_some(), kept.get(&0, 1)), (true, None));
        kept.put(200, 1, &"x".repeat(MAX_KEPT_BYTES - 3));
        assert_eq!(kept.known.lock().len(), 4, "three small ones still fit");
        kept.put(201, 1, &"x".repeat(MAX_KEPT_BYTES + 1));
        assert_eq!((kept.get(&201, 1), kept.known.lock().len()), (None, 4));
    }
}
