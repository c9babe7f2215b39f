//! Which services clients may start and stop: those of the allowed-services file, and instances of the applications themselves.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use protocol::vocabulary::ALLOWED_SERVICES_FILE;

use super::names::{bare, is_name, number};

/// Written when there is no file yet.
const DEFAULTS: &[&str] = &[
    "klipper_mcu",
    "webcamd",
    "MoonCord",
    "KlipperScreen",
    "moonraker-telegram-bot",
    "moonraker-obico",
    "sonar",
    "crowsnest",
    "octoeverywhere",
    "ratos-configurator",
];

/// Applications whose instances (`klipper`, `klipper-2`, `klipper_2`) need no entry.
const APPLICATIONS: &[&str] = &["klipper", "moonraker", "bowsprit"];

/// Lines of the file that are read.
const MAX_ENTRIES: usize = 1000;

/// The services that clients may touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Allowed(BTreeSet<String>);

impl Allowed {
    /// Reads the file in the data folder, under both of its names: installers of other programs add to the older one even where ours is there. Writes it when
    /// neither is.
    pub(crate) fn load(data: &Path) -> (Self, Option<String>) {
        let paths = [ALLOWED_SERVICES_FILE.neutral, ALLOWED_SERVICES_FILE.upstream].map(|name| data.join(name));
        let (mut found, mut warning) = (None, None);
        for path in &paths {
            match fs::read_to_string(path) {
                Ok(text) => found.get_or_insert_with(String::new).push_str(&(text + "\n")),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => warning = Some(format!("The list of allowed services {} cannot be read: {error}", path.display())),
            }
        }
        if found.is_some() || warning.is_some() {
            return (Self::parse(&found.unwrap_or_default()), warning);
        }
        let text = DEFAULTS.join("\n") + "\n";
        let warning = fs::write(&paths[0], &text)
            .err()
            .map(|error| format!("The list of allowed services {} cannot be written: {error}", paths[0].display()));
        (Self::parse(&text), warning)
    }

    fn parse(text: &str) -> Self {
        let names = text.lines().map(|line| bare(line.trim())).filter(|name| is_name(name));
        Self(names.take(MAX_ENTRIES).map(str::to_owned).collect())
    }

    /// True when clients may touch this service (named without its ending).
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains(name) || is_instance(name)
    }
}

fn is_instance(name: &str) -> bool {
    APPLICATIONS.iter().any(|application| number(name, application).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_file_is_written_once_and_read_under_both_names() {
        let data = tempfile::tempdir().unwrap();
        let (allowed, warning) = Allowed::load(data.path());
        assert!(allowed.has("crowsnest") && warning.is_none() && data.path().join("core.asvc").exists());
        fs::remove_file(data.path().join("core.asvc")).unwrap();
        fs::write(data.path().join("moonraker.asvc"), "sonar.service\n\n  my-camera \n--now\n../x\n").unwrap();
        let (allowed, _) = Allowed::load(data.path());
        assert_eq!(allowed, Allowed(["my-camera", "sonar"].map(str::to_owned).into()));
        assert!(!data.path().join("core.asvc").exists());
        fs::write(data.path().join("core.asvc"), "crowsnest").unwrap();
        assert_eq!(Allowed::load(data.path()).0, Allowed(["crowsnest", "my-camera", "sonar"].map(str::to_owned).into()));
    }

    #[test]
    fn instances_are_allowed_by_whole_names_only() {
        let allowed = Allowed::default();
        assert!(["klipper", "klipper-1", "moonraker_22", "bowsprit"].iter().all(|name| allowed.has(name)));
        let others = ["klipper-", "klipperscreen", "klipper-1x", "moonraker-obico", "xklipper", "klipper1", "", "sshd"];
        assert!(!others.iter().any(|name| allowed.has(name)));
    }

    proptest! {
        #[test]
        fn no_entry_can_be_an_option_or_a_path(text in ".{0,100}") {
            let entries = Allowed::parse(&text).0;
            prop_assert!(entries.iter().all(|name| !name.starts_with('-') && !name.contains(['/', ' ', '\n'])));
        }
    }
}
