//! Names of services. Those of the two applications have two forms, with their numbered instances (`klipper-2` is `firmware-2`): the manager
//! knows them by the incumbent's.

use protocol::vocabulary::{Pair, SERVICES};

/// Longest name of a service, as systemd has it.
const MAX_NAME: usize = 255;

/// The name without `.service`.
pub(crate) fn bare(name: &str) -> &str {
    name.strip_suffix(".service").unwrap_or(name)
}

/// True for names that systemd knows; nothing that looks like an option or a path.
pub(crate) fn is_name(name: &str) -> bool {
    let characters = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('-') && name.bytes().all(characters)
}

/// What follows the name of an application in the name of an instance: nothing, or a number.
pub(super) fn number<'n>(name: &'n str, application: &str) -> Option<&'n str> {
    let rest = name.strip_prefix(application)?;
    let digits = rest.strip_prefix(['-', '_']);
    let is_number = rest.is_empty() || digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    is_number.then_some(rest)
}

/// The name by which the manager knows a service that a client names.
pub(super) fn upstream(name: &str) -> String {
    renamed(name, |pair| (pair.neutral, pair.upstream))
}

/// The specification's name of a service.
pub(super) fn neutral(name: &str) -> String {
    renamed(name, |pair| (pair.upstream, pair.neutral))
}

fn renamed(name: &str, forms: fn(&Pair) -> (&'static str, &'static str)) -> String {
    let renamed = SERVICES.iter().map(forms).find_map(|(from, to)| Some(to.to_owned() + number(name, from)?));
    renamed.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_and_their_instances_have_two_names() {
        for (one, other) in [("core", "moonraker"), ("firmware", "klipper"), ("firmware-2", "klipper-2"), ("core_1", "moonraker_1")] {
            assert_eq!((upstream(one), neutral(other)), (other.to_owned(), one.to_owned()));
            assert_eq!((upstream(other), neutral(one)), (other.to_owned(), one.to_owned()));
        }
        for same in ["klipper_mcu", "firmware-x", "core-", "crowsnest", "bowsprit", "moonraker-obico", "cored", ""] {
            assert_eq!((upstream(same), neutral(same)), (same.to_owned(), same.to_owned()));
        }
    }
}
