//! Webcam entries as clients see them. Source: document 2 *Webcam Entry*, wire/2-files-jobs.md section 7.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

/// A camera that front ends show. The server itself does not stream.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Webcam {
    /// Unique name for people.
    pub name: String,
    /// False when it is not available.
    pub enabled: bool,
    /// Name of an icon; any text.
    pub icon: String,
    /// `W:H`.
    pub aspect_ratio: String,
    /// Frames per second while the printer is active.
    pub target_fps: i64,
    /// Frames per second while it is idle.
    pub target_fps_idle: i64,
    /// One word for where it is; any text.
    pub location: String,
    /// Name of a streaming service; any text.
    pub service: String,
    /// Complete address, or a path on this machine.
    pub stream_url: String,
    /// The same for single pictures; empty when there are none.
    pub snapshot_url: String,
    /// Mirrored left to right.
    pub flip_horizontal: bool,
    /// Mirrored top to bottom.
    pub flip_vertical: bool,
    /// Clockwise degrees: 0, 90, 180 or 270.
    pub rotation: i64,
    /// Where the entry comes from.
    pub source: WebcamSource,
    /// What front ends keep with it: a JSON object.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub extra_data: Box<RawValue>,
    /// Unique id.
    pub uid: String,
}

/// Where a webcam entry comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebcamSource {
    /// Added by a client, who may change it.
    Database,
    /// From the configuration: clients cannot change it.
    Config,
}

/// All webcams.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WebcamList {
    /// Those of the configuration first.
    #[schemars(with = "Vec<Webcam>")]
    pub webcams: Arc<Vec<Webcam>>,
}
