//! Metadata of sliced files: what the slicer wrote in its comments, read from the two ends of a file.
//!
//! The order of work is fixed: `windows` reads the head and the tail, `recognise` names the slicer, one module of
//! `slicers` fills the fields of [`Metadata`], and [`crate::thumbnail`] unpacks the images. Source of all rules: the
//! wire specification, part 2, section 3.

mod area;
mod bounds;
mod fields;
mod list;
mod name;
mod pattern;
mod processors;
mod recognise;
mod slicers;
mod windows;

use std::io;

pub use fields::{Metadata, Number, ThumbnailInfo};
pub use name::{EXTENSIONS, is_accepted, is_ufp, stem};
pub use processors::Processor;

use crate::Source;
use crate::thumbnail::{self, Thumbnail};
use area::Areas;
use recognise::Family;
use windows::Windows;

/// What the caller knows about the file besides its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Name of the file without folders; thumbnails are named after its stem.
    pub file_name: &'a str,
    /// Which processors' marks are looked for, in the order their names are reported.
    pub processors: &'a [Processor],
    /// The image that came beside the text in a UFP package, if any; used only for Cura files without thumbnails.
    pub ufp_thumbnail: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    /// Options for a plain file: all processors' marks, no image beside it.
    pub fn new(file_name: &'a str) -> Self {
        Self { file_name, processors: Processor::ALL, ufp_thumbnail: None }
    }
}

/// All that one scan found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scan {
    /// The fields; `modified` and `uuid` are left for the caller.
    pub metadata: Metadata,
    /// Images to store, one for each entry of [`Metadata::thumbnails`] and in the same order.
    pub thumbnails: Vec<Thumbnail>,
    /// What was skipped and why, for the log; at most [`thumbnail::MAX_WARNINGS`].
    pub warnings: Vec<String>,
}

/// Reads the metadata of a sliced file. The cost does not depend on the size of the file: at most
/// two windows of [`WINDOW_BYTES`] are read.
///
/// # Errors
/// Only what the source reports; strange content never fails, it leaves fields out.
pub fn read(source: &(impl Source + ?Sized), options: &Options<'_>) -> io::Result<Scan> {
    let mut windows = Windows::read(source)?;
    let mut metadata = Metadata {
        size: source.size(),
        gcode_start_byte: bounds::start(&windows),
        gcode_end_byte: bounds::end(&windows),
        ..Metadata::default()
    };
    // Blocks are found before line ends are unified, while positions are still those of the file.
    let mut warnings = thumbnail::Warnings::default();
    let blocks = thumbnail::find(windows.all(), &mut warnings, |range| windows.place(range));

    windows.unify_line_ends();
    let areas = Areas::new(&windows);
    let slicer = recognise::slicer(areas.head);
    metadata.file_processors = processors::detect(&areas, options.processors);
    slicers::fill(&slicer, &areas, &mut metadata);
    drop(windows); // images are decoded without the text in memory

    let thumbnails = if slicer.family.has_thumbnails() {
        let stem = stem(options.file_name);
        match options.ufp_thumbnail {
            Some(image) if slicer.family == Family::Cura && blocks.is_empty() => thumbnail::beside(image, stem, &mut warnings),
            _ => thumbnail::unpack(blocks, stem, &mut warnings),
        }
    } else {
        Vec::new()
    };
    metadata.thumbnails = thumbnails.iter().map(ThumbnailInfo::from).collect();
    metadata.slicer = slicer.name;
    metadata.slicer_version = slicer.version;
    Ok(Scan { metadata, thumbnails, warnings: warnings.into_list() })
}

/// Size of each of the two windows, in bytes: the head and the tail of a file (section 3.2).
pub const WINDOW_BYTES: usize = 1 << 20;
