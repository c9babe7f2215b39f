//! The list of webcams and how requests change it, as pure functions.

use protocol::webcam::{Webcam, WebcamSource};
use protocol::{ApiError, ErrorKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::options::empty_object;
use super::rules;

/// Which webcam is meant: by `uid`, or else by `name`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct Which {
    /// Unique id.
    #[serde(default)]
    pub(super) uid: Option<String>,
    /// Deprecated: the name.
    #[serde(default)]
    pub(super) name: Option<String>,
}

/// Fields of an entry; what is not given keeps its value, or has its default in a new entry.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct Fields {
    /// The entry to change; null for a new one.
    #[serde(default)]
    uid: Option<String>,
    /// Unique name; required for a new entry.
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    location: Option<String>,
    #[serde(default)]
    icon: Option<String>,
    #[serde(default)]
    enabled: Option<bool>,
    #[serde(default)]
    service: Option<String>,
    #[serde(default)]
    target_fps: Option<i64>,
    #[serde(default)]
    target_fps_idle: Option<i64>,
    /// Required for a new entry.
    #[serde(default)]
    stream_url: Option<String>,
    #[serde(default)]
    snapshot_url: Option<String>,
    #[serde(default)]
    flip_horizontal: Option<bool>,
    #[serde(default)]
    flip_vertical: Option<bool>,
    /// 0, 90, 180 or 270.
    #[serde(default)]
    rotation: Option<i64>,
    /// As in `16:9`.
    #[serde(default)]
    aspect_ratio: Option<String>,
    /// A JSON object, replaced as a whole.
    #[serde(default)]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    extra_data: Option<Box<RawValue>>,
}

/// Where the webcam stands in the list.
///
/// # Errors
/// 404 when it is not there, 400 when nothing says which is meant.
pub(super) fn find(webcams: &[Webcam], which: &Which) -> Result<usize, ApiError> {
    match (&which.uid, &which.name) {
        (Some(uid), _) => {
            let missing = || ApiError::not_found(format!("Webcam with UID {uid} not found"));
            webcams.iter().position(|webcam| webcam.uid == *uid).ok_or_else(missing)
        }
        (None, Some(name)) => {
            let missing = || ApiError::not_found(format!("Webcam {name} not found"));
            webcams.iter().position(|webcam| webcam.name == *name).ok_or_else(missing)
        }
        (None, None) => Err(ApiError::argument("No data for argument: name")),
    }
}

/// The list with the entry added or changed, and where that stands now. A renamed entry moves to the end.
///
/// # Errors
/// When the request names an unknown or a fixed entry, a taken name, or a value that cannot be.
pub(super) fn put(webcams: &[Webcam], fields: Fields, new_uid: impl FnOnce() -> String) -> Result<(Vec<Webcam>, usize), ApiError> {
    let which = Which { uid: fields.uid.clone(), name: fields.name.clone() };
    let position = match find(webcams, &which) {
        Err(error) if error.kind == ErrorKind::NotFound && which.uid.is_none() => None,
        found => Some(found?),
    };
    let mut list = webcams.to_vec();
    let Some(position) = position else {
        let webcam = fields.created(new_uid())?;
        if list.len() >= rules::MAX_WEBCAMS {
            return Err(ApiError::bad_request(format!("There are {} webcams already: remove one first", rules::MAX_WEBCAMS)));
        }
        list.push(webcam);
        return Ok((list, webcams.len()));
    };
    let old = &webcams[position];
    if old.source == WebcamSource::Config {
        return Err(ApiError::bad_request(format!("Cannot overwrite webcam '{}' sourced from Moonraker configuration", old.name)));
    }
    let webcam = fields.changed(old)?;
    if webcam.name == old.name {
        list[position] = webcam;
        return Ok((list, position));
    }
    if webcams.iter().any(|other| other.name == webcam.name) {
        let (old, new) = (&old.name, &webcam.name);
        return Err(ApiError::bad_request(format!("Cannot rename webcam from '{old}' to '{new}', another one has that name")));
    }
    list.remove(position);
    list.push(webcam);
    Ok((list, webcams.len() - 1))
}

/// The list without the entry, and the entry.
///
/// # Errors
/// When it is not there, or cannot be removed.
pub(super) fn remove(webcams: &[Webcam], which: &Which) -> Result<(Vec<Webcam>, Webcam), ApiError> {
    let position = find(webcams, which)?;
    let mut list = webcams.to_vec();
    let removed = list.remove(position);
    match removed.source {
        WebcamSource::Database => Ok((list, removed)),
        WebcamSource::Config => {
            Err(ApiError::bad_request(format!("Cannot delete webcam '{}' sourced from Moonraker configuration", removed.name)))
        }
    }
}

/// Puts entries of the database behind those of the configuration. Returns the list, and the former ids of entries that got new ones because
/// theirs was taken. An entry whose name is taken is ignored.
pub(super) fn merge(
    configured: Vec<Webcam>,
    kept: Vec<Webcam>,
    mut new_uid: impl FnMut() -> String,
) -> (Vec<Webcam>, Vec<(String, Webcam)>) {
    let (mut list, mut moved) = (configured, Vec::new());
    for mut webcam in kept {
        if list.len() >= rules::MAX_WEBCAMS || list.iter().any(|other| other.name == webcam.name) {
            tracing::warn!(
                name = webcam.name,
                uid = webcam.uid,
                "webcam of the database ignored: its name is taken, or there are too many"
            );
            continue;
        }
        if list.iter().any(|other| other.uid == webcam.uid) {
            let former = std::mem::replace(&mut webcam.uid, new_uid());
            moved.push((former, webcam.clone()));
        }
        list.push(webcam);
    }
    (list, moved)
}

impl Fields {
    fn created(self, uid: String) -> Result<Webcam, ApiError> {
        let missing = |name: &str| ApiError::argument(format!("No data for argument: {name}"));
        let blank = Webcam {
            name: self.name.clone().ok_or_else(|| missing("name"))?,
            enabled: true,
            icon: "mdiWebcam".to_owned(),
            aspect_ratio: "4:3".to_owned(),
            target_fps: 15,
            target_fps_idle: 5,
            location: "printer".to_owned(),
            service: "mjpegstreamer".to_owned(),
            stream_url: self.stream_url.clone().ok_or_else(|| missing("stream_url"))?,
            snapshot_url: String::new(),
            flip_horizontal: false,
            flip_vertical: false,
            rotation: 0,
            source: WebcamSource::Database,
            extra_data: empty_object(),
            uid,
        };
        self.changed(&blank)
    }

    /// `old` with what is given; `uid` and `source` never change.
    fn changed(self, old: &Webcam) -> Result<Webcam, ApiError> {
        let old = old.clone();
        let webcam = Webcam {
            name: self.name.unwrap_or(old.name),
            enabled: self.enabled.unwrap_or(old.enabled),
            icon: self.icon.unwrap_or(old.icon),
            aspect_ratio: self.aspect_ratio.unwrap_or(old.aspect_ratio),
            target_fps: self.target_fps.unwrap_or(old.target_fps),
            target_fps_idle: self.target_fps_idle.unwrap_or(old.target_fps_idle),
            location: self.location.unwrap_or(old.location),
            service: self.service.unwrap_or(old.service),
            stream_url: self.stream_url.unwrap_or(old.stream_url),
            snapshot_url: self.snapshot_url.unwrap_or(old.snapshot_url),
            flip_horizontal: self.flip_horizontal.unwrap_or(old.flip_horizontal),
            flip_vertical: self.flip_vertical.unwrap_or(old.flip_vertical),
            rotation: self.rotation.unwrap_or(old.rotation),
            source: old.source,
            extra_data: self.extra_data.unwrap_or(old.extra_data),
            uid: old.uid,
        };
        rules::check(&webcam)?;
        Ok(webcam)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webcams::record;

    fn webcam(name: &str, uid: &str, source: WebcamSource) -> Webcam {
        Webcam { source, ..record::read(uid, &format!(r#"{{"name":"{name}","urlStream":"/s"}}"#)).unwrap() }
    }

    fn webcams() -> Vec<Webcam> {
        vec![webcam("fixed", "f", WebcamSource::Config), webcam("a", "1", WebcamSource::Database), webcam("b", "2", WebcamSource::Database)]
    }

    fn fields(json: &str) -> Fields {
        serde_json::from_str(json).unwrap()
    }

    fn names(list: &[Webcam]) -> Vec<&str> {
        list.iter().map(|webcam| webcam.name.as_str()).collect()
    }

    fn refused(json: &str) -> String {
        put(&webcams(), fields(json), || "new".to_owned()).unwrap_err().message
    }

    #[test]
    fn entries_are_made_changed_and_renamed() {
        let (list, at) = put(&webcams(), fields(r#"{"name":"c","stream_url":"","rotation":90}"#), || "new".to_owned()).unwrap();
        assert_eq!((list[at].uid.as_str(), list[at].rotation, list[at].target_fps), ("new", 90, 15));
        let (list, at) = put(&webcams(), fields(r#"{"name":"a","icon":"x"}"#), || "new".to_owned()).unwrap();
        assert_eq!((at, list[1].icon.as_str(), list[1].uid.as_str(), list.len()), (1, "x", "1", 3));
        let (list, at) = put(&webcams(), fields(r#"{"uid":"1","name":"z","source":"config"}"#), || "new".to_owned()).unwrap();
        assert_eq!((names(&list), at, list[at].source), (vec!["fixed", "b", "z"], 2, WebcamSource::Database));
    }

    #[test]
    fn what_cannot_be_is_refused_as_a_whole() {
        assert_eq!(refused(r#"{"uid":"9","name":"a"}"#), "Webcam with UID 9 not found");
        assert!(refused(r#"{"uid":"1","name":"b"}"#).starts_with("Cannot rename webcam from 'a' to 'b'"));
        assert!(refused(r#"{"uid":"1","name":"fixed"}"#).starts_with("Cannot rename webcam from 'a' to 'fixed'"));
        assert_eq!(refused(r#"{"name":"fixed","icon":"x"}"#), "Cannot overwrite webcam 'fixed' sourced from Moonraker configuration");
        assert_eq!(refused(r#"{"name":"c"}"#), "No data for argument: stream_url");
        assert_eq!(refused(r#"{"stream_url":"/"}"#), "No data for argument: name");
        for uid in [r#""uid":"1""#, r#""name":"n","stream_url":"/""#] {
            assert!(refused(&format!("{{{uid},\"rotation\":45}}")).starts_with("Invalid value for 'rotation': 45"));
            assert!(refused(&format!("{{{uid},\"aspect_ratio\":\"x\"}}")).starts_with("Invalid value for 'aspect_ratio': x"));
            assert!(refused(&format!("{{{uid},\"snapshot_url\":\"http://\"}}")).starts_with("Invalid value for 'snapshot_url': http://"));
            assert!(refused(&format!("{{{uid},\"extra_data\":5}}")).starts_with("Invalid value for 'extra_data': 5"));
            assert!(refused(&format!("{{{uid},\"target_fps\":-1}}")).starts_with("Invalid value for 'target_fps': -1"));
        }
    }

    #[test]
    fn removal_spares_the_configuration() {
        let (list, gone) = remove(&webcams(), &Which { uid: None, name: Some("a".into()) }).unwrap();
        assert_eq!((names(&list), gone.uid.as_str()), (vec!["fixed", "b"], "1"));
        let fixed = remove(&webcams(), &Which { uid: Some("f".into()), name: None }).unwrap_err();
        assert_eq!(fixed.message, "Cannot delete webcam 'fixed' sourced from Moonraker configuration");
        assert_eq!(remove(&webcams(), &Which::default()).unwrap_err().message, "No data for argument: name");
    }

    #[test]
    fn the_number_is_bounded() {
        let many: Vec<_> = (0..rules::MAX_WEBCAMS).map(|n| webcam(&n.to_string(), &n.to_string(), WebcamSource::Database)).collect();
        assert!(put(&many, fields(r#"{"name":"x","stream_url":""}"#), String::new).unwrap_err().message.contains("128 webcams"));
        assert_eq!(merge(webcams(), many, String::new).0.len(), rules::MAX_WEBCAMS);
    }

    #[test]
    fn taken_names_are_ignored_and_taken_ids_replaced() {
        let configured = vec![webcam("fixed", "f", WebcamSource::Config)];
        let kept = vec![webcam("fixed", "1", WebcamSource::Database), webcam("other", "f", WebcamSource::Database)];
        let (list, moved) = merge(configured, kept, || "new".to_owned());
        assert_eq!(names(&list), ["fixed", "other"]);
        assert_eq!((list[1].uid.as_str(), moved.len(), moved[0].0.as_str()), ("new", 1, "f"));
    }
}
