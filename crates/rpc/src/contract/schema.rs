//! Schemas as the served contract shows them.

use protocol::vocabulary;
use schemars::generate::SchemaSettings;
use schemars::transform::{ReplaceBoolSchemas, Transform};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};

/// Where definitions stand in both documents.
const DEFINITIONS: &str = "/components/schemas";

pub(super) fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = DEFINITIONS.into())
        .with_transform(ReplaceBoolSchemas::default())
        .into_generator()
}

/// What all the schemas made so far refer to.
pub(super) fn definitions(generator: &mut SchemaGenerator) -> Value {
    with_both_names(Value::Object(generator.take_definitions(true)))
}

/// A schema as it is written. `true` becomes `{}`, which means the same and is understood by more tools.
pub(super) fn written(mut schema: Schema) -> Value {
    ReplaceBoolSchemas::default().transform(&mut schema);
    schema.to_value()
}

/// A schema with what it refers to in its place; members keep their references.
pub(super) fn resolved(schema: &Value, generator: &SchemaGenerator) -> Map<String, Value> {
    let mut own = schema.as_object().cloned().unwrap_or_default();
    let name = own.remove("$ref").and_then(|reference| Some(reference.as_str()?.rsplit_once('/')?.1.to_owned()));
    let Some(referred) = name.and_then(|name| generator.definitions().get(&name)) else { return own };
    let mut whole = resolved(referred, generator);
    whole.extend(own);
    whole
}

/// Adds the incumbent's name beside every renamed property.
pub(super) fn with_both_names(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                let inner = with_both_names(value.take());
                *value = inner;
                match (key.as_str(), value) {
                    ("properties", Value::Object(properties)) => {
                        let names: Vec<String> = properties.keys().cloned().collect();
                        for name in names {
                            if let (Some(alias), Some(schema)) = (vocabulary::member_alias(&name), properties.get(&name).cloned()) {
                                properties.insert(alias.to_owned(), schema);
                            }
                        }
                    }
                    ("required", Value::Array(required)) => {
                        let aliases: Vec<Value> =
                            required.iter().filter_map(Value::as_str).filter_map(vocabulary::member_alias).map(Value::from).collect();
                        required.extend(aliases);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                let inner = with_both_names(item.take());
                *item = inner;
            }
        }
        _ => {}
    }
    schema
}
