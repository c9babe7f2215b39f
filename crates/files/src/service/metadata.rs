//! Metadata as clients ask for it.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

use protocol::ApiError;
use protocol::event::FilelistChange;

use super::{Files, blocking};
use crate::item::is_unchanged;
use crate::kind;
use crate::library::{Library, Need, RootPath};
use crate::metadata::{Ask, FileMetadata, OBJECTS_TIME_LIMIT, Record, Stamp, ThumbnailDetails, follow};
use crate::path::RelPath;
use crate::refusal::Refusal;
use crate::root::{GCODES, Permissions};

/// Looks at many gcode files and resolves every folder once: what a list of jobs costs is mostly this.
struct Glance<'a> {
    library: &'a Library,
    folders: HashMap<RelPath, Option<RootPath>>,
    /// What was found; jobs often print the same file.
    files: HashMap<&'a str, Option<fs::Metadata>>,
    /// Something lies where changes are not seen: behind a link, or in a hidden folder.
    unwatched: bool,
}

impl<'a> Glance<'a> {
    fn new(library: &'a Library) -> Self {
        Self { library, folders: HashMap::new(), files: HashMap::new(), unwatched: false }
    }

    /// The file as it is now, when it is one that may be read.
    fn at(&mut self, filename: &'a str) -> Option<fs::Metadata> {
        if let Some(found) = self.files.get(filename) {
            return found.clone();
        }
        let found = self.look(filename);
        self.files.insert(filename, found.clone());
        found
    }

    fn look(&mut self, filename: &str) -> Option<fs::Metadata> {
        let path = RelPath::parse(filename).ok()?;
        let library = self.library;
        let resolve = |path: RelPath| library.resolve(GCODES, path, Need::Read).ok();
        let folder = self.folders.entry(path.parent()).or_insert_with_key(|folder| resolve(folder.clone())).as_ref()?;
        let entry = folder.real.join(path.name());
        self.unwatched |= path.names().any(|name| name.starts_with('.')) || folder.real != folder.relative.below(&folder.root.path);
        if library.permissions(&folder.root, &entry) == Permissions::Nothing {
            return None;
        }
        let found = fs::symlink_metadata(&entry).ok()?;
        // A link may lead out of the root.
        // Also behind another name of the same file.
        self.unwatched |= found.is_symlink() || found.nlink() > 1;
        let found = if found.is_symlink() { fs::metadata(resolve(path)?.real).ok()? } else { found };
        found.is_file().then_some(found)
    }
}

impl Files {
    /// The metadata of a gcode file, named relative to `gcodes`. A file that changed since its scan, or has none yet, is scanned first.
    ///
    /// # Errors
    /// 404 when there is none, 400 and 403 as for all paths.
    pub async fn metadata(self: &Arc<Self>, filename: String) -> Result<FileMetadata, ApiError> {
        let none = ApiError::not_found(format!("Metadata not available for <{filename}>"));
        let (path, valid) = self.look(filename).await?;
        if let Some(record) = valid {
            return Ok(FileMetadata { record, filename: path.to_string() });
        }
        self.scanned(std::slice::from_ref(&path), Ask::Now).await;
        let files = self.clone();
        let (key, record) = blocking(move || Ok((path.to_string(), files.metadata.get(&path)))).await?;
        Ok(FileMetadata { record: record.ok_or(none)?, filename: key })
    }

    /// Scans a gcode file again.
    ///
    /// # Errors
    /// 404 when there is no such file, 400 when it is no gcode file.
    pub async fn metascan(self: &Arc<Self>, filename: String) -> Result<FileMetadata, ApiError> {
        let (files, asked) = (self.clone(), filename.clone());
        let path = blocking(move || {
            let path = files.gcode_path(&asked)?;
            if !path.real.is_file() {
                return Err(ApiError::not_found(format!("File '{asked}' does not exist")));
            }
            if !kind::is_gcode(path.relative.name()) || kind::is_ufp(path.relative.name()) {
                return Err(ApiError::bad_request(format!("File '{asked}' is not a gcode file")));
            }
            Ok(path.relative)
        })
        .await?;
        self.scanned(&[path], Ask::Force).await;
        self.metadata(filename).await
    }

    /// The thumbnails of a gcode file; none when there is no metadata.
    ///
    /// # Errors
    /// 400 and 403 as for all paths.
    pub async fn thumbnails(self: &Arc<Self>, filename: String) -> Result<Vec<ThumbnailDetails>, ApiError> {
        let files = self.clone();
        blocking(move || {
            let path = files.gcode_path(&filename)?.relative;
            let folder = path.parent();
            let record = files.metadata.get(&path);
            let images = record.map(|record| record.thumbnails()).unwrap_or_default();
            let place = |image: &str| if folder.is_root() { image.to_owned() } else { format!("{folder}/{image}") };
            let details = images.into_iter().map(|image| ThumbnailDetails {
                width: image.width,
                height: image.height,
                size: image.size,
                thumbnail_path: place(&image.relative_path),
            });
            Ok(details.collect())
        })
        .await
    }

    /// For the job history: the metadata of a file that is kept, as a JSON object without what the history itself adds. None when there is none
    /// or the file changed since.
    pub async fn kept_metadata(self: &Arc<Self>, filename: String) -> Option<String> {
        let (_, record) = self.look(filename).await.ok()?;
        record.map(|record| record.document.into_string())
    }

    /// For the job history: takes down that a file was printed.
    pub async fn printed(self: &Arc<Self>, filename: String, start_time: f64, job_id: String) {
        let files = self.clone();
        // Cannot fail: a path outside of the root has no record.
        let _ = blocking(move || {
            files.metadata.printed(&files.gcode_path(&filename)?.relative, start_time, job_id);
            Ok(())
        })
        .await;
    }

    /// For jobs: for each file (relative to `gcodes`), whether it is there with this size in bytes and this time of modification in Unix seconds.
    /// What is none is not compared. As long as [`Files::news_mark`] is the returned mark, another look would find the same.
    pub async fn unchanged(self: &Arc<Self>, list: Vec<(String, Option<u64>, Option<f64>)>) -> (Vec<bool>, Option<u64>) {
        let (files, count, mark) = (self.clone(), list.len(), self.news.mark());
        let looked = blocking(move || {
            let mut glance = Glance::new(&files.library);
            let mut unchanged = Vec::with_capacity(count);
            for (filename, size, modified) in &list {
                unchanged.push(glance.at(filename).is_some_and(|found| is_unchanged(&found, *size, *modified)));
            }
            Ok((unchanged, mark.filter(|_| !glance.unwatched)))
        });
        looked.await.unwrap_or_else(|_| (vec![false; count], None))
    }

    /// Changes whenever a gcode file may have changed; none when that is not known.
    pub fn news_mark(&self) -> Option<u64> {
        self.news.mark()
    }

    /// Lets metadata follow a change; ready when what clients will ask for is there. Called without the lock of all changes.
    pub(crate) async fn followed(self: &Arc<Self>, change: &FilelistChange) {
        self.news.add();
        let (files, change) = (self.clone(), change.clone());
        let due = blocking(move || Ok(follow(&files, &change))).await.unwrap_or_default();
        self.scanned(&due, Ask::Now).await;
    }

    /// Waits for scans, but not longer than they may take.
    pub(crate) async fn scanned(&self, paths: &[RelPath], how: Ask) {
        let receivers: Vec<_> = paths.iter().map(|path| self.scans.ask(path, how)).collect();
        let all = async {
            for receiver in receivers {
                // The scan is over when the sender goes.
                let _ = receiver.await;
            }
        };
        let mut limit = Duration::from_secs_f64(self.settings.options.default_metadata_parser_timeout);
        if self.settings.options.enable_object_processing {
            limit = limit.max(OBJECTS_TIME_LIMIT);
        }
        if tokio::time::timeout(limit, all).await.is_err() {
            tracing::warn!(files = paths.len(), "metadata is late; it will follow");
        }
    }

    /// The key of a file and its record, if that is valid.
    async fn look(self: &Arc<Self>, filename: String) -> Result<(RelPath, Option<Record>), ApiError> {
        let files = self.clone();
        let look = move || {
            let path = files.gcode_path(&filename)?;
            let Ok(now) = fs::metadata(&path.real) else {
                return Err(ApiError::not_found(format!("Metadata not available for <{filename}>")));
            };
            let record = files.metadata.get(&path.relative).filter(|record| record.stamp == Stamp::of(&now));
            Ok((path.relative, record))
        };
        self.lane.look(look).await
    }

    fn gcode_path(&self, filename: &str) -> Result<RootPath, ApiError> {
        let parsed = RelPath::parse(filename).map_err(Refusal::from);
        parsed.and_then(|path| self.library.resolve(GCODES, path, Need::Read)).map_err(|refusal| refusal.for_operation(filename))
    }
}
