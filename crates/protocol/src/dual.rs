//! Serialising results so that members with two names stand in the same object under both.
//!
//! Structs name their fields in the neutral vocabulary only; [`to_vec`] adds the incumbent's name beside it wherever [`vocabulary::MEMBERS`]
//! lists one. It acts on struct fields, not on map keys: maps carry data (object names, settings) that is nobody's vocabulary.

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple, SerializeTupleStruct,
    SerializeTupleVariant, Serializer,
};

use crate::vocabulary;

/// JSON text of `value` with both names of every renamed member.
///
/// # Errors
/// When a `Serialize` implementation fails (a map with keys that are no strings, for example).
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(128);
    value.serialize(Dual(&mut serde_json::Serializer::new(&mut out)))?;
    Ok(out)
}

/// A serializer that doubles renamed members.
struct Dual<S>(S);

/// A value whose serialisation goes through [`Dual`].
struct Doubled<'a, T: ?Sized>(&'a T);

impl<T: Serialize + ?Sized> Serialize for Doubled<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Dual(serializer))
    }
}

macro_rules! forward {
    ($($name:ident: $type:ty),* $(,)?) => {
        $(fn $name(self, value: $type) -> Result<S::Ok, S::Error> { self.0.$name(value) })*
    };
}

impl<S: Serializer> Serializer for Dual<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Dual<S::SerializeSeq>;
    type SerializeTuple = Dual<S::SerializeTuple>;
    type SerializeTupleStruct = Dual<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Dual<S::SerializeTupleVariant>;
    type SerializeMap = Dual<S::SerializeMap>;
    type SerializeStruct = Dual<S::SerializeStruct>;
    type SerializeStructVariant = Dual<S::SerializeStructVariant>;

    forward!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_f32: f32, serialize_f64: f64, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    );

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_none()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Doubled(value))
    }
    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit()
    }
    fn serialize_unit_variant(self, name: &'static str, index: u32, variant: &'static str) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit_variant(name, index, variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_struct(name, &Doubled(value))
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_variant(name, index, variant, &Doubled(value))
    }
    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.0.serialize_seq(len).map(Dual)
    }
    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.0.serialize_tuple(len).map(Dual)
    }
    fn serialize_tuple_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.0.serialize_tuple_struct(name, len).map(Dual)
    }
    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        self.0.serialize_tuple_variant(name, index, variant, len).map(Dual)
    }
    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.0.serialize_map(len).map(Dual)
    }
    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeStruct, S::Error> {
        self.0.serialize_struct(name, len).map(Dual)
    }
    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        self.0.serialize_struct_variant(name, index, variant, len).map(Dual)
    }
}

impl<S: SerializeSeq> SerializeSeq for Dual<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_element(&Doubled(value))
    }
    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

impl<S: SerializeTuple> SerializeTuple for Dual<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_element(&Doubled(value))
    }
    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

impl<S: SerializeTupleStruct> SerializeTupleStruct for Dual<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_field(&Doubled(value))
    }
    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

impl<S: SerializeTupleVariant> SerializeTupleVariant for Dual<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_field(&Doubled(value))
    }
    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

impl<S: SerializeMap> SerializeMap for Dual<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.0.serialize_key(key)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_value(&Doubled(value))
    }
    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

impl<S: SerializeStruct> SerializeStruct for Dual<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), S::Error> {
        self.0.serialize_field(key, &Doubled(value))?;
        match vocabulary::member_alias(key) {
            Some(alias) => self.0.serialize_field(alias, &Doubled(value)),
            None => Ok(()),
        }
    }
    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

impl<S: SerializeStructVariant> SerializeStructVariant for Dual<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), S::Error> {
        self.0.serialize_field(key, &Doubled(value))
    }
    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;
    use serde_json::value::RawValue;

    #[derive(Serialize)]
    struct Inner {
        fwhost_state: &'static str,
        plain: Option<u8>,
        raw: Box<RawValue>,
    }

    #[derive(Serialize)]
    struct Outer {
        fwhost_connected: bool,
        inner: Vec<Inner>,
    }

    #[test]
    fn renamed_members_stand_twice_at_every_depth() {
        let value = Outer {
            fwhost_connected: true,
            inner: vec![Inner { fwhost_state: "ready", plain: None, raw: RawValue::from_string("{\"a\": 1.50}".into()).unwrap() }],
        };
        assert_eq!(
            String::from_utf8(to_vec(&value).unwrap()).unwrap(),
            r#"{"fwhost_connected":true,"klippy_connected":true,"inner":[{"fwhost_state":"ready","klippy_state":"ready","plain":null,"raw":{"a": 1.50}}]}"#
        );
    }

    #[test]
    fn map_keys_are_data() {
        let map = std::collections::BTreeMap::from([("fwhost_state", 1)]);
        assert_eq!(to_vec(&map).unwrap(), br#"{"fwhost_state":1}"#);
    }
}
