//! The form in which webcams are kept in the clients' database. Older front ends read and write it themselves, so reading is forgiving: what
//! is missing has its default, numbers may be texts, and the older name `rotate` is understood.

use protocol::webcam::{Webcam, WebcamSource};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::options::empty_object;
use super::rules;

/// One kept record; the key is the uid.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    name: &'a str,
    service: &'a str,
    target_fps: i64,
    target_fps_idle: i64,
    url_stream: &'a str,
    url_snapshot: &'a str,
    flip_x: bool,
    flip_y: bool,
    enabled: bool,
    aspect_ratio: &'a str,
    icon: &'a str,
    location: &'a str,
    rotation: i64,
    #[serde(rename = "extra_data")]
    extra_data: &'a RawValue,
}

/// The record of an entry.
///
/// # Errors
/// Never for entries that were checked.
pub fn write(webcam: &Webcam) -> serde_json::Result<Box<RawValue>> {
    to_raw_value(&Record {
        name: &webcam.name,
        service: &webcam.service,
        target_fps: webcam.target_fps,
        target_fps_idle: webcam.target_fps_idle,
        url_stream: &webcam.stream_url,
        url_snapshot: &webcam.snapshot_url,
        flip_x: webcam.flip_horizontal,
        flip_y: webcam.flip_vertical,
        enabled: webcam.enabled,
        aspect_ratio: &webcam.aspect_ratio,
        icon: &webcam.icon,
        location: &webcam.location,
        rotation: webcam.rotation,
        extra_data: &webcam.extra_data,
    })
}

/// The entry of a record.
///
/// # Errors
/// With the reason why it cannot be used.
pub fn read(uid: &str, json: &str) -> Result<Webcam, String> {
    let members: Map<String, Value> = serde_json::from_str(json).map_err(|error| format!("expected an object: {error}"))?;
    let fields = Fields(&members);
    let webcam = Webcam {
        name: fields.text("name", None)?,
        enabled: fields.flag("enabled", true)?,
        icon: fields.text("icon", Some("mdiWebcam"))?,
        aspect_ratio: fields.text("aspectRatio", Some("4:3"))?,
        target_fps: fields.number("targetFps", 15)?,
        target_fps_idle: fields.number("targetFpsIdle", 5)?,
        location: fields.text("location", Some("printer"))?,
        service: fields.text("service", Some("mjpegstreamer"))?,
        stream_url: fields.text("urlStream", Some(""))?,
        snapshot_url: fields.text("urlSnapshot", Some(""))?,
        flip_horizontal: fields.flag("flipX", false)?,
        flip_vertical: fields.flag("flipY", false)?,
        rotation: fields.number("rotation", fields.number("rotate", 0)?)?,
        source: WebcamSource::Database,
        extra_data: match fields.get("extra_data") {
            Some(extra) => to_raw_value(extra).map_err(|error| error.to_string())?,
            None => empty_object(),
        },
        uid: uid.to_owned(),
    };
    rules::check(&webcam).map_err(|invalid| invalid.to_string())?;
    Ok(webcam)
}

struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    /// A member; null counts as missing.
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str, default: Option<&str>) -> Result<String, String> {
        match (self.get(name), default) {
            (Some(Value::String(text)), _) => Ok(text.clone()),
            (None, Some(default)) => Ok(default.to_owned()),
            _ => Err(format!("'{name}': expected a text")),
        }
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "fractions are cut, and what is out of range becomes the nearest number, which is refused"
    )]
    fn number(&self, name: &str, default: i64) -> Result<i64, String> {
        let number = match self.get(name) {
            None => return Ok(default),
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.trim().parse::<f64>().ok(),
            Some(_) => None,
        };
        number.filter(|number| number.is_finite()).map(|number| number as i64).ok_or_else(|| format!("'{name}': expected a number"))
    }

    fn flag(&self, name: &str, default: bool) -> Result<bool, String> {
        match self.get(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(format!("'{name}': expected true or false")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_of_older_front_ends_are_understood() {
        let webcam =
            read("u", r#"{"name":"Bed","urlStream":"/webcam/?action=stream","rotate":"180","targetFps":29.97,"flipX":true,"icon":null}"#)
                .unwrap();
        assert_eq!((webcam.rotation, webcam.target_fps, webcam.flip_horizontal, webcam.icon.as_str()), (180, 29, true, "mdiWebcam"));
        assert_eq!(read("u", r#"{"name":"a","rotation":90,"rotate":180}"#).unwrap().rotation, 90);
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        for (json, expected) in [
            ("[]", "expected an object"),
            ("{}", "'name': expected a text"),
            (r#"{"name":""}"#, "Invalid value for 'name'"),
            (r#"{"name":"a","rotation":45}"#, "Invalid value for 'rotation': 45"),
            (r#"{"name":"a","rotation":1e300}"#, "Invalid value for 'rotation'"),
            (r#"{"name":"a","enabled":1}"#, "'enabled': expected true or false"),
            (r#"{"name":"a","extra_data":[]}"#, "Invalid value for 'extra_data'"),
            (r#"{"name":"a","urlStream":"JavaScript:alert(1)"}"#, "Invalid value for 'stream_url'"),
        ] {
            let error = read("u", json).unwrap_err();
            assert!(error.starts_with(expected), "{json}: {error}");
        }
    }

    #[test]
    fn the_kept_names_are_those_that_front_ends_know() {
        let webcam = read("u", r#"{"name":"a"}"#).unwrap();
        assert_eq!(
            write(&webcam).unwrap().get(),
            r#"{"name":"a","service":"mjpegstreamer","targetFps":15,"targetFpsIdle":5,"urlStream":"","urlSnapshot":"","flipX":false,"flipY":false,"enabled":true,"aspectRatio":"4:3","icon":"mdiWebcam","location":"printer","rotation":0,"extra_data":{}}"#
        );
    }

    proptest! {
        #[test]
        fn what_was_read_is_kept_as_it_is(name in "[^\\p{Cc}]{1,20}", url in "[ -~]{0,30}", fps in 0_i64..1001, turns in 0_i64..4, extra in "[a-z]{0,5}") {
            let json = serde_json::json!({"name": name, "urlStream": url, "targetFps": fps, "rotation": turns * 90, "extra_data": {"k": extra}});
            if let Ok(webcam) = read("u", &json.to_string()) {
                let again = read("u", write(&webcam).unwrap().get()).unwrap();
                prop_assert_eq!(serde_json::to_string(&webcam).unwrap(), serde_json::to_string(&again).unwrap());
            }
        }

        #[test]
        fn any_text_is_understood_or_refused(json in ".{0,80}") {
            let _ = read("u", &json);
        }
    }
}
