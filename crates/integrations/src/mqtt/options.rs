//! `[mqtt]`.

use std::path::PathBuf;
use std::time::Duration;

use config::{OptionalDictionary, Reader};
use outbound::mqtt::{MqttOptions, Qos, Version, topic};
use protocol::status::Selection;
use rpc::Role;
use template::Rendered;

config::choices! {
    /// Version of the protocol.
    pub enum MqttProtocol {
        /// 3.1.
        V31 = "v3.1",
        /// 3.1.1.
        V311 = "v3.1.1",
        /// 5.
        V5 = "v5",
    }
}

config::choices! {
    /// What callers over MQTT may do.
    pub enum ApiRole {
        /// Look.
        Viewer = "viewer",
        /// Print.
        Operator = "operator",
        /// Everything.
        Admin = "admin",
    }
}

config::options! {
    /// A broker: JSON-RPC and the printer's status over MQTT, messages of clients, macros and devices. See docs/mqtt.md.
    pub struct MqttSection: "mqtt" {
        /// Name or address of the broker.
        address: String,
        /// Its port; brokers with TLS usually have 8883.
        port: u16 { min 1 } = 1883,
        /// Name of this client at the broker; made up when it is empty.
        client_id: String = "",
        /// TLS, with the certificates that the system trusts.
        enable_tls: bool = false,
        /// Login name; a template that may use `secrets`.
        username: Option<Rendered> = None,
        /// Password; a template that may use `secrets`.
        password: Option<Rendered> = None,
        /// A file with the password in its first line.
        password_file: Option<PathBuf> { deprecated "use password: {secrets.mqtt.password}" } = None,
        /// Version of the protocol: `v3.1`, `v3.1.1` or `v5`.
        mqtt_protocol: MqttProtocol = MqttProtocol::V311,
        /// First level of all our topics, different for every printer at the broker. Unset: the name of the machine.
        instance_name: Option<String> = None,
        /// Whether JSON-RPC requests are taken from the broker.
        enable_core_api ["enable_moonraker_api"]: bool = true,
        /// What may be done by requests over MQTT, for which only the broker checks who sends them: `viewer`, `operator` or `admin`. Unset: `admin` when the configuration in use is a `moonraker.conf`, else `operator`.
        api_role: Option<ApiRole> = None,
        /// Quality of service (0, 1 or 2) where nothing else is said.
        default_qos: u8 { max 2 } = 0,
        /// Quality of service of requests and answers. Unset: `default_qos`.
        api_qos: Option<u8> { max 2 } = None,
        /// Printer objects to publish, one a line: `toolhead`, or with fields, `extruder=temperature,target`.
        status_objects: OptionalDictionary = &[],
        /// Seconds for which changes are collected before they are published, more than 0.25. 0: as they come.
        status_interval: f64 { min 0 } = 0.0,
        /// One kept topic for each field instead of one message with all changes.
        publish_split_status: bool = false,
    }
}

/// Collecting for so long or less makes no sense: the printer itself reports that often.
const SHORTEST_INTERVAL: f64 = 0.25;

impl MqttSection {
    /// The section, when there is one that can be used; what is wrong with it is reported to the reader.
    pub fn read_one(reader: &mut Reader<'_>) -> Option<Self> {
        let entry = reader.read::<Self>()?;
        let section = entry.section.clone();
        let options = entry.sound().ok()?;
        match options.fault() {
            Some((option, expected)) => {
                reader.reject(&section, option, format!("expected {expected}"));
                None
            }
            None => Some(options),
        }
    }

    fn fault(&self) -> Option<(&'static str, &'static str)> {
        let name = self.instance_name.as_deref();
        if name.is_some_and(|name| topic::check(name).is_err()) {
            return Some(("instance_name", "a name without + and #"));
        }
        if self.address.trim().is_empty() {
            return Some(("address", "the name or address of a broker"));
        }
        let interval = self.status_interval;
        (interval > 0.0 && interval <= SHORTEST_INTERVAL).then_some(("status_interval", "0 or more than 0.25"))
    }

    /// How to reach the broker. A password file that cannot be read is told as an error.
    ///
    /// # Errors
    /// With a sentence.
    pub fn client_options(&self) -> Result<MqttOptions, String> {
        let mut options = MqttOptions::to(self.address.trim(), self.port);
        options.client_id.clone_from(&self.client_id);
        options.tls = self.enable_tls;
        options.username = self.username.as_ref().map(|name| name.expose().to_owned());
        options.password = match (&self.password, &self.password_file) {
            (Some(password), _) => Some(password.expose().to_owned()),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(path).map_err(|error| format!("[mqtt] password_file cannot be read: {error}"))?;
                Some(text.lines().next().unwrap_or_default().trim().to_owned())
            }
            (None, None) => None,
        };
        options.version = match self.mqtt_protocol {
            MqttProtocol::V31 => Version::V31,
            MqttProtocol::V311 => Version::V311,
            MqttProtocol::V5 => Version::V5,
        };
        Ok(options)
    }

    /// Quality where nothing else is said.
    #[must_use]
    pub fn default_qos(&self) -> Qos {
        Qos::from_number(self.default_qos.into()).unwrap_or_default()
    }

    /// Quality of requests and answers.
    #[must_use]
    pub fn api_qos(&self) -> Qos {
        self.api_qos.and_then(|qos| Qos::from_number(qos.into())).unwrap_or(self.default_qos())
    }

    /// What callers may do. With a configuration of the incumbent what its users rely on, else as little as printing needs: the broker does not
    /// say who sent a request, so whoever may publish there has this role.
    #[must_use]
    pub fn role(&self, is_upstream: bool) -> Role {
        match self.api_role {
            Some(ApiRole::Viewer) => Role::Viewer,
            Some(ApiRole::Operator) => Role::Operator,
            Some(ApiRole::Admin) => Role::Admin,
            None if is_upstream => Role::Admin,
            None => Role::Operator,
        }
    }

    /// `objects` of the status subscription, as JSON; none without any.
    #[must_use]
    pub fn selection(&self) -> Option<String> {
        let mut selection = Selection::default();
        for (object, fields) in &self.status_objects.0 {
            let fields: Vec<&str> =
                fields.as_deref().unwrap_or_default().split(',').map(str::trim).filter(|field| !field.is_empty()).collect();
            selection.add_query_pair(object, &fields.join(","));
        }
        (!selection.is_empty()).then(|| selection.to_json())
    }

    /// For how long status is collected.
    #[must_use]
    pub fn interval(&self) -> Duration {
        Duration::try_from_secs_f64(self.status_interval).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<MqttSection>, Vec<String>) {
        let loaded = config::load_text("c", text);
        let context = config::Context::default();
        let mut reader = Reader::new(&loaded.document, &context);
        let section = MqttSection::read_one(&mut reader);
        (section, reader.problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_usual_section_is_understood() {
        let text = "[mqtt]\naddress: broker\nmqtt_protocol: v5\nenable_moonraker_api: false\ndefault_qos: 1\nusername: anna\npassword: x y\nstatus_objects:\n  toolhead\n  extruder = temperature, target\n";
        let (section, problems) = read(text);
        assert_eq!(problems, [""; 0]);
        let section = section.unwrap();
        assert_eq!(section.selection().unwrap(), r#"{"extruder":["target","temperature"],"toolhead":null}"#);
        assert!(!section.enable_core_api);
        assert_eq!((section.api_qos(), section.role(true), section.role(false)), (Qos::AtLeastOnce, Role::Admin, Role::Operator));
        let client = section.client_options().unwrap();
        assert_eq!((client.version, client.password.as_deref()), (Version::V5, Some("x y")));
        assert_eq!(read("[server]\n"), (None, vec![]));
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (line, option) in
            [("instance_name: a/#", "instance_name"), ("status_interval: 0.25", "status_interval"), ("api_qos: 3", "api_qos")]
        {
            let (_, problems) = read(&format!("[mqtt]\naddress: b\n{line}\n"));
            assert!(problems[0].contains(option), "{problems:?}");
        }
        let (section, problems) = read("[mqtt]\nport: 1\n");
        assert!(section.is_none() && problems[0].contains("address"), "{problems:?}");
        let (section, _) = read("[mqtt]\naddress: b\npassword_file: /nowhere\n");
        assert!(section.unwrap().client_options().unwrap_err().contains("password_file"));
    }
}
