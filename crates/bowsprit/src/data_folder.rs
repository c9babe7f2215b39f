//! The data folder: where everything of one installation lives. design.md section 3, fixed places.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use protocol::vocabulary::{CERTIFICATE_FILE, CONFIG_FILE, IDENTITY_FILE, KEY_FILE, LOG_FILE, Pair, SECRETS_FILE, SOCKET_FILE};
use uuid::Uuid;

/// Our own name of the configuration file; the two other names follow in this order.
pub const OWN_CONFIG_FILE: &str = "bowsprit.conf";

/// Folders made at start.
const FOLDERS: &[&str] = &["config", "gcodes", "logs", "database", "comms", "certs", "backup", "backup/database"];

/// The data folder.
#[derive(Debug, Clone)]
pub struct DataFolder {
    path: PathBuf,
}

/// Keeps a second server from using the same data folder; released when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "the open file is the lock")] File);

impl DataFolder {
    /// Makes the folder and what belongs into it, as far as it is missing.
    ///
    /// # Errors
    /// When the folder itself cannot be made.
    pub fn prepare(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let path = path.canonicalize()?;
        for name in FOLDERS {
            // What cannot be made is reported by the component that needs it.
            let _ = fs::create_dir(path.join(name));
        }
        Ok(Self { path })
    }

    /// The folder as it is; nothing is made.
    ///
    /// # Errors
    /// When it is not there.
    pub fn existing(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.canonicalize()? })
    }

    /// Takes the folder for this process.
    ///
    /// # Errors
    /// `WouldBlock` when another server has it.
    pub fn lock(&self) -> io::Result<Lock> {
        let file = File::options().create(true).truncate(false).write(true).open(self.path.join(".bowsprit.lock"))?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        Ok(Lock(file))
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The configuration file to use: the first that exists.
    pub fn config_file(&self) -> Option<PathBuf> {
        let folder = self.path.join("config");
        [OWN_CONFIG_FILE, CONFIG_FILE.neutral, CONFIG_FILE.upstream].iter().map(|name| folder.join(name)).find(|path| path.is_file())
    }

    /// The secrets file to use.
    pub fn secrets_file(&self) -> Option<PathBuf> {
        either(&self.path, SECRETS_FILE)
    }

    /// The folder of certificates.
    pub fn certificates(&self) -> PathBuf {
        self.path.join("certs")
    }

    /// Certificate and key in their usual place: the first pair that is whole. A half before it is not used, with a sentence for the owner.
    pub fn certificate(&self) -> (Option<(PathBuf, PathBuf)>, Vec<String>) {
        let folder = self.certificates();
        let mut halves = Vec::new();
        let not_used =
            |half: &Path, part, other: &Path| format!("{} is not used: its {part} {} is missing", half.display(), other.display());
        for (certificate, key) in [(CERTIFICATE_FILE.neutral, KEY_FILE.neutral), (CERTIFICATE_FILE.upstream, KEY_FILE.upstream)] {
            let (certificate, key) = (folder.join(certificate), folder.join(key));
            match (certificate.is_file(), key.is_file()) {
                (true, true) => return (Some((certificate, key)), halves),
                (true, false) => halves.push(not_used(&certificate, "key", &key)),
                (false, true) => halves.push(not_used(&key, "certificate", &certificate)),
                (false, false) => {}
            }
        }
        (None, halves)
    }

    /// The database file.
    pub fn database_file(&self) -> PathBuf {
        self.path.join("database/bowsprit.db")
    }

    /// The folder of the database's backups.
    pub fn database_backups(&self) -> PathBuf {
        self.path.join("backup/database")
    }

    /// The log file: under the name that is there already, so that it goes on.
    pub fn log_file(&self) -> PathBuf {
        let folder = self.path.join("logs");
        either(&folder, LOG_FILE).unwrap_or_else(|| folder.join(LOG_FILE.neutral))
    }

    /// The identity of this installation, made at the first start: what is derived from it stays the same as long as the folder lives.
    ///
    /// # Errors
    /// When it is neither there nor can be kept.
    pub fn identity(&self) -> io::Result<Uuid> {
        let path = either(&self.path, IDENTITY_FILE).unwrap_or_else(|| self.path.join(IDENTITY_FILE.neutral));
        if let Some(known) = fs::read_to_string(&path).ok().and_then(|text| Uuid::try_parse(text.trim()).ok()) {
            return Ok(known);
        }
        let new = Uuid::new_v4();
        fs::write(path, new.simple().to_string())?;
        Ok(new)
    }

    /// The unix socket.
    pub fn socket_file(&self) -> PathBuf {
        self.path.join("comms").join(SOCKET_FILE.neutral)
    }

    /// Lets clients find the unix socket under its other name, unless something living has it.
    ///
    /// # Errors
    /// With a sentence for the owner.
    pub fn link_socket(&self) -> Result<(), String> {
        let link = self.path.join("comms").join(SOCKET_FILE.upstream);
        let failed = |error: io::Error| format!("{} could not be made: {error}", link.display());
        let is_ours = fs::read_link(&link).is_ok_and(|target| target == Path::new(SOCKET_FILE.neutral));
        if is_ours {
            return Ok(());
        }
        if std::os::unix::net::UnixStream::connect(&link).is_ok() {
            return Err(format!("{} belongs to another running server", link.display()));
        }
        match fs::remove_file(&link) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        std::os::unix::fs::symlink(SOCKET_FILE.neutral, &link).map_err(failed)
    }
}

/// The file of these two names that is there.
fn either(folder: &Path, names: Pair) -> Option<PathBuf> {
    [names.neutral, names.upstream].iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// True when this configuration was written for the incumbent.
pub fn is_upstream_config(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == CONFIG_FILE.upstream)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, DataFolder) {
        let temporary = tempfile::tempdir().unwrap();
        let data = DataFolder::prepare(&temporary.path().join("printer_data")).unwrap();
        (temporary, data)
    }

    #[test]
    fn our_own_configuration_comes_first() {
        let (_keep, data) = folder();
        assert_eq!(data.config_file(), None);
        for name in ["moonraker.conf", "core.conf", "bowsprit.conf"] {
            fs::write(data.path().join("config").join(name), "").unwrap();
            assert!(data.config_file().unwrap().ends_with(name));
        }
        assert!(is_upstream_config(Path::new("/x/moonraker.conf")) && !is_upstream_config(Path::new("/x/bowsprit.conf")));
    }

    #[test]
    fn the_identity_is_made_once_and_taken_over() {
        let (_keep, data) = folder();
        let made = data.identity().unwrap();
        assert_eq!(data.identity().unwrap(), made);
        assert_eq!(fs::read_to_string(data.path().join(".core.uuid")).unwrap(), made.simple().to_string());
        let (_keep, data) = folder();
        fs::write(data.path().join(".moonraker.uuid"), "0123456789abcdef0123456789abcdef\n").unwrap();
        assert_eq!(data.identity().unwrap().simple().to_string(), "0123456789abcdef0123456789abcdef");
        assert!(!data.path().join(".core.uuid").exists());
    }

    #[test]
    fn certificates_are_taken_in_pairs() {
        let (_keep, data) = folder();
        let found = |names: &[&str]| {
            fs::remove_dir_all(data.certificates()).unwrap();
            fs::create_dir(data.certificates()).unwrap();
            names.iter().for_each(|name| fs::write(data.certificates().join(name), "").unwrap());
            let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
            let (pair, halves) = data.certificate();
            (pair.map(|(certificate, key)| [name(certificate), name(key)]), halves)
        };
        let is = |pair: [&str; 2]| Some(pair.map(str::to_owned));
        assert_eq!(found(&[]), (None, vec![]));
        assert_eq!(found(&["moonraker.cert", "moonraker.key"]), (is(["moonraker.cert", "moonraker.key"]), vec![]));
        assert_eq!(found(&["core.cert", "core.key", "moonraker.cert"]), (is(["core.cert", "core.key"]), vec![]));
        let (pair, halves) = found(&["core.key", "moonraker.cert", "moonraker.key"]);
        assert_eq!(pair, is(["moonraker.cert", "moonraker.key"]));
        assert!(halves.len() == 1 && halves[0].contains("core.key is not used: its certificate"), "{halves:?}");
        let (pair, halves) = found(&["core.cert", "moonraker.key"]);
        assert_eq!((pair, halves.len()), (None, 2), "halves of two pairs are none");
        assert!(halves[0].contains("core.cert is not used: its key") && halves[0].ends_with("core.key is missing"), "{halves:?}");
    }

    #[test]
    fn one_server_per_folder() {
        let (_keep, data) = folder();
        let lock = data.lock().unwrap();
        assert_eq!(data.lock().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(lock);
        data.lock().unwrap();
    }

    #[test]
    fn the_second_socket_name_leads_to_the_first() {
        let (_keep, data) = folder();
        let link = data.path().join("comms/moonraker.sock");
        fs::write(&link, "stale").unwrap();
        data.link_socket().unwrap();
        data.link_socket().unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(data.socket_file()).unwrap();
        std::os::unix::net::UnixStream::connect(&link).unwrap();
        fs::remove_file(&link).unwrap();
        let _other = std::os::unix::net::UnixListener::bind(&link).unwrap();
        assert!(data.link_socket().is_err());
    }
}
