//! Type `mqtt`: anything that takes commands and tells its state through a broker (wire/3-devices.md section 2.7).

use std::sync::Arc;
use std::time::Duration;

use config::Secrets;
use outbound::mqtt::{self, Link, Message, Mqtt, MqttError, Qos, Subscription};
use protocol::ErrorKind;
use rpc::transfer::Boxed;
use template::limits::MAX_QUICK_TEXT;
use template::{Context, Template};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout_at};

use super::{Driver, Fault};
use crate::power::build::Section;
use crate::power::model::Reading;
use crate::power::options::{MqttDeviceOptions, duration};
use crate::script::{CALL_METHOD, Methods, Scripts, at_once};

/// State messages of an MQTT device that wait; further ones are lost until the device has caught up.
const MAX_MESSAGES: usize = 32;

/// Time that publishing to an MQTT device may take on top of waiting for its state.
const PUBLISH_TIME: Duration = Duration::from_secs(5);

/// Time for one template of an MQTT device, whatever it calls.
const RENDER_TIME: Duration = Duration::from_secs(5);

pub(crate) struct MqttRecipe {
    options: MqttDeviceOptions,
    secrets: Secrets,
}

pub(crate) fn read(section: &mut Section<'_, '_, '_>, secrets: &Secrets) -> Option<MqttRecipe> {
    let mut options: MqttDeviceOptions = section.take()?;
    let topics = [
        ("command_topic", Some(&options.command_topic)),
        ("state_topic", Some(&options.state_topic)),
        ("query_topic", options.query_topic.as_ref()),
    ];
    for (option, topic) in topics {
        if topic.is_some_and(|topic| mqtt::topic::check(topic).is_err()) {
            return section.reject(option, "expected a topic without wildcards");
        }
    }
    let title = section.title();
    let name = |template: Template, option: &str| template.of(&format!("{title} {option}"));
    options.command_payload = name(options.command_payload, "command_payload");
    options.state_response_template = name(options.state_response_template, "state_response_template");
    options.query_payload = options.query_payload.map(|template| name(template, "query_payload"));
    Some(MqttRecipe { options, secrets: secrets.clone() })
}

impl MqttRecipe {
    /// A device on a broker; without one it says so for ever.
    pub(crate) fn driver(self, broker: Option<&(Mqtt, Qos)>, scripts: &Arc<Scripts>) -> Box<dyn Driver> {
        let Some((mqtt, usual)) = broker else { return Box::new(NoBroker) };
        let qos = self.options.qos.and_then(|number| Qos::from_number(number.into())).unwrap_or(*usual);
        let (link, has_news) = (mqtt.link(), true);
        let before = Before { request: "", count: 0 };
        let (mqtt, scripts) = (mqtt.clone(), scripts.clone());
        Box::new(MqttDevice { mqtt, scripts, qos, recipe: self, inbox: None, link, has_news, state: None, before, pending: None })
    }
}

/// There is no section `[mqtt]`, or it has faults.
struct NoBroker;

impl NoBroker {
    fn fault() -> Fault {
        Fault::of(ErrorKind::Unavailable, "there is no section [mqtt] without faults")
    }
}

impl Driver for NoBroker {
    fn query(&mut self) -> Boxed<'_, Result<Reading, Fault>> {
        Box::pin(async { Err(Self::fault()) })
    }

    fn switch(&mut self, _: bool) -> Boxed<'_, Result<bool, Fault>> {
        Box::pin(async { Err(Self::fault()) })
    }
}

/// What templates see of the request before.
#[derive(Clone)]
struct Before {
    /// `last_request`.
    request: &'static str,
    /// `response_count`.
    count: u64,
}

struct MqttDevice {
    mqtt: Mqtt,
    /// Renders templates that call the server.
    scripts: Arc<Scripts>,
    qos: Qos,
    recipe: MqttRecipe,
    /// Subscribed at first use.
    inbox: Option<(Subscription, mpsc::Receiver<Message>)>,
    link: watch::Receiver<Link>,
    /// The connection has come or gone, and nobody has looked yet.
    has_news: bool,
    state: Option<bool>,
    before: Before,
    /// A message that was taken and not read yet.
    pending: Option<Message>,
}

impl MqttDevice {
    /// There is a connection, and states come in.
    fn online(&mut self) -> Result<(), Fault> {
        if self.inbox.is_none() {
            let inbox = self.mqtt.receive(&self.recipe.options.state_topic, self.qos, MAX_MESSAGES).map_err(|error| fault(&error))?;
            self.inbox = Some(inbox);
        }
        if !self.mqtt.is_online() {
            self.state = None;
            return Err(Fault::of(ErrorKind::Unavailable, "there is no connection to the broker"));
        }
        Ok(())
    }

    async fn render(&self, template: &Template, name: &str, value: String) -> Result<String, Fault> {
        let Before { request, count } = self.before;
        let is_short = value.len() <= MAX_QUICK_TEXT;
        let mut context = Context::new(&self.recipe.secrets)
            .with(name, value)
            .with("last_request", request)
            .with("response_count", count)
            .with_function(CALL_METHOD);
        let mut calls = Methods(self.scripts.clone());
        let quick = if is_short { at_once(template, &mut context, &mut calls) } else { None };
        let outcome = match quick {
            Some(outcome) => outcome,
            None => self.scripts.render(template.clone(), context, calls, RENDER_TIME).await.outcome,
        };
        outcome.map_err(|error| Fault::of(ErrorKind::Internal, error))
    }

    /// What a state message says; none for one that is to be ignored.
    async fn read(&mut self, message: &Message) -> Result<Option<bool>, Fault> {
        self.before.count += 1;
        let payload = String::from_utf8_lossy(&message.payload).into_owned();
        let template = self.recipe.options.state_response_template.clone();
        let text = self.render(&template, "payload", payload).await?;
        match text.to_ascii_lowercase().as_str() {
            "on" => Ok(Some(true)),
            "off" => Ok(Some(false)),
            "discard" => Ok(None),
            other => Err(Fault::of(
                ErrorKind::Internal,
                format!("state_response_template: expected `on`, `off` or `discard`, it gave `{other:.40}`"),
            )),
        }
    }

    /// The next message; is not lost when the future is dropped.
    async fn message(&mut self) -> Option<Message> {
        if self.pending.is_none() {
            self.pending = self.inbox.as_mut()?.1.recv().await;
        }
        self.pending.clone()
    }

    /// Waits for the next state.
    async fn next_state(&mut self) -> Result<bool, Fault> {
        let wait = self.recipe.options.state_timeout;
        let until = Instant::now() + duration(wait);
        loop {
            let late = || Fault::of(ErrorKind::Internal, format!("no state message within {wait} s"));
            let message = timeout_at(until, self.message()).await.map_err(|_| late())?.ok_or_else(late)?;
            let outcome = self.read(&message).await;
            self.pending = None;
            if let Some(is_on) = outcome? {
                return Ok(is_on);
            }
        }
    }

    /// Reads what has come meanwhile.
    async fn catch_up(&mut self) {
        while let Some(message) = self.pending.take().or_else(|| self.inbox.as_mut()?.1.try_recv().ok()) {
            match self.read(&message).await {
                Ok(Some(is_on)) => self.state = Some(is_on),
                Ok(None) => {}
                Err(_) => self.state = None,
            }
        }
    }

    async fn publish_query(&self) -> Result<(), Fault> {
        let MqttDeviceOptions { query_topic, query_payload, .. } = &self.recipe.options;
        let Some(topic) = query_topic else { return Ok(()) };
        let payload = match query_payload {
            Some(template) => self.render(template, "command", String::new()).await?,
            None => String::new(),
        };
        self.mqtt.publish(topic, payload, self.qos, false).await.map_err(|error| fault(&error))
    }

    async fn ask(&mut self) -> Result<bool, Fault> {
        self.online()?;
        self.catch_up().await;
        let asks = self.recipe.options.query_topic.is_some() && self.recipe.options.query_after_command;
        if let (Some(is_on), false) = (self.state, asks) {
            return Ok(is_on);
        }
        self.publish_query().await?;
        self.next_state().await.map_err(|fault| self.hopeless(fault))
    }

    /// A state that the broker keeps comes on subscription: without a question there is no reason to expect another.
    fn hopeless(&self, fault: Fault) -> Fault {
        if self.recipe.options.query_topic.is_none() { fault.for_good() } else { fault }
    }

    async fn command(&mut self, on: bool) -> Result<bool, Fault> {
        self.online()?;
        self.catch_up().await;
        let options = &self.recipe.options;
        let payload = self.render(&options.command_payload, "command", if on { "on" } else { "off" }.to_owned()).await?;
        let published = self.mqtt.publish(&options.command_topic, payload, self.qos, options.retain_command_state).await;
        published.map_err(|error| fault(&error))?;
        if options.query_after_command {
            self.publish_query().await?;
        }
        self.next_state().await
    }

    /// Does `request` in the name of templates, and keeps the state.
    async fn requested(&mut self, name: &'static str, on: Option<bool>) -> Result<bool, Fault> {
        self.before = Before { request: name, count: 0 };
        let outcome = match on {
            Some(on) => self.command(on).await,
            None => self.ask().await,
        };
        self.before = Before { request: "", count: 0 };
        self.state = outcome.as_ref().ok().copied();
        outcome
    }
}

fn fault(error: &MqttError) -> Fault {
    let kind = if matches!(error, MqttError::TooManySubscriptions(_)) { ErrorKind::Internal } else { ErrorKind::Unavailable };
    Fault::of(kind, error)
}

impl Driver for MqttDevice {
    fn query(&mut self) -> Boxed<'_, Result<Reading, Fault>> {
        Box::pin(async move { self.requested("refresh", None).await.map(Reading::from) })
    }

    fn switch(&mut self, on: bool) -> Boxed<'_, Result<bool, Fault>> {
        Box::pin(self.requested(if on { "power_on" } else { "power_off" }, Some(on)))
    }

    fn watch(&mut self) -> Boxed<'_, Reading> {
        Box::pin(async move {
            loop {
                if self.has_news {
                    let is_online = self.mqtt.is_online();
                    let reading = self.requested("refresh", None).await;
                    self.has_news = false;
                    // Before the first attempt has ended there is nothing to say.
                    if is_online || *self.link.borrow() != Link::Starting {
                        return reading.map_or_else(Reading::from, Reading::from);
                    }
                }
                let mut link = self.link.clone();
                tokio::select! {
                    message = self.message() => {
                        let Some(message) = message else { return std::future::pending().await };
                        let outcome = self.read(&message).await;
                        self.pending = None;
                        match outcome {
                            Ok(None) => {}
                            Ok(Some(is_on)) => {
                                self.state = Some(is_on);
                                return Reading::from(is_on);
                            }
                            Err(fault) => {
                                self.state = None;
                                return self.hopeless(fault).into();
                            }
                        }
                    }
                    changed = link.changed() => {
                        let Ok(()) = changed else { return std::future::pending().await };
                        self.link.borrow_and_update();
                        self.has_news = true;
                    }
                }
            }
        })
    }

    fn limit(&self, configured: Option<f64>) -> Duration {
        configured.map_or(PUBLISH_TIME + duration(self.recipe.options.state_timeout), duration)
    }
}
