//! From a finished temporary file to its place: steps 5 and 7 to 12 of wire/2-files-jobs.md section 1.3. Blocks.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use protocol::event::FileItem;
use protocol::{ApiError, ErrorKind};
use tokio::sync::Mutex;

use super::form::{Target, UploadForm};
use super::spool::Spool;
use super::ufp::{self, Unpacked};
use super::writer::{Spooled, save_failed};
use crate::disk::{TempFile, ensure_folder, sync_parent};
use crate::kind;
use crate::library::{Library, Need, RootPath};
use crate::path::RelPath;
use crate::print::PrintControl;
use crate::refusal::Refusal;
use crate::root::GCODES;
use crate::watch::{Own, Seen};

/// Folder of pictures, beside the gcode files that they belong to.
const THUMBNAIL_FOLDER: &str = ".thumbs";
const GCODE_EXTENSION: &str = ".gcode";

/// A file in its place.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) path: RootPath,
    pub(crate) item: FileItem,
    /// The folders that were made for it, outermost first. Clients hear of them before the file: they would not know where to show it.
    pub(crate) folders: Vec<FileItem>,
}

/// What placing needs besides the file.
pub(crate) struct Place<'f> {
    pub(crate) library: &'f Library,
    pub(crate) print: &'f dyn PrintControl,
    /// Held by everything that changes files.
    pub(crate) changes: &'f Mutex<()>,
    /// What our changes left, for the observer.
    pub(crate) own: &'f Own,
    /// For what containers hold.
    pub(crate) spool: &'f Spool,
    /// Largest file in bytes.
    pub(crate) max_size: u64,
}

impl Place<'_> {
    /// Checks the content, unpacks a container, syncs, then checks the place and moves the file there.
    pub(crate) fn put(&self, form: &UploadForm, file_name: &str, spooled: Spooled) -> Result<Placed, ApiError> {
        check_sum(form, &spooled.checksum)?;
        if form.root == GCODES && kind::is_ufp(file_name) {
            let Unpacked { gcode, thumbnail } = ufp::unpack(&spooled.temp.file, self.spool, self.max_size)?;
            drop(spooled);
            return self.put_file(form, &with_gcode_extension(file_name), gcode, thumbnail);
        }
        self.put_file(form, file_name, spooled.temp, None)
    }

    /// Refuses what [`Place::put`] would refuse by the names alone, before anything has arrived.
    pub(crate) fn check(&self, form: &UploadForm, file_name: &str) -> Result<(), ApiError> {
        let is_container = form.root == GCODES && kind::is_ufp(file_name);
        let name = if is_container { with_gcode_extension(file_name) } else { file_name.to_owned() };
        let (target, path) = self.checked_target(form, &name)?;
        if path.real.is_dir() {
            return Err(is_folder(&target));
        }
        // The part `path` is made when it is missing, the folders in the file's own name are not.
        let is_made = target.file.parent() == target.folder;
        if is_made || path.real.parent().is_some_and(Path::is_dir) { Ok(()) } else { Err(no_folder(&target)) }
    }

    /// As [`Place::put`] for a container that is among the gcode files already; it is removed.
    pub(crate) fn put_found(&self, container: &RootPath) -> Result<Placed, ApiError> {
        let file = File::open(&container.real).map_err(|error| save_failed(&error))?;
        let Unpacked { gcode, thumbnail } = ufp::unpack(&file, self.spool, self.max_size)?;
        let placed = self.put_file(&UploadForm::default(), &with_gcode_extension(container.relative.as_str()), gcode, thumbnail)?;
        let _changes = self.changes.blocking_lock();
        fs::remove_file(&container.entry).map_err(|error| save_failed(&error))?;
        self.own.left(container.place(), Seen::Absent);
        Ok(placed)
    }

    fn put_file(&self, form: &UploadForm, file_name: &str, temp: TempFile, thumbnail: Option<TempFile>) -> Result<Placed, ApiError> {
        // The long wait for the disk happens before the lock: others may change files meanwhile.
        temp.file.sync_all().map_err(|error| save_failed(&error))?;
        let (_, path) = self.checked_target(form, file_name)?;
        let temp = temp.near(&path.real).map_err(|error| save_failed(&error))?;
        let _changes = self.changes.blocking_lock();
        let (target, path) = self.checked_target(form, file_name)?;
        let mut made = MadeFolders { root: &path.root.path, made: Vec::new() };
        made.make(&target.folder).map_err(|error| save_failed(&error))?;
        if !path.real.parent().is_some_and(Path::is_dir) {
            return Err(no_folder(&target));
        }
        match fs::metadata(&path.real) {
            Ok(old) if old.is_dir() => return Err(is_folder(&target)),
            // Whoever restricted the old file wants the new one restricted too; failing to is no reason to refuse the upload.
            Ok(old) => drop(temp.file.set_permissions(old.permissions())),
            Err(_) => {}
        }
        temp.persist(&path.real).map_err(|error| save_failed(&error))?;
        let folders = self.told_folders(&path.root.name, made.keep());
        self.own.left(path.place(), Seen::at(&path.real));
        if let Some(thumbnail) = thumbnail {
            self.put_thumbnail(&path, thumbnail);
        }
        let item = self.library.item(&path).map_err(|error| save_failed(&error))?;
        Ok(Placed { path, item, folders })
    }

    /// Folders as clients hear of them; the observer is told that they are ours, so that nobody hears of them twice.
    fn told_folders(&self, root: &str, made: Vec<RelPath>) -> Vec<FileItem> {
        let told = |folder| {
            let path = self.library.resolve(root, folder, Need::Read).ok()?;
            let item = self.library.item(&path).ok()?;
            self.own.left(path.place(), Seen::at(&path.real));
            Some(item)
        };
        made.into_iter().filter_map(told).collect()
    }

    /// Puts the picture of a container where thumbnails are. The print does not depend on it.
    fn put_thumbnail(&self, gcode: &RootPath, thumbnail: TempFile) {
        let stem = gcode.relative.name().trim_end_matches(GCODE_EXTENSION);
        let place = RelPath::parse(&format!("{}/{THUMBNAIL_FOLDER}/{stem}.png", gcode.relative.parent()));
        let Ok(path) = place.map_err(Refusal::from).and_then(|place| self.library.resolve(GCODES, place, Need::Write)) else {
            tracing::warn!(file = %gcode.relative, "no place for the thumbnail");
            return;
        };
        let folder = path.real.parent().map_or(Ok(()), ensure_folder);
        if let Err(error) = folder.and_then(|()| thumbnail.file.sync_all()).and_then(|()| thumbnail.persist(&path.real)) {
            tracing::warn!(file = %gcode.relative, %error, "the thumbnail was not saved");
        }
    }

    fn checked_target(&self, form: &UploadForm, file_name: &str) -> Result<(Target, RootPath), ApiError> {
        if self.library.root(&form.root).is_none() {
            return Err(Refusal::UnknownRoot(form.root.clone()).for_upload(""));
        }
        let asked = || if form.path.is_empty() { file_name.to_owned() } else { format!("{}/{file_name}", form.path) };
        let target = form.target(file_name).map_err(|fault| Refusal::from(fault).for_upload(&asked()))?;
        if target.file == target.folder {
            return Err(ApiError::bad_request("Multipart filename omitted"));
        }
        let path = self.library.resolve(&form.root, target.file.clone(), Need::Write).map_err(|refusal| refusal.for_upload(&asked()))?;
        if !path.root.writable {
            return Err(ApiError::bad_request(format!("Invalid root request: {}", form.root)));
        }
        if path.root.name == GCODES && self.library.loaded(self.print.loaded_file()).as_ref() == Some(&path.real) {
            return Err(ApiError::forbidden("File is loaded, upload not permitted"));
        }
        if let Some(file) = file_on_the_way(&path.root.path, &target) {
            return Err(ApiError::bad_request(format!("Cannot write to path: {}: {file} is a file, not a folder", target.file)));
        }
        Ok((target, path))
    }
}

/// The first of the folders that would be made and cannot, since something else has its name.
fn file_on_the_way(root: &Path, target: &Target) -> Option<String> {
    let mut at = root.to_owned();
    target.folder.names().find_map(|name| {
        at.push(name);
        let taken = at.symlink_metadata().is_ok() && !at.is_dir();
        taken.then(|| at.strip_prefix(root).unwrap_or(&at).to_string_lossy().into_owned())
    })
}

fn no_folder(target: &Target) -> ApiError {
    ApiError::bad_request(format!("Cannot write to path: {}: folder {} does not exist", target.file, target.file.parent()))
}

fn is_folder(target: &Target) -> ApiError {
    ApiError::bad_request(format!("Cannot write to path: {}: it is a folder", target.file))
}

/// The name of a container with the extension of what is in it.
fn with_gcode_extension(container: &str) -> String {
    let stem = container.rsplit_once('.').map_or(container, |(stem, _)| stem);
    format!("{stem}{GCODE_EXTENSION}")
}

fn check_sum(form: &UploadForm, own: &str) -> Result<(), ApiError> {
    match &form.checksum {
        Some(given) if !given.eq_ignore_ascii_case(own) => {
            Err(ApiError::new(ErrorKind::Checksum, format!("File checksum mismatch: expected {given}, calculated {own}")))
        }
        _ => Ok(()),
    }
}

/// Folders made on the way; removed again when the upload fails after all.
struct MadeFolders<'r> {
    root: &'r Path,
    made: Vec<RelPath>,
}

impl MadeFolders<'_> {
    fn make(&mut self, folder: &RelPath) -> io::Result<()> {
        for folder in folder.lineage() {
            let at = folder.below(self.root);
            if !at.is_dir() {
                ensure_folder(&at)?;
                self.made.push(folder);
                sync_parent(&at)?;
            }
        }
        Ok(())
    }

    fn keep(mut self) -> Vec<RelPath> {
        std::mem::take(&mut self.made)
    }
}

impl Drop for MadeFolders<'_> {
    fn drop(&mut self) {
        for folder in self.made.iter().rev() {
            // Fails when somebody has put something into it meanwhile, and then it has to stay.
            let _ = fs::remove_dir(folder.below(self.root));
        }
    }
}
