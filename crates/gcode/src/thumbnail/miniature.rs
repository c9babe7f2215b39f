//! The small image clients show in lists: at most 32x32, proportions kept.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{PixelType, Resizer};

use super::image::{Bitmap, Damage, Format};
use super::{FOLDER, Thumbnail};

/// Side of the square a miniature fits in, in pixels.
pub const MINIATURE_SIDE: u32 = 32;

/// Makes the miniature of a thumbnail.
pub(super) fn of(thumbnail: &Thumbnail, stem: &str) -> Result<Thumbnail, Damage> {
    of_bitmap(Bitmap::decode(thumbnail.format, &thumbnail.data)?, stem)
}

/// Makes the miniature of decoded pixels. A smaller image keeps its size.
pub(super) fn of_bitmap(bitmap: Bitmap, stem: &str) -> Result<Thumbnail, Damage> {
    let (width, height) = fit(bitmap.width, bitmap.height);
    let small = if (width, height) == (bitmap.width, bitmap.height) { bitmap } else { scale(&bitmap, width, height)? };
    Ok(Thumbnail {
        relative_path: format!("{FOLDER}/{stem}-{MINIATURE_SIDE}x{MINIATURE_SIDE}.png"),
        width,
        height,
        format: Format::Png,
        data: small.to_png()?,
        block: None,
    })
}

/// The largest size within the square whose proportions are nearest to those given.
fn fit(width: u32, height: u32) -> (u32, u32) {
    if width <= MINIATURE_SIDE && height <= MINIATURE_SIDE {
        return (width, height);
    }
    let proportion = f64::from(width.min(height)) / f64::from(width.max(height));
    let exact = f64::from(MINIATURE_SIDE) * proportion;
    // The whole number below or above, whichever bends the proportions less.
    let bend = |side: f64| (1.0 / proportion - f64::from(MINIATURE_SIDE) / side).abs();
    let side = if bend(exact.floor()) <= bend(exact.ceil()) { exact.floor() } else { exact.ceil() };
    let short = (side as u32).max(1);
    if width >= height { (MINIATURE_SIDE, short) } else { (short, MINIATURE_SIDE) }
}

fn scale(bitmap: &Bitmap, width: u32, height: u32) -> Result<Bitmap, Damage> {
    let kind = match bitmap.channels {
        1 => PixelType::U8,
        2 => PixelType::U8x2,
        3 => PixelType::U8x3,
        _ => PixelType::U8x4,
    };
    let from = ImageRef::new(bitmap.width, bitmap.height, &bitmap.pixels, kind).map_err(|_| Damage::Resize)?;
    let mut to = Image::new(width, height, kind);
    Resizer::new().resize(&from, &mut to, None).map_err(|_| Damage::Resize)?;
    Ok(Bitmap { width, height, channels: bitmap.channels, pixels: to.into_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (from, to) in [
            ((400, 300), (32, 24)),
            ((300, 400), (24, 32)),
            ((220, 124), (32, 18)),
            ((313, 173), (32, 18)),
            ((16, 12), (16, 12)),
            ((32, 32), (32, 32)),
            ((33, 33), (32, 32)),
            ((8000, 1), (32, 1)),
            ((1, 8000), (1, 32)),
        ] {
            assert_eq!(fit(from.0, from.1), to, "{from:?}");
        }
    }

    #[test]
    fn all_channel_counts_scale() {
        for channels in 1..=4 {
            let bitmap = Bitmap { width: 64, height: 48, channels, pixels: vec![200; 64 * 48 * channels] };
            let small = of_bitmap(bitmap, "a").unwrap();
            let back = Bitmap::decode(Format::Png, &small.data).unwrap();
            assert_eq!((back.width, back.height, back.channels), (32, 24, channels));
            assert!(back.pixels.iter().all(|&value| value.abs_diff(200) <= 1), "{channels}");
        }
    }
}
