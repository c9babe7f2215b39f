//! `[octoprint_compat]`. Source: wire/1-core.md section 7.4.

config::options! {
    /// The API that slicers and screens know from another print server (OctoPrint). It is there unless it is switched off here.
    pub struct SlicerApiOptions: "octoprint_compat" | "slicer_api" {
        /// Whether it is there.
        enabled: bool = true,
        /// Whether slicers are told that UFP containers can be uploaded.
        enable_ufp: bool = true,
        /// Mirror the picture left to right.
        flip_h: bool = false,
        /// Mirror the picture top to bottom.
        flip_v: bool = false,
        /// Turn the picture by 90 degrees.
        rotate_90: bool = false,
        /// Complete address of the camera's stream, or a path on this machine.
        stream_url: String = "/webcam/?action=stream",
        /// Whether a picture is shown.
        webcam_enabled: bool = true,
    }
}
