//! JSON-RPC over MQTT, and the printer's status as topics. wire/1-core.md section 3.8, wire/3-devices.md section 10.1; docs/mqtt.md.
//!
//! All callers over MQTT are one caller: the broker does not say who published a message. They share one connection that is in no table, with the
//! role that the configuration gives, and one subscription of the printer's status, whose updates become topics.

mod duplicates;
mod status;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, OptionFuture};
use outbound::mqtt::{Link, Mqtt, Qos, Subscription};
use protocol::{ApiError, ErrorKind, Form, Frame, envelope};
use rpc::{Call, Connection, ConnectionKind, Connections, Dispatcher, Identity, KeyHolder, Origin, Role};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::duplicates::{Checked, Duplicates};
use self::status::StatusTopics;

/// Requests over MQTT that wait for their turn; further ones are dropped.
const MAX_WAITING: usize = 512;

/// Messages that are taken from the status queue at one time.
const BATCH: usize = 64;

/// Name under which callers over MQTT stand in the audit log.
const CALLER: &str = "mqtt";

/// How the API is offered to a broker.
#[derive(Debug, Clone)]
pub struct MqttSettings {
    /// The client.
    pub client: Mqtt,
    /// First level of all our topics.
    pub instance: String,
    /// Whether requests are taken.
    pub api: bool,
    /// What callers may do.
    pub role: Role,
    /// Quality of requests and answers.
    pub api_qos: Qos,
    /// Quality of status messages.
    pub status_qos: Qos,
    /// The vocabulary of status topics.
    pub form: Form,
    /// `objects` of the subscription that is made whenever the printer comes, as JSON; none for no subscription.
    pub status_objects: Option<String>,
    /// Status is collected for so long; zero to publish it as it comes.
    pub status_interval: Duration,
    /// One kept topic per field instead of one topic for all.
    pub split_status: bool,
    /// Whether the printer can be subscribed to; every change to true subscribes anew.
    pub printer: watch::Receiver<bool>,
}

/// The topic that says whether this server is there.
#[must_use]
pub fn presence_topic(instance: &str, form: Form) -> String {
    format!("{instance}/{}/status", service(form))
}

/// Serves until `stop`.
pub async fn serve(dispatcher: Arc<Dispatcher>, connections: Arc<Connections>, settings: MqttSettings, stop: CancellationToken) {
    let key = KeyHolder { name: Some(CALLER.to_owned()), role: settings.role };
    let connection = connections.detached(ConnectionKind::Mqtt, Identity::Key(Arc::new(key)), None);
    let (sender, mut requests) = mpsc::channel(MAX_WAITING);
    let _subscriptions = subscribe(&settings, &sender);
    let (mut link, mut printer) = (settings.client.link(), settings.printer.clone());
    let mut port = Port { dispatcher, connection, status: StatusTopics::new(&settings), duplicates: Duplicates::default(), settings };
    let mut subscribing: Option<Subscribing> = port.subscribe_status(&link, &printer);
    let mut due: Option<Instant> = None;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Some((form, payload)) = requests.recv() => port.request(form, payload),
            () = port.connection.outbox.filled() => {
                port.collect();
                if port.settings.status_interval.is_zero() {
                    port.status.flush(&port.settings.client);
                } else if port.status.is_pending() {
                    due.get_or_insert(Instant::now() + port.settings.status_interval);
                }
            }
            Some(()) = OptionFuture::from(due.map(sleep_until)) => {
                port.status.flush(&port.settings.client);
                due = None;
            }
            Some((answer, calls)) = OptionFuture::from(subscribing.as_mut()) => {
                subscribing = None;
                port.subscribed(answer.as_ref());
                // What changed since then may follow now.
                drop(calls);
            }
            Ok(()) = link.changed() => subscribing = port.subscribe_status(&link, &printer),
            Ok(()) = printer.changed() => {
                port.status.flush(&port.settings.client);
                subscribing = port.subscribe_status(&link, &printer);
            }
        }
    }
}

type Subscribing = BoxFuture<'static, (Option<Frame>, Vec<Arc<Call>>)>;

fn subscribe(settings: &MqttSettings, requests: &mpsc::Sender<(Form, Bytes)>) -> Vec<Subscription> {
    let forms = if settings.api { &[Form::Neutral, Form::Upstream][..] } else { &[] };
    let subscriptions = forms.iter().map(|&form| {
        let requests = requests.clone();
        settings.client.subscribe(&api_topic(&settings.instance, form, "request"), settings.api_qos, move |message| {
            if requests.try_send((form, message.payload.clone())).is_err() {
                tracing::debug!("a request over MQTT was dropped: too many wait");
            }
        })
    });
    subscriptions.filter_map(|subscription| subscription.inspect_err(|error| tracing::warn!(%error, "no API over MQTT")).ok()).collect()
}

fn api_topic(instance: &str, form: Form, end: &str) -> String {
    format!("{instance}/{}/api/{end}", service(form))
}

fn service(form: Form) -> &'static str {
    protocol::vocabulary::APP_CORE.in_form(form)
}

struct Port {
    dispatcher: Arc<Dispatcher>,
    connection: Arc<Connection>,
    settings: MqttSettings,
    duplicates: Duplicates,
    status: StatusTopics,
}

impl Port {
    /// Begins with a request; its answer is published when it is there.
    fn request(&mut self, form: Form, payload: Bytes) {
        let answers = Answers {
            client: self.settings.client.clone(),
            topic: api_topic(&self.settings.instance, form, "response"),
            qos: self.settings.api_qos,
        };
        let payload = match self.duplicates.check(payload) {
            Checked::New(payload) => payload,
            Checked::Repeated(answer) => return answer.iter().for_each(|answer| answers.publish(answer)),
        };
        let Some(pending) = self.connection.begin_call() else {
            let error = ApiError::new(ErrorKind::TooMany, "Too many requests over MQTT are waiting for an answer");
            return answers.publish(&envelope::failure(&error, None));
        };
        let (dispatcher, origin) = (self.dispatcher.clone(), Origin::Mqtt { connection: self.connection.clone(), form });
        let mut work = async move {
            let (answer, calls) = dispatcher.document(&origin, &payload).await;
            answer.iter().for_each(|answer| answers.publish(answer));
            // What the calls hold back may follow the answer, not precede it.
            drop((calls, pending));
        }
        .boxed();
        if (&mut work).now_or_never().is_none() {
            self.dispatcher.tasks.spawn(work);
        }
    }

    /// Asks for the configured status, when broker and printer are there.
    fn subscribe_status(&self, link: &watch::Receiver<Link>, printer: &watch::Receiver<bool>) -> Option<Subscribing> {
        let objects = self.settings.status_objects.as_ref()?;
        if *link.borrow() != Link::Online || !*printer.borrow() {
            return None;
        }
        let request = format!(r#"{{"jsonrpc":"2.0","method":"printer.objects.subscribe","params":{{"objects":{objects}}},"id":0}}"#);
        let dispatcher = self.dispatcher.clone();
        let origin = Origin::Mqtt { connection: self.connection.clone(), form: self.settings.form };
        Some(async move { dispatcher.document(&origin, &request.into()).await }.boxed())
    }

    /// The configured status in full.
    fn subscribed(&mut self, answer: Option<&Frame>) {
        let Some(answer) = answer else { return };
        if self.status.add_answer(answer) {
            self.status.flush(&self.settings.client);
        } else {
            tracing::info!("the printer's status cannot be subscribed for MQTT now; it is when the printer is ready");
        }
    }

    /// Takes what the subscription brought.
    fn collect(&mut self) {
        let mut frames = Vec::new();
        while self.connection.outbox.take(&mut frames, BATCH) {
            frames.drain(..).for_each(|frame| self.status.add_update(&frame));
        }
    }
}

struct Answers {
    client: Mqtt,
    topic: String,
    qos: Qos,
}

impl Answers {
    fn publish(&self, answer: &Frame) {
        if let Err(error) = self.client.send(&self.topic, answer.clone(), self.qos, false) {
            tracing::debug!(%error, "an answer over MQTT could not be sent");
        }
    }
}
