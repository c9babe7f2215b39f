//! What gcode macros may call: `set_led_state` and `set_led`, each also under its usual name (wire/3-devices.md section 0.4).

use std::sync::{Arc, Weak};

use fwhost::FwHost;
use protocol::ApiError;
use protocol::vocabulary::{LED_COLOR_MACRO, LED_STATE_MACRO};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::api;
use super::model::{Action, Change, Levels};
use super::options::channel;
use super::service::LedStrips;

const STATE: [&str; 2] = [LED_STATE_MACRO.neutral, LED_STATE_MACRO.upstream];
const COLOR: [&str; 2] = [LED_COLOR_MACRO.neutral, LED_COLOR_MACRO.upstream];

/// Reads what a macro wants: the strip and the change, if it is one.
type Read = fn(&RawValue, &LedStrips) -> Result<Option<(String, Change)>, ApiError>;

pub(super) fn offer(strips: &Arc<LedStrips>) {
    let offers = STATE.into_iter().map(|name| (name, read_state as Read)).chain(COLOR.into_iter().map(|name| (name, read_color as Read)));
    for (name, read) in offers {
        let weak = Arc::downgrade(strips);
        if let Err(error) = strips.host.register_remote_method(name, move |arguments| called(&weak, name, &arguments, read)) {
            tracing::warn!(%error, name, "macros cannot change LED strips");
        }
    }
}

pub(super) fn withdraw(host: &FwHost) {
    STATE.into_iter().chain(COLOR).for_each(|name| host.unregister_remote_method(name));
}

/// Nobody waits for an answer.
fn called(strips: &Weak<LedStrips>, name: &str, arguments: &RawValue, read: Read) {
    let Some(strips) = strips.upgrade() else { return };
    let outcome = read(arguments, &strips).and_then(|wanted| match wanted {
        Some((strip, change)) => strips.strip(&strip)?.note(change),
        None => Ok(()),
    });
    if let Err(error) = outcome {
        tracing::warn!(%error, "a macro called {name} in vain");
    }
}

fn parse<'a, T: Deserialize<'a>>(arguments: &'a RawValue) -> Result<T, ApiError> {
    serde_json::from_str(arguments.get()).map_err(|error| ApiError::argument(error.to_string()))
}

#[derive(Deserialize)]
struct StateCall {
    strip: String,
    state: Option<MacroState>,
    preset: Option<i64>,
    brightness: Option<i64>,
    intensity: Option<i64>,
    speed: Option<i64>,
}

/// Macros write words and booleans.
#[derive(Deserialize)]
#[serde(untagged)]
enum MacroState {
    Flag(bool),
    Word(String),
}

fn read_state(arguments: &RawValue, _: &LedStrips) -> Result<Option<(String, Change)>, ApiError> {
    let call: StateCall = parse(arguments)?;
    // -1 is how macros say that they say nothing.
    let given = |value: Option<i64>| value.filter(|value| *value != -1);
    let levels = api::levels(given(call.brightness), given(call.intensity), given(call.speed))?;
    let preset = api::preset(call.preset)?;
    let state = match call.state {
        None => None,
        Some(MacroState::Flag(flag)) => Some(flag),
        Some(MacroState::Word(word)) => match word.to_ascii_lowercase().as_str() {
            "on" | "true" => Some(true),
            "off" | "false" => Some(false),
            _ => return Err(ApiError::bad_request("Invalid value for 'state': expected on or off")),
        },
    };
    let action = match state {
        Some(false) => Action::Off,
        Some(true) => Action::On,
        None if preset.is_some() => Action::On,
        None if levels == Levels::default() => return Ok(None),
        None => Action::Control,
    };
    Ok(Some((call.strip, Change::Switch { action, preset, levels })))
}

#[derive(Deserialize)]
struct ColorCall {
    strip: String,
    #[serde(default)]
    red: f64,
    #[serde(default)]
    green: f64,
    #[serde(default)]
    blue: f64,
    #[serde(default)]
    white: f64,
    index: Option<i64>,
    transmit: Option<i64>,
}

fn read_color(arguments: &RawValue, strips: &LedStrips) -> Result<Option<(String, Change)>, ApiError> {
    let call: ColorCall = parse(arguments)?;
    let parts = [call.red, call.green, call.blue, call.white];
    if !parts.iter().all(|part| (0.0..=1.0).contains(part)) {
        return Err(ApiError::bad_request("Invalid colour: expected red, green, blue and white from 0 to 1"));
    }
    let count = strips.strip(&call.strip)?.options.chain_count;
    let index = match call.index.filter(|index| *index >= 0) {
        None => None,
        Some(index) => match u32::try_from(index).ok().filter(|index| (1..=count).contains(index)) {
            Some(index) => Some(index),
            None => return Err(ApiError::bad_request(format!("Invalid value for 'index': expected 1 to {count}"))),
        },
    };
    let transmit = call.transmit.unwrap_or(1) == 1;
    Ok(Some((call.strip, Change::Color { color: parts.map(channel), index, transmit })))
}
