//! Decoder for the QOI image format (version 1.0 of its specification); small enough to own.

use super::image::{Bitmap, Damage, check_size};

const MAGIC: &[u8] = b"qoif";
const HEADER_BYTES: usize = 14;

type Pixel = [u8; 4];

/// Decodes an image to three or four channels, as its header says.
pub(super) fn decode(data: &[u8]) -> Result<Bitmap, Damage> {
    let Some((header, body)) = data.split_at_checked(HEADER_BYTES) else { return Err(Damage::Image("QOI")) };
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (width, height, channels) = (number(4), number(8), usize::from(header[12]));
    if !header.starts_with(MAGIC) || !(3..=4).contains(&channels) {
        return Err(Damage::Image("QOI"));
    }
    let count = check_size(width, height)?;
    let mut pixels = Vec::with_capacity(count * channels);
    let mut reader = Reader { body: body.iter().copied(), last: [0, 0, 0, 255], seen: [[0; 4]; 64] };
    let mut left = count;
    while left > 0 {
        let (pixel, repeats) = reader.next().ok_or(Damage::Image("QOI"))?;
        let repeats = repeats.min(left);
        for _ in 0..repeats {
            pixels.extend_from_slice(&pixel[..channels]);
        }
        left -= repeats;
    }
    Ok(Bitmap { width, height, channels, pixels })
}

struct Reader<B> {
    body: B,
    last: Pixel,
    /// Pixels seen before, by a hash of their channels.
    seen: [Pixel; 64],
}

impl<B: Iterator<Item = u8>> Reader<B> {
    /// The next pixel and how often it occurs in a row; nothing at the end of the data.
    fn next(&mut self) -> Option<(Pixel, usize)> {
        let tag = self.body.next()?;
        let low = tag & 0x3f;
        let [red, green, blue, alpha] = self.last;
        let mut repeats = 1;
        self.last = match (tag >> 6, low) {
            (3, 0x3f) => [self.body.next()?, self.body.next()?, self.body.next()?, self.body.next()?],
            (3, 0x3e) => [self.body.next()?, self.body.next()?, self.body.next()?, alpha],
            (3, run) => {
                repeats = usize::from(run) + 1;
                self.last
            }
            (0, index) => self.seen[usize::from(index)],
            (1, steps) => {
                let step = |value: u8, shift: u8| value.wrapping_add(steps >> shift & 3).wrapping_sub(2);
                [step(red, 4), step(green, 2), step(blue, 0), alpha]
            }
            (_, green_step) => {
                let others = self.body.next()?;
                let green_step = green_step.wrapping_sub(32);
                let step = |value: u8, relative: u8| value.wrapping_add(green_step).wrapping_add(relative).wrapping_sub(8);
                [step(red, others >> 4), green.wrapping_add(green_step), step(blue, others & 0x0f), alpha]
            }
        };
        self.seen[slot(self.last)] = self.last;
        Some((self.last, repeats))
    }
}

fn slot([red, green, blue, alpha]: Pixel) -> usize {
    (usize::from(red) * 3 + usize::from(green) * 5 + usize::from(blue) * 7 + usize::from(alpha) * 11) % 64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(width: u32, height: u32, channels: u8, body: &[u8]) -> Vec<u8> {
        let mut data = MAGIC.to_vec();
        data.extend(width.to_be_bytes());
        data.extend(height.to_be_bytes());
        data.extend([channels, 0]);
        data.extend(body);
        data.extend([0, 0, 0, 0, 0, 0, 0, 1]);
        data
    }

    #[test]
    fn every_kind_of_chunk() {
        let body = [
            0xfe,
            10,
            20,
            30, // rgb
            0xff,
            1,
            2,
            3,
            4,                 // rgba
            0x40 | 0b11_10_01, // diff: +1, 0, -1
            0x80 | 33,
            0x97,                                             // luma: green +1, red +1+1, blue +1-1
            0xc1,                                             // run of 2
            (10 * 3 + 20 * 5 + 30 * 7 + 255 * 11) as u8 % 64, // index of the first pixel
        ];
        let bitmap = decode(&image(7, 1, 4, &body)).unwrap();
        let pixels: Vec<&[u8]> = bitmap.pixels.chunks(4).collect();
        let expected: [[u8; 4]; 7] =
            [[10, 20, 30, 255], [1, 2, 3, 4], [2, 2, 2, 4], [4, 3, 2, 4], [4, 3, 2, 4], [4, 3, 2, 4], [10, 20, 30, 255]];
        assert_eq!(pixels, expected);
    }

    #[test]
    fn three_channels_leave_alpha_out() {
        assert_eq!(decode(&image(2, 1, 3, &[0xfe, 1, 2, 3, 0xc0])).unwrap().pixels, [1, 2, 3, 1, 2, 3]);
    }

    #[test]
    fn damage() {
        let whole = image(1, 1, 3, &[0xfe, 1, 2, 3]);
        for end in 0..whole.len() - 8 {
            assert!(decode(&whole[..end]).is_err(), "{end}");
        }
        assert!(decode(&image(0, 1, 3, &[])).is_err());
        assert!(decode(&image(u32::MAX, u32::MAX, 4, &[])).is_err());
        assert!(decode(&image(1, 1, 5, &[0xfe, 1, 2, 3])).is_err());
    }
}
