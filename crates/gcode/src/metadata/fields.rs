//! The answer: fields in the order clients see them, absent ones left out.

use serde::{Deserialize, Serialize};

use crate::thumbnail::Thumbnail;

/// A number that is written as an integer by some slicers' rules and as a float by others'.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Number {
    /// Written without a point.
    Int(u64),
    /// Written with a point.
    Float(f64),
}

/// One thumbnail as listed in the metadata (section 3.9).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThumbnailInfo {
    /// Width in pixels, as the slicer announced it.
    pub width: u32,
    /// Height in pixels, as the slicer announced it.
    pub height: u32,
    /// Size of the stored image in bytes.
    pub size: u64,
    /// Path relative to the folder of the sliced file: `.thumbs/...`.
    pub relative_path: String,
}

impl From<&Thumbnail> for ThumbnailInfo {
    fn from(thumbnail: &Thumbnail) -> Self {
        Self {
            width: thumbnail.width,
            height: thumbnail.height,
            size: thumbnail.data.len() as u64,
            relative_path: thumbnail.relative_path.clone(),
        }
    }
}

/// Metadata of a sliced file; the fields and their order are those of section 3.4, without the two that come from
/// the job history. Lengths are millimetres, temperatures Celsius, weights grams, times seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// Size of the file in bytes.
    pub size: u64,
    /// Last change, Unix seconds; filled in by the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<f64>,
    /// Random id of this scan; filled in by the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Names of the processors whose marks were found.
    pub file_processors: Vec<String>,
    /// Name of the slicer; `Unknown` if not recognised.
    pub slicer: String,
    /// Version of the slicer; `?` if not recognised.
    pub slicer_version: String,
    /// Offset of the line feed before the first command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcode_start_byte: Option<u64>,
    /// Offset just after the last command's line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcode_end_byte: Option<u64>,
    /// Number of layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer_count: Option<u64>,
    /// Height of the tallest object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_height: Option<f64>,
    /// Print time estimated by the slicer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_time: Option<Number>,
    /// Nozzle diameter of the first tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nozzle_diameter: Option<f64>,
    /// Layer height.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer_height: Option<f64>,
    /// Height of the first layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_layer_height: Option<f64>,
    /// Nozzle temperature of the first layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_layer_extr_temp: Option<f64>,
    /// Bed temperature of the first layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_layer_bed_temp: Option<f64>,
    /// Chamber temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chamber_temp: Option<f64>,
    /// Name of the filament, or the text of a JSON array for several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filament_name: Option<String>,
    /// Type of the filament, or the text of a JSON array for several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filament_type: Option<String>,
    /// Colours of the filaments, `#RRGGBB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filament_colors: Option<Vec<String>>,
    /// Number of filament changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filament_change_count: Option<u64>,
    /// Colours the slicer gave the extruders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extruder_colors: Option<Vec<String>>,
    /// Temperatures of the filaments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filament_temps: Option<Vec<i64>>,
    /// Numbers of the tools used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub referenced_tools: Option<Vec<i64>>,
    /// 1 for several materials through one extruder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mmu_print: Option<u64>,
    /// Length of filament used by all tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filament_total: Option<f64>,
    /// Weight of filament used by all tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filament_weight_total: Option<f64>,
    /// Weight of filament used per tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filament_weights: Option<Vec<f64>>,
    /// Vendor named in the printer profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub printer_vendor: Option<String>,
    /// Model named in the printer profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub printer_model: Option<String>,
    /// Variant named in the printer profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub printer_variant: Option<String>,
    /// Version of the printer profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile_version: Option<String>,
    /// Images beside the file, smallest made by us first when the slicer wrote none of 32x32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thumbnails: Vec<ThumbnailInfo>,
}
