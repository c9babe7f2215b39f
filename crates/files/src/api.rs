//! The operations on files (document 2, *Files*): parameters, results, and which way they are called. Thin.

use std::sync::Arc;

use protocol::event::{FileAction, FileItem};
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
    #[expect(dead_code, reason = "accepted; there is no metadata to add yet")]
    extended: bool,
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

/// Result of operations that change one thing.
#[derive(Debug, Serialize, JsonSchema)]
struct Changed {
    /// The thing.
    item: FileItem,
    /// What happened to it.
    action: FileAction,
}

impl Files {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
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
            .handle(self, |files, _, params: DirectoryParams| async move { files.directory(params.path).await });
        registry
            .op("server.files.delete_file")
            .access(Access::Control)
            .doc("Deletes a file. Over HTTP: DELETE of the file's own address.")
            .handle(self, |files, call, params: PathParams| async move {
                let item = files.delete_file(params.path, &call).await?;
                Ok(Changed { item, action: FileAction::DeleteFile })
            });
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
