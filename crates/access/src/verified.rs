//! Tokens whose signature was checked before. Only that is remembered: whether the session lives and the token is in time is asked every time.

use std::collections::HashMap;

use parking_lot::RwLock;

use crate::random::Digest;
use crate::token::TokenType;

/// Tokens that are remembered; when they are that many, all are forgotten, which costs each one signature check.
const MAX_VERIFIED: usize = 1024;

/// Tokens by digest: the tokens themselves are not kept.
#[derive(Default)]
pub(crate) struct Verified(RwLock<HashMap<Digest, Known>>);

/// What the signature vouched for.
#[derive(Clone)]
pub(crate) struct Known {
    /// Id of the session whose key signed it.
    pub(crate) session: String,
    pub(crate) kind: TokenType,
    /// Unix seconds.
    pub(crate) expires: i64,
}

impl Verified {
    pub(crate) fn get(&self, digest: &Digest) -> Option<Known> {
        self.0.read().get(digest).cloned()
    }

    pub(crate) fn add(&self, digest: Digest, known: Known) {
        let mut all = self.0.write();
        if all.len() >= MAX_VERIFIED {
            all.clear();
        }
        all.insert(digest, known);
    }

    /// Forgets everything: a session ended.
    pub(crate) fn clear(&self) {
        self.0.write().clear();
    }
}
