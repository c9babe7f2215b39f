//! The vocabulary table: the only place that knows both the specification's neutral names and the incumbent's.
//!
//! Rules (design.md section 3): routes, methods, sections and parameter values are accepted in both forms; result members stand in both forms
//! in the same object ([`crate::dual`]); renamed notifications are sent under both names; values with two forms follow the caller's [`Form`].
//! Table: wire/1-core.md section 1.

/// Which form of two-form *values* a caller reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Form {
    /// The specification's own words.
    #[default]
    Neutral,
    /// The incumbent's words.
    Upstream,
}

/// A name in both forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The specification's name.
    pub neutral: &'static str,
    /// The incumbent's name.
    pub upstream: &'static str,
}

impl Pair {
    /// The name in the given form.
    #[must_use]
    pub fn in_form(&self, form: Form) -> &'static str {
        match form {
            Form::Neutral => self.neutral,
            Form::Upstream => self.upstream,
        }
    }

    /// True when `name` is either form.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        name == self.neutral || name == self.upstream
    }
}

const fn pair(neutral: &'static str, upstream: &'static str) -> Pair {
    Pair { neutral, upstream }
}

/// Members of results and notifications that appear under both names in the same object.
pub const MEMBERS: &[Pair] = &[
    pair("fwhost_connected", "klippy_connected"),
    pair("fwhost_state", "klippy_state"),
    pair("missing_fwhost_requirements", "missing_klippy_requirements"),
    pair("firmware_path", "klipper_path"),
    pair("core_stats", "moonraker_stats"),
    pair("spool_connected", "spoolman_connected"),
    pair("remote_rate_limit", "github_rate_limit"),
    pair("remote_requests_remaining", "github_requests_remaining"),
    pair("remote_limit_reset_time", "github_limit_reset_time"),
    pair("estimator_config_dump", "klipper_estimator_config"),
    pair("fwhost_uds_address", "klippy_uds_address"),
];

/// Prefixes of route and method names with two forms (`/machine/led/…` and `machine.led.…`); the rest of the name is equal.
pub const GROUPS: &[Pair] =
    &[pair("server/spool", "server/spoolman"), pair("machine/led", "machine/wled"), pair("api/files/core", "api/files/moonraker")];

/// Whole routes with two forms.
pub const ROUTES: &[Pair] = &[
    pair("/fwhostsocket", "/klippysocket"),
    pair("/server/files/core.log", "/server/files/moonraker.log"),
    pair("/server/files/fwhost.log", "/server/files/klippy.log"),
    pair("/machine/update/core", "/machine/update/moonraker"),
    pair("/machine/update/firmware", "/machine/update/klipper"),
];

/// Notifications with two names; both are sent.
pub const NOTIFICATIONS: &[Pair] = &[
    pair("notify_fwhost_ready", "notify_klippy_ready"),
    pair("notify_fwhost_shutdown", "notify_klippy_shutdown"),
    pair("notify_fwhost_disconnected", "notify_klippy_disconnected"),
    pair("notify_spool_status_changed", "notify_spoolman_status_changed"),
];

/// The two applications whose logs roll over.
pub const APP_CORE: Pair = pair("core", "moonraker");
/// The firmware, as an application.
pub const APP_FIRMWARE: Pair = pair("firmware", "klipper");

/// Services of the machine with two forms, each with its numbered instances (`klipper-2`).
pub const SERVICES: &[Pair] = &[APP_CORE, APP_FIRMWARE];

/// Source of users whose passwords a directory server checks; [`APP_CORE`] names the other one.
pub const SOURCE_LDAP: &str = "ldap";

/// `source` of announcements from feeds.
pub const ANNOUNCEMENT_SOURCE: Pair = pair("external", "moonlight");
/// The feeds of announcements that are always checked, named after the applications that they are about.
pub const DEFAULT_FEEDS: &[Pair] = &[APP_CORE, APP_FIRMWARE];

/// Names of the file with the identity of the installation in the data folder.
pub const IDENTITY_FILE: Pair = pair(".core.uuid", ".moonraker.uuid");

/// Names of the database of other servers in `database/`; ours has a name of its own.
pub const FOREIGN_DATABASE: Pair = pair("core-sql.db", "moonraker-sql.db");

/// Types of power devices with two forms; the others are called the same in both.
pub const POWER_TYPES: &[Pair] = &[
    pair("firmware_device", "klipper_device"),
    pair("smartplug_a", "tplink_smartplug"),
    pair("http_firmware_a", "tasmota"),
    pair("relay_a", "shelly"),
    pair("automation_a", "homeseer"),
    pair("automation_b", "homeassistant"),
    pair("automation_c", "loxonev1"),
    pair("automation_d", "smartthings"),
    pair("lighting_a", "hue"),
    pair("usbhub", "uhubctl"),
];

/// The database namespace of the server's own records; kept under the neutral name.
pub const CORE_NAMESPACE: Pair = pair("core", "moonraker");

/// Names of the unix socket in `comms/`.
pub const SOCKET_FILE: Pair = pair("core.sock", "moonraker.sock");
/// Names of the configuration file in `config/`, besides our own `bowsprit.conf`.
pub const CONFIG_FILE: Pair = pair("core.conf", "moonraker.conf");
/// Names of the secrets file in the data folder.
pub const SECRETS_FILE: Pair = pair("core.secrets", "moonraker.secrets");
/// Names of the certificate of HTTPS in `certs/`.
pub const CERTIFICATE_FILE: Pair = pair("core.cert", "moonraker.cert");
/// Names of its key.
pub const KEY_FILE: Pair = pair("core.key", "moonraker.key");
/// Names of the list of services that clients may start and stop, in the data folder.
pub const ALLOWED_SERVICES_FILE: Pair = pair("core.asvc", "moonraker.asvc");
/// Names of the service log in `logs/`.
pub const LOG_FILE: Pair = pair("core.log", "moonraker.log");

/// The macro that switches and sets LED strips.
pub const LED_STATE_MACRO: Pair = pair("set_led_state", "set_wled_state");
/// The macro that colours LED strips.
pub const LED_COLOR_MACRO: Pair = pair("set_led", "set_wled");

/// Pairs that stand in the same place, for documents and tests that go through all of them.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Where they stand.
    pub place: &'static str,
    /// Which.
    pub pairs: &'static [Pair],
}

/// Values with two forms. All are accepted in both; answers have the caller's form, database namespaces the one that they were asked for by.
pub const VALUES: &[Place] = &[
    Place { place: "`source` of users and logins, `default_source`, `available_sources`", pairs: &[APP_CORE] },
    Place { place: "`application`, `rolled_over` and `failed` of log rollover", pairs: &[APP_CORE, APP_FIRMWARE] },
    Place {
        place: "services of the machine, also with number (`klipper-2`): calls, `available_services`, `service_state`, `instance_ids`",
        pairs: SERVICES,
    },
    Place { place: "feeds of announcements", pairs: DEFAULT_FEEDS },
    Place { place: "`source` of announcements", pairs: &[ANNOUNCEMENT_SOURCE] },
    Place { place: "`type` of power devices, in the configuration and in answers", pairs: POWER_TYPES },
    Place { place: "database namespace of the server itself", pairs: &[CORE_NAMESPACE] },
];

/// Files with two names; where both are there, the neutral one counts.
pub const FILES: &[Place] = &[
    Place { place: "`config/` (our own name, `bowsprit.conf`, comes before both)", pairs: &[CONFIG_FILE] },
    Place { place: "`comms/`: the socket, and a link to it", pairs: &[SOCKET_FILE] },
    Place { place: "`logs/`", pairs: &[LOG_FILE] },
    Place { place: "data folder", pairs: &[SECRETS_FILE, ALLOWED_SERVICES_FILE, IDENTITY_FILE] },
    Place { place: "`database/`, read by `bowsprit import` only", pairs: &[FOREIGN_DATABASE] },
];

/// Methods with two names that gcode macros call; both are registered with the firmware host.
pub const MACROS: &[Pair] = &[LED_STATE_MACRO, LED_COLOR_MACRO];

/// Names under which known clients of the incumbent identify themselves (wire/4-clients.md section 0); a trailing `*` matches any ending.
const UPSTREAM_CLIENTS: &[&str] = &[
    "mainsail",
    "fluidd",
    "klipperscreen",
    "mobileraker*",
    "obico",
    "octoeverywhere",
    "octoapp",
    "helixscreen",
    "orcaslicer",
    "guppyscreen",
    "mooncord*",
    "moonraker*",
];

/// The other form of a result member.
#[must_use]
pub fn member_alias(name: &str) -> Option<&'static str> {
    // Called for every serialised struct field: most names are ruled out by their ending before any comparison.
    MEMBERS.iter().find(|pair| pair.neutral.len() == name.len() && pair.neutral == name).map(|pair| pair.upstream)
}

/// The other route of a neutral route.
#[must_use]
pub fn route_alias(route: &str) -> Option<String> {
    if let Some(pair) = ROUTES.iter().find(|pair| pair.neutral == route) {
        return Some(pair.upstream.to_owned());
    }
    GROUPS.iter().find_map(|group| {
        let rest = route.strip_prefix('/')?.strip_prefix(group.neutral)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("/{}{rest}", group.upstream))
    })
}

/// The other method name of a neutral method.
#[must_use]
pub fn method_alias(method: &str) -> Option<String> {
    route_alias(&format!("/{}", method.replace('.', "/"))).map(|route| route[1..].replace('/', "."))
}

/// The other name of a notification.
#[must_use]
pub fn notification_alias(name: &str) -> Option<&'static str> {
    NOTIFICATIONS.iter().find(|pair| pair.neutral == name).map(|pair| pair.upstream)
}

/// The type of a power device, given by its neutral name, in a form.
#[must_use]
pub fn power_type(neutral: &'static str, form: Form) -> &'static str {
    POWER_TYPES.iter().find(|pair| pair.neutral == neutral).map_or(neutral, |pair| pair.in_form(form))
}

/// True when a client that identifies under this name reads the incumbent's values.
#[must_use]
pub fn is_upstream_client(client_name: &str) -> bool {
    let name = client_name.to_lowercase();
    UPSTREAM_CLIENTS.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_translate_whole_segments_only() {
        assert_eq!(route_alias("/server/spool/status").as_deref(), Some("/server/spoolman/status"));
        assert_eq!(method_alias("machine.led.get_strip").as_deref(), Some("machine.wled.get_strip"));
        assert_eq!(method_alias("machine.update.core").as_deref(), Some("machine.update.moonraker"));
        assert_eq!(route_alias("/server/spoolish"), None);
        assert_eq!(method_alias("server.info"), None);
    }

    #[test]
    fn no_name_stands_twice() {
        for table in [MEMBERS, GROUPS, ROUTES, NOTIFICATIONS, POWER_TYPES, MACROS] {
            let mut names: Vec<_> = table.iter().flat_map(|pair| [pair.neutral, pair.upstream]).collect();
            names.sort_unstable();
            let before = names.len();
            names.dedup();
            assert_eq!(before, names.len());
        }
    }

    #[test]
    fn known_clients_are_recognised_in_any_case() {
        assert!(is_upstream_client("KlipperScreen"));
        assert!(is_upstream_client("Mobileraker-ios"));
        assert!(!is_upstream_client("my dashboard"));
    }
}
