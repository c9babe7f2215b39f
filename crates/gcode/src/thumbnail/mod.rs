//! Thumbnails: images that slicers put into comments, unpacked to files beside the sliced file (section 3.9).
//!
//! `block` finds them, `base64` decodes them, `image` checks and converts them, `miniature` makes the small one
//! clients expect. A damaged image is skipped with a warning and never costs anything but itself.

mod base64;
mod block;
mod image;
mod miniature;
mod qoi;

#[cfg(test)]
mod tests;

use std::ops::Range;

pub(crate) use block::{Block, find};
pub use image::{Format, MAX_PIXELS};
pub use miniature::MINIATURE_SIDE;

use image::Bitmap;

/// Folder beside the sliced file that holds its thumbnails.
pub const FOLDER: &str = ".thumbs";

/// Most thumbnails of one file; slicers write up to five or so.
pub const MAX_THUMBNAILS: usize = 32;

/// Most warnings of one file; more are counted in the last one.
pub const MAX_WARNINGS: usize = 16;

/// An image to be stored beside the sliced file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thumbnail {
    /// Path relative to the folder of the sliced file: `.thumbs/<stem>-<W>x<H>.<png or jpg>`.
    pub relative_path: String,
    /// Width in pixels: what the slicer announced, or the true one of images made here.
    pub width: u32,
    /// Height in pixels, likewise.
    pub height: u32,
    /// Format of `data`; QOI images have become PNG.
    pub format: Format,
    /// Content of the file to write.
    pub data: Vec<u8>,
    /// Where the sliced file holds the image, its marks included; nothing for images made here or found beside it.
    pub block: Option<Range<u64>>,
}

/// Warnings of one scan, bounded.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    list: Vec<String>,
    dropped: usize,
}

impl Warnings {
    pub(crate) fn add(&mut self, warning: String) {
        if self.list.len() + 1 < MAX_WARNINGS {
            self.list.push(warning);
        } else {
            self.dropped += 1;
        }
    }

    pub(crate) fn into_list(mut self) -> Vec<String> {
        if self.dropped > 0 {
            self.list.push(format!("{} more warnings", self.dropped));
        }
        self.list
    }
}

/// Turns blocks into files, in file order, with the miniature first if none of them has its size.
pub(crate) fn unpack(blocks: Vec<Block>, stem: &str, warnings: &mut Warnings) -> Vec<Thumbnail> {
    let mut thumbnails: Vec<Thumbnail> = Vec::new();
    for block in blocks {
        let (width, height) = (block.width, block.height);
        match unpack_one(block, stem) {
            Ok(new) if thumbnails.iter().any(|old| old.relative_path == new.relative_path) => {
                warnings.add(format!("thumbnail {width}x{height} occurs twice, the first one is kept"));
            }
            Ok(new) => thumbnails.push(new),
            Err(reason) => warnings.add(format!("thumbnail {width}x{height} skipped: {reason}")),
        }
    }
    let side = MINIATURE_SIDE;
    if thumbnails.iter().all(|thumbnail| (thumbnail.width, thumbnail.height) != (side, side))
        && let Some(largest) = thumbnails.iter().max_by_key(|thumbnail| thumbnail.data.len())
    {
        match miniature::of(largest, stem) {
            Ok(small) => thumbnails.insert(0, small),
            Err(reason) => warnings.add(format!("no small thumbnail made: {reason}")),
        }
    }
    thumbnails
}

fn unpack_one(block: Block, stem: &str) -> Result<Thumbnail, image::Damage> {
    let Block { width, height, range, data, format } = block;
    let (format, data) = image::check(format, data)?;
    let relative_path = format!("{FOLDER}/{stem}-{width}x{height}.{}", format.extension());
    Ok(Thumbnail { relative_path, width, height, format, data, block: Some(range) })
}

/// The image of a UFP package: a miniature and the image itself with its true size.
pub(crate) fn beside(data: &[u8], stem: &str, warnings: &mut Warnings) -> Vec<Thumbnail> {
    let made = Bitmap::decode(Format::Png, data).and_then(|bitmap| {
        let full = Thumbnail {
            relative_path: format!("{FOLDER}/{stem}.png"),
            width: bitmap.width,
            height: bitmap.height,
            format: Format::Png,
            data: data.to_vec(),
            block: None,
        };
        Ok(vec![miniature::of_bitmap(bitmap, stem)?, full])
    });
    made.unwrap_or_else(|reason| {
        warnings.add(format!("thumbnail of the package skipped: {reason}"));
        Vec::new()
    })
}
