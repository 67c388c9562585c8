//! What a command has to say.

use crate::show;
use angelia_core::error::Result;
use serde_json::Value;

/// An answer, for scripts and for people.
#[derive(Debug)]
pub(super) struct Answer {
    value: Value,
    text: String,
}

impl Answer {
    /// The server's answer, and how a person reads it.
    pub(super) fn new(value: Value, show: impl FnOnce(&Value) -> String) -> Self {
        let text = show(&value);
        Self { value, text }
    }

    pub(super) fn show(&self, as_json: bool) -> Result<()> {
        if as_json { show::text(&format!("{}\n", self.value)) } else { show::text(&self.text) }
    }

    #[cfg(test)]
    pub(super) fn value(&self) -> &Value {
        &self.value
    }
}
