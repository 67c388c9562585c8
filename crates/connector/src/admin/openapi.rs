//! The OpenAPI 3.1 document, made of the table of endpoints and their types.

use super::Admin;
use super::api::table;
use super::endpoint::Row;
use super::types::Nothing;
use angelia_core::error::Result;
use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::RecursiveTransform;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(super) async fn show(_: Arc<Admin>, _: Nothing) -> Result<Map<String, Value>> {
    Ok(document())
}

/// Collects the types: what is asked may leave fields out, what is answered has them all.
struct Types {
    asked: SchemaGenerator,
    answered: SchemaGenerator,
}

impl Types {
    fn new() -> Self {
        let settings = |contract: Contract| {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.contract = contract;
            })
        };
        // What an answer without a field is read as is nothing that the server says.
        let no_default = RecursiveTransform(|schema: &mut Schema| drop(schema.remove("default")));
        let answered = settings(Contract::Serialize).with_transform(no_default);
        Self { asked: settings(Contract::Deserialize).into_generator(), answered: answered.into_generator() }
    }

    fn definitions(mut self) -> Map<String, Value> {
        let mut all: Map<String, Value> = self.asked.take_definitions(true);
        all.extend(self.answered.take_definitions(true));
        all
    }
}

fn document() -> Map<String, Value> {
    let mut types = Types::new();
    let mut paths: Map<String, Value> = Map::new();
    for row in table() {
        let method = row.verb.method().as_str().to_ascii_lowercase();
        paths.entry(row.path).or_insert_with(|| json!({}))[method] = describe(&row, &mut types);
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Angelia admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "On admin_listen only. The token is in the data directory, file admin-token.",
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": types.definitions(),
        },
    });
    match document {
        Value::Object(document) => document,
        _ => Map::new(),
    }
}

fn describe(row: &Row, types: &mut Types) -> Value {
    let in_path =
        row.path.split(['{', '}']).skip(1).step_by(2).map(
            |name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }),
        );
    let ask = (row.ask)(&mut types.asked);
    let in_query = if row.verb.has_body() { Vec::new() } else { parameters(&ask) };
    let answer = json!({ "application/json": { "schema": (row.answer)(&mut types.answered) } });
    let failure = json!({ "application/json": { "schema": {
        "type": "object", "required": ["error"], "properties": { "error": { "type": "string" } },
    } } });
    let mut described = json!({
        "summary": row.summary,
        "operationId": operation_id(row),
        "parameters": in_path.chain(in_query).collect::<Vec<_>>(),
        "responses": {
            row.verb.status().as_str(): { "description": "Done.", "content": answer },
            "default": { "description": "Refused; the error says why and what to do.", "content": failure },
        },
    });
    if row.verb.has_body() {
        described["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": ask } } });
    }
    described
}

/// The fields of what is asked in a query.
fn parameters(ask: &Schema) -> Vec<Value> {
    let fields = ask.get("properties").and_then(Value::as_object).into_iter().flatten();
    fields
        .map(|(name, field)| {
            let mut field = field.clone();
            // One that may be left out is left out: nobody writes null into a query.
            if let Some(kind) = field["type"].get(0).cloned() {
                field["type"] = kind;
            }
            json!({ "name": name, "in": "query", "required": false, "schema": field })
        })
        .collect()
}

/// `post /admin/gateways/{id}/rotate` is `post_gateways_id_rotate`.
fn operation_id(row: &Row) -> String {
    let path = row.path.trim_start_matches("/admin/").replace(['{', '}'], "").replace(['/', '-', '.'], "_");
    format!("{}_{path}", row.verb.method().as_str().to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_is_described_with_what_is_asked_and_answered() {
        let document = Value::Object(document());
        let known = |schema: &Value| {
            let name = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/components/schemas/"));
            name.is_some_and(|name| document["components"]["schemas"][name].is_object())
        };
        for row in table() {
            let method = row.verb.method().as_str().to_ascii_lowercase();
            let described = &document["paths"][row.path][&method];
            let answer = &described["responses"][row.verb.status().as_str()]["content"]["application/json"];
            // The document describes itself by the standard that it names.
            assert!(known(&answer["schema"]) || row.path.ends_with("openapi.json"), "{method} {}", row.path);
            let asked = &described["requestBody"]["content"]["application/json"]["schema"];
            assert_eq!(known(asked), row.verb.has_body(), "{method} {}", row.path);
        }
    }

    #[test]
    fn a_query_is_described_by_its_fields() {
        let document = Value::Object(document());
        let parameters = document["paths"]["/admin/audit"]["get"]["parameters"].as_array().cloned();
        let names: Vec<Value> = parameters.iter().flatten().map(|one| one["name"].clone()).collect();
        assert_eq!(names, ["limit", "tenant"]);
        let kinds: Vec<Value> =
            parameters.iter().flatten().map(|one| one["schema"]["type"].clone()).collect();
        assert_eq!(kinds, ["integer", "string"]);
    }
}
