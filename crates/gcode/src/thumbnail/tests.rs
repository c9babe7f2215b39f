//! From blocks to files: names, order, miniatures, damage.

use super::*;

fn bitmap(width: u32, height: u32) -> Bitmap {
    let pixels = (0..width * height * 3).map(|at| (at % 251) as u8).collect();
    Bitmap { width, height, channels: 3, pixels }
}

fn png_block(width: u32, height: u32) -> Block {
    Block { format: Format::Png, width, height, range: 5..50, data: bitmap(width, height).to_png().unwrap() }
}

fn unpacked(blocks: Vec<Block>) -> (Vec<Thumbnail>, Vec<String>) {
    let mut warnings = Warnings::default();
    let thumbnails = unpack(blocks, "my part", &mut warnings);
    (thumbnails, warnings.into_list())
}

fn names(thumbnails: &[Thumbnail]) -> Vec<&str> {
    thumbnails.iter().map(|thumbnail| thumbnail.relative_path.as_str()).collect()
}

#[test]
fn the_miniature_comes_first_and_is_made_of_the_largest() {
    let (thumbnails, warnings) = unpacked(vec![png_block(16, 16), png_block(200, 100)]);
    assert_eq!(names(&thumbnails), [".thumbs/my part-32x32.png", ".thumbs/my part-16x16.png", ".thumbs/my part-200x100.png"]);
    assert_eq!((thumbnails[0].width, thumbnails[0].height), (32, 16));
    assert_eq!((&thumbnails[0].block, &thumbnails[1].block), (&None, &Some(5..50)));
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn no_miniature_where_the_slicer_made_one() {
    let (thumbnails, _) = unpacked(vec![png_block(64, 64), png_block(32, 32)]);
    assert_eq!(names(&thumbnails), [".thumbs/my part-64x64.png", ".thumbs/my part-32x32.png"]);
}

#[test]
fn small_images_are_not_enlarged() {
    let (thumbnails, _) = unpacked(vec![png_block(16, 12)]);
    assert_eq!((thumbnails[0].width, thumbnails[0].height, thumbnails.len()), (16, 12, 2));
}

#[test]
fn images_of_one_name_are_kept_once() {
    let (thumbnails, warnings) = unpacked(vec![png_block(32, 32), png_block(32, 32)]);
    assert_eq!((thumbnails.len(), warnings.len()), (1, 1));
}

#[test]
fn damaged_images_are_skipped_alone() {
    let mut damaged = png_block(100, 100);
    let middle = damaged.data.len() / 2;
    damaged.data[middle] ^= 0xff;
    let empty = |format| Block { format, width: 9, height: 9, range: 0..1, data: Vec::new() };
    let (thumbnails, warnings) = unpacked(vec![damaged, empty(Format::Png), empty(Format::Jpg), empty(Format::Qoi), png_block(48, 48)]);
    assert_eq!(names(&thumbnails), [".thumbs/my part-32x32.png", ".thumbs/my part-48x48.png"]);
    assert_eq!(warnings.len(), 4, "{warnings:?}");
}

#[test]
fn sizes_are_checked_before_pixels_are_decoded() {
    let mut huge = bitmap(1, 1).to_png().unwrap();
    huge[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    assert!(Bitmap::decode(Format::Png, &huge).is_err());
}

#[test]
fn the_image_of_a_package_keeps_its_true_size() {
    let data = bitmap(300, 200).to_png().unwrap();
    let mut warnings = Warnings::default();
    let thumbnails = beside(&data, "a", &mut warnings);
    assert_eq!(names(&thumbnails), [".thumbs/a-32x32.png", ".thumbs/a.png"]);
    assert_eq!((thumbnails[0].width, thumbnails[0].height), (32, 21));
    assert_eq!((thumbnails[1].width, thumbnails[1].height, &thumbnails[1].data), (300, 200, &data));
    assert!(beside(b"junk", "a", &mut warnings).is_empty());
    assert_eq!(warnings.into_list().len(), 1);
}
