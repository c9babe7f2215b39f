//! From configuration files to the settings of every component: reading, defaults, what nobody asked for, and the last good state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use access::LdapOptions;
use config::{Chosen, Context, Document, OptionSet, Reader, Secrets, SectionDoc, Source};
use devices::power::{self, PowerDevice};
use devices::settings::InstrumentSettings;
use files::FileManagerOptions;
use integrations::{AnnouncementOptions, DiscoveryOptions, MqttSection, SlicerApiOptions, WebcamOptions};
use jobs::{HistoryOptions, JobQueueOptions};
use machine::MachineOptions;
use printer::DataStoreOptions;
use protocol::Form;
use serde_json::{Map, Value};
use server::{ConfigReport, DatabaseOptions};
use template::RenderedPath;

use crate::build::COMPONENTS;
use crate::data_folder::{DataFolder, OWN_CONFIG_FILE, is_upstream_config};
use crate::disk::Disk;
use crate::web::WebOptions;

/// Largest secrets file that is read.
const MAX_SECRETS: usize = 1024 * 1024;

config::choices! {
    /// Which form of two-form values callers read who do not say it.
    pub enum ValueForm {
        /// The specification's words.
        Neutral = "neutral",
        /// The words of existing clients.
        Upstream = "upstream",
    }
}

config::options! {
    /// Where and how the server listens.
    pub struct ServerOptions: "server" {
        /// Address to listen on; `all` means IPv4 and IPv6.
        host: String = "0.0.0.0",
        /// HTTP port.
        port: u16 { min 1 } = 7125,
        /// HTTPS port; it is opened when there is a certificate.
        ssl_port: u16 { min 1 } = 7130,
        /// Certificate for HTTPS in PEM, with those between it and a known authority. Unset: `certs/core.cert` with `certs/core.key` in the data folder, or `certs/moonraker.cert` with `certs/moonraker.key`, where both files are there.
        ssl_certificate_path: Option<PathBuf> = None,
        /// Its key in PEM, without a password. Given together with the certificate or not at all.
        ssl_key_path: Option<PathBuf> = None,
        /// Whether a certificate is made where there is none. Browsers warn about it once; its fingerprint is in the log.
        self_made_certificate: bool = false,
        /// Whether requests of other machines by HTTP are sent to HTTPS. Programs on this machine, proxies among them, stay with HTTP.
        redirect_to_https: bool = false,
        /// Unix socket of the firmware host.
        fwhost_uds_address ["klippy_uds_address"]: RenderedPath = "/tmp/klippy_uds",
        /// Prefix of every route, for several servers behind one proxy.
        route_prefix: Option<String> = None,
        /// Largest upload in MiB.
        max_upload_size: u32 { min 1 } = 1024,
        /// Websockets that may be open at once.
        max_websocket_connections: u32 { min 1, max 2000 } = 500,
        /// Formerly: a more talkative log.
        enable_debug_logging: bool { deprecated "start the server with the flag `--verbose`" } = false,
        /// Which form of values callers read who do not say it: `neutral` or `upstream`. Unset: `upstream` when the configuration in use is a `moonraker.conf`, else `neutral`.
        vocabulary: Option<ValueForm> = None,
    }
}

config::choices! {
    /// Where the password of a login that names no source is checked.
    pub enum DefaultSource {
        /// In our own database.
        Core = "core" | "moonraker",
        /// By the configured directory server.
        Ldap = "ldap",
    }
}

config::options! {
    /// Who may use the server. Nobody is trusted by address unless it is listed here.
    pub struct AuthorizationOptions: "authorization" {
        /// Addresses, networks (`192.168.1.0/24`) and host names, one a line, that need no credentials. Host names are looked up every few minutes; who asks from one of their addresses is trusted.
        trusted_clients: Vec<String> = &[],
        /// Origins of pages that may use the API from a browser, one a line; `*` stands for any run of characters. A public name under which this server itself is reached belongs here, too: trust in an address does not hold for names that anybody could register and point at the printer.
        cors_domains: Vec<String> = &[],
        /// Addresses of reverse proxies, one a line, whose `X-Forwarded-For` and `X-Real-Ip` headers are believed. From anybody else such a header removes the trust in the address. Unset: loopback when the configuration in use is a `moonraker.conf`, else none.
        trusted_proxies: Option<Vec<String>> = None,
        /// Whether API keys are accepted.
        enable_api_key: bool = true,
        /// Days after which a login has to be repeated.
        login_timeout: u32 { min 1, max 3650 } = 90,
        /// Failed logins of one address that are free. After each further one the address has to wait, at first 10 seconds, then twice as long each time, up to 15 minutes.
        max_login_attempts: u32 { min 1, max 1000 } = 5,
        /// Trusted clients need a login as well, from the first user on.
        force_logins: bool = false,
        /// Where the password of a login that names no source is checked: `core` (own database) or `ldap`.
        default_source: DefaultSource = DefaultSource::Core,
    }
}

/// Everything that the configuration says.
pub struct Settings {
    /// `[server]`.
    pub server: ServerOptions,
    /// `[authorization]`.
    pub authorization: AuthorizationOptions,
    /// `[web]`.
    pub web: WebOptions,
    /// `[ldap]`, when it is there and without faults.
    pub ldap: Option<LdapOptions>,
    /// Components whose sections cannot be used.
    pub failed_components: Vec<&'static str>,
    /// `[file_manager]`.
    pub file_manager: FileManagerOptions,
    /// `[data_store]`.
    pub data_store: DataStoreOptions,
    /// `[job_queue]`.
    pub job_queue: JobQueueOptions,
    /// `[announcements]`.
    pub announcements: AnnouncementOptions,
    /// `[machine]`.
    pub machine: MachineOptions,
    /// `[webcam name]`, by name; faulty ones are left out.
    pub webcams: Vec<(String, WebcamOptions)>,
    /// `[database]`.
    pub database: DatabaseOptions,
    /// `[octoprint_compat]`.
    pub slicer_api: SlicerApiOptions,
    /// `[power name]`; faulty ones are left out.
    pub power: Vec<PowerDevice>,
    /// `[zeroconf]`, when there is one that can be used.
    pub discovery: Option<DiscoveryOptions>,
    /// `[mqtt]`, when there is one that can be used.
    pub mqtt: Option<MqttSection>,
    /// Strips and sensors that can be used.
    pub instruments: InstrumentSettings,
    /// True when the configuration was written for the incumbent.
    pub is_upstream: bool,
    /// For `server.config`.
    pub report: ConfigReport,
    /// For server info.
    pub warnings: Vec<String>,
    /// True when every value could be used; options and sections that nobody knows do not count.
    pub is_sound: bool,
}

impl Settings {
    /// The form of values for callers who do not say which they read.
    pub fn default_form(&self) -> Form {
        match self.server.vocabulary {
            Some(ValueForm::Neutral) => Form::Neutral,
            Some(ValueForm::Upstream) => Form::Upstream,
            None if self.is_upstream => Form::Upstream,
            None => Form::Neutral,
        }
    }

    /// Reads the configuration. Never fails: what cannot be used is replaced by the last good state or by defaults, and a warning says so.
    pub fn load(data: &DataFolder, named: Option<&Path>) -> Self {
        let path = named.map(Path::to_owned).or_else(|| data.config_file());
        let Some(path) = path else {
            let expected = data.path().join("config").join(OWN_CONFIG_FILE);
            let warning =
                format!("There is no configuration file, so defaults are in use and nobody is trusted; expected {}", expected.display());
            return Self::read(data, &config::load_text(OWN_CONFIG_FILE, "[server]\n").document, false, vec![warning]);
        };
        let Chosen { document, source, problems: _, warnings } = config::load_or_last_good(&path, &Disk);
        let settings = Self::read(data, &document, is_upstream_config(&path), warnings);
        if source == Source::Main && settings.is_sound {
            keep_as_last_good(&path, &document);
        }
        settings
    }

    /// Everything that is wrong with the configuration at `path` or that nobody reads, without falling back and without writing anything.
    pub fn check(data: &DataFolder, path: &Path) -> Vec<String> {
        let loaded = config::load(path, &Disk);
        let mut problems: Vec<String> = loaded.problems.iter().chain(&loaded.warnings).map(ToString::to_string).collect();
        problems.extend(Self::read(data, &loaded.document, is_upstream_config(path), Vec::new()).warnings);
        problems
    }

    fn read(data: &DataFolder, document: &Document, is_upstream: bool, mut warnings: Vec<String>) -> Self {
        let context = Context { data_path: data.path().to_owned(), home: home(), secrets: secrets(data, &mut warnings) };
        let mut reader = Reader::new(document, &context);
        let server: ServerOptions = reader.read_or_default();
        let authorization: AuthorizationOptions = reader.read_or_default();
        let web = WebOptions::read(&mut reader);
        let (ldap, ldap_failed) = match LdapOptions::read(&mut reader) {
            Ok(options) => (options, None),
            Err(access::Faulty) => (None, Some(LdapOptions::SECTION)),
        };
        let file_manager: FileManagerOptions = reader.read_or_default();
        let data_store: DataStoreOptions = reader.read_or_default();
        let machine: MachineOptions = reader.read_or_default();
        let job_queue: JobQueueOptions = reader.read_or_default();
        let history: HistoryOptions = reader.read_or_default();
        let announcements = AnnouncementOptions::read(&mut reader);
        let webcams = WebcamOptions::read(&mut reader);
        let power = power::read(&mut reader, &context.secrets);
        let mqtt = MqttSection::read_one(&mut reader);
        let discovery = DiscoveryOptions::read_one(&mut reader);
        let instruments = InstrumentSettings::read(&mut reader, &context.secrets);
        let database: DatabaseOptions = reader.read_or_default();
        let slicer_api: SlicerApiOptions = reader.read_or_default();
        let faulty = |section, is_usable: bool| (!is_usable && document.section(section).is_some()).then_some(section);
        let faulty = [faulty(MqttSection::SECTION, mqtt.is_some()), faulty(DiscoveryOptions::SECTION, discovery.is_some())];
        let failed_components = ldap_failed.into_iter().chain(faulty.into_iter().flatten()).collect();
        let mut config = Map::new();
        for (section, options) in [
            (ServerOptions::SECTION, server.effective()),
            (AuthorizationOptions::SECTION, authorization.effective()),
            (WebOptions::SECTION, web.effective()),
            (FileManagerOptions::SECTION, file_manager.effective()),
            (DataStoreOptions::SECTION, data_store.effective()),
            (MachineOptions::SECTION, machine.effective()),
            (JobQueueOptions::SECTION, job_queue.effective()),
            (HistoryOptions::SECTION, history.effective()),
            (DatabaseOptions::SECTION, database.effective()),
            (AnnouncementOptions::SECTION, announcements.effective()),
            (SlicerApiOptions::SECTION, slicer_api.effective()),
        ] {
            config.insert(section.to_owned(), Value::Object(options));
        }
        if let Some(ldap) = &ldap {
            config.insert(LdapOptions::SECTION.to_owned(), Value::Object(ldap.effective()));
        }
        for (name, webcam) in &webcams {
            config.insert(format!("webcam {name}"), Value::Object(webcam.effective()));
        }
        for device in &power {
            config.insert(format!("power {}", device.name), Value::Object(device.effective.clone()));
        }
        if let Some(discovery) = &discovery {
            config.insert(DiscoveryOptions::SECTION.to_owned(), Value::Object(discovery.effective()));
        }
        if let Some(mqtt) = &mqtt {
            config.insert(MqttSection::SECTION.to_owned(), Value::Object(mqtt.effective()));
        }
        instruments.add_effective(&mut config);
        // A section may name a component that has no options, as `[secrets]` of older installations does.
        COMPONENTS.iter().for_each(|component| reader.usage.section(component));
        let is_sound = reader.problems.is_empty();
        warnings.extend(reader.problems.iter().map(ToString::to_string));
        warnings.extend(reader.warnings.iter().map(ToString::to_string));
        warnings.extend(config::unparsed(document, &reader.usage));
        let files = document.files().iter().map(|file| server::ConfigFile::new(file.name.clone(), file.sections.clone())).collect();
        let orig: BTreeMap<_, _> = document.orig().into_iter().collect();
        let report = ConfigReport { config: Value::Object(config), orig: serde_json::to_value(orig).unwrap_or_default(), files };
        Self {
            server,
            authorization,
            web,
            ldap,
            failed_components,
            file_manager,
            data_store,
            machine,
            job_queue,
            announcements,
            database,
            slicer_api,
            webcams,
            power,
            mqtt,
            discovery,
            instruments,
            is_upstream,
            report,
            warnings,
            is_sound,
        }
    }
}

/// Documentation of every section, for the reference.
pub fn sections() -> Vec<SectionDoc> {
    let mut sections = vec![
        ServerOptions::describe(),
        AuthorizationOptions::describe(),
        WebOptions::describe(),
        LdapOptions::describe(),
        FileManagerOptions::describe(),
        DataStoreOptions::describe(),
        MachineOptions::describe(),
        JobQueueOptions::describe(),
        HistoryOptions::describe(),
        AnnouncementOptions::describe(),
        WebcamOptions::describe(),
        MqttSection::describe(),
        DiscoveryOptions::describe(),
        DatabaseOptions::describe(),
        SlicerApiOptions::describe(),
    ];
    sections.extend(InstrumentSettings::sections());
    sections.extend(power::sections());
    sections
}

/// Home folder of the user that runs the server.
pub fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from)
}

fn secrets(data: &DataFolder, warnings: &mut Vec<String>) -> Secrets {
    let Some(path) = data.secrets_file() else { return Secrets::default() };
    match config::FileSystem::read(&Disk, &path, MAX_SECRETS) {
        Ok(content) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let (secrets, problems) = Secrets::parse(&name, &content.bytes);
            warnings.extend(problems.iter().map(ToString::to_string));
            secrets
        }
        Err(error) => {
            warnings.push(format!("The secrets file {} cannot be read: {error}", path.display()));
            Secrets::default()
        }
    }
}

/// Keeps a configuration without faults, so that a later broken one can be replaced by it.
fn keep_as_last_good(path: &Path, document: &Document) {
    let backup = config::backup_path(path);
    let text = document.to_text();
    if std::fs::read_to_string(&backup).is_ok_and(|kept| kept == text) {
        return;
    }
    let temporary = backup.with_extension("bkp.new");
    let written = std::fs::write(&temporary, text)
        .and_then(|()| std::fs::File::open(&temporary)?.sync_all())
        .and_then(|()| std::fs::rename(&temporary, &backup));
    if let Err(error) = written {
        tracing::warn!(%error, "the last good configuration could not be kept");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(config: &str) -> (tempfile::TempDir, DataFolder, PathBuf) {
        let temporary = tempfile::tempdir().unwrap();
        let data = DataFolder::prepare(temporary.path()).unwrap();
        let path = data.path().join("config/bowsprit.conf");
        std::fs::write(&path, config).unwrap();
        (temporary, data, path)
    }

    #[test]
    fn a_broken_configuration_gives_way_to_the_last_good_one() {
        let (_keep, data, path) = data("[server]\nport: 7999\n");
        assert_eq!(Settings::load(&data, None).server.port, 7999);
        std::fs::write(&path, "[server\nport: 1\n").unwrap();
        let settings = Settings::load(&data, None);
        assert_eq!(settings.server.port, 7999);
        assert!(settings.warnings[0].contains("has errors"), "{:?}", settings.warnings);
        assert!(settings.warnings.iter().any(|warning| warning.contains("bowsprit.conf:1:")), "{:?}", settings.warnings);
    }

    #[test]
    fn sections_that_nobody_knows_do_not_keep_a_configuration_from_being_good() {
        let (_keep, data, path) = data("[server]\nport: 7999\n[update_manager]\nchannel: dev\n");
        assert_eq!(Settings::load(&data, None).warnings.len(), 1);
        std::fs::write(&path, "[server\nport: 1\n").unwrap();
        assert_eq!(Settings::load(&data, None).server.port, 7999);
        std::fs::write(&path, "[server]\nport: many\n").unwrap();
        Settings::load(&data, None);
        std::fs::write(&path, "[server\n").unwrap();
        assert_eq!(Settings::load(&data, None).server.port, 7999, "a faulty value is not kept");
    }

    #[test]
    fn bad_values_fall_back_and_are_named() {
        let (_keep, data, _) = data("[server]\nport: many\nhost: 1.2.3.4\n[spoolman]\nserver: http://127.0.0.1:1\n");
        let settings = Settings::load(&data, None);
        assert_eq!((settings.server.port, settings.server.host.as_str()), (7125, "1.2.3.4"));
        assert!(settings.warnings.iter().any(|warning| warning.starts_with("bowsprit.conf:2: [server] port:")), "{:?}", settings.warnings);
        assert!(settings.warnings.iter().any(|warning| warning.starts_with("Unparsed config section [spoolman]")));
    }

    #[test]
    fn what_configurations_of_other_servers_carry_without_need_is_no_fault() {
        let (_keep, data, path) = data("[server]\n[secrets]\n[extensions]\n[machine]\nvalidate_service: False\nvalidate_config: False\n");
        assert_eq!(Settings::check(&data, &path), Vec::<String>::new());
        std::fs::write(&path, "[server]\nenable_debug_logging: False\n[extensions]\nx: 1\n").unwrap();
        let problems = Settings::check(&data, &path);
        assert!(problems[0].contains("enable_debug_logging: this option is deprecated"), "{problems:?}");
        assert!(problems[1].starts_with("Unparsed config option 'x: 1' in section [extensions]") && problems.len() == 2, "{problems:?}");
    }

    #[test]
    fn without_a_file_defaults_are_in_use_and_nobody_is_trusted() {
        let temporary = tempfile::tempdir().unwrap();
        let data = DataFolder::prepare(temporary.path()).unwrap();
        let settings = Settings::load(&data, None);
        assert_eq!(settings.server.port, 7125);
        assert!(settings.authorization.trusted_clients.is_empty());
        assert_eq!(settings.warnings.len(), 1);
    }

    #[test]
    fn the_form_of_values_follows_option_then_file_name() {
        let (_keep, data, path) = data("[server]\nvocabulary: upstream\n");
        assert_eq!(Settings::load(&data, None).default_form(), Form::Upstream);
        std::fs::write(&path, "[server]\n").unwrap();
        assert_eq!(Settings::load(&data, None).default_form(), Form::Neutral);
        std::fs::rename(&path, path.with_file_name("moonraker.conf")).unwrap();
        let settings = Settings::load(&data, None);
        assert_eq!(settings.default_form(), Form::Upstream);
        assert!(settings.is_upstream);
    }

    #[test]
    fn both_names_of_an_option_are_read_and_reported() {
        let (_keep, data, _) = data("[server]\nklippy_uds_address: /run/k.sock\n");
        let settings = Settings::load(&data, None);
        assert_eq!(settings.server.fwhost_uds_address.path(), Path::new("/run/k.sock"));
        for name in ["klippy_uds_address", "fwhost_uds_address"] {
            assert_eq!(settings.report.config["server"][name], "/run/k.sock");
        }
        assert_eq!(settings.report.orig["server"]["klippy_uds_address"], "/run/k.sock");
    }

    #[test]
    fn the_example_has_no_problems() {
        let (_keep, data, path) = data(include_str!("../../../examples/bowsprit.conf"));
        assert_eq!(Settings::check(&data, &path), Vec::<String>::new());
        assert_eq!(Settings::load(&data, None).authorization.trusted_clients, ["127.0.0.1", "::1"]);
    }
}
