//! The handle that components share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::listeners::{Callback, Listeners, Subscription};
use super::worker::Worker;
use super::{MAX_PAYLOAD, Message, MqttError, MqttOptions, Qos, topic};

/// MQTT messages that wait to be sent.
pub const MAX_QUEUED: usize = 1000;

/// Bytes of MQTT payloads that wait to be sent.
pub const MAX_QUEUED_BYTES: usize = 16 * 1024 * 1024;

/// How things stand with the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// No attempt has ended yet.
    Starting,
    /// Connected; subscriptions are on their way.
    Online,
    /// Not connected, for this reason.
    Offline(String),
}

/// The MQTT client. Clones are the same client.
#[derive(Clone)]
pub struct Mqtt {
    pub(super) shared: Arc<Shared>,
    queue: mpsc::Sender<Publication>,
}

/// What handle and worker share.
pub(super) struct Shared {
    pub(super) listeners: Mutex<Listeners>,
    /// Listeners have changed.
    pub(super) changed: Notify,
    pub(super) link: watch::Sender<Link>,
    pub(super) queued_bytes: AtomicUsize,
}

/// A message on its way, and who waits for its end.
#[derive(Debug)]
pub(super) struct Publication {
    pub(super) message: Message,
    pub(super) done: Ticket,
}

/// Who waits for the end of a publication, if anybody does.
pub(super) type Ticket = Option<oneshot::Sender<Result<(), MqttError>>>;

impl Shared {
    pub(super) fn unsubscribe(&self, filter: &str, id: u64) {
        // Dropped after the lock: what the callback holds may itself be a subscription.
        let _removed = self.listeners.lock().remove(filter, id);
        self.changed.notify_one();
    }
}

impl Mqtt {
    /// The handle and the task behind it; nothing happens before [`Worker::run`].
    pub fn new(options: MqttOptions) -> (Self, Worker) {
        let (sender, queue) = mpsc::channel(MAX_QUEUED);
        let shared = Arc::new(Shared {
            listeners: Mutex::default(),
            changed: Notify::new(),
            link: watch::Sender::new(Link::Starting),
            queued_bytes: AtomicUsize::new(0),
        });
        (Self { shared: shared.clone(), queue: sender }, Worker::new(options, shared, queue))
    }

    /// Publishes and waits until the message is written ([`Qos::AtMostOnce`]) or the broker has acknowledged it. Messages leave in the order in
    /// which this or [`Mqtt::send`] was called. Nothing is kept for later while there is no connection.
    ///
    /// # Errors
    /// All but [`MqttError::TooManySubscriptions`].
    pub async fn publish(&self, topic: &str, payload: impl Into<Bytes>, qos: Qos, retain: bool) -> Result<(), MqttError> {
        let (done, ended) = oneshot::channel();
        self.enqueue(Message { topic: topic.to_owned(), payload: payload.into(), qos, retain }, Some(done))?;
        ended.await.unwrap_or(Err(MqttError::Lost))
    }

    /// Publishes without waiting for anything.
    ///
    /// # Errors
    /// When the message cannot even be queued.
    pub fn send(&self, topic: &str, payload: impl Into<Bytes>, qos: Qos, retain: bool) -> Result<(), MqttError> {
        self.enqueue(Message { topic: topic.to_owned(), payload: payload.into(), qos, retain }, None)
    }

    /// Subscribes until the result is dropped, also over losses of the connection. Any number of listeners may have the same filter, which may
    /// have wildcards. `listener` runs within the worker and must not wait; it gets a kept message first, if there is one. A broker that
    /// refuses the filter is reported in the log. Where filters of several listeners overlap, brokers of version 5 bring a message once for each.
    ///
    /// # Errors
    /// [`MqttError::BadTopic`], [`MqttError::TooManySubscriptions`].
    pub fn subscribe(
        &self,
        filter: &str,
        qos: Qos,
        listener: impl Fn(&Message) + Send + Sync + 'static,
    ) -> Result<Subscription, MqttError> {
        self.listen(filter, qos, false, Arc::new(listener))
    }

    /// The same for a listener to which messages may come a moment later ([`MqttOptions::patience`]): they are fetched together, which spares most
    /// of the work for each of them. Other messages may wait with them, unless the last second brought or published some.
    ///
    /// # Errors
    /// As [`Mqtt::subscribe`].
    pub fn subscribe_patiently(
        &self,
        filter: &str,
        qos: Qos,
        listener: impl Fn(&Message) + Send + Sync + 'static,
    ) -> Result<Subscription, MqttError> {
        self.listen(filter, qos, true, Arc::new(listener))
    }

    /// The same with a queue of `capacity` messages; when it is full, further messages are lost.
    ///
    /// # Errors
    /// As [`Mqtt::subscribe`].
    pub fn receive(&self, filter: &str, qos: Qos, capacity: usize) -> Result<(Subscription, mpsc::Receiver<Message>), MqttError> {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        let subscription = self.subscribe(filter, qos, move |message| drop(sender.try_send(message.clone())))?;
        Ok((subscription, receiver))
    }

    /// How things stand, now and from now on.
    #[must_use]
    pub fn link(&self) -> watch::Receiver<Link> {
        self.shared.link.subscribe()
    }

    /// True while there is a connection.
    #[must_use]
    pub fn is_online(&self) -> bool {
        *self.shared.link.borrow() == Link::Online
    }

    fn listen(&self, filter: &str, qos: Qos, may_wait: bool, callback: Callback) -> Result<Subscription, MqttError> {
        let id = self.shared.listeners.lock().add(filter, qos, may_wait, callback)?;
        self.shared.changed.notify_one();
        Ok(Subscription { shared: Arc::downgrade(&self.shared), filter: filter.to_owned(), id })
    }

    fn enqueue(&self, message: Message, done: Ticket) -> Result<(), MqttError> {
        topic::check(&message.topic)?;
        let bytes = message.payload.len();
        if bytes > MAX_PAYLOAD {
            return Err(MqttError::TooLarge(MAX_PAYLOAD));
        }
        if !self.is_online() {
            return Err(MqttError::Offline);
        }
        let queued = &self.shared.queued_bytes;
        if queued.fetch_add(bytes, Ordering::Relaxed) + bytes > MAX_QUEUED_BYTES {
            queued.fetch_sub(bytes, Ordering::Relaxed);
            return Err(MqttError::Full);
        }
        self.queue.try_send(Publication { message, done }).map_err(|error| {
            queued.fetch_sub(bytes, Ordering::Relaxed);
            match error {
                mpsc::error::TrySendError::Full(_) => MqttError::Full,
                mpsc::error::TrySendError::Closed(_) => MqttError::Offline,
            }
        })
    }
}

impl fmt::Debug for Mqtt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mqtt").field("link", &*self.shared.link.borrow()).finish_non_exhaustive()
    }
}
