//! The task behind all sensors: messages wait until the second is over, are read together, and what has changed is told.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use outbound::mqtt::{Link, Message, Mqtt, Qos, Subscription};
use runtime::{LogThrottle, StopToken, beat};
use tokio::sync::{Notify, Semaphore};
use tokio::task::yield_now;

use super::inbox::Added;
use super::service::{Left, Sensor, Sensors};

/// The numbers of sensors are read, kept and told so often. Whoever asks for them in between lets them be read at once: reading a message when
/// it comes costs several times as much as reading it together with others.
const TICK: Duration = Duration::from_secs(1);

/// Lost messages of one sensor are logged so often at most.
const LOSS_INTERVAL: Duration = Duration::from_secs(10);

/// Messages that are read before others on this thread have their turn.
const WITHOUT_BREAK: usize = 32;

/// Sensors whose messages are read at one time on threads for computing.
const MAX_SLOW: usize = 8;

/// Listens until `stop`; `qos` counts where a sensor has none of its own.
pub(super) async fn run(sensors: Arc<Sensors>, mqtt: Mqtt, qos: Qos, stop: StopToken) {
    let many = Arc::new(Notify::new());
    let turns = Arc::new(Semaphore::new(MAX_SLOW));
    let _subscriptions: Vec<_> = sensors.iter().filter_map(|sensor| subscribe(sensor, &mqtt, qos, &many)).collect();
    let mut link = mqtt.link();
    let mut ticks = beat::ticks(TICK);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {
                // On the same beat the connection fetches what it left lying: after it has had its turn that can be read, too.
                yield_now().await;
                read(&sensors, &turns, &many, &stop).await;
                sensors.tell();
            }
            () = many.notified() => read(&sensors, &turns, &many, &stop).await,
            changed = link.changed() => {
                if changed.is_err() {
                    return;
                }
                if matches!(*link.borrow_and_update(), Link::Offline(_)) {
                    read(&sensors, &turns, &many, &stop).await;
                    sensors.iter().for_each(|sensor| sensor.lose());
                }
            }
        }
    }
}

fn subscribe(sensor: &Arc<Sensor>, mqtt: &Mqtt, qos: Qos, many: &Arc<Notify>) -> Option<Subscription> {
    let (topic, qos) = (&sensor.configured.options.state_topic, sensor.configured.qos(qos));
    let (id, throttle) = (sensor.configured.id.clone(), LogThrottle::new(LOSS_INTERVAL));
    let (taker, many) = (sensor.clone(), many.clone());
    // Copied: what waits must not hold the buffer that it came in.
    let taken = move |message: &Message| match taker.add(Bytes::copy_from_slice(&message.payload)) {
        Added::Waits => {}
        Added::Many => many.notify_one(),
        Added::Lost => {
            if let Some(before) = throttle.admit(()) {
                let lost = before + 1;
                tracing::warn!(sensor = id, lost, "messages of a sensor come faster than its template can read them; some are lost");
            }
        }
    };
    mqtt.subscribe_patiently(topic, qos, taken).map_err(|error| sensor.fail(&format!("it cannot listen to `{topic}`: {error}"))).ok()
}

/// Reads what waits: here while that is quick, the rest on threads for computing, so that no sensor waits for another.
async fn read(sensors: &Sensors, turns: &Arc<Semaphore>, many: &Arc<Notify>, stop: &StopToken) {
    let mut since_break = 0;
    for sensor in sensors.iter() {
        since_break += sensor.waiting();
        match sensor.read_quickly() {
            Left::Nothing => {}
            // In the next round.
            Left::Some => many.notify_one(),
            Left::Slow => read_slowly(sensor, turns, many, stop),
        }
        if since_break >= WITHOUT_BREAK {
            since_break = 0;
            yield_now().await;
        }
    }
}

/// Reads a portion on a thread for computing, when its turn has come, and lets the next round come when there is more.
fn read_slowly(sensor: &Arc<Sensor>, turns: &Arc<Semaphore>, many: &Arc<Notify>, stop: &StopToken) {
    let Some(reader) = sensor.slow_reader() else { return };
    let (turns, many, stop) = (turns.clone(), many.clone(), stop.clone());
    tokio::spawn(async move {
        // Never closed.
        let _turn = turns.acquire_owned().await;
        let read = tokio::task::spawn_blocking(move || {
            if reader.read(|| stop.is_cancelled()) == Left::Some {
                many.notify_one();
            }
        });
        drop(read.await);
    });
}
