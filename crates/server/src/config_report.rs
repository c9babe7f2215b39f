//! The answer of `server.config`: the configuration as it is in use and as it was written. Document 1, Server administration.

use rpc::{Access, Identity};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Parts of option names whose values let somebody in somewhere.
const SECRET_NAMES: &[&str] = &["password", "token", "secret", "key"];
/// What stands in place of such a value.
const HIDDEN: &str = "***";

/// The answer of `server.config`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConfigReport {
    /// Section → option → value with its type, defaults included.
    pub config: Value,
    /// Section → option → text as it stands in the files.
    pub orig: Value,
    /// The files that were read.
    pub files: Vec<ConfigFile>,
}

/// One configuration file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ConfigFile {
    /// Path relative to the folder of the main file.
    pub filename: String,
    /// Sections in it.
    pub sections: Vec<String>,
}

impl ConfigFile {
    /// A file and its sections.
    #[must_use]
    pub fn new(filename: String, sections: Vec<String>) -> Self {
        Self { filename, sections }
    }
}

impl ConfigReport {
    /// The report for this caller: who may only look does not see what opens doors elsewhere.
    pub(crate) fn seen_by(&self, identity: &Identity) -> Self {
        let mut report = self.clone();
        if !identity.may(Access::Control) {
            hide_secrets(&mut report.config);
            hide_secrets(&mut report.orig);
        }
        report
    }
}

fn hide_secrets(sections: &mut Value) {
    let options = sections.as_object_mut().into_iter().flat_map(|sections| sections.values_mut()).filter_map(Value::as_object_mut);
    for (name, value) in options.flatten() {
        if value.is_string() && SECRET_NAMES.iter().any(|part| name.contains(part)) {
            *value = HIDDEN.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_may_only_look_sees_no_secrets() {
        let sections = json!({"mqtt": {"address": "broker", "mqtt_password": "x", "enable_key": true}, "power lamp": {"auth_token": "y"}});
        let report = ConfigReport { config: sections.clone(), orig: sections.clone(), files: Vec::new() };
        let mut hidden = sections.clone();
        hide_secrets(&mut hidden);
        assert_eq!(
            hidden,
            json!({"mqtt": {"address": "broker", "mqtt_password": "***", "enable_key": true}, "power lamp": {"auth_token": "***"}})
        );
        assert_eq!(report.seen_by(&Identity::Trusted).orig, sections);
        let stranger = report.seen_by(&Identity::Stranger);
        assert_eq!((stranger.config, stranger.orig), (hidden.clone(), hidden));
    }
}
