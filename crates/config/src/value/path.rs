//! Paths: `~` and `{data_path}` are expanded, nothing else.

use std::path::PathBuf;

use serde_json::Value;

use super::{Context, OptionValue};

impl OptionValue for PathBuf {
    const EXPECTED: &'static str = "a path (`~` and `{data_path}` may be used)";
    type Literal = &'static str;

    fn parse(text: &str, context: &Context) -> Result<Self, String> {
        expand(text.trim(), context).filter(|path| !path.as_os_str().is_empty()).ok_or_else(|| Self::EXPECTED.to_owned())
    }

    fn from_literal(literal: &'static str, context: &Context) -> Self {
        expand(literal, context).unwrap_or_else(|| PathBuf::from(literal))
    }

    fn to_json(&self) -> Value {
        self.to_string_lossy().into()
    }
}

/// `None` when there is an expression other than `{data_path}`.
fn expand(text: &str, context: &Context) -> Option<PathBuf> {
    let mut path = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (expression, after) = after.split_once('}')?;
        if expression.trim() != "data_path" {
            return None;
        }
        path.push_str(before);
        path.push_str(&context.data_path.to_string_lossy());
        rest = after;
    }
    path.push_str(rest);
    let in_home = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    Some(match (in_home, &context.home) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    })
}
