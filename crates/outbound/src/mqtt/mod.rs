//! One MQTT client for the whole server: protocol 3.1, 3.1.1 and 5, with or without TLS.
//!
//! [`Mqtt`] is the handle that components share; [`Worker`] is the task behind it. The worker keeps a connection for as long as it runs: it
//! connects, subscribes to everything that components asked for, publishes in the order in which it was asked to, and after a loss begins anew
//! with pauses that grow. Sessions are clean: what the broker had not acknowledged when the connection was lost has failed, and the caller is
//! told so. Everything is bounded: messages that wait, their bytes, the size of what arrives, the time for each step.
//!
//! ```no_run
//! # async fn example(stopped: impl Future<Output = ()> + Send + 'static) -> Result<(), outbound::mqtt::MqttError> {
//! use outbound::mqtt::{Mqtt, MqttOptions, Qos};
//!
//! let (mqtt, worker) = Mqtt::new(MqttOptions::to("broker.local", 1883));
//! tokio::spawn(worker.run(stopped));
//! // Lasts until it is dropped; is renewed after every loss of the connection.
//! let state = mqtt.subscribe("lamp/state", Qos::AtLeastOnce, |message| println!("{} bytes", message.payload.len()))?;
//! mqtt.publish("lamp/set", "ON", Qos::AtLeastOnce, false).await?;
//! # drop(state); Ok(()) }
//! ```

mod calm;
mod client;
mod codec;
mod dial;
mod error;
mod listeners;
mod options;
mod reader;
#[doc(hidden)]
pub mod replay;
mod session;
mod socket;
pub mod topic;
mod worker;

use bytes::Bytes;

pub use calm::LONGEST_PAUSE;
pub use client::{Link, MAX_QUEUED, MAX_QUEUED_BYTES, Mqtt};
pub use codec::MAX_PAYLOAD;
pub use error::MqttError;
pub use listeners::{MAX_SUBSCRIPTIONS, Subscription};
pub use options::{MqttOptions, Version};
pub use reader::MAX_INCOMING;
pub use worker::{CONNECT_TIMEOUT, STOP_TIMEOUT, Worker};

/// How sure a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Qos {
    /// Sent once, never repeated.
    #[default]
    AtMostOnce,
    /// Acknowledged.
    AtLeastOnce,
    /// Acknowledged twice, so that it arrives once.
    ExactlyOnce,
}

impl Qos {
    /// From its number: 0, 1 or 2.
    #[must_use]
    pub fn from_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }
}

/// A message, ours or somebody else's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Where it was published.
    pub topic: String,
    /// Anything.
    pub payload: Bytes,
    /// Ours: how sure the delivery must be. Others': how sure it was.
    pub qos: Qos,
    /// Ours: the broker keeps it for those who subscribe later. Others': it is such a kept one.
    pub retain: bool,
}
