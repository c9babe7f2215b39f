//! Operations of the database.

use std::sync::Arc;

use protocol::{ApiError, ErrorKind};
use rpc::{Access, Registry};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::backups::Backups;
use super::items::{DeleteParams, GetParams, PostParams, Reach};
use super::{Database, to_api};

#[derive(Serialize, JsonSchema)]
struct DatabaseList {
    /// Namespaces that the caller can read.
    namespaces: Vec<String>,
    /// Names of backup files.
    backups: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct DebugList {
    /// All namespaces.
    namespaces: Vec<String>,
    /// Names of backup files.
    backups: Vec<String>,
    /// All tables of the database.
    tables: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct DatabaseSizes {
    /// Bytes before.
    previous_size: u64,
    /// Bytes after.
    new_size: u64,
}

#[derive(Deserialize, JsonSchema)]
struct BackupParams {
    /// Name of the file; `sqldb-backup-<year><month><day>-<hour><minute><second>.db` when absent.
    #[serde(default)]
    filename: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct ExistingBackup {
    /// One of the names that list tells.
    filename: String,
}

#[derive(Serialize, JsonSchema)]
struct BackupPath {
    /// Absolute path of the file.
    backup_path: String,
}

#[derive(Serialize, JsonSchema)]
struct Restored {
    /// Tables of the backup.
    restored_tables: Vec<String>,
    /// Namespaces of the backup.
    restored_namespaces: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct TableParams {
    table: String,
}

#[derive(Serialize, JsonSchema)]
struct Table {
    table_name: String,
    /// One object per row, with every column and the row id.
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    rows: Box<RawValue>,
}

impl Database {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.database.list")
            .get("/server/database/list")
            .access(Access::View)
            .doc("Namespaces that clients can read, and backup files.")
            .handle(self, |database, call, (): ()| async move {
                let namespaces = database.list(Reach::Client, call.form).await?;
                Ok(DatabaseList { namespaces, backups: database.backup_names().await? })
            });
        registry
            .op("server.database.get_item")
            .get("/server/database/item")
            .access(Access::View)
            .doc("A stored value, or a whole namespace.")
            .handle(self, |database, _, params: GetParams| async move { database.get(Reach::Client, params).await });
        registry
            .op("server.database.post_item")
            .post("/server/database/item")
            .access(Access::Control)
            .doc("Stores a value; missing parents are made, an existing key is overwritten.")
            .keep_null(&["value"])
            .handle(self, |database, _, params: PostParams| async move { database.post(Reach::Client, params).await });
        registry
            .op("server.database.delete_item")
            .delete("/server/database/item")
            .access(Access::Control)
            .doc("Removes a value and answers it.")
            .handle(self, |database, _, params: DeleteParams| async move { database.delete(Reach::Client, params).await });
        self.register_maintenance(registry);
        if self.maintenance.parts.debug {
            self.register_debug(registry);
        }
    }

    fn register_maintenance(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.database.compact")
            .post("/server/database/compact")
            .access(Access::Admin)
            .doc("Gives the space of what was deleted back to the disk. Not during a print.")
            .handle(self, |database, _, (): ()| async move {
                let sizes = detached(async move { database.maintenance.compact().await }).await?;
                Ok(DatabaseSizes { previous_size: sizes.previous_size, new_size: sizes.new_size })
            });
        registry
            .op("server.database.post_backup")
            .post("/server/database/backup")
            .access(Access::Admin)
            .doc("Makes a copy of the whole database and checks it. A file of the same name is replaced. Not during a print.")
            .handle(self, |database, _, params: BackupParams| async move {
                let path = detached(async move { database.maintenance.back_up(params.filename).await }).await?;
                Ok(BackupPath { backup_path: path.to_string_lossy().into_owned() })
            });
        registry
            .op("server.database.delete_backup")
            .delete("/server/database/backup")
            .access(Access::Admin)
            .doc("Removes a backup.")
            .handle(self, |database, _, params: ExistingBackup| async move {
                let path = database.maintenance.delete(params.filename).await?;
                Ok(BackupPath { backup_path: path.to_string_lossy().into_owned() })
            });
        registry
            .op("server.database.restore")
            .post("/server/database/restore")
            .access(Access::Admin)
            .doc("Replaces the whole database by a backup and restarts the server. The state before is kept as an automatic backup. Not during a print.")
            .handle(self, |database, _, params: ExistingBackup| async move {
                let contents = detached(async move { database.maintenance.restore(params.filename).await }).await?;
                Ok(Restored { restored_tables: contents.tables, restored_namespaces: contents.namespaces })
            });
    }

    /// Operations for finding faults.
    fn register_debug(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("debug.database.list")
            .get("/debug/database/list")
            .access(Access::Admin)
            .doc("All namespaces, backup files and tables. Only with debug features.")
            .handle(self, |database, call, (): ()| async move {
                let namespaces = database.list(Reach::Debug, call.form).await?;
                let tables = database.store.read(store::inspect::tables).await.map_err(to_api)?;
                Ok(DebugList { namespaces, backups: database.backup_names().await?, tables })
            });
        registry
            .op("debug.database.get_item")
            .get("/debug/database/item")
            .access(Access::Admin)
            .doc("A stored value, or a whole namespace, of any namespace. Only with debug features.")
            .handle(self, |database, _, params: GetParams| async move { database.get(Reach::Debug, params).await });
        registry
            .op("debug.database.post_item")
            .post("/debug/database/item")
            .access(Access::Admin)
            .doc("Stores a value, also in protected namespaces. Only with debug features.")
            .keep_null(&["value"])
            .handle(self, |database, _, params: PostParams| async move { database.post(Reach::Debug, params).await });
        registry
            .op("debug.database.delete_item")
            .delete("/debug/database/item")
            .access(Access::Admin)
            .doc("Removes a value, also from protected namespaces, and answers it. Only with debug features.")
            .handle(self, |database, _, params: DeleteParams| async move { database.delete(Reach::Debug, params).await });
        registry
            .op("debug.database.table")
            .get("/debug/database/table")
            .access(Access::Admin)
            .doc("All rows of a table. Only with debug features.")
            .handle(self, |database, _, params: TableParams| async move {
                if database.maintenance.parts.secret_tables.contains(&params.table.as_str()) {
                    return Err(ApiError::new(ErrorKind::Forbidden, format!("Table '{}' holds secrets and is not shown", params.table)));
                }
                let table = params.table.clone();
                let rows = database.store.read(move |conn| store::inspect::rows(conn, &table)).await.map_err(to_api)?;
                Ok(Table { table_name: params.table, rows })
            });
    }

    async fn backup_names(&self) -> Result<Vec<String>, ApiError> {
        self.maintenance.disk(Backups::list).await
    }
}

/// Work that is finished once it has begun, also when its caller has gone away.
async fn detached<T: Send + 'static>(work: impl Future<Output = Result<T, ApiError>> + Send + 'static) -> Result<T, ApiError> {
    tokio::spawn(work).await.unwrap_or_else(|_| Err(ApiError::new(ErrorKind::Internal, "The work on the database broke off")))
}
