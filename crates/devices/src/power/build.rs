//! From sections of the configuration to devices.

use config::{OptionSet, Reader, Secrets, SectionDoc};
use serde_json::{Map, Value};

use super::driver::{self, Recipe};
use super::options::{
    CloudOptions, EntityOptions, FirmwareOptions, HttpOptions, HubOptions, Kind, KlapOptions, LightOptions, MqttDeviceOptions,
    OutputOptions, PinOptions, PlugOptions, PowerOptions, ReferenceOptions, RfOptions, WebOptions,
};
use super::ports::Services;
use super::service::MAX_DEVICES;

/// A device that can be made.
pub struct PowerDevice {
    /// Name of the device: what follows `power` in the name of the section.
    pub name: String,
    /// What all types have in common.
    pub options: PowerOptions,
    /// Typed values of the whole section, for `server.config`.
    pub effective: Map<String, Value>,
    pub(crate) recipe: Recipe,
}

/// All devices that can be made. The others are reported to the reader, and keep none of these from working.
pub fn read(reader: &mut Reader<'_>, secrets: &Secrets) -> Vec<PowerDevice> {
    let mut devices: Vec<PowerDevice> = Vec::new();
    for entry in reader.read_all::<PowerOptions>() {
        let (section, name) = (entry.section.clone(), entry.name.clone());
        let mut fields = Section { reader, section: &section, effective: Map::new(), is_sound: true };
        // Also for a section that is faulty already: what is read here is no unknown option.
        let recipe = entry.options.as_ref().and_then(|options| driver::read(options, &mut fields, secrets));
        let (is_sound, mut effective) = (fields.is_sound, fields.effective);
        let Ok(options) = entry.sound() else { continue };
        let Some(recipe) = recipe.filter(|_| is_sound) else { continue };
        if let Some((option, message)) = contradiction(&options, devices.iter().map(|device| device.name.as_str()), &name) {
            reader.reject(&section, option, message);
            continue;
        }
        effective.extend(options.effective());
        devices.push(PowerDevice { name, options, effective, recipe });
    }
    devices
}

fn contradiction<'n>(
    options: &PowerOptions,
    mut others: impl ExactSizeIterator<Item = &'n str>,
    name: &str,
) -> Option<(&'static str, String)> {
    let is_firmware = options.kind() == Kind::FirmwareDevice;
    if others.len() >= MAX_DEVICES {
        return Some(("type", format!("more than {MAX_DEVICES} power devices")));
    }
    if others.any(|other| other == name) {
        return Some(("type", "another section has this device".to_owned()));
    }
    if is_firmware && options.off_when_shutdown {
        return Some(("off_when_shutdown", "a device of the firmware cannot be switched after a shutdown".to_owned()));
    }
    if is_firmware && options.restart_fwhost_when_powered {
        return Some(("restart_fwhost_when_powered", "a device of the firmware cannot bring the firmware its power".to_owned()));
    }
    None
}

/// Reports services that cannot be bound, and takes them out.
impl PowerDevice {
    /// Why services of this device cannot be bound; they are left out then.
    pub fn drop_unusable_services(&mut self, services: Option<&dyn Services>) -> Vec<String> {
        let mut refused = Vec::new();
        let wanted = self.options.services();
        let (usable, _) = wanted.into_iter().partition(|service| {
            let why = match services {
                Some(services) => services.refuses(service),
                None => Some("this server does not control services".to_owned()),
            };
            if let Some(why) = &why {
                refused.push(format!("[power {}] bound_services: {service} is left out: {why}", self.name));
            }
            why.is_none()
        });
        (self.options.bound_services, self.options.bound_service) = (usable, None);
        refused
    }
}

/// One section, read set by set.
pub(crate) struct Section<'s, 'r, 'a> {
    reader: &'r mut Reader<'a>,
    section: &'s str,
    effective: Map<String, Value>,
    is_sound: bool,
}

impl Section<'_, '_, '_> {
    /// The options of a set; none when something is wrong with one of them, which the reader knows then.
    pub(crate) fn take<T: OptionSet>(&mut self) -> Option<T> {
        let options = self.reader.read_section::<T>(self.section)?.sound().ok();
        match &options {
            Some(options) => self.effective.extend(options.effective()),
            None => self.is_sound = false,
        }
        options
    }

    /// Reports a value that cannot be used.
    pub(crate) fn reject<T>(&mut self, option: &str, message: impl Into<String>) -> Option<T> {
        self.reader.reject(self.section, option, message);
        self.is_sound = false;
        None
    }

    /// Says that a value is outdated.
    pub(crate) fn warn(&mut self, option: &str, message: &str) {
        self.reader.warn(self.section, option, message);
    }

    /// `[power name]`, for messages.
    pub(crate) fn title(&self) -> String {
        format!("[{}]", self.section)
    }
}

/// Documentation of all tables of options.
#[must_use]
pub fn sections() -> Vec<SectionDoc> {
    vec![
        PowerOptions::describe(),
        PinOptions::describe(),
        RfOptions::describe(),
        FirmwareOptions::describe(),
        PlugOptions::describe(),
        KlapOptions::describe(),
        WebOptions::describe(),
        OutputOptions::describe(),
        ReferenceOptions::describe(),
        EntityOptions::describe(),
        CloudOptions::describe(),
        LightOptions::describe(),
        HttpOptions::describe(),
        MqttDeviceOptions::describe(),
        HubOptions::describe(),
    ]
}
