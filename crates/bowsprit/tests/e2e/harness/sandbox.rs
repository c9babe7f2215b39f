//! Namespaces of its own for the program under test, so that file systems can be mounted, filled, made read-only and taken away under it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::TestServer;
use super::server::Builder;

/// True when namespaces are allowed here; says so when not.
pub(crate) fn can_mount() -> bool {
    let script = "d=$(mktemp -d) && mount -t tmpfs tmpfs \"$d\" && umount \"$d\"; rmdir \"$d\"";
    let can = Command::new("unshare").args(["-Urm", "sh", "-c", script]).output().is_ok_and(|output| output.status.success());
    if !can {
        println!("skipped: no file system may be mounted in a namespace here");
    }
    can
}

/// Runs a shell script in new user and mount namespaces before the program starts there. Its folder is the data folder.
pub(crate) fn in_namespaces(builder: Builder, script: &'static str) -> Builder {
    builder.under(move |folder| {
        let script = format!("set -e; cd '{}'; {script}\nexec \"$@\"", folder.display());
        ["unshare", "-Urm", "sh", "-c", &script, "sh"].map(str::to_owned).to_vec()
    })
}

impl TestServer {
    /// Runs a shell script where the program runs, in the data folder; must succeed.
    pub(crate) fn inside(&self, script: &str) {
        let script = format!("cd '{}' && {script}", self.path("").display());
        let pid = self.pid().to_string();
        let output =
            Command::new("nsenter").args(["-t", &pid, "-U", "-m", "--preserve-credentials", "sh", "-c", &script]).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A path below the data folder as the program sees it, mounted file systems included.
    pub(crate) fn seen(&self, relative: &str) -> PathBuf {
        let path = self.path(relative);
        Path::new(&format!("/proc/{}/root", self.pid())).join(path.strip_prefix("/").unwrap())
    }
}
