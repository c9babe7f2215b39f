//! The task behind one sensor: messages come in, are read on a thread for computing, and their numbers are taken.

use std::sync::Arc;

use outbound::mqtt::{Link, Message, Mqtt, Qos};
use runtime::StopToken;

use super::reading;
use super::service::Sensor;

/// Messages that wait for one sensor; further ones are lost.
pub const MAX_WAITING: usize = 1024;

/// Messages of one sensor that are read at one time.
pub const MAX_BATCH: usize = 64;

/// Listens until `stop`.
pub(super) async fn run(sensor: Arc<Sensor>, mqtt: Mqtt, qos: Qos, stop: StopToken) -> Result<(), String> {
    let topic = &sensor.configured.options.state_topic;
    let (_subscription, mut messages) = mqtt.receive(topic, qos, MAX_WAITING).map_err(|error| error.to_string())?;
    let mut link = mqtt.link();
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            count = messages.recv_many(&mut batch, MAX_BATCH) => {
                if count == 0 {
                    return Ok(());
                }
                take(&sensor, std::mem::take(&mut batch)).await?;
            }
            changed = link.changed() => {
                if changed.is_err() {
                    return Ok(());
                }
                if matches!(*link.borrow_and_update(), Link::Offline(_)) {
                    sensor.lose();
                }
            }
        }
    }
}

async fn take(sensor: &Arc<Sensor>, batch: Vec<Message>) -> Result<(), String> {
    let sensor = sensor.clone();
    let reading = move || {
        for message in batch {
            let configured = &sensor.configured;
            sensor.take(reading::read(&configured.options.state_response_template, &configured.context, &message.payload));
        }
    };
    tokio::task::spawn_blocking(reading).await.map_err(|error| error.to_string())
}
