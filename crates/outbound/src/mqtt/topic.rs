//! Names of topics, filters with wildcards, and which filter takes which topic (MQTT 5, section 4.7).

use super::MqttError;

/// Bytes of a topic or filter, as the protocol has it.
const MAX_TOPIC: usize = 65535;

/// Checks the name of a topic: something that can be published to, so without wildcards.
///
/// # Errors
/// [`MqttError::BadTopic`].
pub fn check(topic: &str) -> Result<(), MqttError> {
    if has_wildcard(topic) {
        return Err(MqttError::BadTopic(topic.to_owned(), "expected no wildcards (+ and #)"));
    }
    check_text(topic)
}

/// Checks a filter: something that can be subscribed to.
///
/// # Errors
/// [`MqttError::BadTopic`].
pub fn check_filter(filter: &str) -> Result<(), MqttError> {
    check_text(filter)?;
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        let fine = match level {
            "#" => levels.peek().is_none(),
            "+" => true,
            other => !has_wildcard(other),
        };
        if !fine {
            return Err(MqttError::BadTopic(filter.to_owned(), "expected + and # as whole levels, # only as the last one"));
        }
    }
    Ok(())
}

/// True when wildcards stand in it.
#[must_use]
pub fn has_wildcard(filter: &str) -> bool {
    filter.contains(['+', '#'])
}

/// True when messages on `topic` go to those who subscribed to `filter`.
#[must_use]
pub fn matches(filter: &str, topic: &str) -> bool {
    // Topics of the broker itself are not meant by a wildcard at the start.
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut levels = topic.split('/');
    for wanted in filter.split('/') {
        match (wanted, levels.next()) {
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (wanted, Some(level)) if wanted == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

fn check_text(text: &str) -> Result<(), MqttError> {
    let fault = match text {
        "" => "expected a name",
        text if text.len() > MAX_TOPIC => "expected at most 65535 bytes",
        text if text.chars().any(char::is_control) => "expected no control characters",
        _ => return Ok(()),
    };
    let shown: String = text.chars().take(64).filter(|character| !character.is_control()).collect();
    Err(MqttError::BadTopic(shown, fault))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn filters_take_what_the_standard_says() {
        for (filter, topic) in [
            ("a/b", "a/b"),
            ("a/#", "a"),
            ("a/#", "a/b/c"),
            ("#", "a/b"),
            ("+/b", "a/b"),
            ("+", "a"),
            ("/+", "/a"),
            ("+/+", "/a"),
            ("a/+/c", "a//c"),
            ("$SYS/#", "$SYS/x"),
        ] {
            assert!(matches(filter, topic), "{filter} {topic}");
        }
        for (filter, topic) in [("a/b", "a"), ("a", "a/b"), ("+", "/a"), ("a/+", "a"), ("#", "$SYS/x"), ("+/x", "$SYS/x"), ("a/+", "a/b/c")]
        {
            assert!(!matches(filter, topic), "{filter} {topic}");
        }
    }

    #[test]
    fn wildcards_stand_alone_and_topics_have_none() {
        for filter in ["#", "+", "a/+/b/#", "a/b", "/"] {
            assert_eq!(check_filter(filter), Ok(()));
        }
        for filter in ["a#", "#/a", "a/b+", "", "a\0b"] {
            assert!(check_filter(filter).is_err(), "{filter:?}");
        }
        assert!(check("a/b").is_ok() && check("a/+").is_err() && check("").is_err() && check(&"x".repeat(70_000)).is_err());
    }

    proptest! {
        /// A filter made from a topic by putting wildcards in takes that topic.
        #[test]
        fn a_filter_takes_the_topics_that_it_was_made_from(levels in prop::collection::vec("[a-z]{0,3}", 1..6), plus in any::<u8>(), cut in 0..7_usize) {
            let topic = levels.join("/");
            let mut filter: Vec<&str> = levels.iter().enumerate().map(|(n, level)| if plus >> n & 1 == 1 { "+" } else { level.as_str() }).collect();
            if cut < filter.len() {
                filter.truncate(cut);
                filter.push("#");
            }
            prop_assert!(matches(&filter.join("/"), &topic));
            prop_assert!(topic.is_empty() || check(&topic).is_ok() && check_filter(&filter.join("/")).is_ok());
        }

        /// Without wildcards a filter takes itself and nothing else; no text breaks the checks.
        #[test]
        fn a_filter_without_wildcards_takes_only_itself(filter in "[ab/$]{1,6}", topic in "[ab/$]{1,6}", any in ".*") {
            prop_assert_eq!(matches(&filter, &topic), filter == topic);
            let _ = (check(&any), check_filter(&any), matches(&any, &topic), matches(&filter, &any));
        }
    }
}
