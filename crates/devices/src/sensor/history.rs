//! `history_field_<name>`: lines `key=value`.

use config::{Dictionary, OptionValue, Reader};
use protocol::sensor::SensorHistoryField;

use super::options::Strategy;

/// Keys that mean something.
const KEYS: &[&str] =
    &["parameter", "desc", "strategy", "units", "init_tracker", "exclude_paused", "report_total", "report_maximum", "precision"];

/// The field; what is wrong with it is reported to the reader.
pub(super) fn read(reader: &mut Reader<'_>, section: &str, id: &str, name: &str, keys: &Dictionary) -> Option<SensorHistoryField> {
    let option = format!("history_field_{name}");
    for unknown in keys.0.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        reader.warn(section, &option, format!("the key `{unknown}` means nothing"));
    }
    match field(id, name, keys) {
        Ok(field) => Some(field),
        Err(message) => {
            reader.reject(section, &option, message);
            None
        }
    }
}

fn field(id: &str, name: &str, keys: &Dictionary) -> Result<SensorHistoryField, String> {
    let text = |key: &str| keys.0.get(key).filter(|text| !text.is_empty()).cloned();
    let is_true = |key: &str| keys.0.get(key).is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let context = config::Context::default();
    let parameter = text("parameter").ok_or("expected `parameter=` and the name of a parameter")?;
    let strategy = text("strategy").map(|word| Strategy::parse(&word, &context)).transpose();
    let precision = text("precision").map(|digits| u8::parse(&digits, &context)).transpose();
    Ok(SensorHistoryField {
        field: name.to_owned(),
        provider: format!("sensor {id}"),
        description: text("desc").unwrap_or_else(|| format!("{parameter} tracker")),
        strategy: strategy.map_err(|expected| format!("strategy: expected {expected}"))?.unwrap_or(Strategy::Basic).as_str(),
        units: text("units"),
        init_tracker: is_true("init_tracker"),
        exclude_paused: is_true("exclude_paused"),
        report_total: is_true("report_total"),
        report_maximum: is_true("report_maximum"),
        precision: precision.map_err(|expected| format!("precision: expected {expected}"))?,
        parameter,
    })
}
