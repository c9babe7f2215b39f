//! The Python interpreter that is installed: this server has none of its own, but clients show its version (design: empty where there is none).

use runtime::command::Command;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub(crate) struct Python {
    /// Three numbers, the kind of release, and a number.
    version: Vec<Part>,
    version_string: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
enum Part {
    Number(u32),
    Word(&'static str),
}

/// Asks `python3` for its version.
pub(super) async fn read() -> Python {
    match Command::new("python3").arg("--version").text().await {
        Ok(text) => parse(&text).unwrap_or_default(),
        Err(error) => {
            tracing::debug!(%error, "no Python");
            Python::default()
        }
    }
}

/// `Python 3.11.2`, or `Python 3.13.0rc2`.
fn parse(text: &str) -> Option<Python> {
    let version = text.trim().strip_prefix("Python ")?;
    let numbers = version.trim_end_matches('+');
    let end = numbers.find(|character: char| character != '.' && !character.is_ascii_digit()).unwrap_or(numbers.len());
    let (plain, suffix) = numbers.split_at(end);
    let mut parts = plain.split('.').map(|part| part.parse().ok().map(Part::Number));
    let mut parts = vec![parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(Part::Number(0))];
    let kinds = [("rc", "candidate"), ("a", "alpha"), ("b", "beta")];
    let kind = kinds.iter().find_map(|(prefix, kind)| Some((*kind, suffix.strip_prefix(prefix)?.parse().ok()?)));
    let (kind, serial) = kind.unwrap_or(("final", 0));
    parts.extend([Part::Word(kind), Part::Number(serial)]);
    Some(Python { version: parts, version_string: version.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn version(text: &str) -> String {
        serde_json::to_string(&parse(text).unwrap_or_default()).unwrap()
    }

    #[test]
    fn versions_have_the_shape_that_clients_know() {
        assert_eq!(version("Python 3.11.2\n"), r#"{"version":[3,11,2,"final",0],"version_string":"3.11.2"}"#);
        assert_eq!(version("Python 3.13.0rc2"), r#"{"version":[3,13,0,"candidate",2],"version_string":"3.13.0rc2"}"#);
        assert_eq!(version("Python 3.12.1+"), r#"{"version":[3,12,1,"final",0],"version_string":"3.12.1+"}"#);
        for other in ["", "Python", "Python x", "PyPy 3.1.1", "Python 3"] {
            assert_eq!(version(other), r#"{"version":[],"version_string":""}"#);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_version_or_nothing(text in "(Python )?[0-9.]{0,12}(rc|a|b|\\+)?[0-9]{0,25}|.{0,30}") {
            if let Some(python) = parse(&text) {
                prop_assert_eq!(python.version.len(), 5, "{}", text);
            }
        }
    }
}
