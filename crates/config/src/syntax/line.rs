//! One physical line: tabs, comments, indentation.

/// Columns of a tab stop.
const TAB_WIDTH: usize = 4;

/// The visible part of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Columns before the first visible character.
    pub(super) indent: usize,
    /// Trimmed text without its comment, escapes resolved.
    pub(super) content: String,
}

impl Line {
    /// `None` for blank lines and comment lines.
    pub(super) fn read(raw: &str) -> Option<Self> {
        let visible = raw.trim_start();
        if visible.is_empty() || visible.starts_with(is_comment_mark) {
            return None;
        }
        let expanded = expand_tabs(raw);
        let indent = expanded.chars().take_while(|c| c.is_whitespace()).count();
        Some(Self { indent, content: without_comment(&expanded).trim().to_owned() })
    }
}

pub(super) fn is_comment_mark(c: char) -> bool {
    matches!(c, '#' | ';')
}

fn expand_tabs(raw: &str) -> String {
    let mut line = String::with_capacity(raw.len());
    let mut column = 0;
    for c in raw.chars() {
        if c == '\t' {
            let width = TAB_WIDTH - column % TAB_WIDTH;
            line.extend(std::iter::repeat_n(' ', width));
            column += width;
        } else {
            line.push(c);
            column += 1;
        }
    }
    line
}

fn without_comment(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut after_space = false;
    let mut chars = line.chars().peekable();
    while let Some(mut c) = chars.next() {
        if after_space && is_comment_mark(c) {
            break;
        }
        if after_space && c == '\\' {
            c = chars.next_if(|next| is_comment_mark(*next)).unwrap_or(c);
        }
        after_space = c.is_whitespace();
        kept.push(c);
    }
    kept
}

/// The reverse of comment removal: marks after a space get their backslash back.
pub(super) fn escaped(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut after_space = false;
    for c in line.chars() {
        if after_space && is_comment_mark(c) {
            text.push('\\');
        }
        after_space = c.is_whitespace();
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(raw: &str) -> String {
        Line::read(raw).map(|line| line.content).unwrap_or_default()
    }

    #[test]
    fn blank_and_comment_lines_vanish() {
        for raw in ["", "   ", "\t", "\r", "# x", "   ; x", "\t#"] {
            assert_eq!(Line::read(raw), None, "{raw:?}");
        }
    }

    #[test]
    fn tabs_go_to_the_next_fourth_column() {
        assert_eq!(Line::read("\ta").unwrap().indent, 4);
        assert_eq!(Line::read("  \ta").unwrap().indent, 4);
        assert_eq!(Line::read("    \ta").unwrap().indent, 8);
        assert_eq!(content("a\tb"), "a   b");
    }

    #[test]
    fn inline_comments_need_a_space_before() {
        assert_eq!(content("a: b # c"), "a: b");
        assert_eq!(content("a: b ; c # d"), "a: b");
        assert_eq!(content("a: b\t# c"), "a: b");
        assert_eq!(content("a: b#c;d"), "a: b#c;d");
    }

    #[test]
    fn escaped_marks_lose_the_backslash_only_after_a_space() {
        assert_eq!(content(r"a: b \# c \; d # e"), "a: b # c ; d");
        assert_eq!(content(r"a: b\# c\;"), r"a: b\# c\;");
        assert_eq!(content(r"a: b \x \\#"), r"a: b \x \\#");
        assert_eq!(content(r"a: \#\#"), r"a: #\#");
    }

    #[test]
    fn escaping_is_undone_by_reading() {
        for text in ["a # b", "a ; b ;c", "a#b", "x \\y"] {
            assert_eq!(content(&escaped(text)), text);
        }
    }
}
