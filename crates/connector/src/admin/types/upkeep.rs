//! Keys, the clock and the audit log.

use angelia_core::audit::AuditLine;
use angelia_core::clock::UnixMillis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The master key, and whether everything sealed with it opens.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KeyCheck {
    /// The key's name.
    pub key_id: String,
    /// The key before it, while a change is not finished.
    pub retiring_key_id: Option<String>,
    /// What is sealed.
    pub sealed: Vec<SealedCount>,
    /// How many of these do not open.
    pub unreadable: u64,
    /// Which these are.
    pub damaged: Vec<Unreadable>,
}

/// How much there is of something that is sealed.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SealedCount {
    /// What it is.
    pub kind: String,
    /// How many.
    pub count: u64,
}

/// Something sealed that does not open.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Unreadable {
    /// What it is.
    pub kind: String,
    /// Which; `null` where there is one of it.
    pub name: Option<String>,
    /// Why.
    pub error: String,
}

/// A change of the master key.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateKey {
    /// Holds the key to change to; without it a new one is made, where keeping it is ours.
    pub file: Option<PathBuf>,
}

/// A change of the master key that was made.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RotatedKey {
    /// The key before.
    pub old_key_id: Option<String>,
    /// The key now.
    pub key_id: String,
    /// How much is sealed with it.
    pub resealed: u64,
    /// Whether nothing on the disk is under the old key any more.
    pub old_erased: bool,
    /// What the operator has to do before the next start.
    pub next_step: Option<String>,
}

/// The admin token is a new one.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RotatedToken {
    /// Always true.
    pub rotated: bool,
}

/// What the clock shows, and the leap that nobody has confirmed.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Clock {
    /// The time.
    pub now: UnixMillis,
    /// The leap, in words.
    pub leap: Option<String>,
    /// The leap; negative if the clock is behind.
    pub ahead_ms: Option<i64>,
}

/// The clock, taken for right as it is.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AcceptedClock {
    /// What it shows.
    #[serde(flatten)]
    pub clock: Clock,
    /// The leap that was accepted, in words.
    pub accepted: Option<String>,
}

/// Which lines of the audit log.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditWanted {
    /// Only what concerns this tenant.
    pub tenant: Option<String>,
    /// How many.
    pub limit: Option<usize>,
}

/// Who changed what.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Audit {
    /// Newest first.
    pub audit: Vec<AuditLine>,
}
