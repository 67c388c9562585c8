//! What is in the vault, until when, and whose it is said to be.

use super::{Inspect, time};
use angelia_core::clock::UnixMillis;
use angelia_core::vault::Stage;
use rusqlite::params;

/// A capability as the vault has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenCapability {
    /// The interaction it answers.
    pub interaction_id: String,
    /// How far the answer is.
    pub stage: Stage,
    /// When it ends.
    pub expires_at: UnixMillis,
}

impl Inspect {
    /// Every capability there is, oldest first.
    pub fn capabilities(&self) -> Vec<SeenCapability> {
        let all = "SELECT interaction_id, stage, expires_at FROM capabilities ORDER BY id";
        self.ask(all, [], |row| {
            let stage: String = row.get(1)?;
            Ok(SeenCapability {
                interaction_id: row.get(0)?,
                stage: Stage::stored(&stage),
                expires_at: time(row, 2)?,
            })
        })
    }

    /// Lets what answers an interaction end then.
    ///
    /// # Panics
    ///
    /// When nothing answers it.
    pub fn set_expiry(&self, interaction_id: &str, at: UnixMillis) {
        let one = "UPDATE capabilities SET expires_at = ? WHERE interaction_id = ?";
        assert_ne!(self.change(one, params![at.0, interaction_id]), 0, "nothing answers {interaction_id}");
    }

    /// Lets everything in the vault end then.
    ///
    /// # Panics
    ///
    /// When there is nothing in it.
    pub fn set_every_expiry(&self, at: UnixMillis) {
        assert_ne!(self.change("UPDATE capabilities SET expires_at = ?", [at.0]), 0, "the vault is empty");
    }

    /// Says of every capability that this person asked, as whoever writes into the
    /// database could: what is sealed stays bound to the one who did.
    ///
    /// # Panics
    ///
    /// When there is nothing in the vault.
    pub fn claim_capabilities_for(&self, user_id: &str) {
        assert_ne!(self.change("UPDATE capabilities SET user_id = ?", [user_id]), 0, "the vault is empty");
    }
}
