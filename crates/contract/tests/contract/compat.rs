//! Additive-only: what one schema allows, its successor must allow.
//!
//! Within one contract version a schema may grow but not shrink. The checker
//! knows the part of JSON Schema that our documents use and is strict about
//! the rest: a keyword it cannot judge must stay as it is.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use serde_json::{Map, Value};

/// One way in which the newer schema takes something back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Where, as a path through the schema.
    pub(crate) path: String,
    /// What was taken back.
    pub(crate) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

/// Everything `newer` takes back of what `older` allows.
///
/// Documents of different contract versions may differ as they like, but the
/// version never goes down.
pub(crate) fn violations(older: &Value, newer: &Value) -> Vec<Violation> {
    let version = |document: &Value| document["contract_version"].as_u64().unwrap_or_default();
    let mut check = Check { older, newer, found: Vec::new(), seen: HashSet::new() };
    match version(newer).cmp(&version(older)) {
        std::cmp::Ordering::Less => check.report("#", "contract_version went down"),
        std::cmp::Ordering::Greater => {}
        std::cmp::Ordering::Equal => {
            check.definitions();
            check.schema("#", older, newer);
        }
    }
    check.found
}

struct Check<'a> {
    older: &'a Value,
    newer: &'a Value,
    found: Vec<Violation>,
    /// Pairs of references already compared: definitions may be recursive.
    seen: HashSet<(String, String)>,
}

/// Keywords that only describe, or that are handled at the document level.
const ANNOTATIONS: [&str; 11] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "title",
    "description",
    "default",
    "examples",
    "format",
    "deprecated",
    "contract_version",
];
/// Lower bounds: the newer one must not be higher.
const LOWER: [&str; 5] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];
/// Upper bounds: the newer one must not be lower.
const UPPER: [&str; 5] = ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];
/// Keywords judged one by one.
const JUDGED: [&str; 10] = [
    "$ref",
    "type",
    "enum",
    "const",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "anyOf",
    "oneOf",
];

impl<'a> Check<'a> {
    fn report(&mut self, path: &str, what: impl Into<String>) {
        self.found.push(Violation { path: path.to_owned(), what: what.into() });
    }

    fn definitions(&mut self) {
        let (older, newer) = (self.older, self.newer);
        for (name, definition) in object(&older["$defs"]) {
            let path = format!("#/$defs/{name}");
            match newer["$defs"].get(name) {
                Some(counterpart) => self.schema(&path, definition, counterpart),
                None => self.report(&path, "definition removed"),
            }
        }
    }

    fn schema(&mut self, path: &str, older: &Value, newer: &Value) {
        let refers = older.get("$ref").is_some() && newer.get("$ref").is_some();
        if refers && !self.seen.insert((older.to_string(), newer.to_string())) {
            return;
        }
        match (older, newer) {
            (Value::Bool(false), _) | (_, Value::Bool(true)) => {}
            (_, Value::Bool(false)) => self.report(path, "nothing is allowed any more"),
            _ => {
                let (older, newer) = (flat(self.older, older), flat(self.newer, newer));
                self.keywords(path, &older, &newer);
            }
        }
    }

    fn keywords(&mut self, path: &str, older: &Map<String, Value>, newer: &Map<String, Value>) {
        self.types(path, older, newer);
        self.values(path, older, newer);
        self.required(path, older, newer);
        self.properties(path, older, newer);
        self.subschema(path, "additionalProperties", older, newer);
        self.subschema(path, "items", older, newer);
        self.bounds(path, older, newer);
        self.alternatives(path, older, newer);
        self.unjudged(path, older, newer);
    }

    fn types(&mut self, path: &str, older: &Map<String, Value>, newer: &Map<String, Value>) {
        let Some(now) = type_set(newer) else { return };
        let Some(before) = type_set(older) else {
            if !older.contains_key("anyOf") && !older.contains_key("oneOf") {
                self.report(path, "a type is now prescribed");
            }
            return;
        };
        for name in before {
            let widened = name == "integer" && now.contains("number");
            if !now.contains(name) && !widened {
                self.report(path, format!("type `{name}` removed"));
            }
        }
    }

    fn values(&mut self, path: &str, older: &Map<String, Value>, newer: &Map<String, Value>) {
        let Some(now) = value_set(newer) else { return };
        let Some(before) = value_set(older) else {
            self.report(path, "the values are now enumerated");
            return;
        };
        for value in before {
            if !now.contains(&value) {
                self.report(path, format!("value {value} removed"));
            }
        }
    }

    fn required(&mut self, path: &str, older: &Map<String, Value>, newer: &Map<String, Value>) {
        let before = texts(older.get("required"));
        for key in texts(newer.get("required")).difference(&before) {
            self.report(path, format!("`{key}` is now required"));
        }
    }

    fn properties(&mut self, path: &str, older: &Map<String, Value>, newer: &Map<String, Value>) {
        let now = newer.get("properties").map(object);
        for (name, schema) in older.get("properties").map(object).into_iter().flatten() {
            let path = format!("{path}/properties/{name}");
            match now.and_then(|now| now.get(name)) {
                Some(counterpart) => self.schema(&path, schema, counterpart),
                None => self.report(&path, "property removed"),
            }
        }
    }

    /// A keyword whose absence allows everything.
    fn subschema(
        &mut self,
        path: &str,
        keyword: &str,
        older: &Map<String, Value>,
        newer: &Map<String, Value>,
    ) {
        const OPEN: &Value = &Value::Bool(true);
        let Some(now) = newer.get(keyword) else { return };
        let before = older.get(keyword).unwrap_or(OPEN);
        self.schema(&format!("{path}/{keyword}"), before, now);
    }

    fn bounds(&mut self, path: &str, older: &Map<String, Value>, newer: &Map<String, Value>) {
        for (keywords, lower) in [(LOWER, true), (UPPER, false)] {
            for keyword in keywords {
                let bound = |schema: &Map<String, Value>| schema.get(keyword)?.as_f64();
                let tighter = match (bound(older), bound(newer)) {
                    (_, None) => false,
                    (None, Some(_)) => true,
                    (Some(before), Some(now)) if lower => now > before,
                    (Some(before), Some(now)) => now < before,
                };
                if tighter {
                    self.report(path, format!("`{keyword}` tightened"));
                }
            }
        }
    }

    fn alternatives(&mut self, path: &str, older: &Map<String, Value>, newer: &Map<String, Value>) {
        let Some(now) = choices(newer) else {
            return self.alternatives_merged(path, older, newer);
        };
        let Some(before) = choices(older) else {
            if !self.is_taken(&Value::Object(older.clone()), now) {
                self.report(path, "alternatives are now prescribed");
            }
            return;
        };
        for (at, choice) in before.iter().enumerate() {
            let path = format!("{path}/{}", tag(self.older, choice).unwrap_or(at.to_string()));
            let same_tag = tag(self.older, choice)
                .and_then(|wanted| now.iter().find(|n| tag(self.newer, n) == Some(wanted.clone())));
            match same_tag {
                Some(counterpart) => self.schema(&path, choice, counterpart),
                None if !self.is_taken(choice, now) => {
                    self.report(&path, "alternative removed");
                }
                None => {}
            }
        }
    }

    /// The newer schema has no alternatives: each old one must still fit it.
    fn alternatives_merged(&mut self, path: &str, older: &Map<String, Value>, newer: &Map<String, Value>) {
        let Some(before) = choices(older) else { return };
        for choice in before {
            self.keywords(path, &flat(self.older, choice), newer);
        }
    }

    /// Whether some alternative takes everything the older schema took.
    fn is_taken(&self, older: &Value, now: &[Value]) -> bool {
        now.iter().any(|candidate| {
            let mut trial =
                Check { older: self.older, newer: self.newer, found: Vec::new(), seen: HashSet::new() };
            trial.schema("", older, candidate);
            trial.found.is_empty()
        })
    }

    fn unjudged(&mut self, path: &str, older: &Map<String, Value>, newer: &Map<String, Value>) {
        for (keyword, value) in newer {
            let known = [&ANNOTATIONS[..], &JUDGED, &LOWER, &UPPER]
                .iter()
                .any(|group| group.contains(&keyword.as_str()));
            if !known && older.get(keyword) != Some(value) {
                self.report(path, format!("`{keyword}` added or changed"));
            }
        }
    }
}

fn object(value: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    value.as_object().unwrap_or(&EMPTY)
}

/// A schema with its reference followed, one level deep.
///
/// Keywords beside a `$ref` hold together with the ones behind it, so their
/// properties and required keys are put together.
fn flat(document: &Value, schema: &Value) -> Map<String, Value> {
    let mut own = object(schema).clone();
    let Some(Value::String(reference)) = own.remove("$ref") else {
        return own;
    };
    let pointer = reference.strip_prefix('#').unwrap_or(&reference);
    let mut merged = document.pointer(pointer).map(object).cloned().unwrap_or_default();
    for (keyword, value) in own {
        match (merged.get_mut(&keyword), value) {
            (Some(Value::Object(there)), Value::Object(here)) => there.extend(here),
            (Some(Value::Array(there)), Value::Array(here)) => there.extend(here),
            (_, value) => {
                merged.insert(keyword, value);
            }
        }
    }
    merged
}

fn texts(list: Option<&Value>) -> BTreeSet<&str> {
    let list = list.and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn type_set(schema: &Map<String, Value>) -> Option<BTreeSet<&str>> {
    match schema.get("type")? {
        Value::String(name) => Some(BTreeSet::from([name.as_str()])),
        list => Some(texts(Some(list))),
    }
}

fn value_set(schema: &Map<String, Value>) -> Option<Vec<Value>> {
    match (schema.get("enum"), schema.get("const")) {
        (Some(list), _) => list.as_array().cloned(),
        (None, Some(value)) => Some(vec![value.clone()]),
        (None, None) => None,
    }
}

fn choices(schema: &Map<String, Value>) -> Option<&Vec<Value>> {
    schema.get("anyOf").or(schema.get("oneOf"))?.as_array()
}

/// What tells an alternative from its neighbours: a constant property.
fn tag(document: &Value, choice: &Value) -> Option<String> {
    let schema = flat(document, choice);
    let properties = schema.get("properties")?;
    ["type", "op"].iter().find_map(|key| {
        let value = properties.get(*key)?["const"].as_str()?;
        Some(format!("{key}={value}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn base() -> Value {
        json!({
            "contract_version": 1,
            "anyOf": [{"$ref": "#/$defs/Frame"}],
            "$defs": {
                "Frame": {"oneOf": [
                    {"$ref": "#/$defs/Hello", "properties": {"type": {"const": "hello"}}, "required": ["type"]},
                    {"type": "object", "properties": {"type": {"const": "bye"}}}
                ]},
                "Hello": {
                    "type": "object",
                    "properties": {
                        "id": {"type": ["string", "null"]},
                        "unit": {"type": "string", "enum": ["chars", "utf16"]},
                        "size": {"type": "integer", "minimum": 1, "maximum": 9},
                        "rows": {"type": "array", "items": {"type": "string"}},
                        "either": {"anyOf": [{"type": "string"}, {"type": "null"}]}
                    },
                    "required": ["id"],
                    "additionalProperties": true
                }
            }
        })
    }

    /// What the checker says about a change made at `pointer`.
    fn after(pointer: &str, change: impl FnOnce(&mut Value)) -> String {
        let mut newer = base();
        change(newer.pointer_mut(pointer).unwrap());
        let found = violations(&base(), &newer);
        found.iter().map(|v| format!("{v}\n")).collect()
    }

    fn remove(key: &'static str) -> impl FnOnce(&mut Value) {
        move |value| {
            value.as_object_mut().unwrap().remove(key).unwrap();
        }
    }

    fn set(to: Value) -> impl FnOnce(&mut Value) {
        move |value| *value = to
    }

    const HELLO: &str = "/$defs/Hello";
    const PROPERTIES: &str = "/$defs/Hello/properties";

    #[test]
    fn growth_is_allowed() {
        assert_eq!(after("", |_| ()), "");
        let grown = json!({"type": "object"});
        assert_eq!(after(PROPERTIES, |p| p["new"] = json!({"type": "string"})), "");
        assert_eq!(after("/$defs", |d| d["New"] = grown.clone()), "");
        assert_eq!(after("/$defs/Frame/oneOf", |f| f.as_array_mut().unwrap().push(grown)), "");
        assert_eq!(after(HELLO, |h| h["required"] = json!([])), "");
        assert_eq!(after(PROPERTIES, |p| p["size"] = json!({"type": "number"})), "");
        assert_eq!(after(PROPERTIES, |p| p["unit"] = json!({"type": "string"})), "");
        assert_eq!(after(PROPERTIES, |p| p["either"] = json!(true)), "");
        assert_eq!(after("", |d| d["contract_version"] = json!(2)), "");
    }

    #[test]
    fn every_way_of_taking_back_is_caught() {
        let p = |name: &str| format!("{PROPERTIES}/{name}");
        for (found, expected) in [
            (after(PROPERTIES, remove("id")), "property removed"),
            (after(&p("id/type"), set(json!("string"))), "type `null` removed"),
            (after(&p("unit/enum"), set(json!(["chars"]))), "value \"utf16\" removed"),
            (after(&p("id"), |v| v["enum"] = json!(["a"])), "the values are now enumerated"),
            (after(HELLO, |h| h["required"] = json!(["id", "size"])), "`size` is now required"),
            (after("/$defs/Frame/oneOf/1", |f| f["required"] = json!(["x"])), "`x` is now required"),
            (
                after(&format!("{HELLO}/additionalProperties"), set(json!(false))),
                "nothing is allowed any more",
            ),
            (after(&p("size/minimum"), set(json!(2))), "`minimum` tightened"),
            (after(&p("size/maximum"), set(json!(8))), "`maximum` tightened"),
            (after(&p("id"), |v| v["maxLength"] = json!(8)), "`maxLength` tightened"),
            (after(&p("id"), |v| v["pattern"] = json!("^a")), "`pattern` added or changed"),
            (after(&p("rows/items/type"), set(json!("integer"))), "type `string` removed"),
            (after(&p("either/anyOf"), set(json!([{"type": "string"}]))), "alternative removed"),
            (
                after("/$defs/Frame/oneOf", |f| {
                    f.as_array_mut().unwrap().pop();
                }),
                "alternative removed",
            ),
            (
                after("/$defs/Frame/oneOf/0", |f| f["properties"]["type"]["const"] = json!("hi")),
                "alternative removed",
            ),
            (after("", |d| d["anyOf"] = json!([])), "alternative removed"),
            (after("/$defs", remove("Hello")), "definition removed"),
            (after("", |d| d["contract_version"] = json!(0)), "contract_version went down"),
        ] {
            assert!(found.contains(expected), "wanted {expected:?}, found {found:?}");
        }
    }

    #[test]
    fn a_type_may_not_appear_from_nowhere() {
        let older = json!({"contract_version": 1, "properties": {"a": {}}});
        let newer = json!({"contract_version": 1, "properties": {"a": {"type": "string"}}});
        assert_eq!(violations(&older, &newer).len(), 1);
        assert!(violations(&newer, &older).is_empty());
    }
}
