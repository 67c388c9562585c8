//! What the admin API asks for, and can be given anew while the server runs: one token for all
//! nodes that share a store, and a copy of it where the commands of each read it.

use crate::keyring::Keyring;
use angelia_core::error::{Error, Result};
use angelia_core::records::Records;
use angelia_core::seal::ADMIN_TOKEN;
use angelia_core::secret::Secret;
use angelia_core::store::IdentityStore;
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicBool, Ordering};

type KeepToken = Box<dyn Fn(&Secret) -> Result<()> + Send + Sync>;

/// What the admin API asks for.
pub struct AdminToken {
    current: RwLock<Secret>,
    keep: KeepToken,
    /// As it rests in the store that nodes share.
    seen: Mutex<Vec<u8>>,
    /// Whether it is not written down yet.
    owed: AtomicBool,
}

impl AdminToken {
    /// Begins with `token`; `keep` writes a new one down where commands read it.
    pub fn new(token: Secret, keep: impl Fn(&Secret) -> Result<()> + Send + Sync + 'static) -> Self {
        Self {
            current: RwLock::new(token),
            keep: Box::new(keep),
            seen: Mutex::default(),
            owed: AtomicBool::new(false),
        }
    }

    /// Whether this is the token.
    pub fn matches(&self, token: &str) -> bool {
        self.current.read().matches(token)
    }

    /// Has all nodes that share a store ask for one token: the one in the store, or this one if
    /// there is none yet.
    pub(crate) async fn share(&self, records: &dyn Records, keys: &Keyring) -> Result<()> {
        let own = self.current.read().clone();
        let sealed = keys.seal(&own, ADMIN_TOKEN)?;
        let kept = records.note_once(ADMIN_TOKEN, sealed.to_vec()).await?;
        if let Err(error) = keys.open(&kept, ADMIN_TOKEN) {
            // Whoever can start a server may say what its token is.
            tracing::error!(%error, "the admin token in the store does not open; this node's takes its place");
            return records.set_note(ADMIN_TOKEN, sealed.to_vec()).await;
        }
        if let Err(error) = self.follow(Some(kept), keys) {
            tracing::error!(%error, "the admin token of all nodes could not be written down here; trying again");
        }
        Ok(())
    }

    /// Asks for the token in the store from now on, if another node changed it.
    pub(crate) fn follow(&self, kept: Option<Vec<u8>>, keys: &Keyring) -> Result<()> {
        let Some(kept) = kept.filter(|kept| *kept != *self.seen.lock()) else { return Ok(()) };
        let token = keys.open(&kept, ADMIN_TOKEN);
        // Where the file cannot be written it is tried again: a command would read the old one.
        let followed = token.and_then(|token| self.take(token));
        if followed.is_ok() {
            *self.seen.lock() = kept;
        }
        followed
    }

    /// Makes a new token for all nodes that share a store.
    pub(crate) async fn rotate_shared(&self, records: &dyn Records, keys: &Keyring) -> Result<()> {
        let token = Secret::mint();
        let sealed = keys.seal(&token, ADMIN_TOKEN)?;
        records.set_note(ADMIN_TOKEN, sealed.to_vec()).await?;
        self.take(token)
    }

    /// Asks for `token` from now on. It counts before it is written down: the other nodes ask
    /// for it already.
    fn take(&self, token: Secret) -> Result<()> {
        if !self.matches(token.expose()) {
            *self.current.write() = token.clone();
            self.owed.store(true, Ordering::Release);
        }
        if self.owed.load(Ordering::Acquire) {
            (self.keep)(&token)?;
            self.owed.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Makes a new token. It is written down first: a start in between reads the one that counts.
    pub(crate) fn rotate(&self) -> Result<()> {
        let token = Secret::mint();
        (self.keep)(&token)?;
        *self.current.write() = token;
        Ok(())
    }
}

/// A token that is written down nowhere: good for one process, and for tests.
impl From<Secret> for AdminToken {
    fn from(token: Secret) -> Self {
        Self::new(token, |_| {
            Err(Error::conflict("the admin token of this server is kept nowhere, so it cannot be changed"))
        })
    }
}
