//! Commands with the rights of root, by sudo.
//!
//! The password is kept in memory only, never logged, handed over on standard input and overwritten when it is forgotten.
//! Source: document 1 *Host machine*, wire/1-core.md sections 4.5 and 8.11.

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
const CONFIRMED: &str = "Sudo password successfully set.";

/// Sudo, and the password for it.
#[derive(Default)]
pub(crate) struct Sudo {
    password: Mutex<Option<Secret<Zeroizing<String>>>>,
    /// Takes turns: two passwords that are tried at the same time would be mixed up.
    trying: tokio::sync::Mutex<()>,
    program: Option<std::path::PathBuf>,
}

/// Result of `machine.sudo.info`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SudoInfo {
    /// Null when it was not tried.
    sudo_access: Option<bool>,
    linux_user: String,
    sudo_requested: bool,
    request_messages: Vec<String>,
}

/// Result of `machine.sudo.password`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SudoResponses {
    sudo_responses: Vec<String>,
    is_restarting: bool,
}

impl Sudo {
    /// Runs a program with its arguments as root.
    pub(crate) async fn run(&self, arguments: &[&str], limit: Duration) -> Result<String, CommandError> {
        let password = self.password.lock().clone();
        self.run_with(arguments, limit, password).await
    }

    async fn run_with(
        &self,
        arguments: &[&str],
        limit: Duration,
        password: Option<Secret<Zeroizing<String>>>,
    ) -> Result<String, CommandError> {
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

    async fn works_with(&self, password: Option<Secret<Zeroizing<String>>>) -> bool {
        for command in [["systemctl", "--version"], ["ls", "/root"]] {
            if let Err(error) = self.run_with(&command, CHECK_LIMIT, password.clone()).await {
                tracing::debug!(%error, "sudo does not work");
                return false;
            }
        }
        true
    }

    /// Who we are and, when asked, whether sudo works.
    pub(crate) async fn info(&self, roots: &Roots, check: bool) -> SudoInfo {
        let sudo_access = if check {
            let password = self.password.lock().clone();
            Some(self.works_with(password).await)
        } else {
            None
        };
        SudoInfo { sudo_access, linux_user: user_name(roots), sudo_requested: false, request_messages: Vec::new() }
    }

    /// Keeps the password if it is the right one.
    pub(crate) async fn set_password(&self, password: Secret<Zeroizing<String>>) -> ApiResult<SudoResponses> {
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
        Ok(SudoResponses { sudo_responses: vec![CONFIRMED.to_owned()], is_restarting: false })
    }
}

/// Name of the user that runs this process; the number when it has none.
fn user_name(roots: &Roots) -> String {
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
        assert_eq!(sudo.info(&Roots::default(), true).await.sudo_access, Some(false));
        let answer = sudo.set_password(secret("open $(x)")).await.unwrap();
        assert_eq!((answer.sudo_responses.as_slice(), answer.is_restarting), (&[CONFIRMED.to_owned()][..], false));
        assert_eq!(sudo.info(&Roots::default(), true).await.sudo_access, Some(true));
        assert_eq!(sudo.run(&["systemctl", "reboot"], CHECK_LIMIT).await.unwrap(), "done\n");
        assert!(sudo.set_password(secret("wrong again")).await.is_err());
        assert_eq!(sudo.info(&Roots::default(), true).await.sudo_access, Some(false), "a wrong one is forgotten, and the old one with it");
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
