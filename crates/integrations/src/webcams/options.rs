//! Webcams of the configuration.

use config::Reader;
use protocol::webcam::{Webcam, WebcamSource};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::rules;

config::options! {
    /// A camera that front ends show; it cannot be changed by clients.
    pub struct WebcamOptions: "webcam <name>" {
        /// One word for where it is.
        location: String = "printer",
        /// Name of an icon.
        icon: String = "mdiWebcam",
        /// Whether it is available.
        enabled: bool = true,
        /// Name of the streaming service, which tells front ends how to show it.
        service: String = "mjpegstreamer",
        /// Frames per second while the printer is active.
        target_fps: i64 = 15,
        /// Frames per second while the printer is idle.
        target_fps_idle: i64 = 5,
        /// Complete address, or a path on this machine.
        stream_url: String,
        /// The same for single pictures; empty when there are none.
        snapshot_url: String = "",
        /// Mirror left to right.
        flip_horizontal: bool = false,
        /// Mirror top to bottom.
        flip_vertical: bool = false,
        /// Clockwise degrees: 0, 90, 180 or 270.
        rotation: i64 = 0,
        /// Width and height, as in `16:9`.
        aspect_ratio: String = "4:3",
    }
}

impl WebcamOptions {
    /// All sections that can be used, with the names of their cameras. The others are reported to the reader.
    pub fn read(reader: &mut Reader<'_>) -> Vec<(String, Self)> {
        let mut usable: Vec<(String, Self)> = Vec::new();
        for entry in reader.read_all::<Self>() {
            let (section, name) = (entry.section.clone(), entry.name.clone());
            let Ok(options) = entry.sound() else { continue };
            let fault = match rules::check(&options.webcam(&name, String::new())) {
                Err(invalid) => Some((invalid.field, format!("expected {}", invalid.expected))),
                Ok(()) if usable.iter().any(|(known, _)| *known == name) => Some(("name", "another section has this webcam".to_owned())),
                Ok(()) if usable.len() >= rules::MAX_WEBCAMS => Some(("name", format!("more than {} webcams", rules::MAX_WEBCAMS))),
                Ok(()) => None,
            };
            match fault {
                Some((field, message)) => reader.reject(&section, field, message),
                None => usable.push((name, options)),
            }
        }
        usable
    }

    /// The entry. Its id follows from the installation and the name, so that it stays the same (wire/2-files-jobs.md section 7).
    #[must_use]
    pub fn entry(&self, name: &str, installation: Uuid) -> Webcam {
        let uid = Uuid::new_v5(&installation, format!("moonraker.webcam.{name}").as_bytes());
        self.webcam(name, uid.to_string())
    }

    fn webcam(&self, name: &str, uid: String) -> Webcam {
        let Self { location, icon, service, stream_url, snapshot_url, aspect_ratio, .. } = self.clone();
        Webcam {
            name: name.to_owned(),
            enabled: self.enabled,
            icon,
            aspect_ratio,
            target_fps: self.target_fps,
            target_fps_idle: self.target_fps_idle,
            location,
            service,
            stream_url,
            snapshot_url,
            flip_horizontal: self.flip_horizontal,
            flip_vertical: self.flip_vertical,
            rotation: self.rotation,
            source: WebcamSource::Config,
            extra_data: empty_object(),
            uid,
        }
    }
}

/// `{}`.
pub(super) fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::{Context, Problem};

    fn read(text: &str) -> (Vec<(String, WebcamOptions)>, Vec<Problem>) {
        let loaded = config::load_text("core.conf", text);
        let context = Context::default();
        let mut reader = Reader::new(&loaded.document, &context);
        let webcams = WebcamOptions::read(&mut reader);
        (webcams, reader.problems)
    }

    #[test]
    fn sections_become_entries_with_stable_ids() {
        let (webcams, problems) = read("[webcam bed side]\nstream_url: /webcam/?action=stream\nrotation: 270\n");
        assert!(problems.is_empty(), "{problems:?}");
        let (name, options) = &webcams[0];
        let installation = Uuid::from_u128(7);
        let entry = options.entry(name, installation);
        assert_eq!((entry.name.as_str(), entry.rotation, entry.aspect_ratio.as_str()), ("bed side", 270, "4:3"));
        assert_eq!(entry.uid, options.entry(name, installation).uid);
        assert_eq!(entry.uid, Uuid::new_v5(&installation, b"moonraker.webcam.bed side").to_string());
    }

    #[test]
    fn faulty_sections_are_left_out_and_named() {
        let cases = [
            ("rotation: 45", "core.conf:3: [webcam a] rotation: expected 0, 90, 180 or 270"),
            ("aspect_ratio: wide", "core.conf:3: [webcam a] aspect_ratio: expected two numbers"),
            ("target_fps: many", "core.conf:3: [webcam a] target_fps: expected a whole number"),
            ("snapshot_url: javascript:alert(1)", "core.conf:3: [webcam a] snapshot_url: expected a complete address"),
        ];
        for (line, expected) in cases {
            let (webcams, problems) = read(&format!("[webcam a]\nstream_url: /x\n{line}\n"));
            assert!(webcams.is_empty() && problems.len() == 1, "{line}: {problems:?}");
            assert!(problems[0].to_string().starts_with(expected), "{}", problems[0]);
        }
        let (webcams, problems) = read("[webcam a]\nicon: x\n[webcam b]\nstream_url: /x\n[webcam  b]\nstream_url: /y\n");
        assert_eq!((webcams.len(), problems.len()), (1, 2), "{problems:?}");
    }
}
