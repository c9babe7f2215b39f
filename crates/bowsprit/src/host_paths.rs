//! What the firmware host tells about itself and this machine: its folders become roots, its log a download, and paths that do not fit
//! together become warnings. wire/5-fwhost.md section 10.3.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::{Files, Log, Reserved};
use fwhost::{FwHost, HostEvent};
use serde_json::Value;
use server::Warnings;
use tokio_util::task::TaskTracker;

/// Id of the warning that the firmware prints from another folder.
const GCODE_PATH: &str = "gcode_path";
/// Id of the warning that the firmware's configuration is out of reach.
const CONFIG_PATH: &str = "firmware_config";

/// Watches the firmware host's paths.
pub struct HostPaths {
    /// Whom to ask.
    pub host: FwHost,
    /// Whom to tell.
    pub files: Arc<Files>,
    /// Where what does not fit is shown.
    pub warnings: Warnings,
    /// The data folder.
    pub data: PathBuf,
    /// Whether the place of the firmware's configuration matters.
    pub check_config: bool,
}

impl HostPaths {
    /// Begins to watch.
    pub fn watch(self, tasks: &TaskTracker) {
        let paths = Arc::new(self);
        let (host, tasks) = (paths.host.clone(), tasks.clone());
        host.on_event(move |event| {
            let paths = paths.clone();
            match event {
                HostEvent::Connected => drop(tasks.spawn(async move { paths.identified().await })),
                HostEvent::Ready => drop(tasks.spawn_blocking(move || paths.check_gcodes())),
                _ => {}
            }
        });
    }

    async fn identified(&self) {
        let Some(info) = self.host.status().info.as_ref().and_then(|info| serde_json::from_str::<Value>(info).ok()) else { return };
        let path = |name: &str| info.get(name).and_then(Value::as_str).filter(|path| !path.is_empty()).map(PathBuf::from);
        // Served to clients under a fixed name: a log, and not whatever else the host might name.
        if let Some(log) = path("log_file").filter(|log| log.extension().is_some_and(|extension| extension == "log")) {
            self.files.set_log_path(Log::Firmware, log);
        }
        if let Some(firmware) = path("klipper_path").filter(|firmware| firmware.is_dir()) {
            for (root, folder) in [("config_examples", "config"), ("docs", "docs")] {
                let folder = firmware.join(folder);
                if folder.is_dir() {
                    self.files.register_root(root.to_owned(), folder, false).await;
                }
            }
            self.files.reserve(Reserved { name: "firmware".to_owned(), path: firmware, readable: true }).await;
        }
        self.warnings.clear(CONFIG_PATH);
        let root = self.data.join("config");
        if let Some(config) = path("config_file").filter(|config| self.check_config && !is_below(config, &root)) {
            let text = format!(
                "The firmware's configuration file {} is not inside the config root {}, so clients cannot edit it",
                config.display(),
                root.display()
            );
            self.warnings.set(CONFIG_PATH, text);
        }
    }

    /// The firmware must print from the folder into which files are uploaded.
    fn check_gcodes(&self) {
        self.warnings.clear(GCODE_PATH);
        let Some(config) = self.host.field("configfile", "config").and_then(|text| serde_json::from_str::<Value>(&text).ok()) else {
            return;
        };
        let Some(path) = config.pointer("/virtual_sdcard/path").and_then(Value::as_str) else { return };
        let (theirs, ours) = (expanded(path), self.data.join("gcodes"));
        if theirs.canonicalize().ok() != ours.canonicalize().ok() {
            let text = format!(
                "The firmware prints files from {}, but uploads go to {}: set the path of [virtual_sdcard] to the latter",
                theirs.display(),
                ours.display()
            );
            self.warnings.set(GCODE_PATH, text);
        }
    }
}

fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    }
}

fn is_below(path: &Path, folder: &Path) -> bool {
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        // A file that we cannot see is judged by its name.
        _ => path.starts_with(folder),
    }
}
