//! The contract as one JSON Schema document.
//!
//! The document is derived from the types, so it cannot say anything else
//! than the code does. It is committed beside the crate; a test compares it with
//! the frozen one of the same contract version.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::{ConnectorFrame, GatewayFrame};

/// The schema of everything on the wire, both directions.
///
/// Keys are in a stable order, so that the printed text only changes when the
/// contract does.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let gateway = generator.subschema_for::<GatewayFrame>();
    let connector = generator.subschema_for::<ConnectorFrame>();
    let document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Relay contract",
        "description": "Every line a gateway or a connector may send.",
        "contract_version": crate::CONTRACT_VERSION,
        "anyOf": [gateway, connector],
        "$defs": generator.take_definitions(true),
    });
    sorted(document)
}

/// Orders the keys of every object, whatever map the JSON library uses.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            let entries = entries.into_iter().map(|(key, value)| (key, sorted(value)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        scalar => scalar,
    }
}

/// The schema as the text that is committed, trailing newline included.
pub fn schema_text() -> String {
    format!("{:#}\n", schema())
}
