//! What the owner decides about files (wire/2-files-jobs.md section 9).

use std::path::PathBuf;

use crate::root::Reserved;

/// Largest upload unless configured otherwise: 1024 MiB.
pub const DEFAULT_MAX_UPLOAD: u64 = 1024 * 1024 * 1024;

/// Settings of the file manager.
#[derive(Debug, Clone)]
pub struct FilesSettings {
    /// The data folder; `config`, `logs` and `gcodes` are below it.
    pub data_path: PathBuf,
    /// Largest file that may be uploaded, in bytes (`[server] max_upload_size`).
    pub max_upload_size: u64,
    /// `[file_manager] enable_config_write_access`: false makes the `config` root read-only.
    pub config_write_access: bool,
    /// False when the installation is not sound: every root is read-only and uploads are refused.
    pub write_access: bool,
    /// Reserved paths besides the fixed ones of the data folder: the program's own folder, for example.
    pub reserved: Vec<Reserved>,
    /// Folders outside the roots that links inside the roots may lead to (mounted media, shared configuration). Empty: links stay in their root.
    pub link_targets: Vec<PathBuf>,
}

impl FilesSettings {
    /// The defaults for a data folder.
    pub fn new(data_path: impl Into<PathBuf>) -> Self {
        Self {
            data_path: data_path.into(),
            max_upload_size: DEFAULT_MAX_UPLOAD,
            config_write_access: true,
            write_access: true,
            reserved: Vec::new(),
            link_targets: Vec::new(),
        }
    }
}
