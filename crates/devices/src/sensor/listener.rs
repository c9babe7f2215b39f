//! The task behind one sensor: messages come in, gather for a moment, are read on a thread for computing, and their numbers are
//! taken.

use std::sync::Arc;
use std::time::Duration;

use outbound::mqtt::{Link, Message, Mqtt, Qos};
use runtime::{LogThrottle, StopToken};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep_until};

use super::service::Sensor;

/// Messages that wait for one sensor; further ones are lost, and a line of the log counts them.
pub const MAX_WAITING: usize = 1024;

/// Messages of one sensor that are read at one time.
pub const MAX_BATCH: usize = 64;

/// Lost messages of one sensor are logged so often at most.
const LOSS_INTERVAL: Duration = Duration::from_secs(10);

/// Messages that follow another one are gathered for up to so long, until the same moments for all sensors: waking up for each message costs
/// more than reading it, and numbers are kept and told once a second only.
const GATHERING: Duration = Duration::from_millis(100);

/// Listens until `stop`. `begun` is the same for all sensors.
pub(super) async fn run(sensor: Arc<Sensor>, mqtt: Mqtt, qos: Qos, begun: Instant, stop: StopToken) -> Result<(), String> {
    let topic = &sensor.configured.options.state_topic;
    let (queue, mut messages) = mpsc::channel(MAX_WAITING);
    let (id, throttle) = (sensor.configured.id.clone(), LogThrottle::new(LOSS_INTERVAL));
    let taken = move |message: &Message| {
        if let Err(TrySendError::Full(_)) = queue.try_send(message.clone())
            && let Some(before) = throttle.admit(())
        {
            tracing::warn!(
                sensor = id,
                lost = before + 1,
                "messages of a sensor come faster than its template can read them; some are lost"
            );
        }
    };
    let _subscription = mqtt.subscribe(topic, qos, taken).map_err(|error| error.to_string())?;
    let mut link = mqtt.link();
    let mut rests_until = begun;
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            first = messages.recv() => {
                let Some(first) = first else { return Ok(()) };
                // Further ones gather in the queue meanwhile.
                if Instant::now() < rests_until {
                    tokio::select! {
                        () = stop.cancelled() => return Ok(()),
                        () = sleep_until(rests_until) => {}
                    }
                }
                let mut batch = vec![first];
                while batch.len() < MAX_BATCH && let Ok(message) = messages.try_recv() {
                    batch.push(message);
                }
                let is_all = batch.len() < MAX_BATCH;
                take(&sensor, batch).await?;
                rests_until = if is_all { next_round(begun, Instant::now()) } else { begun };
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

/// The next moment at which sensors look for messages.
fn next_round(begun: Instant, now: Instant) -> Instant {
    let within = now.saturating_duration_since(begun).as_nanos() % GATHERING.as_nanos();
    now + GATHERING - Duration::from_nanos(u64::try_from(within).unwrap_or_default())
}

/// Reads messages in their order: here while that is quick, the rest on a thread for computing. Waking one costs more than a usual template.
async fn take(sensor: &Arc<Sensor>, batch: Vec<Message>) -> Result<(), String> {
    let mut messages = batch.into_iter();
    while let Some(message) = messages.as_slice().first() {
        let Some(outcome) = sensor.template().read_quickly(&message.payload) else { break };
        sensor.take(outcome);
        messages.next();
        // Others on this thread have their turn, too.
        consume_budget().await;
    }
    if messages.as_slice().is_empty() {
        return Ok(());
    }
    let sensor = sensor.clone();
    let reading = move || messages.for_each(|message| sensor.take(sensor.template().read(&message.payload)));
    tokio::task::spawn_blocking(reading).await.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_the_same_for_all() {
        let begun = Instant::now();
        let after = |ms: u64| begun + Duration::from_millis(ms);
        for (now, next) in [(0, 100), (1, 100), (99, 100), (100, 200), (86_400_050, 86_400_100)] {
            assert_eq!(next_round(begun, after(now)), after(next), "{now}");
        }
    }
}
