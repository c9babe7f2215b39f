//! Commands with the rights of root, by sudo.
//!
//! The password is kept in memory only, never logged, handed over on standard input and overwritten when it is forgotten. What waits for it
//! stands in [`requests`].
//! Source: document 1 *Host machine*, wire/1-core.md sections 4.5 and 8.11.

pub(crate) mod requests;

use std::time::Duration;

use parking_lot::Mutex;
use protocol::ApiError;
use protocol::error::ApiResult;
use runtime::Secret;
use runtime::command::{Command, CommandError};
use rustix::process::geteuid;
use schemars::JsonSchema;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::Roots;

/// Time for each of the two commands that check the rights.
const CHECK_LIMIT: Duration = Duration::from_secs(10);
/// Longest password in bytes.
const MAX_PASSWORD: usize = 1024;

/// What starts every successful answer to a password.
pub(crate) const CONFIRMED: &str = "Sudo password successfully set.";

/// A password. Overwritten when the last copy of it is dropped.
pub(crate) type Password = Secret<Zeroizing<String>>;

/// Sudo, and the password for it.
#[derive(Default)]
pub(crate) struct Sudo {
    password: Mutex<Option<Password>>,
    /// Takes turns: two passwords that are tried at the same time would be mixed up.
    trying: tokio::sync::Mutex<()>,
    program: Option<std::path::PathBuf>,
}

/// Result of `machine.sudo.info`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SudoInfo {
    /// Null when it was not tried.
    pub(crate) sudo_access: Option<bool>,
    pub(crate) linux_user: String,
    pub(crate) sudo_requested: bool,
    pub(crate) request_messages: Vec<String>,
}

/// Result of `machine.sudo.password`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SudoResponses {
    /// A confirmation, then what became of the requests that waited.
    pub(crate) sudo_responses: Vec<String>,
    /// Always false: nothing here restarts the server for a password.
    pub(crate) is_restarting: bool,
}

impl Sudo {
    /// Runs a program with its arguments as root.
    pub(crate) async fn run(&self, arguments: &[&str], limit: Duration) -> Result<String, CommandError> {
        let password = self.password.lock().clone();
        self.run_with(arguments, limit, password).await
    }

    async fn run_with(&self, arguments: &[&str], limit: Duration, password: Option<Password>) -> Result<String, CommandError> {
        if self.program.is_none() && geteuid().is_root() {
            let (program, rest) = arguments.split_first().unwrap_or((&"true", &[]));
            return Command::new(*program).args(rest).limit(limit).text().await;
        }
        let sudo = Command::new(self.program.clone().unwrap_or_else(|| "sudo".into())).limit(limit);
        match password {
            // No prompt and no remembered login of another program: the given password counts.
            Some(password) => {
                let line = Secret::new(Zeroizing::new(format!("{}\n", password.expose().as_str())));
                sudo.args(["-S", "-k", "-p", "", "--"]).args(arguments).input(line).text().await
            }
            // Never waits for a password that nobody can type.
            None => sudo.args(["-n", "--"]).args(arguments).text().await,
        }
    }

    async fn works_with(&self, password: Option<Password>) -> bool {
        // A command that is everywhere, also where nothing but supervisord is.
        let tried = self.run_with(&["ls", "/root"], CHECK_LIMIT, password).await;
        if let Err(error) = &tried {
            tracing::debug!(%error, "sudo does not work");
        }
        tried.is_ok()
    }

    /// Tries whether sudo works with what is known.
    pub(crate) async fn works(&self) -> bool {
        let password = self.password.lock().clone();
        self.works_with(password).await
    }

    /// Tries the password of the configuration; gives what is wrong with it.
    pub(crate) async fn begin_with(&self, password: Password) -> Option<String> {
        self.set_password(password).await.err().map(|error| format!("[machine] sudo_password is not used: {}", error.message))
    }

    /// Keeps the password if it is the right one.
    pub(crate) async fn set_password(&self, password: Password) -> ApiResult<()> {
        let text = password.expose();
        if text.is_empty() || text.len() > MAX_PASSWORD || text.contains(['\n', '\0']) {
            return Err(ApiError::argument(format!("Invalid value for 'password': expected one line of at most {MAX_PASSWORD} bytes")));
        }
        let _turn = self.trying.lock().await;
        if !self.works_with(Some(password.clone())).await {
            *self.password.lock() = None;
            return Err(ApiError::bad_request("Invalid password, sudo access was denied"));
        }
        *self.password.lock() = Some(password);
        Ok(())
    }
}

/// Name of the user that runs this process; the number when it has none.
pub(crate) fn user_name(roots: &Roots) -> String {
    let id = geteuid().as_raw().to_string();
    let users = roots.text("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    });
    name.unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::tests::tree;
    use std::os::unix::fs::PermissionsExt;

    /// A sudo that knows one password and notes what it was asked.
    fn fake() -> (tempfile::TempDir, Sudo) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sudo");
        let script = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$*\" >> {0}/calls\n[ \"$1\" = -S ] || exit 1\nread -r given\n[ \"$given\" = 'open $(x)' ] || exit 1\necho done\n",
            folder.path().display()
        );
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        (folder, Sudo { program: Some(path), ..Sudo::default() })
    }

    fn secret(text: &str) -> Secret<Zeroizing<String>> {
        Secret::new(Zeroizing::new(text.to_owned()))
    }

    #[tokio::test]
    async fn only_the_right_password_is_kept() {
        let (folder, sudo) = fake();
        assert!(sudo.run(&["systemctl", "reboot"], CHECK_LIMIT).await.is_err());
        assert_eq!(sudo.set_password(secret("wrong")).await.unwrap_err().kind.http_status(), 400);
        assert!(!sudo.works().await);
        sudo.set_password(secret("open $(x)")).await.unwrap();
        assert!(sudo.works().await);
        assert_eq!(sudo.run(&["systemctl", "reboot"], CHECK_LIMIT).await.unwrap(), "done\n");
        assert!(sudo.begin_with(secret("wrong again")).await.unwrap().starts_with("[machine] sudo_password is not used"));
        assert!(!sudo.works().await, "a wrong one is forgotten, and the old one with it");
        let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap();
        assert!(calls.contains("-n -- systemctl reboot\n") && !calls.contains("wrong") && !calls.contains("open"), "{calls}");
    }

    #[tokio::test]
    async fn passwords_that_cannot_be_are_named() {
        let (_folder, sudo) = fake();
        for text in ["", "two\nlines", &"x".repeat(MAX_PASSWORD + 1)] {
            assert!(sudo.set_password(secret(text)).await.unwrap_err().message.contains("'password'"));
        }
    }

    #[test]
    fn the_user_has_a_name_where_the_list_has_it() {
        let id = geteuid().as_raw();
        let list = format!("other:x:99999:1::/:/bin/sh\nprinter:x:{id}:1::/home:/bin/sh\n");
        assert_eq!(user_name(&tree(&[("/etc/passwd", &list)]).1), "printer");
        assert_eq!(user_name(&tree(&[]).1), id.to_string());
    }
}
