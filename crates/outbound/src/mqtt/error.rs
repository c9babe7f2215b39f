//! Why something did not reach the broker.

/// Why a publication or a subscription failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MqttError {
    /// There is no connection now.
    #[error("not connected to the MQTT broker")]
    Offline,
    /// The connection was lost before the broker acknowledged.
    #[error("the connection to the MQTT broker was lost before it acknowledged the message")]
    Lost,
    /// Too many messages wait already.
    #[error("too many messages wait for the MQTT broker")]
    Full,
    /// The topic or filter is none.
    #[error("'{0}' is not a topic: {1}")]
    BadTopic(String, &'static str),
    /// The message is larger than we or the broker take.
    #[error("the message is larger than {0} bytes")]
    TooLarge(usize),
    /// More subscriptions than there may be.
    #[error("more than {0} subscriptions")]
    TooManySubscriptions(usize),
    /// The broker refused the message with this reason code.
    #[error("the MQTT broker refused the message (reason {0})")]
    Refused(u8),
}
