//! List values: how slicers write several values on one line, and how several names become one string.

/// Splits a list (section 3.3). Separators are `,` and `;`; an element in quotes keeps those inside it. Elements are
/// trimmed and empty ones dropped.
pub(super) fn elements(value: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = value;
    while !rest.is_empty() {
        rest = rest.trim_start();
        let element;
        (element, rest) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_element(quoted),
            None => plain_element(rest),
        };
        let element = element.trim();
        if !element.is_empty() {
            found.push(element.to_owned());
        }
    }
    found
}

fn plain_element(text: &str) -> (String, &str) {
    let (element, rest) = text.split_once([',', ';']).unwrap_or((text, ""));
    (element.to_owned(), rest)
}

/// Reads up to the closing quote; what stands between that and the next separator is dropped.
fn quoted_element(text: &str) -> (String, &str) {
    let mut element = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (element, plain_element(&text[at + 1..]).1),
            '\\' if matches!(characters.peek(), Some((_, '"'))) => {
                element.push('"');
                characters.next();
            }
            other => element.push(other),
        }
    }
    (element, "")
}

/// One name as it is, several as the text of a JSON array; nothing for none (field 18 of section 3.4).
pub(super) fn one_or_json(names: Vec<String>) -> Option<String> {
    if names.len() < 2 {
        return names.into_iter().next();
    }
    let quoted: Vec<String> = names.iter().map(|name| json_string(name)).collect();
    Some(format!("[{}]", quoted.join(", ")))
}

/// A JSON string in which everything outside ASCII is escaped.
fn json_string(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let mut escaped = String::with_capacity(quoted.len());
    for character in quoted.chars() {
        if character.is_ascii() {
            escaped.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    escaped
}

/// The elements as integers; nothing if any is not one.
pub(super) fn integers(elements: &[String]) -> Option<Vec<i64>> {
    elements.iter().map(|element| element.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_and_quotes() {
        assert_eq!(elements(r#""PL;A";PETG"#), ["PL;A", "PETG"]);
        assert_eq!(elements(";#FF0000"), ["#FF0000"]);
        assert_eq!(elements(r#""say \"hi\"", b "#), ["say \"hi\"", "b"]);
        assert_eq!(elements(r#""open"#), ["open"]);
        assert_eq!(elements(" , ;;"), [""; 0]);
        assert_eq!(elements(""), [""; 0]);
        assert_eq!(elements("220,215"), ["220", "215"]);
    }

    #[test]
    fn several_names_are_json_text() {
        let names = |list: &[&str]| one_or_json(list.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(names(&[]), None);
        assert_eq!(names(&["Ä"]).as_deref(), Some("Ä"));
        assert_eq!(names(&["A\"", "Ä😀"]).as_deref(), Some(r#"["A\"", "\u00c4\ud83d\ude00"]"#));
    }

    #[test]
    fn one_wrong_integer_drops_the_list() {
        assert_eq!(integers(&elements("1,2")), Some(vec![1, 2]));
        assert_eq!(integers(&elements("1,2.5")), None);
        assert_eq!(integers(&[]), Some(vec![]));
    }
}
