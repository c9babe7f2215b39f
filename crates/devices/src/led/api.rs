//! The operations of document 3 *LED strips*. Thin.

use std::sync::Arc;

use indexmap::IndexMap;
use protocol::ApiError;
use protocol::led::LedStatus;
use rpc::{Access, Arguments, Call, Outcome, Registry, Rendered};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::model::{Action, Change, Levels};
use super::service::LedStrips;

#[derive(Serialize, JsonSchema)]
struct StripList {
    /// By name.
    #[schemars(with = "std::collections::BTreeMap<String, LedStatus>")]
    strips: IndexMap<String, LedStatus>,
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    /// Name of the strip.
    strip: String,
}

#[derive(Deserialize, JsonSchema)]
struct Control {
    /// Name of the strip.
    strip: String,
    /// `on`, `off`, `toggle` or `control`.
    action: String,
    /// Preset to show when it is switched on; the initial one without.
    preset: Option<i64>,
    /// 1 to 255.
    brightness: Option<i64>,
    /// 0 to 255; ignored without a preset.
    intensity: Option<i64>,
    /// 0 to 255; ignored without a preset.
    speed: Option<i64>,
}

impl LedStrips {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("machine.led.strips")
            .get("/machine/led/strips")
            .access(Access::View)
            .doc("All LED strips as they are known.")
            .answer(self, |strips, _, (): ()| Ok(StripList { strips: strips.list() }));
        registry
            .op("machine.led.get_strip")
            .get("/machine/led/strip")
            .access(Access::View)
            .doc("One LED strip: an object of its name and status.")
            .answer(self, |strips, _, which: Which| Ok(one(strips.strip(&which.strip)?.status())));
        registry
            .op("machine.led.post_strip")
            .post("/machine/led/strip")
            .access(Access::Control)
            .doc("Switches one LED strip or changes its levels: an object of its name and status.")
            .handle(self, |strips, _, control: Control| async move {
                let strip = strips.strip(&control.strip)?.clone();
                Ok(one(strip.change(control.change()?).await?))
            });
        registry
            .op("machine.led.status")
            .get("/machine/led/status")
            .access(Access::View)
            .doc("The LED strips that are named by the keys of the arguments: an object of names and status.")
            .pass(batch(self, None));
        for (action, word, doc) in [
            (Action::On, "on", "Lights the LED strips that are named by the keys of the arguments: an object of names and status."),
            (Action::Off, "off", "Darkens the LED strips that are named by the keys of the arguments: an object of names and status."),
            (Action::Toggle, "toggle", "Lights or darkens the LED strips that are named by the keys of the arguments."),
        ] {
            registry
                .op(format!("machine.led.{word}"))
                .post(&format!("/machine/led/{word}"))
                .access(Access::Control)
                .doc(doc)
                .pass(batch(self, Some(action)));
        }
    }
}

fn one(status: LedStatus) -> std::collections::BTreeMap<String, LedStatus> {
    [(status.strip.clone(), status)].into()
}

/// Only the keys of the arguments count; their values are usually null.
fn batch(strips: &Arc<LedStrips>, action: Option<Action>) -> impl Fn(&Arc<Call>, &Arguments<'_>) -> Outcome + Send + Sync + 'static {
    let strips = strips.clone();
    move |_, arguments| {
        let (strips, names) = (strips.clone(), arguments.iter().map(|(name, _)| name.to_owned()).collect());
        Outcome::working(async move {
            let states = strips.batch(names, action.map(Change::switch)).await?;
            let text = serde_json::to_vec(&states).map_err(|error| ApiError::internal(error.to_string()))?;
            Ok(Rendered(text.into()))
        })
    }
}

impl Control {
    fn change(&self) -> Result<Change, ApiError> {
        let levels = levels(self.brightness, self.intensity, self.speed)?;
        let action = match self.action.as_str() {
            "on" => Action::On,
            "off" => Action::Off,
            "toggle" => Action::Toggle,
            "control" if levels.is_empty() => {
                return Err(ApiError::bad_request("Expected at least one of brightness, intensity and speed with action control"));
            }
            "control" => Action::Control,
            other => {
                return Err(ApiError::bad_request(format!("Invalid value for 'action': {other:.32}, expected on, off, toggle or control")));
            }
        };
        Ok(Change::Switch { action, preset: preset(self.preset)?, levels })
    }
}

/// The levels, when they are in their ranges.
pub(super) fn levels(brightness: Option<i64>, intensity: Option<i64>, speed: Option<i64>) -> Result<Levels, ApiError> {
    Ok(Levels {
        brightness: level("brightness", brightness, 1)?,
        intensity: level("intensity", intensity, 0)?,
        speed: level("speed", speed, 0)?,
    })
}

fn level(name: &str, value: Option<i64>, least: u8) -> Result<Option<u8>, ApiError> {
    let fits = |value: i64| u8::try_from(value).ok().filter(|value| *value >= least);
    let refuse = || ApiError::bad_request(format!("Invalid value for '{name}': expected {least} to 255"));
    value.map(|value| fits(value).ok_or_else(refuse)).transpose()
}

/// The preset; -1 is none.
pub(super) fn preset(value: Option<i64>) -> Result<Option<i32>, ApiError> {
    match value {
        None | Some(-1) => Ok(None),
        Some(value @ 0..=65535) => Ok(i32::try_from(value).ok()),
        Some(_) => Err(ApiError::bad_request("Invalid value for 'preset': expected 0 to 65535, or -1 for the initial state")),
    }
}
