//! The seam for users whose passwords another server checks (LDAP).

use futures_util::future::BoxFuture;
use runtime::Secret;

/// Why a directory did not let somebody in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryError {
    /// No such user, a wrong password, or not in the group that may log in.
    Refused,
    /// The directory cannot be asked, whoever wants in; the text is for the log.
    Unavailable(String),
}

/// Checks passwords elsewhere. Implementations bound the time that they take and refuse empty passwords.
pub trait Directory: Send + Sync {
    /// `Ok` when `password` is the password of `username` there, and the user may log in. Gives the name that the directory keeps for this
    /// user: directories take many spellings, and one person must not become two users here.
    fn check<'a>(&'a self, username: &'a str, password: &'a Secret<String>) -> BoxFuture<'a, Result<String, DirectoryError>>;
}
