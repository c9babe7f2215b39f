//! The operations on files (document 2, *Files*): parameters, results, and which way they are called. Thin.

use std::sync::Arc;

use protocol::event::{FileAction, FileItem, FilelistChange, SourceItem};
use rpc::{Access, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::root::{GCODES, Permissions};
use crate::service::Files;

fn gcodes() -> String {
    GCODES.to_owned()
}

/// Parameters of the file list.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListParams {
    /// Name of the root.
    #[serde(default = "gcodes")]
    root: String,
}

/// Parameters of the directory listing.
#[derive(Debug, Deserialize, JsonSchema)]
struct DirectoryParams {
    /// Path of the folder, beginning with its root.
    #[serde(default = "gcodes")]
    path: String,
    /// Adds the metadata of gcode files.
    #[serde(default)]
    extended: bool,
}

/// Parameters that name a gcode file.
#[derive(Debug, Deserialize, JsonSchema)]
struct FilenameParams {
    /// Path relative to `gcodes`.
    filename: String,
}

/// Parameters that name one thing.
#[derive(Debug, Deserialize, JsonSchema)]
struct PathParams {
    /// Path, beginning with its root.
    path: String,
}

/// *Root Info* of document 2.
#[derive(Debug, Serialize, JsonSchema)]
struct RootInfo {
    /// Name of the root.
    name: String,
    /// Its folder.
    path: String,
    /// What callers may do in it.
    permissions: Permissions,
}

/// Parameters of the deletion of a folder.
#[derive(Debug, Deserialize, JsonSchema)]
struct DeleteFolderParams {
    /// Path, beginning with its root.
    path: String,
    /// Deletes what is in it, too.
    #[serde(default)]
    force: bool,
}

/// Parameters of move and copy.
#[derive(Debug, Deserialize, JsonSchema)]
struct RelocateParams {
    /// What, beginning with its root.
    source: String,
    /// Whereto, beginning with its root.
    dest: String,
}

/// Parameters of an archive.
#[derive(Debug, Deserialize, JsonSchema)]
struct ZipParams {
    /// The archive, beginning with a writable root; default `config/collection-YYYYMMDD-HHMMSS.zip`.
    dest: Option<String>,
    /// Files and folders, each beginning with its root. Of a folder, the files directly in it.
    items: Vec<String>,
    /// Does not compress.
    #[serde(default)]
    store_only: bool,
}

/// Result of operations that change one thing.
#[derive(Debug, Serialize, JsonSchema)]
struct Changed {
    /// The thing as it is now.
    item: FileItem,
    /// Where it was, when it moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    source_item: Option<SourceItem>,
    /// What happened to it.
    action: FileAction,
}

impl From<FilelistChange> for Changed {
    fn from(FilelistChange { action, item, source_item }: FilelistChange) -> Self {
        Self { item, source_item, action }
    }
}

/// Result of making an archive.
#[derive(Debug, Serialize, JsonSchema)]
struct Archived {
    /// The archive.
    destination: FileItem,
    /// `zip_files`.
    action: FileAction,
}

impl Files {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry.upload("/server/files/upload", "/server/files");
        registry
            .op("server.files.list")
            .get("/server/files/list")
            .access(Access::View)
            .doc("All files of a root with their paths, sorted; of the gcodes root, only gcode files.")
            .handle(self, |files, _, params: ListParams| async move { files.list(params.root).await });
        registry
            .op("server.files.roots")
            .get("/server/files/roots")
            .access(Access::View)
            .doc("The roots: named folders that clients see.")
            .answer(self, |files, _, (): ()| Ok(files.root_infos()));
        registry
            .op("server.files.get_directory")
            .get("/server/files/directory")
            .access(Access::View)
            .doc("Files and folders directly in one folder, and the space on its disk.")
            .handle(self, |files, _, params: DirectoryParams| async move { files.directory(params.path, params.extended).await });
        self.register_metadata(registry);
        self.register_changes(registry);
    }

    fn register_metadata(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.files.metadata")
            .get("/server/files/metadata")
            .access(Access::View)
            .doc("Metadata of a gcode file. A file that changed since it was read is read again first.")
            .handle(self, |files, _, params: FilenameParams| async move { files.metadata(params.filename).await });
        registry
            .op("server.files.metascan")
            .post("/server/files/metascan")
            .access(Access::Control)
            .doc("Reads the metadata of a gcode file again.")
            .handle(self, |files, _, params: FilenameParams| async move { files.metascan(params.filename).await });
        registry
            .op("server.files.thumbnails")
            .get("/server/files/thumbnails")
            .access(Access::View)
            .doc("Thumbnails of a gcode file; none when it has no metadata.")
            .handle(self, |files, _, params: FilenameParams| async move { files.thumbnails(params.filename).await });
    }

    fn register_changes(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.files.post_directory")
            .post("/server/files/directory")
            .access(Access::Control)
            .doc("Makes a folder; its parent must be there.")
            .handle(
                self,
                |files, call, params: PathParams| async move { files.create_directory(params.path, &call).await.map(Changed::from) },
            );
        registry
            .op("server.files.delete_directory")
            .delete("/server/files/directory")
            .access(Access::Control)
            .doc("Deletes a folder; with `force`, also when something is in it.")
            .handle(self, |files, call, params: DeleteFolderParams| async move {
                files.delete_directory(params.path, params.force, &call).await.map(Changed::from)
            });
        registry
            .op("server.files.move")
            .post("/server/files/move")
            .access(Access::Control)
            .doc("Moves or renames a file or folder. An existing folder takes it in, an existing file is replaced.")
            .handle(self, |files, call, params: RelocateParams| async move {
                files.relocate(params.source, params.dest, &call).await.map(Changed::from)
            });
        registry
            .op("server.files.copy")
            .post("/server/files/copy")
            .access(Access::Control)
            .doc("Copies a file, over or into what is there, or a folder to a new place.")
            .handle(self, |files, call, params: RelocateParams| async move {
                files.copy(params.source, params.dest, &call).await.map(Changed::from)
            });
        registry
            .op("server.files.zip")
            .post("/server/files/zip")
            .access(Access::Control)
            .doc("Makes a ZIP archive of files and folders.")
            .handle(self, |files, call, params: ZipParams| async move {
                let destination = files.zip(params.dest, params.items, params.store_only, &call).await?;
                Ok(Archived { destination, action: FileAction::ZipFiles })
            });
        registry
            .op("server.files.delete_file")
            .access(Access::Control)
            .doc("Deletes a file. Over HTTP: DELETE of the file's own address.")
            .handle(self, |files, call, params: PathParams| async move { files.delete_file(params.path, &call).await.map(Changed::from) });
    }

    fn root_infos(&self) -> Vec<RootInfo> {
        let info = |root: Arc<crate::root::Root>| RootInfo {
            name: root.name.clone(),
            path: root.path.to_string_lossy().into_owned(),
            permissions: root.permissions(),
        };
        self.roots().into_iter().map(info).collect()
    }
}

#[cfg(test)]
mod tests;
