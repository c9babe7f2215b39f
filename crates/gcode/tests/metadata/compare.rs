//! Comparing a scan with the JSON expected for it.

use std::fs;
use std::path::{Path, PathBuf};

use gcode::metadata::{Options, Scan, read};
use serde_json::{Map, Value};

/// Folder of this crate.
pub(crate) fn crate_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Reads a file and its metadata.
pub(crate) fn scan_file(path: &Path) -> Scan {
    let bytes = fs::read(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    read(bytes.as_slice(), &Options::new(name)).unwrap()
}

/// The metadata as clients see it.
pub(crate) fn to_object(scan: &Scan) -> Map<String, Value> {
    match serde_json::to_value(&scan.metadata).unwrap() {
        Value::Object(object) => object,
        other => panic!("not an object: {other}"),
    }
}

/// Takes away what may differ: the sizes of images encoded by whoever reads the file.
pub(crate) fn without_sizes_of_made_images(object: &mut Map<String, Value>, is_made: impl Fn(usize) -> bool) {
    let Some(Value::Array(thumbnails)) = object.get_mut("thumbnails") else { return };
    for (index, thumbnail) in thumbnails.iter_mut().enumerate() {
        if is_made(index) {
            thumbnail["size"] = Value::Null;
        }
    }
}

/// All files of a folder with the given ending, sorted.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).map(|entries| entries.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default();
    found.retain(|path| path.to_string_lossy().ends_with(ending));
    found.sort();
    found
}
