//! What a request shows beside its address, and in which order it counts. wire/1-core.md section 6.1.

use rpc::{Connection, Identity};

use crate::accounts::{Accounts, Credential};
use crate::gate::Admission;

/// Credentials of a request as they were sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shown<'a> {
    /// Header `Authorization`.
    pub authorization: Option<&'a str>,
    /// Header `X-Access-Token`.
    pub access_token_header: Option<&'a str>,
    /// `access_token` in the query string.
    pub access_token_query: Option<&'a str>,
    /// `token` in the query string: a oneshot token.
    pub oneshot: Option<&'a str>,
    /// Header `X-Api-Key`.
    pub api_key: Option<&'a str>,
}

impl<'a> Shown<'a> {
    /// The access token, wherever it stands. A header of another scheme is somebody else's (a proxy's), and then no other place is looked at.
    fn access_token(&self) -> Option<&'a str> {
        if let Some(authorization) = self.authorization {
            let (scheme, token) = authorization.trim().split_once(' ').unwrap_or((authorization.trim(), ""));
            return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim());
        }
        self.access_token_header.or(self.access_token_query)
    }
}

impl Accounts {
    /// Completes what the address alone says by what the request shows.
    #[must_use]
    pub fn admit(&self, by_address: Admission, shown: &Shown<'_>) -> Admission {
        let peer = by_address.peer();
        // A token that does not count is never outweighed by the address: whoever shows one wants to be that user, or nobody.
        if let Some(token) = shown.access_token() {
            let identity = self.authenticate(Credential::AccessToken(token)).unwrap_or_default();
            return Admission { identity, ..by_address };
        }
        let oneshot = shown.oneshot.and_then(|token| self.take_oneshot(token, &peer));
        let by_key = || shown.api_key.and_then(|key| self.authenticate(Credential::ApiKey(key)).ok());
        if let Some(identity) = oneshot.or_else(by_key) {
            return Admission { identity, ..by_address };
        }
        let relies_on_address = by_address.identity == Identity::Trusted || by_address.is_foreign_name;
        if relies_on_address && self.needs_login() {
            // Then the name makes no difference.
            return Admission { identity: Identity::Stranger, is_foreign_name: false, ..by_address };
        }
        by_address
    }

    /// Makes a connection that of whoever shows this credential: `identify` with a token or a key.
    ///
    /// # Errors
    /// 401 in the words that clients compare; the connection stays as it was.
    pub fn authenticate_connection(&self, connection: &Connection, credential: Credential<'_>) -> Result<Identity, protocol::ApiError> {
        let before = connection.identity();
        let identity = self.authenticate(credential)?;
        connection.set_identity(identity.clone());
        if !self.is_current(&identity) {
            connection.set_identity(before);
            return Err(protocol::ApiError::unauthorized());
        }
        Ok(identity)
    }

    /// Looks again whether a connection may keep the identity that it was opened with: a logout between the two had no connection to take it from.
    pub fn confirm(&self, connection: &Connection) {
        if !self.is_current(&connection.identity()) {
            connection.set_identity(Identity::Stranger);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_in_their_places_in_order() {
        let all =
            Shown { authorization: Some("Bearer  a "), access_token_header: Some("b"), access_token_query: Some("c"), ..Shown::default() };
        assert_eq!(all.access_token(), Some("a"));
        assert_eq!(Shown { authorization: Some("bearer a"), ..all }.access_token(), Some("a"));
        assert_eq!(Shown { authorization: Some("Basic YTpi"), ..all }.access_token(), None);
        assert_eq!(Shown { authorization: Some("Bearer"), ..all }.access_token(), Some(""));
        assert_eq!(Shown { authorization: None, ..all }.access_token(), Some("b"));
        assert_eq!(Shown { authorization: None, access_token_header: None, ..all }.access_token(), Some("c"));
        assert_eq!(Shown::default().access_token(), None);
    }
}
