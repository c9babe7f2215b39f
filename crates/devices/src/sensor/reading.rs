//! From a message to numbers.

use std::sync::Arc;
use std::time::Duration;

use protocol::sensor::SensorValues;
use serde_json::{Number, Value};
use template::limits::MAX_QUICK_TEXT;
use template::{Answer, Call, Context, Failure, Template};

use crate::script::{Functions, Methods, Pending, Scripts, at_once};

/// The function that takes a number.
pub(super) const SET_RESULT: &str = "set_result";

/// Parameters of one sensor.
pub const MAX_PARAMETERS: usize = 64;

/// Longest name of a parameter in bytes.
const MAX_NAME: usize = 128;

/// Time for one message, whatever its template calls.
const READ_TIME: Duration = Duration::from_secs(10);

/// What reads the messages of a sensor.
#[derive(Clone, Copy)]
pub(super) struct ReadingTemplate<'s> {
    pub(super) template: &'s Template,
    pub(super) context: &'s Context,
    pub(super) scripts: &'s Arc<Scripts>,
}

impl ReadingTemplate<'_> {
    /// The numbers that the template sets for a message. Blocks, as [`Scripts::render_here`] does.
    ///
    /// # Errors
    /// A sentence for people.
    pub(super) fn read(self, payload: &[u8]) -> Result<SensorValues, String> {
        let mut context = self.context(payload)?;
        let (rendered, results) = self.scripts.render_here(self.template, &mut context, self.results(), READ_TIME);
        rendered.map_err(|error| error.to_string())?;
        Ok(results.values)
    }

    /// The same, for messages and templates that take at most some dozens of microseconds; none for others.
    pub(super) fn read_quickly(self, payload: &[u8]) -> Option<Result<SensorValues, String>> {
        if payload.len() > MAX_QUICK_TEXT {
            return None;
        }
        let (mut context, mut results) = match self.context(payload) {
            Ok(context) => (context, self.results()),
            Err(error) => return Some(Err(error)),
        };
        let rendered = at_once(self.template, &mut context, &mut results)?;
        Some(rendered.map(|_| results.values).map_err(|error| error.to_string()))
    }

    fn results(self) -> Results {
        Results { values: SensorValues::default(), methods: Methods(self.scripts.clone()) }
    }

    fn context(self, payload: &[u8]) -> Result<Context, String> {
        let payload = std::str::from_utf8(payload).map_err(|_| "the message is no UTF-8 text".to_owned())?;
        Ok(self.context.clone().with("payload", payload))
    }
}

struct Results {
    values: SensorValues,
    methods: Methods,
}

impl Functions for Results {
    fn call(&mut self, call: &Call<'_>) -> Result<Pending, Failure> {
        if call.name != SET_RESULT {
            return self.methods.call(call);
        }
        let [Some(Value::String(name)), Some(value)] = call.arguments(["name", "value"])? else {
            return Err(Failure::new(400, "set_result: expected the name of a parameter and a number"));
        };
        let number = number(value).ok_or_else(|| Failure::new(400, format!("set_result: expected a number for `{name:.64}`")))?;
        if name.len() > MAX_NAME || (self.values.len() >= MAX_PARAMETERS && !self.values.contains_key(name)) {
            return Err(Failure::new(
                400,
                format!("set_result: more than {MAX_PARAMETERS} parameters, or one with a name that is too long"),
            ));
        }
        self.values.insert(name.clone(), Value::Number(number));
        Ok(Pending::Now(Answer::Value(Value::Null)))
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
    use runtime::StopToken;
    use serde_json::json;

    fn scripts() -> Arc<Scripts> {
        Scripts::new(StopToken::new())
    }

    fn run(source: &str, payload: &str) -> Result<Value, String> {
        let template = Template::compile(source).unwrap().of("[sensor s] state_response_template");
        let context = Context::default().with_function("set_result");
        let reader = ReadingTemplate { template: &template, context: &context, scripts: &scripts() };
        let outcome = reader.read(payload.as_bytes());
        assert!(reader.read_quickly(payload.as_bytes()).is_none_or(|quick| quick == outcome), "haste makes no difference");
        outcome.map(Value::Object)
    }

    #[tokio::test]
    async fn messages_of_usual_devices_become_numbers() {
        let tasmota = r#"{"Time": "x", "ENERGY": {"Total": 3.185, "Power": "12", "Voltage": 230, "Relay": true}}"#;
        let source = "{% set energy = payload|fromjson %}\n{set_result('total', energy['ENERGY']['Total'])}\n{set_result('power', energy.ENERGY.Power)}{set_result('voltage', energy.ENERGY.Voltage|int)}{set_result('relay', energy.ENERGY.Relay)}";
        assert_eq!(run(source, tasmota).unwrap(), json!({"total": 3.185, "power": 12.0, "voltage": 230, "relay": 1}));
        assert_eq!(run("nothing", "").unwrap(), json!({}));
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_named() {
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
        let reader = ReadingTemplate { template: &template, context: &Context::default(), scripts: &scripts() };
        assert!(reader.read(&[0xff]).unwrap_err().contains("UTF-8"));
    }

    #[tokio::test]
    async fn what_takes_time_is_not_read_quickly() {
        let context = Context::default().with_function("set_result").with_function("call_method");
        let is_quick = |source: &str, payload: &str| {
            let template = Template::compile(source).unwrap();
            ReadingTemplate { template: &template, context: &context, scripts: &scripts() }.read_quickly(payload.as_bytes()).is_some()
        };
        assert!(is_quick("{set_result('a', (payload|fromjson).a)}", r#"{"a": 1}"#));
        assert!(is_quick("{set_result('a', payload)}", "an error is one at once"));
        assert!(!is_quick("{% for n in range(10000) %}{% endfor %}{set_result('a', 1)}", ""));
        assert!(!is_quick("{set_result('a', call_method('server.info')|length)}", ""));
        assert!(!is_quick("{set_result('a', payload|length)}", &"x".repeat(MAX_QUICK_TEXT + 1)));
    }
}
