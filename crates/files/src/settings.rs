//! What the owner decides about files (wire/2-files-jobs.md section 9).

use std::path::PathBuf;
use std::time::Duration;

use crate::root::Reserved;

/// Largest upload unless configured otherwise: 1024 MiB.
pub const DEFAULT_MAX_UPLOAD: u64 = 1024 * 1024 * 1024;

config::choices! {
    /// How changes by other programs are seen.
    pub enum Observer {
        /// The kernel tells of them at once.
        Inotify = "inotify",
        /// The folders are looked at once a minute: for network shares, from which no events come.
        None = "none",
    }
}

config::options! {
    /// Files that clients see.
    pub struct FileManagerOptions: "file_manager" {
        /// Clients may change files of the `config` root.
        enable_config_write_access: bool = true,
        /// Folders outside of the roots that links inside the roots may lead to: mounted media, shared configuration. Other links that leave
        /// their root are hidden and refused. Unset: the home folder of the user that runs the server, `/media` and `/mnt` when the
        /// configuration in use is a `moonraker.conf`, else none.
        link_targets: Option<Vec<PathBuf>> = None,
        /// Warn when the firmware's configuration file is outside of the `config` root.
        check_firmware_config_path ["check_klipper_config_path"]: bool = true,
        /// Converts the object marks of slicers in uploaded files, so that single objects of a print can be cancelled.
        enable_object_processing: bool = false,
        /// Converts object marks also while a print runs. It is work for the processor that can wait.
        process_objects_while_printing: bool = false,
        /// How changes by other programs are seen: `inotify` at once (and by a look once a minute where the kernel tells nothing: on network
        /// shares, and beyond its limit of watched folders), or `none`, only by the look.
        file_system_observer: Observer = Observer::Inotify,
        /// Show a warning when a folder cannot be watched.
        enable_observer_warnings: bool { was "enable_inotify_warnings" } = true,
        /// Puts uploads that ask for a print and cannot be started into the job queue.
        queue_gcode_uploads: bool = false,
        /// Where the configuration is; it is always in the data folder.
        config_path: Option<String> { deprecated "the `config` folder of the data folder is used" } = None,
        /// Where the logs are; they are always in the data folder.
        log_path: Option<String> { deprecated "the `logs` folder of the data folder is used" } = None,
        /// Seconds that an upload or a request waits for the metadata of a file.
        default_metadata_parser_timeout: f64 { min 1, max 3600 } = 20.0,
    }
}

/// Most folders that are watched. The kernel keeps about a kilobyte for each; changes in others are found by looking.
pub const MAX_WATCHED_FOLDERS: usize = 32_768;
/// How often the roots are looked at where nothing tells of changes.
pub const LOOK_PERIOD: Duration = Duration::from_secs(60);
/// How often a root that is gone is looked for.
pub const LOST_ROOT_PERIOD: Duration = Duration::from_secs(5);

/// How the observer works.
#[derive(Debug, Clone, Copy)]
pub struct Observing {
    /// [`MAX_WATCHED_FOLDERS`].
    pub max_watched: usize,
    /// [`LOOK_PERIOD`].
    pub look_period: Duration,
    /// [`LOST_ROOT_PERIOD`].
    pub lost_root_period: Duration,
}

/// Settings of the file manager.
#[derive(Debug, Clone)]
pub struct FilesSettings {
    /// The data folder; `config`, `logs` and `gcodes` are below it.
    pub data_path: PathBuf,
    /// Largest file that may be uploaded, in bytes (`[server] max_upload_size`).
    pub max_upload_size: u64,
    /// False when the installation is not sound: every root is read-only and uploads are refused.
    pub write_access: bool,
    /// Reserved paths besides the fixed ones of the data folder: the program's own folder, for example.
    pub reserved: Vec<Reserved>,
    /// Folders outside of the roots that links may lead to, defaults included.
    pub link_targets: Vec<PathBuf>,
    /// How changes by other programs are looked for.
    pub observing: Observing,
    /// `[file_manager]`.
    pub options: FileManagerOptions,
}

impl FilesSettings {
    /// The defaults for a data folder.
    pub fn new(data_path: impl Into<PathBuf>) -> Self {
        Self {
            data_path: data_path.into(),
            max_upload_size: DEFAULT_MAX_UPLOAD,
            write_access: true,
            reserved: Vec::new(),
            link_targets: Vec::new(),
            observing: Observing { max_watched: MAX_WATCHED_FOLDERS, look_period: LOOK_PERIOD, lost_root_period: LOST_ROOT_PERIOD },
            options: FileManagerOptions::default(),
        }
    }
}
