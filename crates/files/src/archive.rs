//! ZIP archives of files and folders (wire/2-files-jobs.md section 1.7). Blocks.
//!
//! The archive is built aside, without the lock of all changes; only its move into place needs it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::{Timestamp, Zoned, tz::TimeZone};
use protocol::ApiError;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::disk::{TempFile, open_resolved};
use crate::library::{Library, Need, RootPath};
use crate::list::FolderReader;
use crate::refusal::{Refusal, system};
use crate::root::{CONFIG, Permissions};

/// Most files in one archive: its index is kept in memory while it is built.
pub const MAX_ARCHIVED_FILES: usize = 10_000;

/// What goes into an archive.
pub(crate) struct Plan {
    members: Vec<Member>,
}

struct Member {
    name: String,
    real: PathBuf,
}

/// The place of an archive for which the caller names none.
pub(crate) fn default_dest() -> String {
    format!("{CONFIG}/collection-{}.zip", Zoned::now().strftime("%Y%m%d-%H%M%S"))
}

impl Plan {
    /// Checks the request and finds the files. A folder gives the files directly in it; what clients may not read is left out of it silently.
    pub(crate) fn new(library: &Library, dest: &str, items: &[String]) -> Result<Self, ApiError> {
        checked_dest(library, dest)?;
        if items.is_empty() {
            return Err(ApiError::bad_request("At least one file or directory must be specified"));
        }
        let (mut seen, mut members) = (HashSet::new(), Vec::new());
        for item in items {
            let path = library.locate(item, Need::Read)?;
            let Ok(metadata) = fs::metadata(&path.real) else {
                return Err(ApiError::bad_request(format!("No file/directory exits at '{item}'")));
            };
            let mut add = |name, real, metadata: &fs::Metadata| {
                if metadata.is_file() && seen.insert((metadata.dev(), metadata.ino())) {
                    members.push(Member { name, real });
                }
            };
            if metadata.is_dir() {
                let reader = FolderReader { library, root: &path.root };
                let readable = |found: &crate::list::Found| found.permissions != Permissions::Nothing;
                for found in reader.read(&path.real).map_err(|error| system(&error))?.filter(readable) {
                    add(format!("{}/{}", path.public(), found.name), found.real, &found.metadata);
                }
            } else {
                add(path.public(), path.real.clone(), &metadata);
            }
        }
        if members.len() > MAX_ARCHIVED_FILES {
            return Err(ApiError::bad_request(format!("An archive holds at most {MAX_ARCHIVED_FILES} files")));
        }
        Ok(Self { members })
    }

    /// Writes the archive and syncs it.
    pub(crate) fn build(&self, temp: &TempFile, store_only: bool) -> Result<(), ApiError> {
        self.write(&temp.file, store_only).and_then(|()| temp.file.sync_all()).map_err(|error| system(&error))
    }

    fn write(&self, file: &File, store_only: bool) -> io::Result<()> {
        let method = if store_only { CompressionMethod::Stored } else { CompressionMethod::Deflated };
        let mut archive = ZipWriter::new(BufWriter::new(file));
        for Member { name, real } in &self.members {
            // A file that went away meanwhile, or that we may not read, does not spoil the archive.
            let Ok(source) = open_resolved(real) else { continue };
            let metadata = source.metadata()?;
            let options = SimpleFileOptions::default()
                .compression_method(method)
                .large_file(metadata.len() >= u64::from(u32::MAX))
                .last_modified_time(local_time(&metadata))
                .unix_permissions(metadata.mode() & 0o777);
            archive.start_file(name.as_str(), options).map_err(io_error)?;
            // A file that grows meanwhile must not outgrow the size field that was chosen for it.
            io::copy(&mut source.take(metadata.len()), &mut archive)?;
        }
        archive.finish().map_err(io_error)?.flush()
    }
}

/// Where the archive may go; asked again when it is built.
pub(crate) fn checked_dest(library: &Library, text: &str) -> Result<RootPath, ApiError> {
    let dest = library.locate(text, Need::Write)?;
    if !dest.root.writable {
        return Err(ApiError::bad_request(format!("Destination Root '{}' is read-only", dest.root.name)));
    }
    dest.relative.check_new().map_err(|fault| Refusal::from(fault).for_operation(text))?;
    if dest.real.is_dir() {
        return Err(ApiError::bad_request(format!("Destination '{text}' is a directory")));
    }
    if !dest.real.parent().is_some_and(Path::is_dir) {
        return Err(ApiError::bad_request(format!("Destination folder of '{text}' does not exist")));
    }
    Ok(dest)
}

/// The modification time as archives keep it: local time, without a zone.
fn local_time(metadata: &fs::Metadata) -> zip::DateTime {
    let local = || {
        let time = Timestamp::try_from(metadata.modified().ok()?).ok()?.to_zoned(TimeZone::system());
        let part = |number: i8| u8::try_from(number).ok();
        let year = u16::try_from(time.year()).ok()?;
        let (month, day) = (part(time.month())?, part(time.day())?);
        zip::DateTime::from_date_and_time(year, month, day, part(time.hour())?, part(time.minute())?, part(time.second())?).ok()
    };
    local().unwrap_or_default()
}

fn io_error(error: ZipError) -> io::Error {
    match error {
        ZipError::Io(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests;
