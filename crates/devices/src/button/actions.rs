//! What a button does: its templates, one event after another.

use std::sync::Arc;
use std::time::Duration;

use protocol::Event;
use protocol::button::{ButtonEvent, ButtonMoment};
use rpc::Connections;
use serde_json::{Map, Value, json};
use template::{Answer, Call, Failure};
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

use super::debounce::Change;
use super::options::ConfiguredButton;
use super::service::Parts;
use crate::gpio::clock;
use crate::script::{CALL_METHOD, Functions, Pending, Scripts};

/// Longest time for a template of a button. What it called by then goes on.
pub const MAX_TIME: Duration = Duration::from_secs(300);

/// Bytes of JSON that a template may add to its notification.
pub const MAX_AUX: usize = 64 * 1024;

/// Bytes of JSON that a button may keep in `user_data`; with more it is emptied.
pub const MAX_MEMORY: usize = 256 * 1024;

/// Carries out what events ask for, until there are no more.
pub(super) async fn carry_out(button: &ConfiguredButton, parts: &Parts, mut events: Receiver<Change>) {
    let mut memory = json!({});
    while let Some(change) = events.recv().await {
        let template = if change.is_pressed { &button.options.on_press } else { &button.options.on_release };
        let Some(template) = template else { continue };
        let moment = ButtonMoment {
            elapsed_time: change.elapsed.as_secs_f64(),
            received_time: clock::seconds(change.at),
            render_time: clock::seconds(Instant::now()),
            pressed: change.is_pressed,
        };
        let functions = Actions {
            scripts: parts.scripts.clone(),
            connections: parts.connections.clone(),
            event: Some(ButtonEvent { name: button.told_name().to_owned(), kind: "gpio", event: moment, aux: Value::Null }),
        };
        let shown = serde_json::to_value(moment).unwrap_or_default();
        let context = button.context.clone().with("event", shown).with_kept("user_data", memory.clone());
        let rendering = parts.scripts.render(template.clone(), context, functions, MAX_TIME).await;
        if let Err(error) = rendering.outcome {
            tracing::warn!(button = button.name, %error, "a template of a button failed");
        }
        if let Some(kept) = rendering.rest.as_ref().and_then(|(context, _)| context.kept("user_data")) {
            memory = bounded(button, kept.clone());
        }
    }
}

fn bounded(button: &ConfiguredButton, memory: Value) -> Value {
    if size(&memory) <= MAX_MEMORY {
        return memory;
    }
    tracing::warn!(button = button.name, "user_data has more than {MAX_MEMORY} bytes; it is emptied");
    Value::Object(Map::new())
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// The functions that templates of buttons call.
struct Actions {
    scripts: Arc<Scripts>,
    connections: Arc<Connections>,
    /// What clients can be told: once.
    event: Option<ButtonEvent>,
}

impl Functions for Actions {
    fn call(&mut self, call: &Call<'_>) -> Result<Pending, Failure> {
        match call.name {
            CALL_METHOD => self.scripts.call_method(call),
            "send_notification" => self.notify(call),
            other => Err(Failure::new(400, format!("there is no function `{other}`"))),
        }
    }
}

impl Actions {
    fn notify(&mut self, call: &Call<'_>) -> Result<Pending, Failure> {
        let [data] = call.arguments(["data"])?;
        let aux = data.cloned().unwrap_or_default();
        if size(&aux) > MAX_AUX {
            return Err(Failure::new(400, format!("send_notification: more than {MAX_AUX} bytes")));
        }
        if let Some(event) = self.event.take() {
            self.connections.emit(&Event::Button(Box::new(ButtonEvent { aux, ..event })));
        }
        Ok(Pending::Now(Answer::Value(Value::Null)))
    }
}
