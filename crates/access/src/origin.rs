//! Cross-origin rules: which pages may read answers and open websockets.

use std::net::IpAddr;

/// Patterns of `cors_domains`: literal text in which `*` stands for any run of characters, matched against the whole origin.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins(Vec<String>);

impl Origins {
    /// Reads the entries; every one that is too open or malformed becomes a warning.
    pub(crate) fn parse(entries: &[String], warnings: &mut Vec<String>) -> Self {
        let mut patterns = Vec::new();
        for entry in entries.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty()) {
            match fault(entry) {
                None => patterns.push(entry.to_owned()),
                Some(reason) => warnings.push(format!("[authorization] cors_domains: '{entry}' is not used: {reason}")),
            }
        }
        Self(patterns)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn allows(&self, origin: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, origin))
    }
}

fn fault(entry: &str) -> Option<&'static str> {
    if entry.ends_with('/') {
        return Some("an origin has no trailing slash");
    }
    // A wildcard in the last label would open the server to whole top level domains.
    let host_end = entry.rfind(':').filter(|colon| !entry[*colon..].starts_with("://")).unwrap_or(entry.len());
    let last_label = entry[..host_end].rfind('.').filter(|dot| *dot > 0).map(|dot| &entry[dot + 1..host_end]);
    last_label.is_some_and(|label| label.contains('*')).then_some("a wildcard in the top level domain is too open")
}

/// Matches without backtracking over more than the last `*`.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p, t));
            p += 1;
        } else if p < pattern.len() && pattern[p].eq_ignore_ascii_case(&text[t]) {
            p += 1;
            t += 1;
        } else if let Some((star_p, star_t)) = star {
            p = star_p + 1;
            t = star_t + 1;
            star = Some((star_p, star_t + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Host and port of an origin: `http://a:1` → `a:1`.
pub(crate) fn authority(origin: &str) -> Option<&str> {
    origin.split_once("://").map(|(_, authority)| authority)
}

/// Endings of names that nobody outside can own. Missing on purpose: `.box`, under which anybody can register a name, and `.ts.net`, `.router` and
/// others of which it is not certain that nobody else ever can. Their owners list the name in `cors_domains`.
const LOCAL_ENDINGS: &[&str] = &[
    // Reserved: RFC 6761, RFC 6762, RFC 8375, and by ICANN for private networks.
    ".local",
    ".localhost",
    ".test",
    ".home.arpa",
    ".internal",
    // In use in so many private networks that the public root does not give them out: RFC 6762 appendix G, SAC045.
    ".lan",
    ".home",
    ".corp",
    ".localdomain",
    ".intranet",
    ".private",
    // What routers call their network: registered by their makers, or below `ip`, which is no public domain.
    ".fritz.box",
    ".speedport.ip",
    ".attlocal.net",
    ".mynetworksettings.com",
];

/// True when the host of a `Host` header is an address, a name without dots, or a name of a local network.
pub(crate) fn is_local_name(host: &str) -> bool {
    if host.starts_with('[') || literal_address(&format!("http://{host}")).is_some() {
        return true;
    }
    let name = without_port(host).to_ascii_lowercase();
    !name.contains('.') || LOCAL_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The name in a `Host` header: `a:1` → `a`.
pub(crate) fn without_port(host: &str) -> &str {
    host.split(':').next().unwrap_or(host)
}

/// The address, when the host of an origin is an IP literal.
pub(crate) fn literal_address(origin: &str) -> Option<IpAddr> {
    let authority = authority(origin)?;
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split_once(']')?.0.parse().ok();
    }
    authority.split(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn origins(entries: &[&str]) -> (Origins, usize) {
        let mut warnings = Vec::new();
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        let origins = Origins::parse(&entries, &mut warnings);
        (origins, warnings.len())
    }

    #[test]
    fn patterns_match_whole_origins() {
        let (origins, warnings) = origins(&["*.local", "http://my.page:8080", "*://app.example.org"]);
        assert_eq!(warnings, 0);
        assert!(origins.allows("http://printer.local"));
        assert!(origins.allows("http://my.page:8080"));
        assert!(origins.allows("https://app.example.org"));
        assert!(!origins.allows("http://printer.local.evil.org"));
        assert!(!origins.allows("http://my.page"));
        assert!(!origins.allows("http://myxpage:8080"));
    }

    #[test]
    fn patterns_that_are_too_open_are_refused() {
        let (origins, warnings) = origins(&["*.*", "http://a.*", "http://a.b/", "http://printer.*:80"]);
        assert_eq!(warnings, 4);
        assert!(origins.is_empty());
    }

    #[test]
    fn literal_addresses_of_origins() {
        assert_eq!(literal_address("http://192.168.1.5:81"), "192.168.1.5".parse().ok());
        assert_eq!(literal_address("http://[fe80::1]:81"), "fe80::1".parse().ok());
        assert_eq!(literal_address("http://printer.local"), None);
        assert_eq!(literal_address("null"), None);
    }

    proptest! {
        #[test]
        fn a_pattern_without_wildcards_matches_only_itself(text in "[a-z.:/]{0,20}", other in "[a-z.:/]{0,20}") {
            prop_assert!(matches(&text, &text));
            prop_assert_eq!(matches(&text, &other), text == other);
        }

        #[test]
        fn matching_never_panics(pattern in ".{0,30}", text in ".{0,60}") {
            let _ = matches(&pattern, &text);
            let _ = fault(&pattern);
            let _ = literal_address(&text);
        }
    }
}
