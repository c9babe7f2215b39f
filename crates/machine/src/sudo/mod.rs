//! Commands with the rights of root, by sudo.
//!
//! The password is kept in memory only, never logged, handed over on standard input and overwritten when it is forgotten. What it is needed for
//! stands in [`need`].
//! Source: document 1 *Host machine*, wire/1-core.md sections 4.5 and 8.11.

pub(crate) mod need;

use std::time::Duration;

use parking_lot::Mutex;
use protocol::error::ApiResult;
use protocol::{ApiError, ErrorKind};
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

/// A password. Every copy of it is overwritten when it is dropped.
pub(crate) type Password = Secret<Zeroizing<String>>;

/// Held while a password is tried and what is needed of it changes: two at the same time would be mixed up.
pub(crate) type Turn<'a> = tokio::sync::MutexGuard<'a, ()>;

/// Sudo, and the password for it.
#[derive(Default)]
pub(crate) struct Sudo {
    password: Mutex<Option<Password>>,
    turn: tokio::sync::Mutex<()>,
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
    /// A confirmation, then what can be done with it that could not be done before.
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
            Some(password) => sudo.args(["-S", "-k", "-p", "", "--"]).args(arguments).input(line(&password)).text().await,
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

    /// Waits until nobody tries a password.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        self.turn.lock().await
    }

    /// The turn, for a client.
    ///
    /// # Errors
    /// 409 while another password is tried.
    pub(crate) fn turn_now(&self) -> ApiResult<Turn<'_>> {
        let busy = "Another password for sudo is being tried: this one was not looked at, send it again when the other one is answered";
        self.turn.try_lock().map_err(|_| ApiError::new(ErrorKind::Conflict, busy))
    }

    /// Tries the password of the configuration; gives what is wrong with it.
    pub(crate) async fn begin_with(&self, turn: &Turn<'_>, password: Password) -> Option<String> {
        self.set_password(turn, password).await.err().map(|error| format!("[machine] sudo_password is not used: {}", error.message))
    }

    /// Keeps the password if it is the right one. A wrong one changes nothing.
    pub(crate) async fn set_password(&self, _turn: &Turn<'_>, password: Password) -> ApiResult<()> {
        let text = password.expose();
        if text.is_empty() || text.len() > MAX_PASSWORD || text.contains(['\n', '\0']) {
            return Err(ApiError::argument(format!("Invalid value for 'password': expected one line of at most {MAX_PASSWORD} bytes")));
        }
        if !self.works_with(Some(password.clone())).await {
            return Err(ApiError::bad_request("Invalid password, sudo access was denied"));
        }
        *self.password.lock() = Some(password);
        Ok(())
    }
}

/// The line in which sudo reads a password. It has its room from the start: a text that grows leaves its former place behind as it is.
fn line(password: &Password) -> Secret<Zeroizing<String>> {
    let password = password.expose();
    let mut line = Zeroizing::new(String::with_capacity(password.len() + 1));
    line.push_str(password);
    line.push('\n');
    Secret::new(line)
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
        let turn = sudo.turn().await;
        assert!(sudo.run(&["systemctl", "reboot"], CHECK_LIMIT).await.is_err());
        assert_eq!(sudo.set_password(&turn, secret("wrong")).await.unwrap_err().kind.http_status(), 400);
        assert!(!sudo.works().await);
        sudo.set_password(&turn, secret("open $(x)")).await.unwrap();
        assert!(sudo.works().await);
        assert_eq!(sudo.run(&["systemctl", "reboot"], CHECK_LIMIT).await.unwrap(), "done\n");
        assert!(sudo.begin_with(&turn, secret("wrong again")).await.unwrap().starts_with("[machine] sudo_password is not used"));
        assert!(sudo.works().await, "a wrong one changes nothing");
        let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap();
        assert!(calls.contains("-n -- systemctl reboot\n") && !calls.contains("wrong") && !calls.contains("open"), "{calls}");
    }

    #[tokio::test]
    async fn one_password_is_tried_at_a_time() {
        let sudo = Sudo::default();
        let turn = sudo.turn_now().unwrap();
        let error = sudo.turn_now().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert!(error.message.contains("send it again"), "{error:?}");
        drop(turn);
        assert!(sudo.turn_now().is_ok());
    }

    #[tokio::test]
    async fn passwords_that_cannot_be_are_named() {
        let (_folder, sudo) = fake();
        let turn = sudo.turn().await;
        for text in ["", "two\nlines", &"x".repeat(MAX_PASSWORD + 1)] {
            assert!(sudo.set_password(&turn, secret(text)).await.unwrap_err().message.contains("'password'"));
        }
    }

    #[test]
    fn a_line_is_written_where_it_stays() {
        let line = line(&secret("open"));
        assert_eq!((line.expose().as_str(), line.expose().capacity()), ("open\n", 5));
    }

    #[test]
    fn the_user_has_a_name_where_the_list_has_it() {
        let id = geteuid().as_raw();
        let list = format!("other:x:99999:1::/:/bin/sh\nprinter:x:{id}:1::/home:/bin/sh\n");
        assert_eq!(user_name(&tree(&[("/etc/passwd", &list)]).1), "printer");
        assert_eq!(user_name(&tree(&[]).1), id.to_string());
    }
}
