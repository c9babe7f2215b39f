//! Devices that are asked and switched by single HTTP requests with answers in JSON: what they have in common. What each of them is asked and
//! how its answers are read stands in a file of its own, without I/O (wire/3-devices.md section 2.6).

#[cfg(test)]
mod answers;
mod digest;
mod exchange;
mod homeassistant;
mod homeseer;
mod hue;
mod loxone;
mod shelly;
mod smartthings;
mod tasmota;

use std::time::Duration;

use outbound::{Client, Method};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rpc::transfer::Boxed;
use serde_json::Value;
use template::Rendered;

use super::{ANSWER_TIMEOUT, Driver, Fault};
use crate::base::{Base, Protocol};
use crate::power::build::Section;
use crate::power::model::Reading;
use crate::power::options::{Kind, PowerOptions, WebOptions, duration};

pub(super) use exchange::{Auth, Exchange, failing_status, reason};

/// A request, relative to the address of the device.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ask {
    method: Method,
    /// Path and query.
    path: String,
    body: Option<Value>,
}

impl Ask {
    fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), body: None }
    }

    fn send(method: Method, path: impl Into<String>, body: Value) -> Self {
        Self { method, path: path.into(), body: Some(body) }
    }
}

/// How a type of devices is talked to.
pub(super) trait Dialect: Send + Sync {
    /// The request for the state.
    fn status(&self) -> Ask;
    /// The state in its answer.
    fn read_status(&self, answer: &Value) -> Result<bool, Fault>;
    /// The request that switches.
    fn switch(&self, on: bool) -> Ask;
    /// The state in its answer.
    fn read_switched(&self, answer: &Value, on: bool) -> Result<bool, Fault>;
    /// The answer does not tell: the state is asked for after this time.
    fn asks_again_after(&self) -> Option<Duration> {
        None
    }
    /// The device itself counts the time until it goes off.
    fn has_timer(&self) -> bool {
        false
    }
}

/// What is needed to talk to a device.
pub(crate) struct WebRecipe {
    base: Base,
    auth: Auth,
    dialect: Box<dyn Dialect>,
}

/// Address and login of a section.
pub(super) struct Login {
    user: String,
    password: String,
}

impl Login {
    fn new(web: &WebOptions, user: &str, password: &str) -> Self {
        let text = |option: &Option<Rendered>, default: &str| option.as_ref().map_or(default.to_owned(), |text| text.expose().to_owned());
        Self { user: text(&web.user, user), password: text(&web.password, password) }
    }

    /// Basic authentication when both are there.
    fn basic(&self) -> Auth {
        Auth::basic(&self.user, &self.password)
    }
}

/// Reads a device of a type that is reached over HTTP.
pub(crate) fn read(kind: Kind, options: &PowerOptions, section: &mut Section<'_, '_, '_>) -> Option<WebRecipe> {
    let web: WebOptions = section.take()?;
    let (protocol, port) = match kind {
        Kind::AutomationB => (Protocol::Http, Some(8123)),
        Kind::AutomationD => (Protocol::Https, None),
        _ => (Protocol::Http, None),
    };
    let base = match Base::new(&web.address, web.protocol.unwrap_or(protocol), web.port.or(port)) {
        Ok(base) => base,
        Err(expected) => return section.reject("address", expected),
    };
    let (auth, dialect) = match kind {
        Kind::HttpFirmwareA => tasmota::read(&web, options, section)?,
        Kind::RelayA => shelly::read_first(&web, options, section)?,
        Kind::RelayB => shelly::read_second(&web, options, section)?,
        Kind::AutomationA => homeseer::read(&web, section)?,
        Kind::AutomationB => homeassistant::read(section)?,
        Kind::AutomationC => loxone::read(&web, section)?,
        Kind::AutomationD => smartthings::read(section)?,
        Kind::LightingA => hue::read(&web, section)?,
        // The other types are no web devices.
        _ => return None,
    };
    Some(WebRecipe { base, auth, dialect })
}

impl WebRecipe {
    pub(crate) fn driver(self, client: &Client, _: &PowerOptions) -> Box<dyn Driver> {
        Box::new(WebDevice { exchange: Exchange::new(client, self.auth), base: self.base, dialect: self.dialect })
    }
}

struct WebDevice {
    base: Base,
    exchange: Exchange,
    dialect: Box<dyn Dialect>,
}

impl WebDevice {
    async fn ask(&mut self, ask: Ask) -> Result<Value, Fault> {
        self.exchange.json(&self.base, &ask).await
    }
}

impl Driver for WebDevice {
    fn query(&mut self) -> Boxed<'_, Result<Reading, Fault>> {
        Box::pin(async move {
            let answer = self.ask(self.dialect.status()).await?;
            self.dialect.read_status(&answer).map(Reading::from)
        })
    }

    fn switch(&mut self, on: bool) -> Boxed<'_, Result<bool, Fault>> {
        Box::pin(async move {
            let answer = self.ask(self.dialect.switch(on)).await?;
            let Some(pause) = self.dialect.asks_again_after() else {
                return self.dialect.read_switched(&answer, on);
            };
            tokio::time::sleep(pause).await;
            let answer = self.ask(self.dialect.status()).await?;
            self.dialect.read_status(&answer)
        })
    }

    fn limit(&self, configured: Option<f64>) -> Duration {
        configured.map_or(ANSWER_TIMEOUT, duration) + self.dialect.asks_again_after().unwrap_or_default()
    }

    fn has_timer(&self) -> bool {
        self.dialect.has_timer()
    }
}

/// The text of a member of an answer as state.
fn on_or_off(value: &Value, place: &str) -> Result<bool, Fault> {
    let text = value.as_str().ok_or_else(|| missing(place))?;
    match text.to_ascii_lowercase().as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(Fault::new(format!("the device says `{other:.40}` where `on` or `off` was expected"))),
    }
}

fn flag(value: &Value, place: &str) -> Result<bool, Fault> {
    value.as_bool().ok_or_else(|| missing(place))
}

fn missing(place: &str) -> Fault {
    Fault::new(format!("the answer has no `{place}`"))
}

/// A word of a query as forms encode it.
fn form(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Characters that are encoded within a part of a path.
const NOT_IN_PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-').remove(b'~');

/// One part of a path.
fn part(text: &str) -> String {
    utf8_percent_encode(text, NOT_IN_PART).to_string()
}
