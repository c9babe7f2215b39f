//! No template does harm: compiling and rendering never panic, whatever the text is made of.

#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;
use serde_json::json;
use template::{Context, Expression, NoHost, Template};

/// Pieces that templates are made of, so that many of them compile.
fn piece() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "{",
        "}",
        "{%",
        "%}",
        "{#",
        "#}",
        "-",
        "+",
        " ",
        "\n",
        "(",
        ")",
        "[",
        "]",
        ",",
        ":",
        ".",
        "|",
        "~",
        "**",
        "//",
        "%",
        "==",
        "<",
        "=",
        "'",
        "\"",
        "\\",
        "0",
        "1",
        "-1",
        "9223372036854775807",
        "1e308",
        "0x",
        "2.5",
        "n",
        "s",
        "d",
        "l",
        "loop",
        "x",
        "if ",
        "else ",
        "elif ",
        "endif ",
        "for ",
        "in ",
        "endfor ",
        "set ",
        "endset ",
        "do ",
        "macro ",
        "endmacro ",
        "call ",
        "endcall ",
        "with ",
        "endwith ",
        "raw ",
        "endraw ",
        "filter ",
        "endfilter ",
        "is ",
        "not ",
        "and ",
        "or ",
        "none",
        "true",
        "range",
        "dict",
        "namespace",
        "secrets",
        "upper",
        "round",
        "int",
        "float",
        "tojson",
        "fromjson",
        "join",
        "sort",
        "slice",
        "batch",
        "format",
        "default",
        "map",
        "append",
        "update",
        "items",
        "split",
        "replace",
        "center",
        "'%s'",
        "'%5.2f'",
        "'{:>5}'",
        "é",
        "日",
    ]);
    words.prop_map(str::to_owned)
}

/// Expressions of a regular form with any values.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "n",
        "s",
        "d",
        "l",
        "none",
        "true",
        "0",
        "1",
        "-3",
        "2.5",
        "1e300",
        "'a b'",
        "''",
        "[]",
        "{}",
        "()",
        "unknown",
        "9223372036854775807",
        "range(4)",
        "'é日'",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 24, 3, |inner| {
        let operators = prop::sample::select(vec!["+", "-", "*", "/", "//", "%", "**", "~", "==", "<", ">=", "in", "not in", "and", "or"]);
        let filters = prop::sample::select(vec![
            "abs",
            "batch(2)",
            "capitalize",
            "center(9)",
            "default(1)",
            "dictsort",
            "escape",
            "filesizeformat",
            "first",
            "float",
            "format(1, 2)",
            "fromjson",
            "groupby(0)",
            "indent",
            "int",
            "int(0, 36)",
            "items",
            "join('-')",
            "last",
            "length",
            "list",
            "lower",
            "map('string')",
            "max",
            "min",
            "reject",
            "replace('a', 'bb')",
            "reverse",
            "round",
            "round(3)",
            "round(-2)",
            "round(1, 'ceil')",
            "select('odd')",
            "slice(3)",
            "sort",
            "string",
            "striptags",
            "sum",
            "title",
            "tojson",
            "tojson(2)",
            "trim",
            "truncate(4)",
            "unique",
            "upper",
            "urlencode",
            "wordcount",
        ]);
        let methods = prop::sample::select(vec![
            "append(1)",
            "pop()",
            "get('a')",
            "items()",
            "split()",
            "rsplit(none, 1)",
            "replace('', 'x')",
            "find('b')",
            "insert(-1, 0)",
            "partition('a')",
            "zfill(8)",
            "format(1, x=2)",
            "title()",
            "sort()",
            "setdefault('a', 1)",
            "splitlines()",
            "index(1)",
            "strip('a')",
            "center(7, 'é')",
            "__setitem__('k', 1)",
            "popitem()",
            "startswith('a')",
        ]);
        let tests = prop::sample::select(vec!["defined", "odd", "divisibleby 3", "iterable", "in [1]", "sameas none", "upper", "number"]);
        let formats = prop::sample::select(vec!["'%d'", "'%5.1f|%s'", "'%x'", "'%(a)s'", "'%g'", "'%-9s'", "'%c'", "'%.3e'", "'%*d'"]);
        prop_oneof![
            (inner.clone(), operators, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (inner.clone(), filters).prop_map(|(a, filter)| format!("({a}|{filter})")),
            (inner.clone(), methods).prop_map(|(a, method)| format!("({a}.{method})")),
            (inner.clone(), tests).prop_map(|(a, test)| format!("({a} is {test})")),
            (formats, inner.clone()).prop_map(|(format, a)| format!("({format} % {a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}[{b}]")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("{a}[{b}:{c}:-1]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a}, {{'k': {b}}})")),
        ]
    })
}

fn context() -> Context {
    Context::default().with("n", 7).with("s", "some text").with("l", json!([3, "x", null])).with("d", json!({ "a": 1.5, "b": [] }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_rendered_or_refused(source in prop::collection::vec(piece(), 0..30)) {
        let source = source.concat();
        if let Ok(template) = Template::compile(&source) {
            let _ = template.render(&mut context(), &mut NoHost);
        }
    }

    #[test]
    fn any_expression_has_a_value_or_a_fault(source in expression()) {
        let expression = Expression::compile(&source).unwrap();
        let first = expression.evaluate(&mut context(), &mut NoHost);
        let second = expression.evaluate(&mut context(), &mut NoHost);
        prop_assert_eq!(&first, &second, "the same again");
        if let Err(error) = first {
            prop_assert_eq!(error.line, 1);
            prop_assert!(!error.message.is_empty());
        }
        let template = Template::compile(&format!("{{ {source} }}{{% for x in [{source}] %}}{{x}}{{% endfor %}}")).unwrap();
        let _ = template.render(&mut context(), &mut NoHost);
    }

    #[test]
    fn text_without_braces_stays(source in "[^{}]{0,60}") {
        let text = Template::compile(&source).unwrap().render(&mut Context::default(), &mut NoHost).unwrap();
        prop_assert_eq!(text, source.trim().replace("\r\n", "\n").replace('\r', "\n"));
    }
}
