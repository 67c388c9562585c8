//! What a node tells the others of itself with every sign of life.

use crate::key_handover::Given;
use angelia_core::records::rows::NodeRow;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a node tells of itself. What an older one leaves out reads as empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Facts {
    /// Its release.
    pub(crate) version: String,
    /// Relay sockets open on it.
    pub(crate) sockets: u64,
    /// Whether it hears the others at once.
    pub(crate) bus: bool,
    /// The last line of the change feed that it knows of.
    pub(crate) feed: i64,
    /// Whether it takes messages in.
    pub(crate) ready: bool,
    pub(crate) key: KeyFacts,
}

/// How far it is with a change of the master key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct KeyFacts {
    /// The key it seals with.
    pub(crate) id: String,
    /// The next one, which it has written down and opens with.
    pub(crate) has: Option<String>,
    /// Whether nothing of it is on its way into the store that the key before sealed.
    pub(crate) settled: bool,
    /// To whom the next key may be given: a public key of this process.
    pub(crate) offer: String,
    /// The next key for others, each of whom can open one of these and nobody else.
    pub(crate) gives: BTreeMap<String, Given>,
    /// What its operator has to do before its next start.
    pub(crate) to_do: Option<String>,
    /// Why it cannot follow.
    pub(crate) trouble: Option<String>,
}

impl Facts {
    /// What a node told last; nothing if it cannot be read.
    pub(crate) fn of(row: &NodeRow) -> Self {
        serde_json::from_str(&row.facts).unwrap_or_default()
    }
}
