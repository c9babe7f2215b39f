//! The operations that change files: one after the other, on a blocking thread; clients are told after the answer.

use std::sync::Arc;

use protocol::ApiError;
use protocol::event::{FileAction, FileItem, FilelistChange};
use rpc::Call;
use tokio::sync::SemaphorePermit;

use super::{Files, blocking};
use crate::archive::{self, Plan};
use crate::library::{Need, RootPath};
use crate::metadata::{Ask, follow};
use crate::path::RelPath;
use crate::refusal::Refusal;
use crate::relocate::{self, Relocated};
use crate::upload::save_failed;
use crate::watch::Seen;
use crate::{delete, folder};

impl Files {
    /// Deletes a file, named with its root.
    ///
    /// # Errors
    /// 400, 403 and 405: wire/2-files-jobs.md section 1.5.
    pub async fn delete_file(self: &Arc<Self>, path: String, call: &Call) -> Result<FilelistChange, ApiError> {
        self.change(call, move |files| {
            let item = delete::delete_file(&files.library, &path, files.print.loaded_file())?;
            Ok(FilelistChange { action: FileAction::DeleteFile, item, source_item: None })
        })
        .await
    }

    /// Makes a folder, named with its root.
    ///
    /// # Errors
    /// 400, 403 and 405: wire/2-files-jobs.md section 1.7, as for the operations below.
    pub async fn create_directory(self: &Arc<Self>, path: String, call: &Call) -> Result<FilelistChange, ApiError> {
        self.change(call, move |files| {
            let path = folder::create(&files.library, &path)?;
            Ok(FilelistChange { action: FileAction::CreateDir, item: files.item(&path)?, source_item: None })
        })
        .await
    }

    /// Deletes a folder; with `force`, also when something is in it.
    ///
    /// # Errors
    /// As [`Files::create_directory`].
    pub async fn delete_directory(self: &Arc<Self>, path: String, force: bool, call: &Call) -> Result<FilelistChange, ApiError> {
        self.change(call, move |files| {
            let item = folder::delete(&files.library, &path, force, files.print.loaded_file().as_deref())?;
            Ok(FilelistChange { action: FileAction::DeleteDir, item, source_item: None })
        })
        .await
    }

    /// Moves or renames; both ends are named with their roots.
    ///
    /// # Errors
    /// As [`Files::create_directory`].
    pub async fn relocate(self: &Arc<Self>, source: String, dest: String, call: &Call) -> Result<FilelistChange, ApiError> {
        let _turn = self.long_turn().await;
        let (files, from, to) = (self.clone(), source.clone(), dest.clone());
        let aside = blocking(move || relocate::prepare_move(&files.library, &from, &to, &|| files.print.loaded_file())).await?;
        self.change(call, move |files| {
            let loaded = || files.print.loaded_file();
            let Relocated { source, dest, action } = relocate::relocate(&files.library, &source, &dest, aside, &loaded)?;
            Ok(FilelistChange { action, item: files.item(&dest)?, source_item: Some(source.source_item()) })
        })
        .await
    }

    /// Copies; both ends are named with their roots.
    ///
    /// # Errors
    /// As [`Files::create_directory`].
    pub async fn copy(self: &Arc<Self>, source: String, dest: String, call: &Call) -> Result<FilelistChange, ApiError> {
        let _turn = self.long_turn().await;
        let (files, from, to) = (self.clone(), source.clone(), dest.clone());
        let aside = blocking(move || relocate::prepare_copy(&files.library, &from, &to, &|| files.print.loaded_file())).await?;
        self.change(call, move |files| {
            let loaded = || files.print.loaded_file();
            let Relocated { dest, action, .. } = relocate::copy(&files.library, &source, &dest, aside, &loaded)?;
            Ok(FilelistChange { action, item: files.item(&dest)?, source_item: None })
        })
        .await
    }

    /// Makes an archive of files and folders; all are named with their roots.
    ///
    /// # Errors
    /// As [`Files::create_directory`].
    pub async fn zip(
        self: &Arc<Self>,
        dest: Option<String>,
        items: Vec<String>,
        store_only: bool,
        call: &Call,
    ) -> Result<FileItem, ApiError> {
        let _turn = self.long_turn().await;
        let files = self.clone();
        let item = blocking(move || {
            let text = dest.unwrap_or_else(archive::default_dest);
            let plan = Plan::new(&files.library, &text, &items)?;
            files.spool.check_space()?;
            let temp = files.spool.create().map_err(|error| save_failed(&error))?;
            plan.build(&temp, store_only)?;
            let temp = temp.near(&archive::checked_dest(&files.library, &text)?.real).map_err(|error| save_failed(&error))?;
            // The long work is done: others may change files meanwhile, so the place is checked again.
            let _changes = files.changes.blocking_lock();
            let dest = archive::checked_dest(&files.library, &text)?;
            if files.library.holds_loaded(&dest, files.print.loaded_file().as_deref()) {
                return Err(crate::refusal::in_use());
            }
            temp.persist(&dest.real).map_err(|error| save_failed(&error))?;
            files.own.left(dest.place(), Seen::at(&dest.real));
            files.item(&dest)
        })
        .await?;
        self.announce_after(call, FileAction::CreateFile, item.clone(), None);
        Ok(item)
    }

    /// A turn for work that takes long; taken before the lock of all changes.
    async fn long_turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.long_changes.acquire().await.ok()
    }

    /// Runs a change under the lock of all changes and tells the clients of it.
    async fn change<F>(self: &Arc<Self>, call: &Call, work: F) -> Result<FilelistChange, ApiError>
    where
        F: FnOnce(&Arc<Self>) -> Result<FilelistChange, ApiError> + Send + 'static,
    {
        let files = self.clone();
        // The guard moves to the thread: a caller who leaves must not open the lock while the disk is still busy.
        let changes = self.changes.clone().lock_owned().await;
        let (mut change, due) = blocking(move || {
            let _changes = changes;
            let change = work(&files)?;
            let due = follow(&files, &change);
            files.leave_word(&change);
            Ok((change, due))
        })
        .await?;
        // Metadata comes before the answer and the notification; objects may change the size of the file.
        if !due.is_empty() {
            self.scanned(&due, Ask::Now).await;
            if let Some(path) = RelPath::parse(&change.item.path).ok().filter(|path| due.len() == 1 && due[0] == *path) {
                let (root, item) = (change.item.root.clone(), change.item);
                change.item = self.item_again(root, path, item).await;
            }
        }
        self.announce_after(call, change.action, change.item.clone(), change.source_item.clone());
        Ok(change)
    }

    /// Lets the observer know what a change left. Called under the lock of all changes.
    fn leave_word(&self, change: &FilelistChange) {
        let source = change.source_item.as_ref().map(|source| (&source.root, &source.path));
        for (root, path) in source.into_iter().chain([(&change.item.root, &change.item.path)]) {
            let path = RelPath::parse(path).map_err(Refusal::from).and_then(|path| self.library.resolve(root, path, Need::Read));
            if let Ok(path) = path {
                self.own.left(path.place(), Seen::at(&path.real));
            }
        }
    }

    /// The item as it is now, or as it was when it cannot be read any more.
    pub(crate) async fn item_now(self: &Arc<Self>, path: &RootPath, before: FileItem) -> FileItem {
        self.item_again(path.root.name.clone(), path.relative.clone(), before).await
    }

    async fn item_again(self: &Arc<Self>, root: String, path: RelPath, before: FileItem) -> FileItem {
        let files = self.clone();
        let again = blocking(move || {
            let path = files.library.resolve(&root, path, Need::Read).map_err(|refusal| refusal.for_operation(""))?;
            files.item(&path)
        });
        again.await.unwrap_or(before)
    }

    fn item(&self, path: &RootPath) -> Result<FileItem, ApiError> {
        self.library.item(path).map_err(|error| ApiError::internal(format!("The result cannot be read: {error}")))
    }
}
