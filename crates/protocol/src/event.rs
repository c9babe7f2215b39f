//! Everything that the server tells its clients unasked: one variant per notification, with its payload and its wire names.
//!
//! Status updates are not here: they differ per subscription and have their own path ([`crate::status`]).
//! Source: document 1 *Events*, wire/1-core.md section 5.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::announcement::{AnnouncementEntries, AnnouncementId};
use crate::button::ButtonEvent;
use crate::jobs::{HistoryChange, QueueChange};
use crate::led::LedStatus;
use crate::machine::{ProcStatUpdate, Throttled, UnitState};
use crate::power::PowerStatus;
use crate::sensor::SensorUpdate;
use crate::webcam::WebcamList;
use crate::{Frame, dual, envelope, vocabulary};

/// A notification to all authorised connections.
#[derive(Debug, Clone)]
pub enum Event {
    /// The start sequence with the firmware host finished in state ready.
    FwhostReady,
    /// The firmware host shut down (emergency stop or fault).
    FwhostShutdown,
    /// The connection to the firmware host ended.
    FwhostDisconnected,
    /// A line of output of the firmware host, as it came (may hold several lines).
    GcodeResponse(Arc<str>),
    /// Something changed in a file root.
    FilelistChanged(FilelistChange),
    /// A job began or ended.
    HistoryChanged(Box<HistoryChange>),
    /// The job queue or its state changed.
    JobQueueChanged(QueueChange),
    /// An agent came, went, or has something to say.
    Agent(AgentEvent),
    /// A webcam was added, changed or removed: all of them, as they are now.
    WebcamsChanged(WebcamList),
    /// Announcements came or went: all of them, also dismissed ones.
    AnnouncementUpdate(AnnouncementEntries),
    /// An announcement was dismissed.
    AnnouncementDismissed(AnnouncementId),
    /// The dismissal of an announcement lapsed.
    AnnouncementWake(AnnouncementId),
    /// What is known of an LED strip changed.
    LedChanged(LedStatus),
    /// A power device has another state.
    PowerChanged(PowerStatus),
    /// Numbers of sensors changed: all present ones of these sensors.
    SensorUpdate(SensorUpdate),
    /// The template of a button has something to say.
    Button(Box<ButtonEvent>),
    /// A user was created.
    UserCreated(UserName),
    /// A user was deleted; the user's connections are strangers' now.
    UserDeleted(UserName),
    /// A user was logged out; likewise.
    UserLoggedOut(UserName),
    /// What the machine and this process use, once a second.
    ProcStatUpdate(Box<ProcStatUpdate>),
    /// The board began or ended to slow its processor down.
    CpuThrottled(Throttled),
    /// A service of the machine does something else than before, by its name.
    ServiceStateChanged(BTreeMap<String, UnitState>),
}

/// Payload of `notify_agent_event` (document 1 *Extensions*, wire/1-core.md section 5).
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct AgentEvent {
    /// Name of the agent.
    pub agent: String,
    /// `connected`, `disconnected`, or whatever the agent chose.
    pub event: String,
    /// What goes with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Value")]
    pub data: Option<Box<RawValue>>,
}

/// Payload of the notifications about users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UserName {
    /// Login name.
    pub username: String,
}

/// Payload of `notify_filelist_changed` (document 2, wire/2-files-jobs.md section 2).
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FilelistChange {
    /// What happened.
    pub action: FileAction,
    /// The item that it happened to, as it is now.
    pub item: FileItem,
    /// Where it was before, when it moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_item: Option<SourceItem>,
}

/// Actions of file operations and of file-list notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAction {
    /// A file appeared or was replaced by an upload.
    CreateFile,
    /// A folder appeared.
    CreateDir,
    /// A file is gone.
    DeleteFile,
    /// A folder is gone.
    DeleteDir,
    /// A file has another name.
    MoveFile,
    /// A folder has another name.
    MoveDir,
    /// The content of a file changed.
    ModifyFile,
    /// A root points to another folder.
    RootUpdate,
    /// An archive was made.
    ZipFiles,
}

/// *Item Details* of document 2.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FileItem {
    /// Path relative to the root.
    pub path: String,
    /// Root name.
    pub root: String,
    /// Modification time in Unix seconds; 0 after a delete.
    pub modified: f64,
    /// Bytes; 0 after a delete.
    pub size: u64,
    /// `rw`, `r` or empty.
    pub permissions: String,
}

/// Where a moved item was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SourceItem {
    /// Path relative to the root.
    pub path: String,
    /// Root name.
    pub root: String,
}

impl Event {
    /// The neutral wire name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::FwhostReady => "notify_fwhost_ready",
            Self::FwhostShutdown => "notify_fwhost_shutdown",
            Self::FwhostDisconnected => "notify_fwhost_disconnected",
            Self::GcodeResponse(_) => "notify_gcode_response",
            Self::FilelistChanged(_) => "notify_filelist_changed",
            Self::HistoryChanged(_) => "notify_history_changed",
            Self::JobQueueChanged(_) => "notify_job_queue_changed",
            Self::Agent(_) => "notify_agent_event",
            Self::WebcamsChanged(_) => "notify_webcams_changed",
            Self::AnnouncementUpdate(_) => "notify_announcement_update",
            Self::AnnouncementDismissed(_) => "notify_announcement_dismissed",
            Self::AnnouncementWake(_) => "notify_announcement_wake",
            Self::LedChanged(_) => "notify_led_changed",
            Self::PowerChanged(_) => "notify_power_changed",
            Self::SensorUpdate(_) => "notify_sensor_update",
            Self::Button(_) => "notify_button_event",
            Self::UserCreated(_) => "notify_user_created",
            Self::UserDeleted(_) => "notify_user_deleted",
            Self::UserLoggedOut(_) => "notify_user_logged_out",
            Self::ProcStatUpdate(_) => "notify_proc_stat_update",
            Self::CpuThrottled(_) => "notify_cpu_throttled",
            Self::ServiceStateChanged(_) => "notify_service_state_changed",
        }
    }

    /// The finished messages: one, or two when the notification has two names.
    #[must_use]
    pub fn frames(&self) -> Vec<Frame> {
        let params = self.params();
        let name = self.name();
        [Some(name), vocabulary::notification_alias(name)]
            .into_iter()
            .flatten()
            .map(|name| envelope::notification(name, params.as_deref()))
            .collect()
    }

    fn params(&self) -> Option<Vec<u8>> {
        match self {
            Self::FwhostReady | Self::FwhostShutdown | Self::FwhostDisconnected => None,
            Self::GcodeResponse(line) => dual::to_vec(&[line]).ok(),
            Self::FilelistChanged(change) => dual::to_vec(&[change]).ok(),
            Self::HistoryChanged(change) => dual::to_vec(&[change]).ok(),
            Self::JobQueueChanged(change) => dual::to_vec(&[change]).ok(),
            // What an agent says is its own, so no names are added to it.
            Self::Agent(event) => serde_json::to_vec(&[event]).ok(),
            Self::WebcamsChanged(list) => dual::to_vec(&[list]).ok(),
            Self::AnnouncementUpdate(entries) => dual::to_vec(&[entries]).ok(),
            Self::AnnouncementDismissed(id) | Self::AnnouncementWake(id) => dual::to_vec(&[id]).ok(),
            Self::LedChanged(status) => dual::to_vec(&[status]).ok(),
            Self::PowerChanged(status) => dual::to_vec(&[status]).ok(),
            // Names of parameters are the owner's.
            Self::SensorUpdate(update) => serde_json::to_vec(&[update]).ok(),
            // What goes with it is the owner's.
            Self::Button(event) => serde_json::to_vec(&[event]).ok(),
            Self::UserCreated(user) | Self::UserDeleted(user) | Self::UserLoggedOut(user) => dual::to_vec(&[user]).ok(),
            Self::ProcStatUpdate(update) => dual::to_vec(&[update]).ok(),
            Self::CpuThrottled(throttled) => dual::to_vec(&[throttled]).ok(),
            Self::ServiceStateChanged(states) => dual::to_vec(&[states]).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(event: &Event) -> Vec<String> {
        event.frames().iter().map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect()
    }

    #[test]
    fn renamed_notifications_go_out_under_both_names_without_params() {
        assert_eq!(
            texts(&Event::FwhostReady),
            [r#"{"jsonrpc":"2.0","method":"notify_fwhost_ready"}"#, r#"{"jsonrpc":"2.0","method":"notify_klippy_ready"}"#]
        );
    }

    #[test]
    fn payload_is_the_first_of_params() {
        assert_eq!(
            texts(&Event::GcodeResponse("// hi\n// there".into())),
            [r#"{"jsonrpc":"2.0","method":"notify_gcode_response","params":["// hi\n// there"]}"#]
        );
        let change = FilelistChange {
            action: FileAction::CreateFile,
            item: FileItem { path: "a.gcode".into(), root: "gcodes".into(), modified: 1.5, size: 3, permissions: "rw".into() },
            source_item: None,
        };
        assert_eq!(
            texts(&Event::FilelistChanged(change)),
            [
                r#"{"jsonrpc":"2.0","method":"notify_filelist_changed","params":[{"action":"create_file","item":{"path":"a.gcode","root":"gcodes","modified":1.5,"size":3,"permissions":"rw"}}]}"#
            ]
        );
    }
}
