//! `[power <name>]`: what all types have in common, and what single types need (wire/3-devices.md section 1.2).

use std::time::Duration;

use template::{Rendered, Template};

use crate::base::Protocol;
use crate::gpio::Pin;

config::choices! {
    /// How a power device is switched.
    pub enum Kind {
        /// A pin of this machine.
        Gpio = "gpio",
        /// A radio transmitter on a pin.
        Rf = "rf",
        /// An output pin or a macro of the firmware.
        FirmwareDevice = "firmware_device" | "klipper_device",
        /// A TP-Link Kasa plug (port 9999).
        SmartplugA = "smartplug_a" | "tplink_smartplug",
        /// A TP-Link plug with encrypted HTTP (KLAP): Tapo, and newer ones of Kasa.
        SmartplugB = "smartplug_b" | "tplink_klap",
        /// Tasmota.
        HttpFirmwareA = "http_firmware_a" | "tasmota",
        /// Shelly, generation 1.
        RelayA = "relay_a" | "shelly",
        /// Shelly, generation 2 and later.
        RelayB = "relay_b" | "shelly_gen2",
        /// HomeSeer.
        AutomationA = "automation_a" | "homeseer",
        /// Home Assistant.
        AutomationB = "automation_b" | "homeassistant",
        /// Loxone.
        AutomationC = "automation_c" | "loxonev1",
        /// SmartThings.
        AutomationD = "automation_d" | "smartthings",
        /// Hue.
        LightingA = "lighting_a" | "hue",
        /// Anything that speaks HTTP.
        Http = "http",
        /// Anything behind an MQTT broker.
        Mqtt = "mqtt",
        /// A port of a USB hub, by the program `uhubctl`.
        Usbhub = "usbhub" | "uhubctl",
    }
}

config::options! {
    /// Something that is switched on and off: these options belong to every `type`; the tables after this one list those of single types. `docs/devices.md` has examples.
    pub struct PowerOptions: "power <name>" {
        /// How it is switched: `gpio`, `rf`, `firmware_device` (`klipper_device`), `smartplug_a` (`tplink_smartplug`), `smartplug_b` (`tplink_klap`), `http_firmware_a` (`tasmota`), `relay_a` (`shelly`), `relay_b` (`shelly_gen2`), `automation_a` (`homeseer`), `automation_b` (`homeassistant`), `automation_c` (`loxonev1`), `automation_d` (`smartthings`), `lighting_a` (`hue`), `http`, `mqtt`, `usbhub` (`uhubctl`).
        r#type: Kind,
        /// Switched to this once, when its state is first known after a start of the server. Unset: it is left as it is.
        initial_state: Option<bool> = None,
        /// Switched off when the firmware host shuts down. Not for devices of the firmware.
        off_when_shutdown: bool = false,
        /// Seconds between the shutdown and that; it is not done when the firmware host has recovered meanwhile.
        off_when_shutdown_delay: f64 { min 0, max 86400 } = 0.0,
        /// Switched on when a job is added to the queue.
        on_when_job_queued ["on_when_upload_queued"]: bool = false,
        /// Cannot be switched while the printer prints.
        locked_while_printing: bool = false,
        /// Restarts the firmware after it was switched on, unless the firmware host is ready then. Not for devices of the firmware.
        restart_fwhost_when_powered ["restart_klipper_when_powered"]: bool = false,
        /// Seconds before that restart.
        restart_delay: f64 { above 0, max 86400 } = 1.0,
        /// Services, one a line, that are started when it goes on and stopped when it goes off.
        bound_services: Vec<String> = &[],
        /// One more of them.
        bound_service: Option<String> { deprecated "use `bound_services`" } = None,
        /// Changes from outside (a button on the device, another program) are only told to clients. When false, bound services and the firmware restart follow them, too.
        restrict_action_processing: bool = true,
        /// Seconds after which it is asked for its state. Unset: only when somebody wants to know, or after a fault.
        poll_interval: Option<f64> { min 1, max 86400 } = None,
        /// Seconds after which it goes off by itself once it was switched on: counted by the server for `gpio`, `rf`, `firmware_device` and `smartplug_b`, by the device for the other plugs and relays, where it begins at the request to go off.
        timer: Option<f64> { above 0, max 604800 } = None,
        /// Seconds that it gets for one answer, repeated attempts included. Unset: 10, and 60 for `http` with a `request_template`.
        timeout: Option<f64> { min 0.1, max 600 } = None,
    }
}

config::options! {
    /// Types `gpio` and `rf`.
    pub(crate) struct PinOptions: "power <name>" {
        /// The line: `gpio17`, `gpiochip1/gpio4`, `!gpio17` for one that is on when it is low.
        pin: Pin,
    }
}

config::options! {
    /// Type `rf`: codes of 24 binary digits; shorter ones are filled up with zeros on the left.
    pub(crate) struct RfOptions: "power <name>" {
        /// Sent to switch on.
        on_code: String,
        /// Sent to switch off.
        off_code: String,
    }
}

config::options! {
    /// Type `firmware_device`.
    pub(crate) struct FirmwareOptions: "power <name>" {
        /// `output_pin name`, or `gcode_macro name` of a macro that has a variable `value` and takes a parameter `VALUE`.
        object_name: String,
    }
}

config::options! {
    /// Type `smartplug_a`.
    pub(crate) struct PlugOptions: "power <name>" {
        /// Name or IPv4 address of the plug; `host/2` is an old form of `output_id: 2`.
        address: String,
        /// Its port.
        port: u16 { min 1 } = 9999,
        /// Which socket of a strip, counted from 0. Unset: the plug has one.
        output_id: Option<u16> = None,
    }
}

config::options! {
    /// Type `smartplug_b`.
    pub(crate) struct KlapOptions: "power <name>" {
        /// Name or address of the plug, also with port.
        address: String,
        /// Its port, unless the address has one.
        port: u16 { min 1 } = 80,
        /// Login name of the vendor's account that the plug was set up with: an address of mail, capitals as in the account. Unset: a plug without account.
        user: Option<Rendered> = None,
        /// Password of that account.
        password: Option<Rendered> = None,
        /// Which socket of a strip, counted from 0. Unset: the plug has one.
        output_id: Option<u16> = None,
    }
}

config::options! {
    /// Types that are reached over HTTP: `http_firmware_a`, `relay_a`, `relay_b`, `automation_a` to `automation_d`, `lighting_a`.
    pub(crate) struct WebOptions: "power <name>" {
        /// Name or address, also with port (`lamp.local:8080`, `[fe80::1]:80`) or with a path that all requests begin with.
        address: String,
        /// Port, unless the address has one. Unset: that of the protocol, 8123 for `automation_b`.
        port: Option<u16> { min 1 } = None,
        /// `http` or `https`. Unset: `http`, `https` for `automation_d`.
        protocol: Option<Protocol> = None,
        /// Login name; for `lighting_a` the key of the bridge. Unset: `admin` for `http_firmware_a`, `relay_a`, `relay_b`, `automation_a`, `automation_c`.
        user: Option<Rendered> = None,
        /// Password. Unset: `admin` for `automation_c`.
        password: Option<Rendered> = None,
    }
}

config::options! {
    /// Types `http_firmware_a`, `relay_a`, `relay_b`, `automation_c`.
    pub(crate) struct OutputOptions: "power <name>" {
        /// Which output. Unset: 1 for `http_firmware_a`, 0 for `relay_a` and `relay_b`, none for `automation_c`.
        output_id: Option<String> = None,
    }
}

config::options! {
    /// Type `automation_a`.
    pub(crate) struct ReferenceOptions: "power <name>" {
        /// Reference number of the device.
        device: i64,
    }
}

config::options! {
    /// Type `automation_b`.
    pub(crate) struct EntityOptions: "power <name>" {
        /// Entity, such as `switch.printer`.
        device: String,
        /// A long-lived access token.
        token: Rendered,
        /// Domain of the services that switch it.
        domain: String = "switch",
        /// Seconds between a command and the question what has become of it.
        status_delay: f64 { min 0, max 60 } = 1.0,
    }
}

config::options! {
    /// Type `automation_d`.
    pub(crate) struct CloudOptions: "power <name>" {
        /// Id of the device.
        device: String = "",
        /// A personal access token.
        token: Rendered,
    }
}

config::options! {
    /// Type `lighting_a`.
    pub(crate) struct LightOptions: "power <name>" {
        /// Number of the light or group.
        device_id: String,
        /// `light` or `group`.
        device_type: String = "light",
    }
}

config::options! {
    /// Type `http`.
    pub(crate) struct HttpOptions: "power <name>" {
        /// Asked to switch on.
        on_url: Rendered,
        /// Asked to switch off.
        off_url: Rendered,
        /// Asked for the state.
        status_url: Rendered,
        /// Makes and sends the request through `http_request`, when a plain GET is not enough; sees `command` and `urls`, too.
        request_template: Option<Template> = None,
        /// Gives `on` or `off` from the response (`http_request.last_response()`).
        response_template: Template,
        /// Login name; Basic authentication when it and the password are set.
        user: Option<Rendered> = None,
        /// Password.
        password: Option<Rendered> = None,
    }
}

config::options! {
    /// Type `mqtt`. Needs a section `[mqtt]`.
    pub(crate) struct MqttDeviceOptions: "power <name>" {
        /// Where commands are published.
        command_topic: String,
        /// What is published; sees `command`, which is `on` or `off`.
        command_payload: Template,
        /// The broker keeps commands for the device.
        retain_command_state: bool = false,
        /// Where the device publishes its state.
        state_topic: String,
        /// Gives `on`, `off` or `discard` from `payload`; sees `last_request` and `response_count`, too.
        state_response_template: Template = "{payload}",
        /// Where the device is asked for its state. Unset: it publishes it by itself, or the broker keeps it.
        query_topic: Option<String> = None,
        /// What is published there.
        query_payload: Option<Template> = None,
        /// Asks after each command, too.
        query_after_command: bool = false,
        /// Seconds that it gets to publish its state.
        state_timeout: f64 { above 0, max 600 } = 2.0,
        /// Quality of service, 0 to 2. Unset: that of `[mqtt]`.
        qos: Option<u8> { max 2 } = None,
    }
}

config::options! {
    /// Type `usbhub`: the program `uhubctl` must be installed and allowed to switch the hub.
    pub(crate) struct HubOptions: "power <name>" {
        /// Place of the hub, as `uhubctl` prints it: `1-1`.
        location: String,
        /// Number of the port. Unset: all.
        port: Option<u16> = None,
    }
}

impl PowerOptions {
    /// How it is switched.
    #[must_use]
    pub(crate) fn kind(&self) -> Kind {
        self.r#type
    }

    /// Names of the bound services, without `.service`, each once.
    pub(crate) fn services(&self) -> Vec<String> {
        let mut services: Vec<String> = Vec::new();
        for name in self.bound_services.iter().chain(&self.bound_service) {
            let name = name.strip_suffix(".service").unwrap_or(name);
            if !name.is_empty() && !services.iter().any(|known| known == name) {
                services.push(name.to_owned());
            }
        }
        services
    }
}

/// For drivers that wait themselves.
pub(crate) fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// The time that a whole number of seconds would be, as devices want it.
pub(crate) fn whole_seconds(seconds: f64) -> u64 {
    duration(seconds).as_secs_f64().ceil() as u64
}
