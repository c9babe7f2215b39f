//! Images of the three formats slicers write: checking them, and decoding to plain pixels.

use std::fmt;
use std::io::Cursor;

use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::qoi;

/// Most pixels that are decoded; checked before any memory is taken. A little more than 1080 lines of video.
pub const MAX_PIXELS: u32 = 1920 * 1088;

/// Largest side that is decoded, in pixels.
const MAX_SIDE: usize = 8192;

/// Format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Portable Network Graphics.
    Png,
    /// JPEG.
    Jpg,
    /// Quite OK Image; never stored, see [`super::Thumbnail::format`].
    Qoi,
}

impl Format {
    /// The format named in `thumbnail_<suffix>`; PNG without a suffix.
    pub(super) fn from_suffix(suffix: &[u8]) -> Option<Self> {
        match suffix.to_ascii_lowercase().as_slice() {
            b"" | b"png" => Some(Self::Png),
            b"jpg" => Some(Self::Jpg),
            b"qoi" => Some(Self::Qoi),
            _ => None,
        }
    }

    /// Extension of files of this format.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpg => "jpg",
            Self::Qoi => "qoi",
        }
    }
}

/// Why an image cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// Not a whole image of the format named.
    Image(&'static str),
    /// No pixels at all, or more than [`MAX_PIXELS`].
    Size(usize, usize),
    /// The small image could not be made.
    Resize,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(format) => write!(f, "not a whole {format} image"),
            Self::Size(width, height) => write!(f, "{width}x{height} pixels cannot be handled"),
            Self::Resize => f.write_str("scaling failed"),
        }
    }
}

/// Pixels in rows, each of one to four 8-bit channels: grey, grey and alpha, colour, colour and alpha.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bitmap {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) channels: usize,
    pub(super) pixels: Vec<u8>,
}

/// Checks that an image can be decoded and converts it to a format that is stored.
pub(super) fn check(format: Format, data: Vec<u8>) -> Result<(Format, Vec<u8>), Damage> {
    let bitmap = Bitmap::decode(format, &data)?;
    match format {
        Format::Png | Format::Jpg => Ok((format, data)),
        Format::Qoi => Ok((Format::Png, bitmap.to_png()?)),
    }
}

/// Number of pixels, if it is one that is decoded.
pub(super) fn check_size(width: u32, height: u32) -> Result<usize, Damage> {
    let sides = (width as usize, height as usize);
    match width.checked_mul(height) {
        Some(1..=MAX_PIXELS) if sides.0 <= MAX_SIDE && sides.1 <= MAX_SIDE => Ok(sides.0 * sides.1),
        _ => Err(Damage::Size(sides.0, sides.1)),
    }
}

impl Bitmap {
    /// Decodes an image.
    pub(super) fn decode(format: Format, data: &[u8]) -> Result<Self, Damage> {
        match format {
            Format::Png => decode_png(data),
            Format::Jpg => decode_jpg(data),
            Format::Qoi => qoi::decode(data),
        }
    }

    /// Encodes to PNG, fast rather than small.
    pub(super) fn to_png(&self) -> Result<Vec<u8>, Damage> {
        let mut encoded = Vec::new();
        let mut encoder = png::Encoder::new(&mut encoded, self.width, self.height);
        encoder.set_color(match self.channels {
            1 => png::ColorType::Grayscale,
            2 => png::ColorType::GrayscaleAlpha,
            3 => png::ColorType::Rgb,
            _ => png::ColorType::Rgba,
        });
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        let written = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(&self.pixels)?;
            writer.finish()
        });
        written.map_err(|_| Damage::Image("PNG"))?;
        Ok(encoded)
    }
}

fn decode_png(data: &[u8]) -> Result<Bitmap, Damage> {
    let damage = |_| Damage::Image("PNG");
    let mut decoder = png::Decoder::new(Cursor::new(data));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(damage)?;
    let (width, height) = reader.info().size();
    let count = check_size(width, height)?;
    let channels = reader.output_color_type().0.samples();
    let mut pixels = vec![0; count * channels];
    if reader.output_buffer_size() != Some(pixels.len()) {
        return Err(Damage::Image("PNG"));
    }
    reader.next_frame(&mut pixels).map_err(damage)?;
    Ok(Bitmap { width, height, channels, pixels })
}

fn decode_jpg(data: &[u8]) -> Result<Bitmap, Damage> {
    let damage = Damage::Image("JPG");
    let options = DecoderOptions::default()
        .set_max_width(MAX_SIDE)
        .set_max_height(MAX_SIDE)
        .set_strict_mode(true)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(data), options);
    decoder.decode_headers().map_err(|_| damage)?;
    let (width, height) = decoder.dimensions().ok_or(damage)?;
    let (width, height) = (u32::try_from(width).map_err(|_| damage)?, u32::try_from(height).map_err(|_| damage)?);
    let count = check_size(width, height)?;
    let pixels = decoder.decode().map_err(|_| damage)?;
    if pixels.len() != count * 3 {
        return Err(damage);
    }
    Ok(Bitmap { width, height, channels: 3, pixels })
}
