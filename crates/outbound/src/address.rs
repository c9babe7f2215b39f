//! Reading addresses, the one place where that is done.
//!
//! Host names are written in ASCII, in other scripts in their form `xn--…`, which is what name servers know. What the parser of names would have to
//! convert is refused before it sees it: it is built without the tables for that, and stumbles over some mixtures of letters.

use reqwest::Url;

/// Longest address in bytes.
const MAX_URL: usize = 8 * 1024;

/// Reads a complete address of any scheme.
///
/// # Errors
/// What is wrong with it, without repeating it: it may hold a password.
pub fn parse_url(text: &str) -> Result<Url, String> {
    check(text)?;
    Url::parse(text).map_err(|error| error.to_string())
}

/// Reads an address that may be relative to another one.
pub(crate) fn join(base: &Url, text: &str) -> Result<Url, String> {
    check(text)?;
    base.join(text).map_err(|error| error.to_string())
}

fn check(text: &str) -> Result<(), String> {
    if text.len() > MAX_URL {
        return Err(format!("it is longer than {MAX_URL} bytes"));
    }
    // The parser would leave these out, and what looks like a path here could become a host there.
    if text.contains(['\t', '\n', '\r']) {
        return Err("it holds control characters".to_owned());
    }
    match host(text) {
        Some(host) if !host.is_ascii() || host.contains('%') => {
            Err("names of hosts in other scripts are written in their ASCII form (`xn--…`)".to_owned())
        }
        _ => Ok(()),
    }
}

/// Host and port, as the parser would see them: any number of slashes of either kind is as good as two after a scheme. None in an address that
/// is relative to a host.
fn host(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(|character: char| character <= ' ');
    let is_scheme = |scheme: &str| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let (has_scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (true, rest),
        _ => (false, text),
    };
    let authority = rest.trim_start_matches(['/', '\\']);
    if !has_scheme && rest.len() - authority.len() < 2 {
        return None;
    }
    let authority = authority.split(['/', '\\', '?', '#']).next()?;
    Some(authority.rsplit_once('@').map_or(authority, |(_, host)| host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hosts_are_ascii_and_everything_else_may_be_anything() {
        for good in
            ["http://a/", "http://user:p%40\u{e4}@a:80/\u{e4}%20b?\u{e4}#\u{e4}", "HTTP://Example.org/\u{c4}b", "http://[fe80::1]:80/%41"]
        {
            assert!(parse_url(good).is_ok(), "{good}");
        }
        for bad in [
            "http://\u{c4}B/",
            "http://a%C3%84B/",
            "http:\\\\\u{e4}",
            "https:\u{e4}b/",
            " http:///\u{e4}",
            "http://u@\u{e4}",
            "ht\ttp://a/",
            "//a",
        ] {
            assert!(parse_url(bad).is_err(), "{bad}");
        }
        assert!(parse_url(&format!("http://x/{}", "a".repeat(MAX_URL))).is_err());
        let base = Url::parse("http://a/b/c").unwrap();
        assert_eq!(join(&base, "\u{e4}%20/x").unwrap().as_str(), "http://a/b/%C3%A4%20/x");
        assert!(join(&base, "//\u{c4}B/").is_err() && join(&base, "\\/a%C3%84/").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]
        #[test]
        fn no_address_breaks_the_parser(text in "(http:|HTTPS:|ws:|x:)?[/\\\\]{0,3}([a-zA-Z%C384:@.\u{c4}\u{e4}\u{df}\u{130}\u{5d0}-]{0,8}|xn--[a-zA-Z0-9-]{0,8}|.{0,8}){0,3}(/.{0,8})?") {
            let base = Url::parse("http://a/b/c").unwrap();
            let _ = parse_url(&text);
            let _ = join(&base, &text);
        }
    }
}
