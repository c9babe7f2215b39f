use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::choices;

choices! {
    enum Single {
        Only = "only",
    }
}

fn context() -> Context {
    let (secrets, _) = Secrets::parse("s", br#"{"a": {"b": "x"}}"#);
    Context { data_path: "/data".into(), home: Some("/home/pi".into()), secrets }
}

fn read<T: OptionValue>(text: &str) -> Result<T, String> {
    T::parse(text, &context())
}

#[test]
fn booleans_have_eight_words_in_any_case() {
    for (words, expected) in [(["1", "Yes", "TRUE", "on"], true), (["0", "no", "False", "OFF"], false)] {
        assert!(words.iter().all(|word| read::<bool>(word) == Ok(expected)));
    }
    assert_eq!(read::<bool>("y").unwrap_err(), bool::EXPECTED);
}

#[test]
fn numbers_keep_to_their_range() {
    assert_eq!(read::<u16>(" 65535 "), Ok(65535));
    assert_eq!(read::<i64>("-5"), Ok(-5));
    for text in ["65536", "-1", "1.5", "", "x", "0x10"] {
        assert!(read::<u16>(text).is_err(), "{text}");
    }
    assert_eq!(read::<f64>("1e3"), Ok(1000.0));
    for text in ["nan", "inf", "-inf", "1,5", ""] {
        assert!(read::<f64>(text).is_err(), "{text}");
    }
}

#[test]
fn lengths_of_time_are_seconds() {
    assert_eq!(read("0.25"), Ok(Duration::from_millis(250)));
    assert_eq!(Duration::from_millis(250).to_json(), json!(0.25));
    for text in ["-1", "nan", "1e300", "2 s"] {
        assert!(read::<Duration>(text).is_err(), "{text}");
    }
}

#[test]
fn paths_know_home_and_data_folder() {
    for (text, expected) in [
        ("/a b", "/a b"),
        ("~", "/home/pi"),
        ("~/x", "/home/pi/x"),
        ("~x/y", "~x/y"),
        ("{data_path}/c", "/data/c"),
        ("{ data_path }", "/data"),
        ("\n/next/line", "/next/line"),
    ] {
        assert_eq!(read::<PathBuf>(text).unwrap(), Path::new(expected));
    }
    for text in ["{other}/c", "{data_path", ""] {
        assert!(read::<PathBuf>(text).is_err(), "{text}");
    }
    assert_eq!(PathBuf::parse("~/x", &Context::default()).unwrap(), Path::new("~/x"));
    assert_eq!(PathBuf::from_literal("{data_path}/c", &Context::symbolic()), Path::new("{data_path}/c"));
}

#[test]
fn lists_drop_empty_items() {
    assert_eq!(read::<Vec<String>>("\na\n\n b \n").unwrap(), ["a", "b"]);
    assert_eq!(read::<Vec<u8>>("1\n2").unwrap(), [1, 2]);
    assert_eq!(read::<Vec<u8>>("1\nx").unwrap_err(), "a list, one item per line; each item: a whole number from 0 to 255");
    assert_eq!(read::<CommaList>("a, b,,c").unwrap().0, ["a", "b", "c"]);
    assert_eq!(read::<WordList>(" a  b\nc").unwrap().0, ["a", "b", "c"]);
    assert_eq!(vec![1_u8, 2].to_json(), json!([1, 2]));
}

#[test]
fn dictionaries_split_at_the_first_equals_sign() {
    let pairs = read::<Dictionary>("\n b = 1=2 \na=\n").unwrap();
    assert_eq!(pairs.0.iter().map(|(key, value)| format!("{key}>{value}")).collect::<Vec<_>>(), ["b>1=2", "a>"]);
    assert!(read::<Dictionary>("a").is_err() && read::<Dictionary>("=1").is_err());
    let objects = read::<OptionalDictionary>("toolhead\nextruder=target,temperature").unwrap();
    assert_eq!(objects.to_json(), json!({"toolhead": null, "extruder": "target,temperature"}));
    assert!(read::<OptionalDictionary>("=1").is_err());
}

#[test]
fn choices_list_what_is_permitted() {
    assert_eq!(read::<Single>("ONLY"), Ok(Single::Only));
    assert_eq!(read::<Single>("other").unwrap_err(), "one of `only`");
    assert_eq!(Single::Only.to_json(), json!("only"));
}

#[test]
fn optional_values_behave_like_their_type() {
    assert_eq!(read::<Option<u8>>("1"), Ok(Some(1)));
    assert!(read::<Option<u8>>("").is_err());
    assert_eq!((None::<u8>.to_json(), Some(1_u8).number(), None::<u8>.number()), (json!(null), Some(1.0), None));
}

#[test]
fn secrets_show_their_source_only() {
    let secret = read::<Secret>("pre-{secrets.a.b}").unwrap();
    assert_eq!((secret.expose(), secret.source(), secret.to_json()), ("pre-x", "pre-{secrets.a.b}", json!("pre-{secrets.a.b}")));
    assert_eq!(format!("{secret:?}"), "Secret(hidden)");
}

proptest! {
    #[test]
    fn no_type_panics_on_any_text(text in any::<String>()) {
        let _ = (read::<bool>(&text), read::<u8>(&text), read::<f64>(&text), read::<Duration>(&text), read::<PathBuf>(&text));
        let _ = (read::<Secret>(&text), read::<Dictionary>(&text), read::<OptionalDictionary>(&text), read::<Vec<i32>>(&text));
    }

    #[test]
    fn braces_in_any_order_are_harmless(text in "[{} a.]{0,30}|\\{secrets[.a-b]{0,4}\\}") {
        let _ = (read::<PathBuf>(&text), read::<Secret>(&text));
    }
}
