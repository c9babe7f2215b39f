//! UFP containers (a zip with a gcode file and a picture): unpacked into temporary files beside the container, with every size bounded.
//!
//! Names in the container are only compared, never used as paths. Source: wire/2-files-jobs.md section 1.3.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, Write};

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
/// Bytes that are unpacked at a time.
const PIECE: usize = 64 * 1024;
/// Largest picture that is kept, in bytes.
pub(crate) const MAX_THUMBNAIL_BYTES: u64 = 8 * 1024 * 1024;

/// What a container held, not yet synced.
pub(crate) struct Unpacked<W = TempFile> {
    pub(crate) gcode: W,
    pub(crate) thumbnail: Option<W>,
}

/// Unpacks a container; `limit` is the largest gcode file in bytes.
///
/// # Errors
/// 400 when it is no container or has no gcode file, 413 over the limit, 507 when the disk is full.
pub(crate) fn unpack(container: &File, spool: &Spool, limit: u64) -> Result<Unpacked, ApiError> {
    unpack_to(&|| BufReader::new(container), &|| spool.create(), limit)
}

/// Unpacks a container in memory, for the fuzzer: the gcode file, and the picture if there is one.
///
/// # Errors
/// As for an upload.
pub fn unpack_ufp(container: &[u8], limit: u64) -> Result<(Vec<u8>, Option<Vec<u8>>), ApiError> {
    let Unpacked { gcode, thumbnail } = unpack_to(&|| Cursor::new(container), &|| Ok(Vec::new()), limit)?;
    Ok((gcode, thumbnail))
}

fn unpack_to<R: Read + Seek, W: Write>(
    reader: &dyn Fn() -> R,
    make: &dyn Fn() -> io::Result<W>,
    limit: u64,
) -> Result<Unpacked<W>, ApiError> {
    let mut archive = ZipIterable::try_new(reader(), Config::default()).map_err(|error| broken(&error))?;
    let mut members = archive.files_with_reader(reader(), ZipReadOptions::new()).map_err(|error| broken(&error))?;
    let (mut gcode, mut thumbnail) = (None, None);
    for _ in 0..MAX_MEMBERS {
        let Some(member) = members.next() else { break };
        let mut member = member.map_err(|error| broken(&error))?;
        // Some programs write the names with a slash before them.
        let name = member.name_raw().strip_prefix(b"/").unwrap_or(member.name_raw()).to_owned();
        if gcode.is_none() && name == GCODE.as_bytes() {
            gcode = Some(extract(&mut member, make, limit)?);
        } else if thumbnail.is_none() && name == THUMBNAIL.as_bytes() {
            // A picture that is too large or damaged is no reason to lose the print.
            thumbnail = extract(&mut member, make, MAX_THUMBNAIL_BYTES).map_err(|error| tracing::warn!(%error, "UFP: no thumbnail")).ok();
        }
    }
    let gcode = gcode.ok_or_else(|| ApiError::bad_request(format!("Invalid UFP file: it has no {GCODE}")))?;
    Ok(Unpacked { gcode, thumbnail })
}

/// Copies a member out. What the container says of its size is not believed.
fn extract<R: Read, W: Write>(member: &mut ZipFile<'_, R>, make: &dyn Fn() -> io::Result<W>, limit: u64) -> Result<W, ApiError> {
    let mut out = make().map_err(|error| save_failed(&error))?;
    let mut content = member.take(limit.saturating_add(1));
    let mut piece = vec![0; PIECE];
    let mut size = 0;
    loop {
        // What cannot be read is the container's fault, what cannot be written the disk's.
        let read = content.read(&mut piece).map_err(|error| ApiError::bad_request(format!("Invalid UFP file: {error}")))?;
        if read == 0 {
            break;
        }
        out.write_all(&piece[..read]).map_err(|error| save_failed(&error))?;
        size += read as u64;
    }
    if size > limit {
        return Err(ApiError::new(
            ErrorKind::TooLarge,
            format!("The UFP file unpacks to more than the limit of {limit} bytes (max_upload_size)"),
        ));
    }
    Ok(out)
}

fn broken(error: &ZipError) -> ApiError {
    ApiError::bad_request(format!("Invalid UFP file: {error}"))
}
