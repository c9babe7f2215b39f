//! Operations of document 1 *MQTT*.

use std::sync::Arc;

use rpc::{Access, Registry, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::MqttService;

/// Not over MQTT itself: whoever calls from there can publish.
const WAYS: &[Transport] = &[Transport::Http, Transport::Socket, Transport::Internal];

#[derive(Deserialize, JsonSchema)]
struct PublishParams {
    /// Without wildcards.
    topic: String,
    /// Objects and arrays are sent as JSON, texts as they are, null as an empty message.
    #[serde(default)]
    payload: Value,
    /// 0, 1 or 2; by default, the configured one.
    #[serde(default)]
    qos: Option<i64>,
    /// True to have the broker keep it for those who subscribe later.
    #[serde(default)]
    retain: bool,
    /// Seconds to wait for the broker; by default, an hour.
    #[serde(default)]
    timeout: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
struct SubscribeParams {
    /// Without wildcards.
    topic: String,
    /// 0, 1 or 2; by default, the configured one.
    #[serde(default)]
    qos: Option<i64>,
    /// Seconds to wait for a message; by default, an hour.
    #[serde(default)]
    timeout: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct Published {
    topic: String,
}

#[derive(Serialize, JsonSchema)]
struct Received {
    topic: String,
    /// What the message says as JSON, else its text.
    payload: Value,
}

impl MqttService {
    /// Declares the operations.
    pub fn register(self: &Arc<Self>, registry: &mut Registry) {
        registry
            .op("server.mqtt.publish")
            .only(WAYS)
            .post("/server/mqtt/publish")
            .access(Access::Control)
            .doc("Publishes a message and waits until the broker has it.")
            .handle(self, |service, _, params: PublishParams| async move {
                service.publish(&params.topic, &params.payload, params.qos, params.retain, params.timeout).await?;
                Ok(Published { topic: params.topic })
            });
        registry
            .op("server.mqtt.subscribe")
            .only(WAYS)
            .post("/server/mqtt/subscribe")
            .access(Access::Control)
            .unaudited()
            .doc("Waits for one message on a topic; one that the broker has kept counts.")
            .handle(self, |service, call, params: SubscribeParams| async move {
                let payload = service.next(&call, &params.topic, params.qos, params.timeout).await?;
                Ok(Received { topic: params.topic, payload })
            });
    }
}
