//! From a message to numbers.

use protocol::sensor::SensorValues;
use serde_json::{Number, Value, json};
use template::{Answer, Call, Context, Failure, Host, Template};

/// Parameters of one sensor.
pub const MAX_PARAMETERS: usize = 64;

/// Longest name of a parameter in bytes.
const MAX_NAME: usize = 128;

/// Renders the template of a sensor; the numbers that it set.
///
/// # Errors
/// A sentence for people.
pub(super) fn read(template: &Template, context: &Context, payload: &[u8]) -> Result<SensorValues, String> {
    let payload = std::str::from_utf8(payload).map_err(|_| "the message is no UTF-8 text".to_owned())?;
    let mut context = context.clone().with("payload", payload);
    let mut results = Results::default();
    template.render(&mut context, &mut results).map_err(|error| error.to_string())?;
    Ok(results.0)
}

#[derive(Default)]
struct Results(SensorValues);

impl Host for Results {
    fn call(&mut self, call: &Call<'_>) -> Result<Answer, Failure> {
        let [Some(Value::String(name)), Some(value)] = call.arguments(["name", "value"])? else {
            return Err(Failure::new(400, "set_result: expected the name of a parameter and a number"));
        };
        let number = number(value).ok_or_else(|| Failure::new(400, format!("set_result: expected a number for `{name:.64}`")))?;
        if name.len() > MAX_NAME || (self.0.len() >= MAX_PARAMETERS && !self.0.contains_key(name)) {
            return Err(Failure::new(
                400,
                format!("set_result: more than {MAX_PARAMETERS} parameters, or one with a name that is too long"),
            ));
        }
        self.0.insert(name.clone(), Value::Number(number));
        Ok(json!(null).into())
    }

    fn log_debug(&mut self, message: &str) {
        tracing::debug!("template: {message}");
    }
}

/// Devices report numbers also as text, and switches as booleans.
fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::Bool(flag) => Some(Number::from(u8::from(*flag))),
        Value::String(text) => Number::from_f64(text.trim().parse().ok()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(source: &str, payload: &str) -> Result<Value, String> {
        let template = Template::compile(source).unwrap().of("[sensor s] state_response_template");
        read(&template, &Context::default().with_function("set_result"), payload.as_bytes()).map(Value::Object)
    }

    #[test]
    fn messages_of_usual_devices_become_numbers() {
        let tasmota = r#"{"Time": "x", "ENERGY": {"Total": 3.185, "Power": "12", "Voltage": 230, "Relay": true}}"#;
        let source = "{% set energy = payload|fromjson %}\n{set_result('total', energy['ENERGY']['Total'])}\n{set_result('power', energy.ENERGY.Power)}{set_result('voltage', energy.ENERGY.Voltage|int)}{set_result('relay', energy.ENERGY.Relay)}";
        assert_eq!(run(source, tasmota).unwrap(), json!({"total": 3.185, "power": 12.0, "voltage": 230, "relay": 1}));
        assert_eq!(run("nothing", "").unwrap(), json!({}));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (source, payload, expected) in [
            ("{set_result('a', payload)}", "<html>", "[sensor s] state_response_template, line 1: set_result: expected a number for `a`"),
            ("{set_result('a', payload)}", "nan", "expected a number for `a`"),
            ("{set_result('a', (payload|fromjson).b.c)}", "{}", "[sensor s] state_response_template, line 1:"),
            ("{(payload|fromjson).a}", "{\"a\"", "line 1"),
            ("{set_result(5, 6)}", "", "expected the name of a parameter"),
            ("{% for n in range(100) %}{set_result(n|string, n)}{% endfor %}", "", "more than 64 parameters"),
            ("{% for n in range(10000) %}{% for m in range(10000) %}{m}{% endfor %}{% endfor %}", "", "step"),
        ] {
            let error = run(source, payload).unwrap_err();
            assert!(error.contains(expected), "{source}: {error}");
        }
        let template = Template::compile("x").unwrap();
        assert!(read(&template, &Context::default(), &[0xff]).unwrap_err().contains("UTF-8"));
    }
}
