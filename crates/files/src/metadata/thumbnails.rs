//! Images of gcode files in the `.thumbs` folders beside them. They can be made again at any time, so they are not synced. Blocks.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use gcode::metadata::{ThumbnailInfo, stem};
use gcode::thumbnail::{FOLDER, Thumbnail};

use crate::disk::ensure_folder;
use crate::library::{Library, Need};
use crate::path::RelPath;
use crate::root::GCODES;
use crate::upload::MAX_THUMBNAIL_BYTES;

/// Name under which an image is written before it has its place; no request and no observer sees it.
const UNFINISHED: &str = ".bowsprit-thumbnail.part";

/// Writes the images of a file.
///
/// # Errors
/// The first fault; no image of the file is there then.
pub(super) fn write(library: &Library, gcode: &RelPath, images: &[Thumbnail]) -> io::Result<()> {
    if images.is_empty() {
        return Ok(());
    }
    let written = write_all(library, gcode, images);
    if written.is_err() {
        let places = images.iter().filter_map(|image| real(library, &gcode.parent(), &image.relative_path));
        // The first fault is the one to tell.
        places.for_each(|place| drop(fs::remove_file(place)));
        remove(library, &gcode.parent(), std::iter::empty());
    }
    written
}

fn write_all(library: &Library, gcode: &RelPath, images: &[Thumbnail]) -> io::Result<()> {
    let folder = real(library, &gcode.parent(), FOLDER).ok_or(io::ErrorKind::PermissionDenied)?;
    ensure_folder(&folder)?;
    let unfinished = folder.join(UNFINISHED);
    for image in images {
        let Some(place) = real(library, &gcode.parent(), &image.relative_path) else { continue };
        if let Err(error) = fs::write(&unfinished, &image.data).and_then(|()| fs::rename(&unfinished, &place)) {
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
    }
    Ok(())
}

/// The image that a container brought for this file.
pub(super) fn from_container(library: &Library, gcode: &RelPath) -> Option<Vec<u8>> {
    let place = real(library, &gcode.parent(), &format!("{FOLDER}/{}.png", stem(gcode.name())))?;
    let mut image = Vec::new();
    File::open(place).ok()?.take(MAX_THUMBNAIL_BYTES).read_to_end(&mut image).ok()?;
    Some(image)
}

/// Removes images of a file that is gone, or that has others now.
pub(super) fn remove<'i>(library: &Library, folder: &RelPath, images: impl Iterator<Item = &'i ThumbnailInfo>) {
    for image in images {
        if let Some(place) = real(library, folder, &image.relative_path) {
            // Somebody else may have removed it.
            let _ = fs::remove_file(place);
        }
    }
    if let Some(place) = real(library, folder, FOLDER) {
        // Goes only when it is empty.
        let _ = fs::remove_dir(place);
    }
}

/// Moves images to another folder under their old names.
pub(super) fn relocate(library: &Library, from: &RelPath, to: &RelPath, images: &[ThumbnailInfo]) -> io::Result<()> {
    if from == to || images.is_empty() {
        return Ok(());
    }
    ensure_folder(&real(library, to, FOLDER).ok_or(io::ErrorKind::PermissionDenied)?)?;
    for image in images {
        if let (Some(old), Some(new)) = (real(library, from, &image.relative_path), real(library, to, &image.relative_path)) {
            fs::rename(old, new)?;
        }
    }
    remove(library, from, std::iter::empty());
    Ok(())
}

/// Where an image, named relative to a folder, is; only names directly in `.thumbs` count, whatever the database says.
fn real(library: &Library, folder: &RelPath, image: &str) -> Option<PathBuf> {
    let inside = image == FOLDER || Path::new(image).parent() == Some(Path::new(FOLDER));
    let path = RelPath::parse(&format!("{folder}/{image}")).ok().filter(|_| inside)?;
    Some(library.resolve(GCODES, path, Need::Write).ok()?.entry)
}
