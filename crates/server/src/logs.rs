//! Rolling over logs: the two applications under both of their names.

use protocol::vocabulary::{APP_CORE, APP_FIRMWARE, Form, Pair};
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// An application whose log can be rolled over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogApplication {
    /// This server.
    Core,
    /// The firmware host.
    Firmware,
}

impl LogApplication {
    /// Both, in the order in which they are rolled over.
    pub const ALL: [Self; 2] = [Self::Core, Self::Firmware];

    fn names(self) -> Pair {
        match self {
            Self::Core => APP_CORE,
            Self::Firmware => APP_FIRMWARE,
        }
    }

    /// The name in the caller's form.
    #[must_use]
    pub fn name(self, form: Form) -> &'static str {
        self.names().in_form(form)
    }
}

impl<'de> Deserialize<'de> for LogApplication {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::ALL
            .into_iter()
            .find(|application| application.names().is(&text))
            .ok_or_else(|| D::Error::custom(format!("expected {} or {}", APP_CORE.neutral, APP_FIRMWARE.neutral)))
    }
}

impl JsonSchema for LogApplication {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LogApplication".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<&str> =
            Self::ALL.iter().flat_map(|application| [application.names().neutral, application.names().upstream]).collect();
        schemars::json_schema!({"type": "string", "enum": names})
    }
}

/// Result of a roll-over.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct RolledOver {
    /// Applications whose log is a new file now.
    pub rolled_over: Vec<&'static str>,
    /// Applications whose log is not, with the reason.
    pub failed: std::collections::BTreeMap<&'static str, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_are_read() {
        for (text, expected) in [("core", LogApplication::Core), ("klipper", LogApplication::Firmware), ("moonraker", LogApplication::Core)]
        {
            assert_eq!(serde_json::from_value::<LogApplication>(text.into()).unwrap(), expected);
        }
        assert!(serde_json::from_value::<LogApplication>("x".into()).is_err());
        assert_eq!(LogApplication::Core.name(Form::Upstream), "moonraker");
    }
}
