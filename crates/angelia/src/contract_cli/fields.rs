//! Taking a question apart, with errors that name the field and never its value.

use serde_json::{Map, Value};

/// The fields of a question that were not taken yet.
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads a line, which must be a JSON object.
    pub(super) fn read(line: &[u8]) -> Result<Self, String> {
        match serde_json::from_slice(line) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err("the line is not a JSON object".into()),
            Err(_) if line.trim_ascii().is_empty() => Err("the line is empty".into()),
            Err(error) => Err(format!("the line is not JSON: {error}")),
        }
    }

    /// The fields of a field.
    pub(super) fn object(&mut self, name: &str) -> Result<Self, String> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(Self(Map::new())),
            Some(Value::Object(fields)) => Ok(Self(fields)),
            Some(_) => Err(format!("`{name}` must be an object")),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A field of any type.
    pub(super) fn value(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// All of them, as the object they came as.
    pub(super) fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// A text that must be there.
    pub(super) fn text(&mut self, name: &str) -> Result<String, String> {
        self.opt_text(name)?.ok_or_else(|| format!("`{name}` is missing"))
    }

    /// A text that may be null or missing.
    pub(super) fn opt_text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("`{name}` must be a string")),
        }
    }

    /// A list of texts that must be there.
    pub(super) fn texts(&mut self, name: &str) -> Result<Vec<String>, String> {
        let wanted = || format!("`{name}` must be a list of strings");
        let Some(Value::Array(items)) = self.0.remove(name) else { return Err(wanted()) };
        items
            .into_iter()
            .map(|item| match item {
                Value::String(text) => Ok(text),
                _ => Err(wanted()),
            })
            .collect()
    }

    /// A flag that may be null or missing.
    pub(super) fn opt_flag(&mut self, name: &str) -> Result<Option<bool>, String> {
        match self.0.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(format!("`{name}` must be true or false")),
        }
    }

    /// A number that may be null or missing; clocks with fractions are cut to whole seconds.
    pub(super) fn opt_number(&mut self, name: &str) -> Result<Option<u64>, String> {
        let number = match self.0.remove(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Number(number)) => number,
            Some(_) => return Err(format!("`{name}` must be a number")),
        };
        let whole = number.as_u64().or_else(|| {
            let fraction = number.as_f64().filter(|n| (0.0..9e15).contains(n))?;
            // In range, so the cut loses the fraction and nothing else.
            Some(fraction as u64)
        });
        whole.map(Some).ok_or_else(|| format!("`{name}` must not be negative or beyond all measure"))
    }

    /// Refuses what nobody asked for: a misspelt option must not go unnoticed.
    pub(super) fn finish(self) -> Result<(), String> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("there is no field `{name}` here; see --help")),
        }
    }
}
