//! The small image clients show in lists: at most 32x32, proportions kept.

use resize::Pixel::RGBA8P;
use resize::Type::Lanczos3;
use resize::px::RGBA;

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

/// Scales in one form of pixels, red, green, blue and opacity, and goes back.
fn scale(bitmap: &Bitmap, width: u32, height: u32) -> Result<Bitmap, Damage> {
    let side = |pixels: u32| usize::try_from(pixels).map_err(|_| Damage::Resize);
    let (from, to) = ((side(bitmap.width)?, side(bitmap.height)?), (side(width)?, side(height)?));
    let pixels: Vec<RGBA<u8>> = bitmap.pixels.chunks_exact(bitmap.channels.max(1)).map(to_rgba).collect();
    let mut small = vec![RGBA::new(0, 0, 0, 0); to.0 * to.1];
    let mut resizer = resize::new(from.0, from.1, to.0, to.1, RGBA8P, Lanczos3).map_err(|_| Damage::Resize)?;
    resizer.resize(&pixels, &mut small).map_err(|_| Damage::Resize)?;
    let kept = kept_of_rgba(bitmap.channels);
    let parts = small.iter().flat_map(|pixel| {
        let parts = [pixel.r, pixel.g, pixel.b, pixel.a];
        kept.iter().filter_map(move |place| parts.get(*place).copied())
    });
    Ok(Bitmap { width, height, channels: bitmap.channels, pixels: parts.collect() })
}

fn to_rgba(pixel: &[u8]) -> RGBA<u8> {
    let [r, g, b, a] = match *pixel {
        [grey] => [grey, grey, grey, u8::MAX],
        [grey, opacity] => [grey, grey, grey, opacity],
        [red, green, blue] => [red, green, blue, u8::MAX],
        [red, green, blue, opacity, ..] => [red, green, blue, opacity],
        [] => [0; 4],
    };
    RGBA { r, g, b, a }
}

/// Which of red, green, blue and opacity make up a pixel of so many channels.
fn kept_of_rgba(channels: usize) -> &'static [usize] {
    match channels {
        1 => &[0],
        2 => &[0, 3],
        3 => &[0, 1, 2],
        _ => &[0, 1, 2, 3],
    }
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

    #[test]
    fn channels_stay_where_they_are() {
        for (pixel, name) in
            [(&[10_u8][..], "grey"), (&[10, 255], "grey and opacity"), (&[10, 60, 110], "colour"), (&[10, 60, 110, 255], "both")]
        {
            let bitmap = Bitmap { width: 100, height: 50, channels: pixel.len(), pixels: pixel.repeat(100 * 50) };
            let small = scale(&bitmap, 32, 16).unwrap();
            assert_eq!(small.pixels.len(), 32 * 16 * pixel.len());
            assert!(small.pixels.chunks(pixel.len()).all(|found| found == pixel), "{name}");
        }
    }
}
