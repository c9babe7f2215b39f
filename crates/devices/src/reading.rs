//! Options as tests read them.

use config::{Context, Reader};

/// What is read from a configuration, with the problems that its owner is told.
pub(crate) fn options<T>(text: &str, read: impl FnOnce(&mut Reader<'_>) -> T) -> (T, Vec<String>) {
    let loaded = config::load_text("c", text);
    let context = Context::default();
    let mut reader = Reader::new(&loaded.document, &context);
    let options = read(&mut reader);
    let mut problems: Vec<_> = reader.problems.iter().chain(&reader.warnings).map(ToString::to_string).collect();
    problems.extend(config::unparsed(&loaded.document, &reader.usage).iter().map(ToString::to_string));
    (options, problems)
}
