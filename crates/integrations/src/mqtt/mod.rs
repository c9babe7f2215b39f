//! The MQTT broker for clients, gcode macros and devices: publishing and waiting for a message (wire/1-core.md section 3.8). The API over MQTT
//! itself is `transport::mqtt`; the connection is [`outbound::mqtt`].

mod api;
mod options;
mod payload;

use std::sync::Arc;
use std::time::Duration;

use outbound::mqtt::{Mqtt, MqttError, Qos, topic};
use protocol::{ApiError, ErrorKind};
use rpc::Call;
use runtime::LogThrottle;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

pub use self::options::{ApiRole, MqttProtocol, MqttSection};
pub use self::payload::encode;
use crate::agents::MacroHost;

/// `server.mqtt.subscribe` calls that wait at one time.
pub const MAX_WAITING: usize = 64;

/// The longest that an MQTT publication or subscription of a client waits, also when it names no time-out.
pub const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Pause between two looks whether somebody who waits for a message over MQTT is still there.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Faults of macros are logged so often.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The method that gcode macros call.
const MACRO_METHOD: &str = "publish_mqtt_topic";

/// The broker, as operations and devices see it.
pub struct MqttService {
    /// The connection.
    pub client: Mqtt,
    /// Quality when none is named.
    pub default_qos: Qos,
    /// First level of our own topics.
    pub instance: String,
    waiting: Semaphore,
    throttle: LogThrottle<&'static str>,
}

/// What a macro publishes.
#[derive(Deserialize)]
struct MacroMessage {
    topic: String,
    #[serde(default)]
    payload: Value,
    #[serde(default)]
    qos: Option<i64>,
    #[serde(default, deserialize_with = "switch")]
    retain: bool,
    /// True to put our instance name before the topic.
    #[serde(default, deserialize_with = "switch")]
    use_prefix: bool,
}

/// A switch as macros write it: true, 1.
fn switch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Bool(on) => Ok(on),
        Value::Null => Ok(false),
        Value::Number(number) => Ok(number.as_f64() != Some(0.0)),
        _ => Err(Error::custom("expected true or false for retain and use_prefix")),
    }
}

impl MqttService {
    /// Around a client.
    #[must_use]
    pub fn new(client: Mqtt, instance: &str, default_qos: Qos) -> Arc<Self> {
        let throttle = LogThrottle::new(LOG_EVERY);
        Arc::new(Self { client, default_qos, instance: instance.to_owned(), waiting: Semaphore::new(MAX_WAITING), throttle })
    }

    /// Lets gcode macros publish.
    ///
    /// # Errors
    /// When the method is taken.
    pub fn offer_to_macros(self: &Arc<Self>, macros: &dyn MacroHost) -> Result<(), ApiError> {
        let service = self.clone();
        macros.offer(MACRO_METHOD, Box::new(move |arguments| service.publish_of_macro(&arguments)))
    }

    /// Publishes and waits until the broker has it.
    ///
    /// # Errors
    /// 400 for a bad topic or quality, 503 without a connection, 504 when it takes too long, 529 when too much waits.
    pub async fn publish(&self, topic: &str, payload: &Value, qos: Option<i64>, retain: bool, limit: Option<f64>) -> Result<(), ApiError> {
        let (qos, limit) = (self.qos(qos)?, limit_of(limit)?);
        let publishing = self.client.publish(topic, encode(payload), qos, retain);
        timeout(limit, publishing).await.map_err(|_| too_late("The broker did not acknowledge the message", limit))?.map_err(to_api)
    }

    /// Waits for one message; a kept one counts.
    ///
    /// # Errors
    /// As [`MqttService::publish`].
    pub async fn next(&self, call: &Call, name: &str, qos: Option<i64>, limit: Option<f64>) -> Result<Value, ApiError> {
        topic::check(name).map_err(to_api)?;
        let (qos, limit) = (self.qos(qos)?, limit_of(limit)?);
        if !self.client.is_online() {
            return Err(to_api(MqttError::Offline));
        }
        let full = || ApiError::new(ErrorKind::Overloaded, format!("{MAX_WAITING} subscriptions wait already"));
        let _turn = self.waiting.try_acquire().map_err(|_| full())?;
        let (_subscription, mut messages) = self.client.receive(name, qos, 1).map_err(to_api)?;
        let waiting = async {
            tokio::select! {
                message = messages.recv() => message,
                () = gone(call) => None,
            }
        };
        let message = timeout(limit, waiting).await.map_err(|_| too_late(&format!("No message on {name}"), limit))?;
        message.map(|message| payload::decode(&message.payload)).ok_or_else(|| to_api(MqttError::Offline))
    }

    fn publish_of_macro(&self, arguments: &RawValue) {
        let published = serde_json::from_str::<MacroMessage>(arguments.get()).map_err(|error| error.to_string()).and_then(|message| {
            let topic = if message.use_prefix { format!("{}/{}", self.instance, message.topic) } else { message.topic };
            let qos = self.qos(message.qos).map_err(|error| error.message)?;
            self.client.send(&topic, encode(&message.payload), qos, message.retain).map_err(|error| error.to_string())
        });
        if let Err(reason) = published
            && self.throttle.allow(MACRO_METHOD)
        {
            tracing::warn!(reason, "a macro's message could not be published ({MACRO_METHOD})");
        }
    }

    fn qos(&self, qos: Option<i64>) -> Result<Qos, ApiError> {
        let Some(number) = qos else { return Ok(self.default_qos) };
        Qos::from_number(number).ok_or_else(|| ApiError::argument(format!("Argument [qos]: expected 0, 1 or 2, not {number}")))
    }
}

/// Waits until the caller's connection has ended; nobody reads the answer then. Callers without one are waited for.
async fn gone(call: &Call) {
    while call.connection.as_ref().is_none_or(|connection| connection.outbox.closed().is_none()) {
        sleep(LOOK_EVERY).await;
    }
}

fn limit_of(seconds: Option<f64>) -> Result<Duration, ApiError> {
    let Some(seconds) = seconds else { return Ok(LONGEST_WAIT) };
    match Duration::try_from_secs_f64(seconds) {
        Ok(limit) if !limit.is_zero() => Ok(limit.min(LONGEST_WAIT)),
        _ => Err(ApiError::argument(format!("Argument [timeout]: expected seconds above 0, not {seconds}"))),
    }
}

fn too_late(what: &str, limit: Duration) -> ApiError {
    ApiError::new(ErrorKind::Timeout, format!("{what} within {} s", limit.as_secs_f64()))
}

/// A fault of the connection, for clients.
#[must_use]
#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub fn to_api(error: MqttError) -> ApiError {
    match &error {
        MqttError::BadTopic(..) => ApiError::argument(format!("Argument [topic]: {error}")),
        MqttError::TooLarge(_) => ApiError::new(ErrorKind::TooLarge, error.to_string()),
        MqttError::Full | MqttError::TooManySubscriptions(_) => ApiError::new(ErrorKind::Overloaded, error.to_string()),
        MqttError::Offline | MqttError::Lost | MqttError::Refused(_) => ApiError::unavailable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outbound::mqtt::MqttOptions;
    use rpc::{ConnectionKind, Connections, Identity};

    fn service() -> Arc<MqttService> {
        MqttService::new(Mqtt::new(MqttOptions::to("127.0.0.1", 1)).0, "printer", Qos::AtLeastOnce)
    }

    #[tokio::test]
    async fn faults_name_the_argument_or_say_that_nobody_is_there() {
        let (service, call) = (service(), Call::internal());
        let publish = async |topic: &str, qos, limit| service.publish(topic, &Value::Null, qos, false, limit).await.unwrap_err();
        let fault = |error: ApiError| (error.kind.http_status(), error.message);
        assert!(fault(publish("a/#", None, None).await).1.starts_with("Argument [topic]"));
        assert!(fault(publish("a", Some(3), None).await).1.starts_with("Argument [qos]"));
        assert!(fault(publish("a", None, Some(f64::NAN)).await).1.starts_with("Argument [timeout]"));
        assert_eq!(publish("a", Some(0), Some(1.0)).await.kind, ErrorKind::Unavailable);
        assert_eq!(service.next(&call, "a/+", None, None).await.unwrap_err().kind, ErrorKind::Argument);
        assert_eq!(service.next(&call, "a", None, None).await.unwrap_err().kind, ErrorKind::Unavailable);
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_leaves_is_not_waited_for() {
        let registered = Arc::new(Connections::default()).register(ConnectionKind::Websocket, Identity::Trusted, None);
        let call = Call::on(&registered.connection);
        assert!(timeout(LONGEST_WAIT, gone(&call)).await.is_err());
        drop(registered);
        timeout(LONGEST_WAIT, gone(&call)).await.unwrap();
        assert!(timeout(LONGEST_WAIT, gone(&Call::internal())).await.is_err());
    }

    #[test]
    fn zero_is_a_quality_of_its_own() {
        let service = service();
        assert_eq!((service.qos(None).unwrap(), service.qos(Some(0)).unwrap()), (Qos::AtLeastOnce, Qos::AtMostOnce));
    }
}
