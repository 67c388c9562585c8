//! What a command prints: text for people, JSON for scripts.

use crate::remote::{Remote, Reply};
use crate::show;
use angelia_connector::admin::Call;
use angelia_core::error::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An answer, for scripts and for people.
#[derive(Debug)]
pub(super) struct Answer {
    value: Value,
    text: String,
}

impl Answer {
    /// What a server answers to a question, and how a person reads it.
    pub(super) async fn of<A: DeserializeOwned>(
        remote: &Remote,
        call: Result<Call<A>>,
        show: impl FnOnce(&A) -> String,
    ) -> Result<Self> {
        Ok(Self::new(remote.call(call?).await?, show))
    }

    /// The server's answer, and how a person reads it.
    pub(super) fn new<A>(reply: Reply<A>, show: impl FnOnce(&A) -> String) -> Self {
        Self { text: show(&reply.read), value: reply.value }
    }

    /// What the command found out itself, and how a person reads it.
    pub(super) fn own<A: Serialize>(made: &A, show: impl FnOnce(&A) -> String) -> Result<Self> {
        let value = serde_json::to_value(made).map_err(Error::defect)?;
        Ok(Self { value, text: show(made) })
    }

    pub(super) fn show(&self, as_json: bool) -> Result<()> {
        if as_json { show::text(&format!("{}\n", self.value)) } else { show::text(&self.text) }
    }

    #[cfg(test)]
    pub(super) fn value(&self) -> &Value {
        &self.value
    }
}
