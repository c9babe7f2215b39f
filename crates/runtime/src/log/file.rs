//! The log file with its rotation. Runs on the writer thread; every call may block on the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use parking_lot::Mutex;

use super::archive;
use super::line::Style;
use super::outlet::{Moment, Sink};
use super::plan::{Action, Current, plan};

/// Pause after a failed rotation before the next attempt.
const ROTATION_RETRY: Duration = Duration::from_secs(600);

/// How often a busy log looks whether somebody removed or renamed its file.
const IDENTITY_CHECK: Duration = Duration::from_secs(5);

/// Text at the top of each new file; shared with the handle that sets it.
pub(super) type Header = Arc<Mutex<String>>;

/// A log file, open for appending.
pub(super) struct LogFile {
    path: PathBuf,
    /// File name of `path`, to which archives add their day.
    base: String,
    file: File,
    current: Current,
    /// The last write failed in the middle of a line.
    torn: bool,
    max_bytes: u64,
    style: Style,
    header: Header,
    rotation_held_until: Option<Instant>,
    next_identity_check: Instant,
}

impl LogFile {
    /// Opens or creates the file and its folder.
    ///
    /// # Errors
    /// A complete sentence for the owner.
    pub(super) fn open(path: &Path, max_bytes: u64, style: Style, header: Header, now: Moment) -> Result<Self, String> {
        let explain = |error: io::Error| format!("Cannot open the log file {}: {error}", path.display());
        let base = path.file_name().and_then(|name| name.to_str());
        let base = base.ok_or_else(|| explain(io::Error::other("its name is not usable")))?.to_owned();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(explain)?;
        }
        let (file, current) = open_append(path, now.local.date()).map_err(explain)?;
        Ok(Self {
            path: path.to_owned(),
            base,
            file,
            current,
            torn: false,
            max_bytes,
            style,
            header,
            rotation_held_until: None,
            next_identity_check: now.steady + IDENTITY_CHECK,
        })
    }

    fn append(&mut self, bytes: &[u8], today: Date) -> io::Result<()> {
        if self.current.bytes == 0 {
            self.current.day = today;
        }
        let start: &[u8] = if self.torn { b"\n" } else { b"" };
        let written = self.file.write_all(start).and_then(|()| self.file.write_all(bytes));
        let expected = self.current.bytes + (start.len() + bytes.len()) as u64;
        if written.is_ok() {
            self.torn = false;
            self.current.bytes = expected;
        } else if let Ok(metadata) = self.file.metadata() {
            self.torn = metadata.len() > self.current.bytes;
            self.current.bytes = metadata.len();
        }
        written
    }

    /// Puts the current file aside, opens a new one with the header, and removes what is too old.
    fn rotate(&mut self, today: Date) -> Result<(), String> {
        let explain = |what: &str, error: io::Error| format!("Cannot {what} {}: {error}", self.path.display());
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut present = self.archives_in(folder).map_err(|error| explain("list the old files of", error))?;
        let fresh = archive::next_name(&self.base, self.current.day, &present);
        let aside = folder.join(&fresh);
        fs::rename(&self.path, &aside).map_err(|error| explain("rename", error))?;
        let (file, current) = open_append(&self.path, today).map_err(|error| {
            // The open file is still the one that was put aside: give it its name back and go on with it.
            let back = fs::rename(&aside, &self.path);
            explain(if back.is_ok() { "make a new" } else { "make a new, nor bring back the old" }, error)
        })?;
        present.push(fresh.clone());
        let too_old = archive::expired(&self.base, &fresh, &present);
        let failures: Vec<_> = too_old.iter().filter_map(|name| fs::remove_file(folder.join(name)).err()).collect();

        self.file = file;
        self.current = current;
        self.torn = false;
        let header = self.header.lock().clone();
        let mut top = if header.is_empty() { Vec::new() } else { self.style.note("INFO", &header) };
        for failure in failures {
            top.extend(self.style.note("WARN", &format!("cannot remove an old log file: {failure}")));
        }
        // A header that does not fit on the disk is no failure of the rotation: the file is new, the next lines tell.
        drop(self.append(&top, today));
        Ok(())
    }

    /// Names in the folder that begin as archives do.
    fn archives_in(&self, folder: &Path) -> io::Result<Vec<String>> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let names = fs::read_dir(folder)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        Ok(names.filter(|name| name.starts_with(&self.base)).collect())
    }

    /// Opens the file anew when somebody removed or renamed it; else the lines would go where nobody looks.
    fn follow_the_name(&mut self, now: Moment) {
        if now.steady < self.next_identity_check {
            return;
        }
        self.next_identity_check = now.steady + IDENTITY_CHECK;
        let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let ours = self.file.metadata().map(identity).ok();
        if ours.is_some() && ours == fs::metadata(&self.path).map(identity).ok() {
            return;
        }
        if let Ok((file, current)) = open_append(&self.path, now.local.date()) {
            (self.file, self.current, self.torn) = (file, current, false);
        }
    }
}

impl Sink for LogFile {
    fn write(&mut self, lines: &[u8], lost: u64, now: Moment) -> io::Result<()> {
        self.follow_the_name(now);
        let noted;
        let lines = if lost == 0 {
            lines
        } else {
            noted = [&*self.style.note("WARN", &format!("{lost} log lines before this one were lost")), lines].concat();
            &noted
        };
        let today = now.local.date();
        let incoming = lines.len() as u64;
        let held = self.rotation_held_until.is_some_and(|until| now.steady < until);
        let mut action = plan(self.current, today, incoming, self.max_bytes, held);
        if action == Action::Rotate
            && let Err(failure) = self.rotate(today)
        {
            self.rotation_held_until = Some(now.steady + ROTATION_RETRY);
            action = plan(self.current, today, incoming, self.max_bytes, true);
            if action == Action::Append {
                let note = self.style.note("WARN", &failure);
                self.append(&note, today)?;
            }
        }
        if action == Action::Refuse {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.append(lines, today)
    }

    fn roll_over(&mut self, now: Moment) -> Result<(), String> {
        if self.current.bytes == 0 {
            return Ok(());
        }
        self.follow_the_name(now);
        self.rotate(now.local.date())
    }
}

/// Opens for appending. Only regular files: anything else would be renamed away at midnight, or would block.
fn open_append(path: &Path, today: Date) -> io::Result<(File, Current)> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = OpenOptions::new().append(true).create(true).open(path)?;
    let metadata = file.metadata()?;
    let last_change = metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
    let day = match last_change {
        Some(time) if metadata.len() > 0 => time.to_zoned(TimeZone::system()).date(),
        _ => today,
    };
    Ok((file, Current { day, bytes: metadata.len() }))
}
