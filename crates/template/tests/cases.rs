//! The table of templates, their context and what they give: `cases.json`. `jinja.py` compares the same table with Jinja 2.

#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::Value;
use template::{Context, Error, NoHost, Template};

fn table() -> Value {
    serde_json::from_str(include_str!("cases.json")).unwrap()
}

fn render(table: &Value, source: &str) -> Result<String, Error> {
    let mut context = Context::default();
    for (name, value) in table["context"].as_object().unwrap() {
        context.set(name, value.clone());
    }
    Template::compile(source)?.render(&mut context, &mut NoHost)
}

#[test]
fn templates_give_what_the_table_says() {
    let table = table();
    let cases = table["cases"].as_array().unwrap();
    let mut wrong = String::new();
    for case in cases {
        let (source, expected) = (case[0].as_str().unwrap(), case[1].as_str().unwrap());
        let found = render(&table, source).unwrap_or_else(|error| format!("error: {error}"));
        if found != expected {
            wrong.push_str(&format!("\ntemplate {source}\nexpected {expected}\nfound    {found}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(cases.len() >= 120);
}

#[test]
fn faults_are_told_as_the_table_says() {
    let table = table();
    let mut wrong = String::new();
    for case in table["errors"].as_array().unwrap() {
        let (source, expected) = (case[0].as_str().unwrap(), case[1].as_str().unwrap());
        let found = render(&table, source).map_or_else(|error| error.to_string(), |text| format!("no error but {text}"));
        if found != expected {
            wrong.push_str(&format!("\ntemplate {source}\nexpected {expected}\nfound    {found}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
