//! Texts in quotes and numbers, as Python writes them.

use super::lexer::Token;

/// The text in quotes at the start, and the length of its source.
pub(super) fn quoted(source: &str) -> Option<(String, usize)> {
    let mut chars = source.char_indices();
    let (_, quote) = chars.next()?;
    let mut text = String::new();
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Some((text, at + c.len_utf8())),
            '\\' => escape(chars.next()?.1, &mut chars, &mut text)?,
            c => text.push(c),
        }
    }
    None
}

fn escape(c: char, rest: &mut std::str::CharIndices<'_>, text: &mut String) -> Option<()> {
    let simple = match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '\\' | '\'' | '"' => c,
        '\n' => return Some(()),
        'x' => code(rest, 2)?,
        'u' => code(rest, 4)?,
        'U' => code(rest, 8)?,
        '0'..='7' => octal(c, rest)?,
        other => {
            text.push('\\');
            other
        }
    };
    text.push(simple);
    Some(())
}

fn code(rest: &mut std::str::CharIndices<'_>, digits: usize) -> Option<char> {
    let mut code = 0;
    for _ in 0..digits {
        code = code * 16 + rest.next()?.1.to_digit(16)?;
    }
    char::from_u32(code)
}

fn octal(first: char, rest: &mut std::str::CharIndices<'_>) -> Option<char> {
    let mut code = first.to_digit(8)?;
    for _ in 0..2 {
        let Some(digit) = rest.clone().next().and_then(|(_, c)| c.to_digit(8)) else { break };
        code = code * 8 + digit;
        rest.next();
    }
    char::from_u32(code)
}

/// The number at the start, and the length of its source.
pub(super) fn number(source: &str) -> Option<(Token, usize)> {
    let bytes = source.as_bytes();
    for (prefix, radix) in [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)] {
        if let Some(rest) = source.strip_prefix(prefix) {
            let length = rest.find(|c: char| c != '_' && !c.is_digit(radix)).unwrap_or(rest.len());
            let value = i64::from_str_radix(&rest[..length].replace('_', ""), radix).ok()?;
            return Some((Token::Int(value), length + 2));
        }
    }
    let digits = |from: usize| {
        let end = bytes[from..].iter().position(|byte| !byte.is_ascii_digit() && *byte != b'_');
        end.map_or(bytes.len(), |length| from + length)
    };
    let mut end = digits(0);
    let mut is_float = false;
    // A dot belongs to the number only when a digit follows: `1.method` and `1..` are none.
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        is_float = true;
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            is_float = true;
            end = digits(end + 1 + sign);
        }
    }
    let plain = source[..end].replace('_', "");
    let token = if is_float { Token::Float(plain.parse().ok()?) } else { Token::Int(plain.parse().ok()?) };
    Some((token, end))
}
