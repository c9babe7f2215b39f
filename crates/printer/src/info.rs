//! `printer.info`: the firmware host's own answer, with the neutral names added.

use protocol::envelope::write_string;
use protocol::raw::RawMembers;
use protocol::vocabulary;

/// The host's `info` with every renamed member under both names. Text that is no object is returned as it is.
pub(crate) fn with_both_names(info: &str) -> String {
    let Ok(RawMembers(members)) = serde_json::from_str::<RawMembers<'_>>(info) else { return info.to_owned() };
    let mut out = vec![b'{'];
    let mut write = |name: &str, value: &str| {
        if out.len() > 1 {
            out.push(b',');
        }
        write_string(&mut out, name);
        out.push(b':');
        out.extend_from_slice(value.as_bytes());
    };
    for (name, value) in &members {
        write(name, value.get());
        let neutral = vocabulary::MEMBERS.iter().find(|pair| pair.upstream == name).map(|pair| pair.neutral);
        if let Some(neutral) = neutral.filter(|neutral| !members.iter().any(|(known, _)| known == neutral)) {
            write(neutral, value.get());
        }
    }
    out.push(b'}');
    String::from_utf8(out).unwrap_or_else(|_| info.to_owned())
}

#[cfg(test)]
mod tests {
    use super::with_both_names;

    #[test]
    fn both_names_and_everything_else_unchanged() {
        assert_eq!(
            with_both_names(r#"{"state":"ready","klipper_path":"/a","app":"Fork","x":1.50}"#),
            r#"{"state":"ready","klipper_path":"/a","firmware_path":"/a","app":"Fork","x":1.50}"#
        );
        assert_eq!(with_both_names(r#"{"firmware_path":"/b","klipper_path":"/a"}"#), r#"{"firmware_path":"/b","klipper_path":"/a"}"#);
        assert_eq!(with_both_names("\"ok\""), "\"ok\"");
    }
}
