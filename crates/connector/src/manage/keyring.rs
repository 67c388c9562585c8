//! What the server is opened with, and can be given anew while it runs: the
//! master key and the admin token.

use angelia_core::error::{Error, Result};
use angelia_core::seal::MasterKey;
use angelia_core::secret::Secret;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Where the master key is kept between starts. The process knows; the server does not.
pub trait KeyKeeper: Send + Sync {
    /// The key to change to: the one in `file`, or a new one where keeping it is ours.
    fn next(&self, file: Option<&Path>) -> Result<MasterKey>;

    /// Puts `next` beside the key in use, durably, so that a start finds the
    /// one that opens the store, whenever this process ends.
    fn stage(&self, next: &MasterKey) -> Result<()>;

    /// Makes the staged key the one in use. Answers what the operator has to
    /// do before the next start, if there is anything.
    fn adopt(&self) -> Result<Option<String>>;
}

/// The master key in use.
pub struct Keyring {
    current: RwLock<Arc<MasterKey>>,
    /// Whether bots have to wait with what they would seal.
    held: AtomicBool,
    pub(super) keeper: Box<dyn KeyKeeper>,
}

/// Held while bots seal nothing.
pub(super) struct Hold<'a>(&'a Keyring);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.held.store(false, Ordering::Release);
    }
}

impl Keyring {
    /// Begins with `key`.
    pub fn new(key: MasterKey, keeper: Box<dyn KeyKeeper>) -> Self {
        Self { current: RwLock::new(Arc::new(key)), held: AtomicBool::new(false), keeper }
    }

    /// The key in use now. Whoever stores what they seal with it holds the
    /// server's `changing` from here to the commit: a value sealed before a
    /// change of keys and stored after it would never open again.
    pub fn current(&self) -> Arc<MasterKey> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has bots seal nothing for a moment, so that a change of keys comes to an end.
    pub(super) fn hold(&self) -> Hold<'_> {
        self.held.store(true, Ordering::Release);
        Hold(self)
    }

    /// Seals what a bot received. A change of keys may be in the way.
    pub(crate) fn seal_received(&self, secret: &Secret, bound_to: &str) -> Result<Vec<u8>> {
        match self.held.load(Ordering::Acquire) {
            true => Err(Error::unavailable("the master key is being changed; try again")),
            false => self.current().seal(secret, bound_to),
        }
    }

    pub(super) fn replace(&self, key: MasterKey) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(key);
    }
}

/// A key that nobody keeps: good for one process, and for tests.
impl From<MasterKey> for Keyring {
    fn from(key: MasterKey) -> Self {
        Self::new(key, Box::new(Nobody))
    }
}

struct Nobody;

impl KeyKeeper for Nobody {
    fn next(&self, _file: Option<&Path>) -> Result<MasterKey> {
        Err(Error::conflict("the master key of this server is kept nowhere, so it cannot be changed"))
    }

    fn stage(&self, _next: &MasterKey) -> Result<()> {
        Ok(())
    }

    fn adopt(&self) -> Result<Option<String>> {
        Ok(None)
    }
}

type KeepToken = Box<dyn Fn(&Secret) -> Result<()> + Send + Sync>;

/// What the admin API asks for.
pub struct AdminToken {
    current: RwLock<Secret>,
    keep: KeepToken,
}

impl AdminToken {
    /// Begins with `token`; `keep` writes a new one down where commands read it.
    pub fn new(token: Secret, keep: impl Fn(&Secret) -> Result<()> + Send + Sync + 'static) -> Self {
        Self { current: RwLock::new(token), keep: Box::new(keep) }
    }

    /// Whether this is the token.
    pub fn matches(&self, token: &str) -> bool {
        self.current.read().unwrap_or_else(PoisonError::into_inner).matches(token)
    }

    /// Makes a new token. It is written down first: a start in between reads the one that counts.
    pub(super) fn rotate(&self) -> Result<()> {
        let token = Secret::mint();
        (self.keep)(&token)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = token;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bots_seal_nothing_while_they_are_held() {
        let keys = Keyring::from(MasterKey::mint());
        let seal = || keys.seal_received(&Secret::new("token"), "row");
        let hold = keys.hold();
        assert_eq!(seal().unwrap_err().kind(), angelia_core::Kind::Unavailable);
        drop(hold);
        assert_eq!(keys.current().open(&seal().unwrap(), "row").unwrap().expose(), "token");
    }
}
