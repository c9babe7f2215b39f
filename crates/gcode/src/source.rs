//! Where the bytes of a file come from.

use std::io;

/// Random access to a file's bytes.
pub trait Source {
    /// Size in bytes.
    fn size(&self) -> u64;

    /// Reads at most `buffer.len()` bytes from `position`; 0 at the end.
    ///
    /// # Errors
    /// What the disk says.
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl Source for [u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let start = usize::try_from(position).unwrap_or(usize::MAX).min(self.len());
        let count = buffer.len().min(self.len() - start);
        buffer[..count].copy_from_slice(&self[start..start + count]);
        Ok(count)
    }
}
