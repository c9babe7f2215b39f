//! Where printable files come from: the only I/O the model knows, behind a trait so that tests print from memory.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

/// Bytes read from a file at once; a file is never held whole.
const CHUNK: usize = 16 * 1024;

/// Bytes of a line that are kept; the rest of a longer line is skipped.
const MAX_LINE: usize = 4096;

/// Files that `M20` lists at most.
const MAX_LISTED: usize = 1000;

/// Folder depth that `M20` looks into.
const MAX_DEPTH: usize = 8;

/// What a printable file must be able to do.
pub(crate) trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

/// A folder of printable files.
pub(crate) trait Storage: Send {
    /// Opens a file by its path relative to the folder.
    ///
    /// # Errors
    /// Missing, unreadable, or outside the folder.
    fn open(&self, name: &str) -> io::Result<PrintFile>;

    /// Names and sizes of all files.
    fn list(&self) -> Vec<(String, u64)>;

    /// The folder, as `configfile` shows it.
    fn path(&self) -> &Path;
}

/// An open file, read line by line.
pub(crate) struct PrintFile {
    /// Name as asked for.
    pub(crate) name: String,
    /// Full path.
    pub(crate) path: PathBuf,
    /// Size when opened, bytes.
    pub(crate) size: u64,
    /// Bytes read so far.
    pub(crate) position: u64,
    reader: BufReader<Box<dyn ReadSeek>>,
}

impl PrintFile {
    /// A file over any reader.
    pub(crate) fn new(name: &str, path: PathBuf, size: u64, reader: Box<dyn ReadSeek>) -> Self {
        Self { name: name.to_owned(), path, size, position: 0, reader: BufReader::with_capacity(CHUNK, reader) }
    }

    /// The next line without its end, or `None` at the end of the file. Bytes that are no UTF-8 are replaced.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let mut any = false;
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            any = true;
            let end = memchr::memchr(b'\n', chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            line.extend_from_slice(&part[..part.len().min(MAX_LINE - line.len().min(MAX_LINE))]);
            let used = end.map_or(chunk.len(), |at| at + 1);
            self.reader.consume(used);
            self.position += used as u64;
            if end.is_some() {
                break;
            }
        }
        Ok(any.then(|| String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned()))
    }

    /// Goes on from another byte (`M26`).
    ///
    /// # Errors
    /// The file cannot be sought.
    pub(crate) fn seek(&mut self, position: u64) -> io::Result<()> {
        self.reader.seek(SeekFrom::Start(position))?;
        self.position = position;
        Ok(())
    }

    /// Share of the file that is read, 0–1.
    pub(crate) fn progress(&self) -> f64 {
        if self.size == 0 { 0.0 } else { self.position as f64 / self.size as f64 }
    }
}

/// A real folder on disk.
#[derive(Debug, Clone)]
pub(crate) struct Folder(pub PathBuf);

impl Storage for Folder {
    fn open(&self, name: &str) -> io::Result<PrintFile> {
        let relative = Path::new(name.trim_start_matches('/'));
        if !relative.components().all(|c| matches!(c, Component::Normal(_))) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let path = self.0.join(relative);
        let file = File::open(&path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(PrintFile::new(&relative.to_string_lossy(), path, metadata.len(), Box::new(file)))
    }

    fn list(&self) -> Vec<(String, u64)> {
        let mut found = Vec::new();
        let mut folders = vec![(self.0.clone(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
                if metadata.is_dir() && depth < MAX_DEPTH {
                    folders.push((path, depth + 1));
                } else if metadata.is_file() && found.len() < MAX_LISTED && is_gcode(&path) {
                    let name = path.strip_prefix(&self.0).unwrap_or(&path).to_string_lossy().into_owned();
                    found.push((name, metadata.len()));
                }
            }
        }
        found.sort();
        found
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

fn is_gcode(path: &Path) -> bool {
    path.extension().is_some_and(|e| ["gcode", "g", "gco"].iter().any(|known| e.eq_ignore_ascii_case(known)))
}

#[cfg(test)]
pub(crate) mod memory {
    use super::*;
    use std::io::Cursor;

    /// Files in memory.
    #[derive(Default)]
    pub(crate) struct MemoryStorage(pub(crate) Vec<(&'static str, String)>);

    impl Storage for MemoryStorage {
        fn open(&self, name: &str) -> io::Result<PrintFile> {
            let (name, text) = self.0.iter().find(|(n, _)| *n == name).ok_or(io::ErrorKind::NotFound)?;
            let path = Path::new("/memory").join(name);
            Ok(PrintFile::new(name, path, text.len() as u64, Box::new(Cursor::new(text.clone().into_bytes()))))
        }

        fn list(&self) -> Vec<(String, u64)> {
            self.0.iter().map(|(n, t)| ((*n).to_owned(), t.len() as u64)).collect()
        }

        fn path(&self) -> &Path {
            Path::new("/memory")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::memory::MemoryStorage;
    use super::*;

    #[test]
    fn lines_of_every_length() {
        let text = format!("G28\r\n\n{}\nlast", "x".repeat(100_000));
        let storage = MemoryStorage(vec![("a.gcode", text.clone())]);
        let mut file = storage.open("a.gcode").unwrap();
        assert_eq!(file.next_line().unwrap().as_deref(), Some("G28"));
        assert_eq!(file.next_line().unwrap().as_deref(), Some(""));
        assert_eq!(file.next_line().unwrap().unwrap().len(), MAX_LINE);
        assert_eq!(file.next_line().unwrap().as_deref(), Some("last"));
        assert_eq!(file.next_line().unwrap(), None);
        assert_eq!((file.position, file.progress()), (text.len() as u64, 1.0));
    }

    #[test]
    fn a_folder_never_gives_files_from_outside() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/a.gcode"), "G28\n").unwrap();
        fs::write(folder.path().join("notes.txt"), "").unwrap();
        let storage = Folder(folder.path().join("sub"));
        assert!(storage.open("../notes.txt").is_err());
        assert!(storage.open("").is_err());
        assert_eq!(storage.open("/a.gcode").unwrap().size, 4);
        assert_eq!(Folder(folder.path().to_owned()).list(), [("sub/a.gcode".to_owned(), 4)]);
    }
}
