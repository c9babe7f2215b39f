//! The scan of one file, from its state on the disk to its record. Blocks; only the scanning thread does it.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::FileExt;

use gcode::metadata::{Options, Scan};

use super::objects::{self, Processed};
use super::queue::Job;
use super::{Record, Stamp, thumbnails};
use crate::disk::open_resolved;
use crate::item;
use crate::kind;
use crate::library::{Need, RootPath};
use crate::root::GCODES;
use crate::service::Files;

/// How often a file that changes while it is read is read again.
const ATTEMPTS: usize = 3;

/// A file under a scan.
pub(super) struct Opened {
    file: File,
    pub(super) stamp: Stamp,
    pub(super) permissions: Permissions,
    modified: f64,
}

impl Opened {
    fn open(path: &RootPath) -> io::Result<Self> {
        let file = open_resolved(&path.real)?;
        let metadata = file.metadata()?;
        Ok(Self { file, stamp: Stamp::of(&metadata), permissions: metadata.permissions(), modified: item::modified(&metadata) })
    }

    fn is_unchanged(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| Stamp::of(&metadata) == self.stamp)
    }
}

impl gcode::Source for Opened {
    fn size(&self) -> u64 {
        self.stamp.size
    }

    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(buffer, position)
    }
}

/// Scans a file unless its record is valid.
pub(super) fn scan(files: &Files, job: &Job) {
    let Ok(path) = files.library.resolve(GCODES, job.path.clone(), Need::Read) else { return };
    let before = files.metadata.get(&job.path);
    for _ in 0..ATTEMPTS {
        let Ok(mut opened) = Opened::open(&path) else { return };
        if !kind::is_gcode(path.relative.name()) || kind::is_ufp(path.relative.name()) {
            return;
        }
        let known = before.as_ref().filter(|record| record.stamp == opened.stamp);
        let objects_due = files.settings.options.enable_object_processing && !known.is_some_and(|record| record.objects_done);
        if known.is_some() && !job.force && !(job.deferred && objects_due) {
            return;
        }
        let mut objects_done = known.is_some_and(|record| record.objects_done);
        if objects_due {
            match objects::process(files, &path, &opened) {
                Processed::Later => files.scans.defer(job.path.clone()),
                // Tried again when somebody asks for a scan.
                Processed::Failed => {}
                Processed::Nothing => objects_done = true,
                Processed::Replaced => {
                    objects_done = true;
                    let Ok(replaced) = Opened::open(&path) else { return };
                    opened = replaced;
                }
            }
            if job.deferred && !objects_done {
                return;
            }
        }
        let scanned = read(files, &path, &opened);
        if !opened.is_unchanged() {
            continue;
        }
        let document = scanned.and_then(|scanned| illustrated(files, &path, scanned)).unwrap_or_else(|error| {
            tracing::warn!(file = %path.relative, %error, "metadata could not be read");
            bare(&opened)
        });
        let record = Record { stamp: opened.stamp, document: document.into(), objects_done, print_start_time: None, job_id: None };
        if let Some(before) = &before {
            let kept = record.thumbnails();
            let gone = before.thumbnails();
            let gone = gone.iter().filter(|old| kept.iter().all(|new| new.relative_path != old.relative_path));
            thumbnails::remove(&files.library, &job.path.parent(), gone);
        }
        files.metadata.put(&job.path, record);
        return;
    }
    tracing::warn!(file = %path.relative, "the file changes all the time; it is scanned when it is written the next time");
}

/// What a file holds.
fn read(files: &Files, path: &RootPath, opened: &Opened) -> io::Result<Scan> {
    let image = thumbnails::from_container(&files.library, &path.relative);
    let mut options = Options::new(path.relative.name());
    options.ufp_thumbnail = image.as_deref();
    let mut scan = gcode::metadata::read(opened, &options)?;
    for warning in &scan.warnings {
        tracing::warn!(file = %path.relative, "{warning}");
    }
    scan.metadata.modified = Some(opened.modified);
    scan.metadata.uuid = Some(uuid::Uuid::new_v4().to_string());
    Ok(scan)
}

/// Writes the images and gives the document, which tells only of images that are there.
fn illustrated(files: &Files, path: &RootPath, mut scan: Scan) -> io::Result<String> {
    if let Err(error) = thumbnails::write(&files.library, &path.relative, &scan.thumbnails) {
        tracing::warn!(file = %path.relative, %error, "thumbnails could not be written");
        scan.metadata.thumbnails.clear();
    }
    Ok(serde_json::to_string(&scan.metadata)?)
}

/// What is kept of a file that cannot be read.
fn bare(opened: &Opened) -> String {
    serde_json::json!({"size": opened.stamp.size, "modified": opened.modified}).to_string()
}
