//! The status cache: the last known JSON text of every field of every object, and what a message changes of it.

use indexmap::IndexMap;
use protocol::envelope::write_string;
use protocol::status::{Fields, HostFields, ObjectDiff, Selection, Text};

/// Objects kept; real printers have some hundred.
const MAX_OBJECTS: usize = protocol::status::MAX_OBJECTS;

/// Fields kept of one object.
const MAX_FIELDS: usize = 4096;

type FieldMap = IndexMap<Text, Text>;

/// Objects by name, fields by name, in the order in which the host listed them.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    objects: IndexMap<Text, FieldMap>,
}

impl Cache {
    pub(crate) fn field(&self, object: &str, field: &str) -> Option<&Text> {
        self.objects.get(object)?.get(field)
    }

    /// Makes an object known that may have no fields at all.
    pub(crate) fn add_object(&mut self, name: &str) {
        if !self.objects.contains_key(name) && self.objects.len() < MAX_OBJECTS {
            self.objects.insert(name.into(), FieldMap::default());
        }
    }

    /// How many fields of an object are known.
    pub(crate) fn field_count(&self, object: &str) -> usize {
        self.objects.get(object).map_or(0, IndexMap::len)
    }

    /// Takes the fields of one object over; what really changed, if anything did.
    ///
    /// `null` for a field that was never seen means that it does not exist when the field was asked for by name (`wanted`): the host
    /// answers names that it does not know so.
    pub(crate) fn merge(&mut self, name: &str, fields: &HostFields<'_>, wanted: &Fields) -> Option<ObjectDiff> {
        self.add_object(name);
        let (_, object, known) = self.objects.get_full_mut(name)?;
        let mut changed = Vec::new();
        for (field, value) in &fields.0 {
            let value = value.get();
            let room = known.len() < MAX_FIELDS;
            match known.get_full_mut(field.as_ref()) {
                Some((_, _, old)) if **old == *value => {}
                Some((_, field, old)) => {
                    *old = value.into();
                    changed.push((field.clone(), old.clone()));
                }
                None if (value == "null" && *wanted != Fields::All) || !room => {}
                None => {
                    let (field, value) = (Text::from(field.as_ref()), Text::from(value));
                    known.insert(field.clone(), value.clone());
                    changed.push((field, value));
                }
            }
        }
        (!changed.is_empty()).then(|| ObjectDiff { name: object.clone(), fields: changed })
    }

    /// True when every object and field of the selection is here.
    pub(crate) fn covers(&self, selection: &Selection) -> bool {
        selection.0.iter().all(|(name, wanted)| match (self.objects.get(name), wanted) {
            (None, _) => false,
            (Some(_), Fields::All) => true,
            (Some(known), Fields::Some(fields)) => fields.iter().all(|field| known.contains_key(field)),
        })
    }

    /// Appends `{"object":{"field":value,…},…}` for the selection; what is unknown is left out.
    pub(crate) fn write(&self, out: &mut Vec<u8>, selection: &Selection) {
        out.push(b'{');
        let mut first_object = true;
        for (name, wanted) in &selection.0 {
            let Some(known) = self.objects.get(name) else { continue };
            comma(out, &mut first_object);
            write_string(out, name);
            out.extend_from_slice(b":{");
            let mut first_field = true;
            for (field, value) in known.iter().filter(|(field, _)| wanted.wants(field)) {
                comma(out, &mut first_field);
                write_string(out, field);
                out.push(b':');
                out.extend_from_slice(value.as_bytes());
            }
            out.push(b'}');
        }
        out.push(b'}');
    }
}

fn comma(out: &mut Vec<u8>, first: &mut bool) {
    if !std::mem::take(first) {
        out.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(cache: &mut Cache, object: &str, json: &str, wanted: &Fields) -> Option<ObjectDiff> {
        cache.merge(object, &serde_json::from_str(json).unwrap(), wanted)
    }

    fn shown(cache: &Cache, selection: &str) -> String {
        let mut out = Vec::new();
        cache.write(&mut out, &Selection::from_json(selection).unwrap());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_real_changes_are_a_diff() {
        let mut cache = Cache::default();
        let diff = merge(&mut cache, "toolhead", r#"{"a":1.0,"b":[1, 2],"c":null}"#, &Fields::All).unwrap();
        assert_eq!(diff.fields.len(), 3);
        assert_eq!(merge(&mut cache, "toolhead", r#"{"b":[1, 2]}"#, &Fields::All), None);
        let diff = merge(&mut cache, "toolhead", r#"{"a":1.0,"b":[1, 3],"c":null}"#, &Fields::All).unwrap();
        assert_eq!(diff.fields, [("b".into(), "[1, 3]".into())]);
        assert_eq!(shown(&cache, r#"{"toolhead":null}"#), r#"{"toolhead":{"a":1.0,"b":[1, 3],"c":null}}"#);
    }

    #[test]
    fn null_for_an_unknown_name_is_no_field_but_a_vanished_field_is_null() {
        let mut cache = Cache::default();
        let named = Fields::Some(["a", "nope"].map(Text::from).into());
        merge(&mut cache, "o", r#"{"a":5,"nope":null}"#, &named);
        assert_eq!(shown(&cache, r#"{"o":["a","nope"]}"#), r#"{"o":{"a":5}}"#);
        assert!(!cache.covers(&Selection::from_json(r#"{"o":["nope"]}"#).unwrap()));
        let diff = merge(&mut cache, "o", r#"{"a":null}"#, &named).unwrap();
        assert_eq!(diff.fields, [("a".into(), "null".into())]);
        assert_eq!(shown(&cache, r#"{"o":null,"gone":null}"#), r#"{"o":{"a":null}}"#);
    }

    #[test]
    fn objects_without_fields_exist() {
        let mut cache = Cache::default();
        cache.add_object("gcode_macro X");
        assert!(cache.covers(&Selection::from_json(r#"{"gcode_macro X":null}"#).unwrap()));
        assert_eq!(shown(&cache, r#"{"gcode_macro X":null,"x":null}"#), r#"{"gcode_macro X":{}}"#);
    }

    #[test]
    fn sizes_are_bounded() {
        let mut cache = Cache::default();
        let many = format!("{{{}}}", (0..MAX_FIELDS + 5).map(|index| format!("\"f{index}\":1")).collect::<Vec<_>>().join(","));
        assert_eq!(merge(&mut cache, "o", &many, &Fields::All).unwrap().fields.len(), MAX_FIELDS);
        for index in 0..MAX_OBJECTS + 5 {
            cache.add_object(&format!("o{index}"));
        }
        assert_eq!(cache.objects.len(), MAX_OBJECTS);
    }
}
