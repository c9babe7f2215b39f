//! What the components are made of: from the settings to what each one asks for.

use std::path::PathBuf;
use std::sync::Arc;

use access::{Accounts, Directory, LdapDirectory};
use devices::button;
use devices::gpio::Gpio;
use devices::power::{self, Power};
use devices::script::Scripts;
use files::{Files, FilesSettings};
use fwhost::{FwHost, HostEvent};
use integrations::{MqttService, SlicerApi, announcements};
use protocol::version::CORE_VERSION;
use protocol::webcam::Webcam;
use rpc::{Connections, UserSource};
use server::Warnings;
use store::Store;
use tokio::sync::watch;
use uuid::Uuid;

use super::{BuildError, SCHEMAS};
use crate::data_folder::DataFolder;
use crate::print_control::PrinterControl;
use crate::settings::{self, DefaultSource, Settings};
use crate::slicer_prints::SlicerPrints;

/// Folders besides the home folder that links in the roots have always been allowed to lead to.
const MEDIA: &[&str] = &["/media", "/mnt"];

pub(super) fn open_store(data: &DataFolder, warnings: &Warnings, failed: &mut Vec<String>) -> Result<Store, BuildError> {
    let path = data.database_file();
    match Store::open_or_restore(&path, &data.database_backups(), SCHEMAS) {
        Ok(opened) => {
            opened.warnings.iter().for_each(|warning| warnings.add(warning));
            Ok(opened.store)
        }
        Err(error) => {
            warnings.add(format!("The database {} cannot be used: {error}. Nothing is kept until this is solved.", path.display()));
            failed.push("database".to_owned());
            Store::in_memory(SCHEMAS).map_err(|error| BuildError(format!("no database can be opened: {error}")))
        }
    }
}

pub fn open_files(
    data: &DataFolder,
    settings: &Settings,
    store: &Store,
    connections: &Arc<Connections>,
    control: &Arc<PrinterControl>,
) -> Result<Arc<Files>, BuildError> {
    let files = FilesSettings {
        max_upload_size: u64::from(settings.server.max_upload_size) * 1024 * 1024,
        link_targets: link_targets(settings),
        options: settings.file_manager.clone(),
        ..FilesSettings::new(data.path())
    };
    Files::open(files, store.clone(), connections.clone(), control.clone()).map_err(|error| BuildError(error.to_string()))
}

pub fn announcement_settings(data: &DataFolder, settings: &Settings) -> announcements::Settings {
    announcements::Settings { options: settings.announcements.clone(), folder: data.path().join("development/announcements") }
}

pub(super) fn identity(data: &DataFolder, warnings: &Warnings) -> Uuid {
    data.identity().unwrap_or_else(|error| {
        warnings.add(format!("The identity of the installation cannot be kept, so ids of configured webcams change: {error}"));
        Uuid::new_v4()
    })
}

pub(super) fn configured_webcams(settings: &Settings, installation: Uuid) -> Vec<Webcam> {
    settings.webcams.iter().map(|(name, webcam)| webcam.entry(name, installation)).collect()
}

/// Where links in the roots may lead. Installations that come from the incumbent have such links, to sticks and shared folders.
pub(super) fn link_targets(settings: &Settings) -> Vec<PathBuf> {
    let usual = || {
        // A home folder that is the whole file system, as some containers have it, would open everything.
        let home = settings::home().filter(|home| home.is_absolute() && home.parent().is_some());
        home.into_iter().chain(MEDIA.iter().map(PathBuf::from)).collect()
    };
    match &settings.file_manager.link_targets {
        Some(targets) => targets.clone(),
        None if settings.is_upstream => usual(),
        None => Vec::new(),
    }
}

pub(super) fn gate_settings(settings: &Settings) -> access::Settings {
    let options = &settings.authorization;
    access::Settings {
        trusted_clients: options.trusted_clients.clone(),
        cors_domains: options.cors_domains.clone(),
        trusted_proxies: options.trusted_proxies.clone().unwrap_or_default(),
        loopback_is_proxy: options.trusted_proxies.is_none() && settings.is_upstream,
        own_name: crate::host_name(),
    }
}

/// The API that slicers know.
pub fn slicer_api(settings: &Settings, host: &FwHost, files: &Arc<Files>, control: &Arc<PrinterControl>) -> Arc<SlicerApi> {
    let queues = settings.file_manager.queue_gcode_uploads;
    let prints = SlicerPrints { files: files.clone(), control: control.clone(), queues };
    SlicerApi::new(settings.slicer_api.clone(), host.clone(), Arc::new(prints))
}

/// Users and keys; nobody until they are loaded.
pub fn open_accounts(settings: &Settings, store: &Store, connections: &Arc<Connections>) -> Arc<Accounts> {
    let options = &settings.authorization;
    let host = crate::host_name();
    let options = access::Options {
        enable_api_key: options.enable_api_key,
        login_timeout: options.login_timeout,
        max_login_attempts: options.max_login_attempts,
        force_logins: options.force_logins,
        users_may_be_lost: store.may_lack_records(),
        default_source: match options.default_source {
            DefaultSource::Core => UserSource::Core,
            DefaultSource::Ldap => UserSource::Ldap,
        },
        issuer: format!("http://{host}:{}", settings.server.port),
    };
    let directory = settings.ldap.as_ref().map(|options| Arc::new(LdapDirectory::new(options)) as Arc<dyn Directory>);
    Accounts::new(store, connections.clone(), options, directory)
}

/// The power devices of the configuration.
pub(super) fn open_power(settings: &mut Settings, parts: &power::Parts, warnings: &Warnings) -> Arc<Power> {
    let mut devices = std::mem::take(&mut settings.power);
    let services = parts.services.as_deref();
    devices.iter_mut().flat_map(|device| device.drop_unusable_services(services)).for_each(|warning| warnings.add(warning));
    Power::new(devices, parts)
}

/// Shows what is wrong with a part of the server for as long as it is.
pub(super) fn notice(warnings: &Warnings) -> button::Warn {
    let warnings = warnings.clone();
    Arc::new(move |part, fault| match fault {
        Some(text) => warnings.set(part, text),
        None => warnings.clear(part),
    })
}

/// What power devices are made of, services of the machine aside.
pub fn power_parts(
    host: &FwHost,
    connections: &Arc<Connections>,
    client: &outbound::Client,
    mqtt: Option<&MqttService>,
    gpio: &Gpio,
    scripts: &Arc<Scripts>,
) -> power::Parts {
    power::Parts {
        host: host.clone(),
        connections: connections.clone(),
        client: client.clone(),
        mqtt: mqtt.map(|mqtt| (mqtt.client.clone(), mqtt.default_qos)),
        gpio: gpio.clone(),
        scripts: scripts.clone(),
        services: None,
    }
}

pub fn fwhost_options(settings: &Settings) -> fwhost::Options {
    fwhost::Options {
        temperature_store_size: settings.data_store.temperature_store_size as usize,
        gcode_store_size: settings.data_store.gcode_store_size as usize,
        ..fwhost::Options::new(settings.server.fwhost_uds_address.path(), "Bowsprit", CORE_VERSION)
    }
}

/// Whether the firmware host is connected, for bridges.
pub(super) fn connected(host: &FwHost) -> watch::Receiver<bool> {
    let (sender, receiver) = watch::channel(false);
    host.on_event(move |event| match event {
        HostEvent::Connected => drop(sender.send_replace(true)),
        HostEvent::Disconnected => drop(sender.send_replace(false)),
        _ => {}
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_may_lead_home_only_with_the_configuration_of_the_incumbent() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::prepare(folder.path()).unwrap();
        let targets = |name: &str, text: &str| {
            let path = data.path().join("config").join(name);
            std::fs::write(&path, text).unwrap();
            let targets = link_targets(&Settings::load(&data, Some(&path)));
            std::fs::remove_file(path).unwrap();
            targets
        };
        assert!(targets("bowsprit.conf", "[server]\n").is_empty());
        let usual = targets("moonraker.conf", "[server]\n");
        assert!(usual.contains(&PathBuf::from("/media")) && usual.contains(&PathBuf::from("/mnt")) && !usual.contains(&PathBuf::from("/")));
        assert_eq!(targets("moonraker.conf", "[server]\n[file_manager]\nlink_targets:\n  /srv\n"), [PathBuf::from("/srv")]);
    }
}
