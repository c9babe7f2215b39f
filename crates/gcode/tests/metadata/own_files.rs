//! Small files in each slicer's format, made for these tests, with the metadata expected for each beside it.
//!
//! After a wanted change run the test with `UPDATE_EXPECTED=1` and read the difference.

use std::fs;

use gcode::metadata::{Metadata, Options, read};
use gcode::thumbnail::Format;
use serde_json::{Map, Value};

use crate::compare::{crate_folder, files, scan_file, to_object, without_sizes_of_made_images};

/// Number of files, so that none gets lost.
const FILES: usize = 17;

#[test]
fn every_file_has_the_values_beside_it() {
    let found = files(&crate_folder().join("tests/metadata/data"), ".gcode");
    assert_eq!(found.len(), FILES);
    for path in found {
        let scan = scan_file(&path);
        let mut object = to_object(&scan);
        // The encoder's choices may change; that the images decode is tested where they are made.
        without_sizes_of_made_images(&mut object, |index| scan.thumbnails[index].block.is_none() || path.ends_with("cura.gcode"));
        let mut found = Map::from_iter([("metadata".to_owned(), Value::Object(object))]);
        found.insert("warnings".to_owned(), scan.warnings.into());
        let text = serde_json::to_string_pretty(&found).unwrap() + "\n";
        let beside = path.with_extension("json");
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            fs::write(&beside, &text).unwrap();
        }
        assert_eq!(text, fs::read_to_string(&beside).unwrap(), "{}", path.display());
    }
}

#[test]
fn metadata_can_be_read_back() {
    for path in files(&crate_folder().join("tests/metadata/data"), ".gcode") {
        let metadata = scan_file(&path).metadata;
        let text = serde_json::to_string(&metadata).unwrap();
        assert_eq!(serde_json::from_str::<Metadata>(&text).unwrap(), metadata);
    }
}

#[test]
fn fields_stand_in_the_order_clients_know() {
    let path = crate_folder().join("tests/metadata/data/prusaslicer.gcode");
    let text = serde_json::to_string(&scan_file(&path).metadata).unwrap();
    let order = [
        "size",
        "file_processors",
        "slicer",
        "gcode_start_byte",
        "layer_count",
        "estimated_time",
        "filament_name",
        "printer_vendor",
        "thumbnails",
    ];
    let places: Vec<_> = order.iter().map(|key| text.find(&format!("\"{key}\":")).unwrap()).collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn each_kind_of_image_becomes_a_file() {
    let data = crate_folder().join("tests/metadata/data");
    let prusa = scan_file(&data.join("prusaslicer.gcode")).thumbnails;
    let formats: Vec<_> = prusa.iter().map(|image| (image.format, image.width, image.height)).collect();
    assert_eq!(formats, [(Format::Png, 32, 24), (Format::Png, 48, 36), (Format::Jpg, 64, 64)]);
    let cura = scan_file(&data.join("cura.gcode")).thumbnails;
    assert_eq!(cura.len(), 2);
    assert!(cura.iter().all(|image| image.format == Format::Png && image.data.starts_with(b"\x89PNG")));
    let text = fs::read(data.join("prusaslicer.gcode")).unwrap();
    let place = prusa[2].block.clone().unwrap();
    let block = &text[place.start as usize..place.end as usize];
    assert!(block.starts_with(b"; thumbnail_JPG begin 64x64") && block.ends_with(b"; thumbnail_JPG end"));
}

#[test]
fn a_package_gives_its_image_to_cura_files_without_any() {
    let data = crate_folder().join("tests/metadata/data");
    let image = scan_file(&data.join("prusaslicer.gcode")).thumbnails[1].data.clone();
    let listed = |file: &str| {
        let bytes = fs::read(data.join(file)).unwrap();
        let options = Options { ufp_thumbnail: Some(&image), ..Options::new("part.ufp") };
        let metadata = read(bytes.as_slice(), &options).unwrap().metadata;
        metadata.thumbnails.into_iter().map(|entry| (entry.relative_path, entry.width, entry.height)).collect::<Vec<_>>()
    };
    let from_package = [(".thumbs/part-32x32.png".to_owned(), 32, 24), (".thumbs/part.png".to_owned(), 48, 36)];
    assert_eq!(listed("cura-volumetric.gcode"), from_package);
    assert_eq!(listed("cura.gcode").len(), 2, "has its own");
    assert!(listed("cura.gcode")[1].0.ends_with("40x20.png"));
    assert!(listed("unknown.gcode").is_empty(), "is not from Cura");
}
