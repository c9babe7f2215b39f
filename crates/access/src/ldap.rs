//! Users of a directory server (LDAP, Active Directory): wire/1-core.md section 6.9.
//!
//! Each login has a connection of its own: log in as the configured reader, find the entry, log in as that entry.

mod options;

use std::time::Duration;

use futures_util::future::BoxFuture;
use outbound::ldap::{Entry, Filter, LdapError, Link, Server};
use runtime::Secret;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::directory::{Directory, DirectoryError};
pub use options::{Faulty, LdapOptions, MembershipAttribute};

/// Time to connect to the directory and to find an entry there.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(15);

/// Time in which the directory has to check a password.
const BIND_TIMEOUT: Duration = Duration::from_secs(15);

/// Logins that a directory is asked about at the same time; further ones wait for a while.
const MAX_LOGINS_AT_ONCE: usize = 4;

/// Where user filters have the name.
const PLACE_OF_NAME: &str = "USERNAME";

const NAME: &str = "uid";
const NAME_IN_ACTIVE_DIRECTORY: &str = "sAMAccountName";

/// A directory server.
pub struct LdapDirectory {
    server: Server,
    base: String,
    /// Who searches; nobody in particular when absent.
    reader: Option<(String, Secret<String>)>,
    filter: Filter,
    /// Attributes with the user's name; the first that an entry has counts.
    names: [&'static str; 2],
    membership: &'static str,
    group: Option<String>,
    check_case: bool,
    turns: Semaphore,
}

impl LdapDirectory {
    /// The directory of these options; nothing is connected yet.
    #[must_use]
    pub fn new(options: &LdapOptions) -> Self {
        let is_active = options.is_active_directory;
        let names = if is_active { [NAME_IN_ACTIVE_DIRECTORY, NAME] } else { [NAME, NAME_IN_ACTIVE_DIRECTORY] };
        let usual = Filter::And(vec![Filter::equal("objectClass", "Person"), Filter::equal(names[0], PLACE_OF_NAME)]);
        let port = options.ldap_port.unwrap_or(if options.ldap_secure { 636 } else { 389 });
        let text = |option: &template::Rendered| option.expose().to_owned();
        Self {
            server: Server { host: options.ldap_host.clone(), port, tls: options.ldap_secure },
            base: text(&options.base_dn),
            reader: options
                .bind_dn
                .as_ref()
                .zip(options.bind_password.as_ref())
                .map(|(dn, password)| (text(dn), Secret::new(text(password)))),
            filter: options.filter().and_then(Result::ok).unwrap_or(usual),
            names,
            membership: options.membership_attribute.as_str(),
            group: options.group_dn.as_ref().map(text),
            check_case: options.check_dn_case,
            turns: Semaphore::new(MAX_LOGINS_AT_ONCE),
        }
    }

    async fn log_in(&self, username: &str, password: &str) -> Result<String, DirectoryError> {
        // With an empty password or name a directory lets anybody in, as nobody.
        if username.is_empty() || password.is_empty() {
            return Err(DirectoryError::Refused);
        }
        let unavailable = |reason: String| DirectoryError::Unavailable(reason);
        let _turn = timeout(LOOKUP_TIMEOUT, self.turns.acquire()).await.map_err(|_| unavailable("too many logins at once".to_owned()))?;
        let found = timeout(LOOKUP_TIMEOUT, self.find(username)).await.map_err(|_| unavailable("no answer in time".to_owned()))?;
        let (link, entry) = found.map_err(|error| unavailable(error.to_string()))?;
        let Some(entry) = entry.filter(|entry| !entry.dn.is_empty()) else {
            link.close().await;
            return Err(DirectoryError::Refused);
        };
        // From here on everything depends on who wants in, so that every fault looks like a wrong password.
        match timeout(BIND_TIMEOUT, self.bind_as(link, &entry.dn, password)).await {
            Ok(Ok(())) => self.admit(&entry),
            Ok(Err(error)) => {
                if !is_wrong_password(&error) {
                    tracing::warn!(%error, dn = entry.dn, "the directory does not log a user in");
                }
                Err(DirectoryError::Refused)
            }
            Err(_) => {
                tracing::warn!(dn = entry.dn, "the directory does not answer in time");
                Err(DirectoryError::Refused)
            }
        }
    }

    async fn find(&self, username: &str) -> Result<(Link, Option<Entry>), LdapError> {
        let mut link = Link::open(&self.server).await?;
        match &self.reader {
            Some((dn, password)) => link.bind(dn, password.expose()).await?,
            None => link.bind("", "").await?,
        }
        let mut filter = self.filter.clone();
        filter.fill_in(PLACE_OF_NAME, username);
        let entry = link.first(&self.base, &filter, &[self.names[0], self.names[1], self.membership]).await?;
        Ok((link, entry))
    }

    /// Logs in as the entry; over a new connection where the server wants one. A wrong password is not tried again: directories count those.
    async fn bind_as(&self, mut link: Link, dn: &str, password: &str) -> Result<(), LdapError> {
        let mut result = link.bind(dn, password).await;
        if result.as_ref().is_err_and(|error| !is_wrong_password(error)) {
            link.close().await;
            link = Link::open(&self.server).await?;
            result = link.bind(dn, password).await;
        }
        link.close().await;
        result
    }

    /// The user's name, when the entry is in the group.
    fn admit(&self, entry: &Entry) -> Result<String, DirectoryError> {
        if let Some(group) = &self.group
            && !entry.values(self.membership).any(|member| self.is_same(member, group))
        {
            tracing::info!(dn = entry.dn, "this user of the directory is not in group_dn");
            return Err(DirectoryError::Refused);
        }
        // Of several values always the same: which comes first is not certain.
        let name = self.names.iter().find_map(|attribute| entry.values(attribute).min());
        name.map(str::to_owned).ok_or_else(|| {
            tracing::warn!(dn = entry.dn, "this entry of the directory has neither {} nor {}", self.names[0], self.names[1]);
            DirectoryError::Refused
        })
    }

    fn is_same(&self, dn: &str, other: &str) -> bool {
        if self.check_case { dn == other } else { dn.to_lowercase() == other.to_lowercase() }
    }
}

impl Directory for LdapDirectory {
    fn check<'a>(&'a self, username: &'a str, password: &'a Secret<String>) -> BoxFuture<'a, Result<String, DirectoryError>> {
        Box::pin(self.log_in(username, password.expose()))
    }
}

fn is_wrong_password(error: &LdapError) -> bool {
    matches!(error, LdapError::Refused(outcome) if outcome.is_wrong_password())
}
