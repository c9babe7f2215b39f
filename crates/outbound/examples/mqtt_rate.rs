//! How much of a core the MQTT client needs for a number of messages a second; docs/performance.md says how it is used.
//!
//! `mqtt_rate PORT publish RATE SECONDS` publishes, `mqtt_rate PORT listen` counts until nothing comes any more and prints messages, seconds,
//! processor seconds and resident memory.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outbound::mqtt::{Link, Mqtt, MqttOptions, Qos};
use tokio::time::{MissedTickBehavior, interval, sleep};

#[tokio::main(worker_threads = 2)]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let (mqtt, worker) = Mqtt::new(MqttOptions::to("127.0.0.1", words[1].parse().unwrap()));
    tokio::spawn(worker.run(std::future::pending()));
    mqtt.link().wait_for(|link| *link == Link::Online).await.unwrap();
    if words[2] == "publish" { publish(&mqtt, words[3].parse().unwrap(), words[4].parse().unwrap()).await } else { listen(&mqtt).await }
}

async fn publish(mqtt: &Mqtt, rate: u64, seconds: u64) {
    let mut ticks = interval(Duration::from_millis(10));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for tick in 0..seconds * 100 {
        ticks.tick().await;
        for sensor in 0..rate / 100 {
            let payload = format!(r#"{{"temperature":{}.5,"humidity":40,"n":{tick}}}"#, sensor % 50);
            mqtt.send(&format!("sensors/{sensor}/state"), payload, Qos::AtMostOnce, false).unwrap();
        }
    }
    sleep(Duration::from_millis(500)).await;
}

async fn listen(mqtt: &Mqtt) {
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    let counting = move |_: &_| {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let _subscription = mqtt.subscribe("sensors/+/state", Qos::AtMostOnce, counting).unwrap();
    while count.load(Ordering::Relaxed) == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let (start, before) = (Instant::now(), processor_seconds());
    let mut last = 0;
    while last < count.load(Ordering::Relaxed) {
        last = count.load(Ordering::Relaxed);
        sleep(Duration::from_secs(1)).await;
    }
    let seconds = start.elapsed().as_secs_f64() - 1.0;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    println!("{last} messages, {seconds:.1} s, {:.2} processor seconds, {resident}", processor_seconds() - before);
}

/// User and system time of this process.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let ticks: f64 = stat.rsplit(") ").next().unwrap().split(' ').skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap()).sum();
    ticks / 100.0
}
