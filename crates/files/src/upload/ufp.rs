//! UFP containers (a zip with a gcode file and a picture): unpacked into temporary files beside the container, with every size bounded.
//!
//! Names in the container are only compared, never used as paths. Source: wire/2-files-jobs.md section 1.3.

use std::fs::File;
use std::io::{self, BufReader, Read};

use protocol::{ApiError, ErrorKind};
use zip::read::{Config, ZipFile, ZipReadOptions};
use zip::result::ZipError;
use zip::unstable::read::ZipIterable;

use super::spool::Spool;
use super::writer::save_failed;
use crate::disk::TempFile;

const GCODE: &str = "3D/model.gcode";
const THUMBNAIL: &str = "Metadata/thumbnail.png";

/// Members that are looked at; a container has about ten.
const MAX_MEMBERS: usize = 1000;
/// Largest picture that is kept, in bytes.
pub(crate) const MAX_THUMBNAIL_BYTES: u64 = 8 * 1024 * 1024;

/// What a container held, not yet synced.
pub(crate) struct Unpacked {
    pub(crate) gcode: TempFile,
    pub(crate) thumbnail: Option<TempFile>,
}

/// Unpacks a container; `limit` is the largest gcode file in bytes.
///
/// # Errors
/// 400 when it is no container or has no gcode file, 413 over the limit, 507 when the disk is full.
pub(crate) fn unpack(container: &File, spool: &Spool, limit: u64) -> Result<Unpacked, ApiError> {
    let reader = || BufReader::new(container);
    let mut archive = ZipIterable::try_new(reader(), Config::default()).map_err(|error| broken(&error))?;
    let mut members = archive.files_with_reader(reader(), ZipReadOptions::new()).map_err(|error| broken(&error))?;
    let (mut gcode, mut thumbnail) = (None, None);
    for _ in 0..MAX_MEMBERS {
        let Some(member) = members.next() else { break };
        let mut member = member.map_err(|error| broken(&error))?;
        // Some programs write the names with a slash before them.
        let name = member.name_raw().strip_prefix(b"/").unwrap_or(member.name_raw()).to_owned();
        if gcode.is_none() && name == GCODE.as_bytes() {
            gcode = Some(extract(&mut member, spool, limit)?);
        } else if thumbnail.is_none() && name == THUMBNAIL.as_bytes() {
            // A picture that is too large or damaged is no reason to lose the print.
            thumbnail = extract(&mut member, spool, MAX_THUMBNAIL_BYTES).map_err(|error| tracing::warn!(%error, "UFP: no thumbnail")).ok();
        }
    }
    let gcode = gcode.ok_or_else(|| ApiError::bad_request(format!("Invalid UFP file: it has no {GCODE}")))?;
    Ok(Unpacked { gcode, thumbnail })
}

/// Copies a member out. What the container says of its size is not believed.
fn extract<R: Read>(member: &mut ZipFile<'_, R>, spool: &Spool, limit: u64) -> Result<TempFile, ApiError> {
    let mut temp = spool.create().map_err(|error| save_failed(&error))?;
    let size = io::copy(&mut member.take(limit.saturating_add(1)), &mut temp.file).map_err(|error| match error.kind() {
        // These come from the container; all others come from the disk.
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof | io::ErrorKind::Other => {
            ApiError::bad_request(format!("Invalid UFP file: {error}"))
        }
        _ => save_failed(&error),
    })?;
    if size > limit {
        return Err(ApiError::new(
            ErrorKind::TooLarge,
            format!("The UFP file unpacks to more than the limit of {limit} bytes (max_upload_size)"),
        ));
    }
    Ok(temp)
}

fn broken(error: &ZipError) -> ApiError {
    ApiError::bad_request(format!("Invalid UFP file: {error}"))
}
