//! How to reach the broker.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{LONGEST_PAUSE, Message, Qos};
use crate::Retry;

/// Version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Version {
    /// 3.1, which calls itself `MQIsdp`.
    V31,
    /// 3.1.1.
    #[default]
    V311,
    /// 5.
    V5,
}

/// Everything that a connection needs to know. `Debug` hides the password.
#[derive(Clone)]
pub struct MqttOptions {
    /// Name or address of the broker.
    pub address: String,
    /// Its port.
    pub port: u16,
    /// Name of this client; made up when it is empty.
    pub client_id: String,
    /// TLS, with the certificates that the system trusts.
    pub tls: bool,
    /// Login name.
    pub username: Option<String>,
    /// Password.
    pub password: Option<String>,
    /// Version of the protocol.
    pub version: Version,
    /// Published after every connect.
    pub birth: Option<Message>,
    /// Published by the broker when we vanish, and by us when we leave.
    pub will: Option<Message>,
    /// Pauses between attempts to connect; up to a quarter is added at random.
    pub retry: Retry,
    /// Longest pause in which messages that may wait are gathered; see [`super::Mqtt::subscribe_patiently`].
    pub patience: Duration,
    /// Asked before such a pause: false when messages must come at once now.
    pub may_pause: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl MqttOptions {
    /// Without login, will and TLS; pauses from one to thirty seconds.
    #[must_use]
    pub fn to(address: &str, port: u16) -> Self {
        Self {
            address: address.to_owned(),
            port,
            client_id: String::new(),
            tls: false,
            username: None,
            password: None,
            version: Version::V311,
            birth: None,
            will: None,
            retry: Retry { first: Duration::from_secs(1), longest: Duration::from_secs(30), attempts: None },
            patience: LONGEST_PAUSE,
            may_pause: Arc::new(|| true),
        }
    }

    /// Keeps `topic` up to date with whether we are there: a retained `online` after every connect, `offline` when we leave or vanish.
    #[must_use]
    pub fn announce(mut self, topic: &str, online: &str, offline: &str, qos: Qos) -> Self {
        let message = |text: &str| Message { topic: topic.to_owned(), payload: text.to_owned().into(), qos, retain: true };
        self.birth = Some(message(online));
        self.will = Some(message(offline));
        self
    }
}

impl fmt::Debug for MqttOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MqttOptions")
            .field("address", &self.address)
            .field("port", &self.port)
            .field("client_id", &self.client_id)
            .field("tls", &self.tls)
            .field("username", &self.username)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
