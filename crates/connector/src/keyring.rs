//! What the server is opened with, and can be given anew while it runs: the
//! master key and the admin token.

use angelia_core::error::{Error, Result};
use angelia_core::seal::{KeyId, Keys, MasterKey, Sealed};
use angelia_core::secret::Secret;
use parking_lot::RwLock;
use std::path::Path;
use std::sync::{Arc, Weak};

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

/// The master keys at hand.
pub struct Keyring {
    held: RwLock<Held>,
    /// Held by whoever changes the key: one change at a time.
    pub(crate) rotating: tokio::sync::Mutex<()>,
    pub(crate) keeper: Box<dyn KeyKeeper>,
}

struct Held {
    keys: Keys,
    /// The key that sealed before the current one did, as long as somebody holds what
    /// they sealed with it.
    superseded: Weak<MasterKey>,
    /// Whether the store may still need the former key. It opens what was read before it
    /// was given up, so it stays here until the next change or the end of the process.
    unfinished: bool,
}

impl Keyring {
    /// Begins with `key`.
    pub fn new(key: MasterKey, keeper: Box<dyn KeyKeeper>) -> Arc<Self> {
        let held = Held { keys: Keys::new(key), superseded: Weak::new(), unfinished: false };
        Arc::new(Self { held: RwLock::new(held), rotating: tokio::sync::Mutex::default(), keeper })
    }

    /// The keys of this moment.
    pub(crate) fn keys(&self) -> Keys {
        self.held.read().keys.clone()
    }

    /// Seals for the row that `bound_to` describes. Whoever stores it keeps the value until
    /// then: its key must not be given up in between.
    pub(crate) fn seal(&self, secret: &Secret, bound_to: &str) -> Result<Sealed> {
        self.keys().seal(secret, bound_to)
    }

    /// Opens what is sealed for the row that `bound_to` describes.
    pub(crate) fn open(&self, sealed: &[u8], bound_to: &str) -> Result<Secret> {
        Ok(self.keys().open(sealed, bound_to)?)
    }

    /// Seals with `next` from now on. The key so far, of which `former` is another copy,
    /// opens what it has sealed.
    pub(crate) fn change_to(&self, next: MasterKey, former: MasterKey) {
        let mut held = self.held.write();
        held.superseded = Arc::downgrade(held.keys.current());
        held.keys = Keys::new(next).with_former(former);
        held.unfinished = true;
    }

    /// Takes up a change of keys that an earlier process left unfinished, with the key
    /// before this one, if that could be read.
    pub(crate) fn resume_from(&self, former: Option<MasterKey>) {
        let mut held = self.held.write();
        if let Some(former) = former {
            held.keys = held.keys.clone().with_former(former);
        }
        held.unfinished = true;
    }

    /// Whether a change of keys is not finished.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.held.read().unfinished
    }

    /// The key that a change is not finished with yet.
    pub(crate) fn retiring(&self) -> Option<KeyId> {
        let held = self.held.read();
        held.keys.former().filter(|_| held.unfinished).map(MasterKey::id)
    }

    /// Whether somebody may still store what was sealed with the key before.
    pub(crate) fn is_awaited(&self) -> bool {
        self.held.read().superseded.strong_count() > 0
    }

    /// Notes that the store needs the current key only.
    pub(crate) fn finished(&self) {
        self.held.write().unfinished = false;
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
        self.current.read().matches(token)
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

#[cfg(test)]
mod tests {
    use super::*;

    impl Keyring {
        /// Keys of which nobody keeps any, for tests.
        pub(crate) fn kept_nowhere(key: MasterKey) -> Arc<Self> {
            struct Nobody;

            impl KeyKeeper for Nobody {
                fn next(&self, _file: Option<&Path>) -> Result<MasterKey> {
                    Err(Error::conflict(
                        "the master key of this server is kept nowhere, so it cannot be changed",
                    ))
                }

                fn stage(&self, _next: &MasterKey) -> Result<()> {
                    Ok(())
                }

                fn adopt(&self) -> Result<Option<String>> {
                    Ok(None)
                }
            }

            Self::new(key, Box::new(Nobody))
        }
    }

    #[test]
    fn a_key_is_awaited_until_what_it_sealed_is_stored() {
        let key = MasterKey::mint();
        let copy = MasterKey::from_hex(key.to_hex().expose()).unwrap();
        let old = key.id();
        let ring = Keyring::kept_nowhere(key);
        let under_way = ring.seal(&Secret::new("token"), "row").unwrap();
        let keys_in_hand = ring.keys();
        assert_eq!((ring.retiring(), ring.is_awaited()), (None, false));
        ring.change_to(MasterKey::mint(), copy);
        assert_eq!((ring.retiring(), ring.is_awaited()), (Some(old), true));
        assert_eq!(ring.open(&under_way, "row").unwrap().expose(), "token");
        drop(under_way);
        assert!(ring.is_awaited(), "who took the keys before may seal yet");
        let late = keys_in_hand.seal(&Secret::new("late"), "row").unwrap();
        drop(keys_in_hand);
        assert!(ring.is_awaited());
        let read = late.to_vec();
        drop(late);
        assert!(!ring.is_awaited());
        ring.finished();
        assert_eq!(ring.retiring(), None);
        assert_eq!(ring.open(&read, "row").unwrap().expose(), "late", "it was read before");
        let after = ring.seal(&Secret::new("x"), "row").unwrap();
        assert_eq!(angelia_core::seal::key_id(&after), Some(ring.keys().current().id()));
    }
}
