//! What the rest relies on: the master key and the admin token, which can be changed under a
//! running server, the clock, and the audit log.

use super::Admin;
use super::master_key_change;
use super::types::Nothing;
use angelia_core::audit::{Actor, AuditEntry, AuditLine};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::error::{Error, Result};
use angelia_core::seal::Keys;
use angelia_core::store::{AuditStore, SealedValue};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Lines in one answer, unless said otherwise and at the most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 10_000;

asked! {
    /// A change of the master key.
    pub struct RotateKey {
        /// Holds the key to change to; without it a new one is made, where keeping it is ours.
        pub file: Option<PathBuf>,
    }

    /// Which lines of the audit log.
    pub struct AuditWanted {
        /// Only what concerns this tenant.
        pub tenant: Option<String>,
        /// How many.
        pub limit: Option<usize>,
    }
}

answered! {
    /// The master key, and whether everything sealed with it opens.
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
    pub struct SealedCount {
        /// What it is.
        pub kind: String,
        /// How many.
        pub count: u64,
    }

    /// Something sealed that does not open.
    pub struct Unreadable {
        /// What it is.
        pub kind: String,
        /// Which; `null` where there is one of it.
        pub name: Option<String>,
        /// Why.
        pub error: String,
    }

    /// A change of the master key that was made.
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
    pub struct RotatedToken {
        /// Always true.
        pub rotated: bool,
    }

    /// What the clock shows, and the leap that nobody has confirmed.
    pub struct Clock {
        /// The time.
        pub now: UnixMillis,
        /// The leap, in words.
        pub leap: Option<String>,
        /// The leap; negative if the clock is behind.
        pub ahead_ms: Option<i64>,
    }

    /// The clock, taken for right as it is.
    pub struct AcceptedClock {
        /// What it shows.
        #[serde(flatten)]
        pub clock: Clock,
        /// The leap that was accepted, in words.
        pub accepted: Option<String>,
    }

    /// Who changed what.
    pub struct Audit {
        /// Newest first.
        pub audit: Vec<AuditLine>,
    }
}

/// Opens everything that is sealed, and tells how much there is of what.
pub(super) async fn check(admin: Arc<Admin>, _: Nothing) -> Result<KeyCheck> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut damaged: Vec<Unreadable> = Vec::new();
    let mut pages = master_key_change::Pages::default();
    while let Some(page) = pages.next(&admin).await? {
        // After it was read: a change of keys may have begun in between.
        let keys = admin.keys.keys();
        for value in &page {
            *counts.entry(value.kind).or_default() += 1;
            damaged.extend(damage(&keys, value));
        }
    }
    let counted = |(kind, count): (&str, u64)| SealedCount { kind: kind.to_owned(), count };
    Ok(KeyCheck {
        key_id: admin.keys.keys().current().id().to_string(),
        retiring_key_id: admin.keys.retiring().map(|id| id.to_string()),
        sealed: counts.into_iter().map(counted).collect(),
        unreadable: damaged.len() as u64,
        damaged,
    })
}

/// What does not open, by the name an operator knows it by.
fn damage(keys: &Keys, value: &SealedValue) -> Option<Unreadable> {
    let error = keys.open(&value.sealed, &value.bound_to).err()?;
    // `gateway-secret/acme/gw` is the gateway acme/gw; what there is one of needs no name.
    let name = value.bound_to.split_once('/').map(|(_, name)| name.to_owned());
    Some(Unreadable { kind: value.kind.to_owned(), name, error: error.to_string() })
}

pub(super) async fn rotate(admin: Arc<Admin>, body: RotateKey) -> Result<RotatedKey> {
    // A task of its own: a caller who hangs up must not leave it half done.
    let rotation =
        tokio::spawn(async move { master_key_change::change_key(&admin, body.file.as_deref()).await });
    rotation.await.unwrap_or_else(|_| Err(Error::internal("the change of keys broke off")))
}

pub(super) async fn rotate_token(admin: Arc<Admin>, _: Nothing) -> Result<RotatedToken> {
    let _turn = admin.identities.turn().await;
    if admin.cluster.is_shared() {
        admin.token.rotate_shared(&*admin.ports.records, &admin.keys).await?;
    } else {
        admin.token.rotate()?;
    }
    let entry = AuditEntry::done(&Actor::operator(), "admin-token.rotate", "", "");
    admin.ports.records.audit(entry).await?;
    Ok(RotatedToken { rotated: true })
}

pub(super) async fn clock(admin: Arc<Admin>, _: Nothing) -> Result<Clock> {
    Ok(describe_clock(&admin))
}

pub(super) async fn accept_clock(admin: Arc<Admin>, _: Nothing) -> Result<AcceptedClock> {
    let accepted = admin.ports.upkeep.accept_clock(&Actor::operator()).await?;
    if let Some(leap) = accepted {
        tracing::info!(leap = leap.words(), "the clock was accepted as it is");
    }
    Ok(AcceptedClock { clock: describe_clock(&admin), accepted: accepted.map(|leap| leap.words()) })
}

/// What the clock shows, and the leap that nobody has confirmed.
pub(super) fn describe_clock(admin: &Admin) -> Clock {
    let leap = admin.ports.upkeep.leap();
    let (words, ahead_ms) = (leap.map(|leap| leap.words()), leap.map(|leap| leap.ahead_ms));
    Clock { now: clock::wall(), leap: words, ahead_ms }
}

pub(super) async fn audit(admin: Arc<Admin>, wanted: AuditWanted) -> Result<Audit> {
    let limit = wanted.limit.unwrap_or(PAGE).min(MAX_PAGE);
    Ok(Audit { audit: admin.ports.records.audit_lines(wanted.tenant.as_deref(), limit).await? })
}
