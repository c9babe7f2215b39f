//! Versions that clients read.

/// Our own version, `core_version` of server info.
pub const CORE_VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// `moonraker_version` of server info: the program version whose API we speak, in the form that clients parse (three numbers, commit count,
/// hash). Front ends warn below v0.8.0-309; design.md section 7 asks for 0.10.0 at least.
pub const UPSTREAM_VERSION: &str = "v0.10.0-31-gb05521d";

/// Version of the public API (spec document 1, *Versioning*).
pub const API_VERSION: [u32; 3] = [1, 5, 0];

/// [`API_VERSION`] as text.
pub const API_VERSION_STRING: &str = "1.5.0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstream_version_has_the_form_that_clients_parse() {
        let (numbers, rest) = UPSTREAM_VERSION.strip_prefix('v').unwrap().split_once('-').unwrap();
        assert_eq!(numbers.split('.').filter(|part| part.parse::<u32>().is_ok()).count(), 3);
        let (count, hash) = rest.split_once('-').unwrap();
        assert!(count.parse::<u32>().is_ok());
        assert!(hash.starts_with('g') && hash[1..].chars().all(|c| c.is_ascii_hexdigit()));
        assert_eq!(API_VERSION.map(|part| part.to_string()).join("."), API_VERSION_STRING);
    }
}
