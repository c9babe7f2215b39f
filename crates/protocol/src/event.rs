//! Everything that the server tells its clients unasked: one variant per notification, with its payload and its wire names.
//!
//! Status updates are no events: they differ per subscription and have their own path ([`crate::status`]).
//! Source: document 1 *Events*, wire/1-core.md section 5.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::announcement::{AnnouncementEntries, AnnouncementId};
use crate::button::ButtonEvent;
use crate::jobs::{HistoryChange, QueueChange};
use crate::led::LedStatus;
use crate::machine::{ProcStatUpdate, SudoAlert, Throttled, UnitState};
use crate::power::PowerStatus;
use crate::sensor::SensorUpdate;
use crate::webcam::WebcamList;
use crate::{Frame, dual, envelope, vocabulary};

/// A notification as the contract tells it.
pub struct Notification {
    /// The neutral wire name.
    pub name: &'static str,
    /// When it is sent.
    pub doc: &'static str,
    /// Schemas of its parameters, in order; empty when it has none, and then it goes without `params`.
    pub params: &'static [SchemaOf],
}

/// Makes the schema of a type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// Changes of printer objects: by object, the fields that changed.
pub type StatusChanges = BTreeMap<String, BTreeMap<String, serde_json::Value>>;

/// How a subscriber learns of changes; its frames are written in [`crate::status`].
pub const STATUS_UPDATE: Notification = Notification {
    name: "notify_status_update",
    doc: "Fields of subscribed printer objects changed: the changes, and when, in the firmware host's seconds. Only for the connection that subscribed.",
    params: &[|generator| generator.subschema_for::<StatusChanges>(), |generator| generator.subschema_for::<f64>()],
};

/// Declares the events: the variant with its payload and how that becomes text, and the neutral wire name.
macro_rules! events {
    ($($(#[doc = $doc:literal])+ $variant:ident $(($payload:ty) by $encode:path)? = $name:literal;)+) => {
        /// A notification to all authorised connections.
        #[derive(Debug, Clone)]
        pub enum Event {
            $($(#[doc = $doc])+ $variant $(($payload))?,)+
        }

        /// All notifications to all authorised connections, for the contract.
        pub const NOTIFICATIONS: &[Notification] = &[
            $(Notification {
                name: $name,
                doc: concat!($($doc),+),
                params: &[$(|generator| generator.subschema_for::<$payload>())?],
            },)+
        ];

        impl Event {
            /// The neutral wire name.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)+
                }
            }

            fn params(&self) -> Option<Vec<u8>> {
                match self {
                    $($(Self::$variant(payload) => $encode(&[payload]).ok(),)?)+
                    _ => None,
                }
            }
        }
    };
}

events! {
    /// The start sequence with the firmware host finished in state ready.
    FwhostReady = "notify_fwhost_ready";
    /// The firmware host shut down (emergency stop or fault).
    FwhostShutdown = "notify_fwhost_shutdown";
    /// The connection to the firmware host ended.
    FwhostDisconnected = "notify_fwhost_disconnected";
    /// A line of output of the firmware host, as it came (may hold several lines).
    GcodeResponse(Arc<str>) by dual::to_vec = "notify_gcode_response";
    /// Something changed in a file root.
    FilelistChanged(FilelistChange) by dual::to_vec = "notify_filelist_changed";
    /// A job began or ended.
    HistoryChanged(Box<HistoryChange>) by dual::to_vec = "notify_history_changed";
    /// The job queue or its state changed.
    JobQueueChanged(QueueChange) by dual::to_vec = "notify_job_queue_changed";
    /// An agent came, went, or has something to say.
    // What an agent says is its own, so no names are added to it.
    Agent(AgentEvent) by serde_json::to_vec = "notify_agent_event";
    /// A webcam was added, changed or removed: all of them, as they are now.
    WebcamsChanged(WebcamList) by dual::to_vec = "notify_webcams_changed";
    /// Announcements came or went: all of them, also dismissed ones.
    AnnouncementUpdate(AnnouncementEntries) by dual::to_vec = "notify_announcement_update";
    /// An announcement was dismissed.
    AnnouncementDismissed(AnnouncementId) by dual::to_vec = "notify_announcement_dismissed";
    /// The dismissal of an announcement lapsed.
    AnnouncementWake(AnnouncementId) by dual::to_vec = "notify_announcement_wake";
    /// What is known of an LED strip changed.
    LedChanged(LedStatus) by dual::to_vec = "notify_led_changed";
    /// A power device has another state.
    PowerChanged(PowerStatus) by dual::to_vec = "notify_power_changed";
    /// Numbers of sensors changed: all present ones of these sensors.
    // Names of parameters are the owner's.
    SensorUpdate(SensorUpdate) by serde_json::to_vec = "notify_sensor_update";
    /// The template of a button has something to say.
    // What goes with it is the owner's.
    Button(Box<ButtonEvent>) by serde_json::to_vec = "notify_button_event";
    /// A user was created.
    UserCreated(UserName) by dual::to_vec = "notify_user_created";
    /// A user was deleted; the user's connections are strangers' now.
    UserDeleted(UserName) by dual::to_vec = "notify_user_deleted";
    /// A user was logged out; likewise.
    UserLoggedOut(UserName) by dual::to_vec = "notify_user_logged_out";
    /// What the machine and this process use, once a second.
    ProcStatUpdate(Box<ProcStatUpdate>) by dual::to_vec = "notify_proc_stat_update";
    /// The board began or ended to slow its processor down.
    CpuThrottled(Throttled) by dual::to_vec = "notify_cpu_throttled";
    /// A service of the machine does something else than before, by its name.
    ServiceStateChanged(BTreeMap<String, UnitState>) by dual::to_vec = "notify_service_state_changed";
    /// Something waits for the password for sudo, or no longer does.
    SudoAlert(SudoAlert) by dual::to_vec = "notify_sudo_alert";
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
    #[schemars(with = "Option<serde_json::Value>")]
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
