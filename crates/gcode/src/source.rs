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

/// Appends at most `count` bytes from `position`; fewer when the source ends before.
///
/// # Errors
/// What the disk says.
pub(crate) fn read_up_to(source: &(impl Source + ?Sized), position: u64, count: usize, into: &mut Vec<u8>) -> io::Result<()> {
    let available = usize::try_from(source.size().saturating_sub(position)).unwrap_or(usize::MAX);
    let start = into.len();
    into.resize(start + count.min(available), 0);
    let mut filled = start;
    while filled < into.len() {
        match source.read_at(position + (filled - start) as u64, &mut into[filled..]) {
            Ok(0) => break, // the file shrank
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    into.truncate(filled);
    Ok(())
}
