//! File name patterns: `*`, `?`, `[a-z]`, `[!a-z]`.
//!
//! As in a shell, a leading dot must be written out: editors and desktop systems leave hidden files beside configurations.

/// True when `text` has characters with a meaning in patterns.
#[must_use]
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// True when the whole of `name` (one path component) fits `pattern`. Takes at most time proportional to the product of the lengths.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let tokens = tokens(pattern);
    let name: Vec<char> = name.chars().collect();
    let (mut token, mut at) = (0, 0);
    // Where to resume when the text after the latest `*` does not fit: that star takes one character more.
    let mut retry = None;
    while at < name.len() {
        match tokens.get(token) {
            Some(Token::Star) => {
                retry = Some((token + 1, at));
                token += 1;
            }
            Some(single) if single.accepts(name[at]) => {
                token += 1;
                at += 1;
            }
            _ => {
                let Some((after_star, taken)) = retry else {
                    return false;
                };
                retry = Some((after_star, taken + 1));
                token = after_star;
                at = taken + 1;
            }
        }
    }
    tokens[token..].iter().all(|token| matches!(token, Token::Star))
}

enum Token {
    Star,
    One,
    Char(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Token {
    fn accepts(&self, c: char) -> bool {
        match self {
            Self::Star => false,
            Self::One => true,
            Self::Char(own) => *own == c,
            Self::Class { negated, ranges } => ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated,
        }
    }
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        tokens.push(match c {
            '*' => Token::Star,
            '?' => Token::One,
            '[' => match class(rest) {
                Some((class, after)) => {
                    rest = after;
                    class
                }
                None => Token::Char('['),
            },
            c => Token::Char(c),
        });
    }
    tokens
}

/// Reads a class after its `[`; `None` when it is never closed, the bracket then stands for itself.
fn class(text: &str) -> Option<(Token, &str)> {
    let negated = text.starts_with('!');
    let body = &text[usize::from(negated)..];
    // A `]` in first place belongs to the class.
    let first = body.chars().next()?.len_utf8();
    let end = first + body[first..].find(']')?;
    let chars: Vec<char> = body[..end].chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if at + 2 < chars.len() && chars[at + 1] == '-' {
            ranges.push((chars[at], chars[at + 2]));
            at += 3;
        } else {
            ranges.push((chars[at], chars[at]));
            at += 1;
        }
    }
    Some((Token::Class { negated, ranges }, &body[end + 1..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_cover_whole_names() {
        let table = [
            ("*.conf", "a.conf", true),
            ("*.conf", "a.conf.bkp", false),
            ("*.conf", ".a.conf", false),
            (".*.conf", ".a.conf", true),
            ("?.conf", "ab.conf", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("[ab]x", "bx", true),
            ("[a-c]x", "dx", false),
            ("[!a-c]x", "dx", true),
            ("[]]x", "]x", true),
            ("[a-]x", "-x", true),
            ("[ax", "[ax", true),
            ("é?", "éü", true),
            ("**", "", true),
            ("", "", true),
            ("", "a", false),
        ];
        for (pattern, name, expected) in table {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn many_stars_stay_fast() {
        assert!(!matches(&format!("{}b", "a*".repeat(60)), &"a".repeat(5000)));
    }

    proptest! {
        #[test]
        fn plain_text_matches_itself_only(name in "[a-z.]{1,8}", other in "[a-z.]{1,8}") {
            prop_assert_eq!(matches(&name, &other), name == other);
        }

        #[test]
        fn never_panics(pattern in "\\PC{0,20}", name in "\\PC{0,20}") {
            let _ = matches(&pattern, &name);
        }

        #[test]
        fn a_star_stands_for_any_part(start in "[a-z]{1,4}", middle in "\\PC{0,6}", end in "[a-z]{0,4}") {
            let (pattern, name) = (format!("{start}*{end}"), format!("{start}{middle}{end}"));
            prop_assert!(matches(&pattern, &name));
            let masked: String = name.chars().map(|_| '?').collect();
            prop_assert!(matches(&masked, &name));
        }
    }
}
