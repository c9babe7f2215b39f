//! Type `firmware_device`: an output pin or a macro of the firmware, followed through the status of the printer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fwhost::{FwHost, HostEvent, StatusSink, SubscriberId};
use protocol::status::{Fields, Selection, StatusDiff};
use protocol::{ErrorKind, Frame, FwhostState};
use rpc::transfer::Boxed;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::{Driver, Fault};
use crate::power::build::Section;
use crate::power::model::Reading;
use crate::power::options::FirmwareOptions;

/// Time in which the status of an output of the firmware must follow its command: while it prints, the command comes after the moves that are planned already.
const FOLLOW_TIMEOUT: Duration = Duration::from_secs(5);

/// Numbers of our subscriptions begin here; those of connections count from the other end.
const FIRST_SUBSCRIBER: u64 = 1 << 62;

/// The field that says whether it is on.
const FIELD: &str = "value";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FirmwareRecipe {
    object: String,
    /// The command without its value.
    command: String,
}

pub(crate) fn read(section: &mut Section<'_, '_, '_>) -> Option<FirmwareRecipe> {
    let object = section.take::<FirmwareOptions>()?.object_name;
    match FirmwareRecipe::new(&object) {
        Some(recipe) => Some(recipe),
        None => section.reject("object_name", "expected `output_pin` or `gcode_macro` and a name"),
    }
}

impl FirmwareRecipe {
    fn new(object: &str) -> Option<Self> {
        let words: Vec<&str> = object.split_whitespace().collect();
        let [kind, name] = words[..] else { return None };
        // The name becomes part of a line of gcode.
        if name.contains([';', '=', '"', '\'', '*']) || name.chars().any(char::is_control) {
            return None;
        }
        let command = match kind {
            "output_pin" => format!("SET_PIN PIN={name} VALUE="),
            "gcode_macro" => format!("{name} VALUE="),
            _ => return None,
        };
        Some(Self { object: format!("{kind} {name}"), command })
    }

    pub(crate) fn driver(self, host: &FwHost, number: u64) -> Box<dyn Driver> {
        let news = Arc::new(News::default());
        let told = news.clone();
        host.on_event(move |event| {
            if matches!(event, HostEvent::Ready | HostEvent::Shutdown | HostEvent::Disconnected | HostEvent::Started(_)) {
                told.changed.notify_one();
            }
        });
        Box::new(FirmwareDevice { host: host.clone(), recipe: self, number, news })
    }
}

/// What happened at the printer.
#[derive(Default)]
struct News {
    changed: Notify,
    is_subscribed: AtomicBool,
}

impl StatusSink for News {
    fn push(&self, _: &Frame, _: &Arc<StatusDiff>, _: &Arc<Selection>) {
        self.changed.notify_one();
    }

    fn begins(&self) {
        self.is_subscribed.store(true, Ordering::Relaxed);
    }

    fn reset(&self) {
        self.is_subscribed.store(false, Ordering::Relaxed);
    }
}

struct FirmwareDevice {
    host: FwHost,
    recipe: FirmwareRecipe,
    number: u64,
    news: Arc<News>,
}

impl FirmwareDevice {
    /// The state, once changes of it are told to us.
    async fn look(&self) -> Result<Reading, Fault> {
        match self.host.status().state {
            FwhostState::Ready => {}
            FwhostState::Disconnected | FwhostState::Startup => return Ok(Reading::Away),
            FwhostState::Error => return Err(Fault::of(ErrorKind::Unavailable, "the firmware host failed to start").for_good()),
            FwhostState::Shutdown => return Err(Fault::of(ErrorKind::Unavailable, "the firmware host is shut down").for_good()),
        }
        if !self.news.is_subscribed.load(Ordering::Relaxed) {
            let selection = Selection([(self.recipe.object.as_str().into(), Fields::All)].into());
            let subscribed = self.host.subscribe(SubscriberId(FIRST_SUBSCRIBER + self.number), self.news.clone(), selection).await;
            subscribed.map_err(|error| Fault::of(error.kind, error.message))?;
        }
        self.value().map(Reading::from)
    }

    fn value(&self) -> Result<bool, Fault> {
        let object = &self.recipe.object;
        let missing = || Fault::new(format!("the printer has no `{object}` with a field `{FIELD}`")).for_good();
        let text = self.host.field(object, FIELD).ok_or_else(missing)?;
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        Ok(is_truthy(&value))
    }
}

/// What counts as on.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

impl Driver for FirmwareDevice {
    fn query(&mut self) -> Boxed<'_, Result<Reading, Fault>> {
        Box::pin(self.look())
    }

    fn switch(&mut self, on: bool) -> Boxed<'_, Result<bool, Fault>> {
        Box::pin(async move {
            if self.look().await? == Reading::Away {
                return Err(Fault::of(ErrorKind::Unavailable, "the firmware host is not connected"));
            }
            let script = format!("{}{}", self.recipe.command, u8::from(on));
            self.host.gcode(&script, false).await.map_err(|error| Fault::of(error.kind, error.message))?;
            let until = Instant::now() + FOLLOW_TIMEOUT;
            while self.value()? != on {
                let news = timeout_at(until, self.news.changed.notified()).await;
                news.map_err(|_| Fault::new(format!("`{}` did not follow the command", self.recipe.object)))?;
            }
            Ok(on)
        })
    }

    fn watch(&mut self) -> Boxed<'_, Reading> {
        Box::pin(async move {
            self.news.changed.notified().await;
            self.look().await.unwrap_or_else(Reading::from)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_give_commands_of_one_line() {
        let command = |object: &str| FirmwareRecipe::new(object).map(|recipe| recipe.command);
        assert_eq!(command("output_pin psu").as_deref(), Some("SET_PIN PIN=psu VALUE="));
        assert_eq!(command("gcode_macro  PSU").as_deref(), Some("PSU VALUE="));
        for bad in ["", "psu", "output_pin", "heater_fan psu", "output_pin a b", "output_pin a;M112", "gcode_macro M112\u{7}"] {
            assert_eq!(command(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn on_is_what_is_not_empty() {
        for on in [json!(1), json!(0.5), json!(true), json!("x")] {
            assert!(is_truthy(&on), "{on}");
        }
        for off in [json!(0), json!(0.0), json!(false), json!(""), json!(null), json!([])] {
            assert!(!is_truthy(&off), "{off}");
        }
    }
}
