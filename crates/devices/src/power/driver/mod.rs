//! How single types of devices are asked and switched: one file each, behind one trait.

mod firmware;
mod gpio;
mod klap;
mod mqtt;
mod plug;
mod rf;
mod scripted;
mod usbhub;
mod web;

use std::fmt::Display;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use config::Secrets;
use protocol::ErrorKind;
use rpc::transfer::Boxed;

use super::build::Section;
use super::model::Reading;
use super::options::{Kind, PowerOptions, duration};
use super::service::Parts;

/// Time that a device gets for one answer, when the configuration does not say another.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a device could not be asked or switched. Texts never hold addresses with passwords, tokens or templates' secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) message: Arc<str>,
    /// For whoever wanted to switch it.
    pub(crate) kind: ErrorKind,
    /// Asking again would not help.
    pub(crate) is_final: bool,
}

impl Fault {
    pub(crate) fn new(message: impl Display) -> Self {
        Self { message: message.to_string().into(), kind: ErrorKind::BadRequest, is_final: false }
    }

    pub(crate) fn of(kind: ErrorKind, message: impl Display) -> Self {
        Self { kind, ..Self::new(message) }
    }

    /// The same, when asking again would not help.
    pub(crate) fn for_good(self) -> Self {
        Self { is_final: true, ..self }
    }
}

impl From<Fault> for Reading {
    fn from(fault: Fault) -> Self {
        if fault.is_final { Self::Lost(fault.message) } else { Self::Fault(fault.message) }
    }
}

/// One device. Every future may be dropped at any time: the worker gives up after [`Driver::limit`].
pub(crate) trait Driver: Send {
    /// Asks for the state.
    fn query(&mut self) -> Boxed<'_, Result<Reading, Fault>>;

    /// Switches; gives the state afterwards.
    fn switch(&mut self, on: bool) -> Boxed<'_, Result<bool, Fault>>;

    /// Waits until the device says something by itself.
    fn watch(&mut self) -> Boxed<'_, Reading> {
        Box::pin(pending())
    }

    /// How long one answer may take.
    fn limit(&self, configured: Option<f64>) -> Duration {
        configured.map_or(ANSWER_TIMEOUT, duration)
    }

    /// True when the device itself counts the time until it goes off.
    fn has_timer(&self) -> bool {
        false
    }
}

/// What drivers are made with.
pub(crate) struct Makings<'p> {
    pub(crate) parts: &'p Parts,
    /// Which device of the configuration it is.
    pub(crate) number: u64,
    pub(crate) options: &'p PowerOptions,
}

/// A driver that can be made: its options are sound.
pub(crate) enum Recipe {
    Gpio(gpio::GpioRecipe),
    Rf(rf::RfRecipe),
    Firmware(firmware::FirmwareRecipe),
    Plug(plug::Plug),
    Klap(klap::KlapRecipe),
    Web(web::WebRecipe),
    Scripted(Box<scripted::ScriptedRecipe>),
    Mqtt(Box<mqtt::MqttRecipe>),
    Usbhub(usbhub::Usbhub),
}

/// Reads what a type needs; none when something is wrong with it, which the section has reported then.
pub(crate) fn read(options: &PowerOptions, section: &mut Section<'_, '_, '_>, secrets: &Secrets) -> Option<Recipe> {
    match options.kind() {
        Kind::Gpio => gpio::read(options, section).map(Recipe::Gpio),
        Kind::Rf => rf::read(options, section).map(Recipe::Rf),
        Kind::FirmwareDevice => firmware::read(section).map(Recipe::Firmware),
        Kind::SmartplugA => plug::read(options, section).map(Recipe::Plug),
        Kind::SmartplugB => klap::read(section).map(Recipe::Klap),
        Kind::Http => scripted::read(section, secrets).map(Box::new).map(Recipe::Scripted),
        Kind::Mqtt => mqtt::read(section, secrets).map(Box::new).map(Recipe::Mqtt),
        Kind::Usbhub => usbhub::read(section).map(Recipe::Usbhub),
        kind => web::read(kind, options, section).map(Recipe::Web),
    }
}

impl Recipe {
    /// Makes the driver. Nothing is opened or asked yet.
    pub(crate) fn driver(self, makings: &Makings<'_>) -> Box<dyn Driver> {
        match self {
            Self::Gpio(recipe) => recipe.driver(&makings.parts.gpio),
            Self::Rf(recipe) => recipe.driver(&makings.parts.gpio),
            Self::Firmware(recipe) => recipe.driver(&makings.parts.host, makings.number),
            Self::Plug(plug) => Box::new(plug),
            Self::Klap(recipe) => recipe.driver(&makings.parts.client),
            Self::Web(recipe) => recipe.driver(&makings.parts.client, makings.options),
            Self::Scripted(recipe) => recipe.driver(&makings.parts.client, &makings.parts.scripts, makings.options),
            Self::Mqtt(recipe) => recipe.driver(makings.parts.mqtt.as_ref(), &makings.parts.scripts),
            Self::Usbhub(hub) => Box::new(hub),
        }
    }
}
