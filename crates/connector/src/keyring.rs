//! What the server is opened with, and can be given anew while it runs: the master key.

use crate::cluster::{Facts, KeyFacts};
use crate::key_handover::{self, Recipient};
use angelia_core::error::Result;
use angelia_core::records::rows::NodeRow;
use angelia_core::seal::{KeyId, Keys, MasterKey, Sealed};
use angelia_core::secret::Secret;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
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
    /// Whom other nodes hand the next key to.
    pub(crate) recipient: Recipient,
    /// The key that other nodes are to have before the change to it begins.
    handed_out: Mutex<Option<MasterKey>>,
    /// What the operator has to do before the next start of this node, and what is wrong here.
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    to_do: Option<String>,
    trouble: Option<String>,
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
        Arc::new(Self {
            held: RwLock::new(held),
            rotating: tokio::sync::Mutex::default(),
            keeper,
            recipient: Recipient::default(),
            handed_out: Mutex::default(),
            notes: Mutex::default(),
        })
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

    /// Opens with `next` as well: another node is about to seal with it.
    pub(crate) fn expect(&self, next: MasterKey) {
        let mut held = self.held.write();
        held.keys = held.keys.clone().with_next(next);
    }

    /// The key that is expected.
    pub(crate) fn next(&self) -> Option<KeyId> {
        self.held.read().keys.next().map(MasterKey::id)
    }

    /// Seals with the key that is expected, if one is.
    pub(crate) fn change_to_next(&self) -> Result<()> {
        let keys = self.keys();
        if let Some(next) = keys.next() {
            self.change_to(copy(next)?, copy(keys.current())?);
        }
        Ok(())
    }

    /// Hands a key to the other nodes, or none any more.
    pub(crate) fn hand_out(&self, next: Option<MasterKey>) {
        *self.handed_out.lock() = next;
    }

    /// Notes what the operator has to do before the next start of this node.
    pub(crate) fn note_to_do(&self, to_do: Option<String>) {
        self.notes.lock().to_do = to_do;
    }

    /// Notes why this node cannot follow a change of keys; answers whether that is news.
    pub(crate) fn note_trouble(&self, trouble: Option<String>) -> bool {
        let mut notes = self.notes.lock();
        let is_news = trouble.is_some() && notes.trouble != trouble;
        notes.trouble = trouble;
        is_news
    }

    /// Why this node cannot follow a change of keys.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.notes.lock().trouble.clone()
    }

    /// What this node, called `node`, tells the others of its keys.
    pub(crate) fn facts(&self, node: &str, others: &[NodeRow]) -> KeyFacts {
        let keys = self.keys();
        let notes = self.notes.lock();
        let (to_do, trouble) = (notes.to_do.clone(), notes.trouble.clone());
        drop(notes);
        KeyFacts {
            id: keys.current().id().to_string(),
            has: keys.next().map(|next| next.id().to_string()),
            settled: !self.is_awaited(),
            offer: self.recipient.offer().unwrap_or_default(),
            gives: self.gives(&keys, node, others),
            to_do,
            trouble,
        }
    }

    /// The next key for those who have not got it: before a change begins, or, for whoever came
    /// late or stood still, after it.
    fn gives(&self, keys: &Keys, node: &str, others: &[NodeRow]) -> BTreeMap<String, key_handover::Given> {
        let handed_out = self.handed_out.lock();
        let (key, known) = match (&*handed_out, keys.former()) {
            (Some(next), _) => (next, &**keys.current()),
            (None, Some(former)) => (&**keys.current(), former),
            (None, None) => return BTreeMap::new(),
        };
        let (id, known_id) = (key.id().to_string(), known.id().to_string());
        let needy = others.iter().filter(|row| row.node != node).filter_map(|row| {
            let theirs = Facts::of(row).key;
            let needs = theirs.id == known_id && theirs.has.as_ref() != Some(&id) && !theirs.offer.is_empty();
            needs.then(|| (row.node.clone(), theirs.offer))
        });
        needy
            .filter_map(|(name, offer)| {
                let given = key_handover::give(key, known, &name, &offer);
                given
                    .inspect_err(|error| tracing::debug!(%error, "a key could not be handed over"))
                    .ok()
                    .map(|given| (name, given))
            })
            .collect()
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

/// Another copy of a key; there is no other way to have two.
pub(crate) fn copy(key: &MasterKey) -> Result<MasterKey> {
    MasterKey::from_hex(key.to_hex().expose())
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::error::Error;

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

    #[test]
    fn a_key_that_is_expected_opens_and_does_not_seal_yet() {
        let (old, next) = (MasterKey::mint(), MasterKey::mint());
        let theirs = next.seal(&Secret::new("theirs"), "row").unwrap();
        let (old_id, next_id) = (old.id(), next.id());
        let ring = Keyring::kept_nowhere(old);
        assert!(ring.open(&theirs, "row").is_err());
        ring.expect(next);
        assert_eq!((ring.next(), ring.keys().current().id()), (Some(next_id), old_id));
        assert_eq!(ring.open(&theirs, "row").unwrap().expose(), "theirs");
        let ours = ring.seal(&Secret::new("ours"), "row").unwrap();
        ring.change_to_next().unwrap();
        assert_eq!((ring.keys().current().id(), ring.retiring(), ring.next()), (next_id, Some(old_id), None));
        assert!(ring.is_awaited(), "something is on its way");
        assert_eq!(ring.open(&ours, "row").unwrap().expose(), "ours");
    }

    fn told(node: &str, key: KeyFacts) -> NodeRow {
        let facts = serde_json::to_string(&Facts { key, ..Facts::default() }).unwrap();
        let at = angelia_core::clock::UnixMillis(0);
        NodeRow { node: node.into(), owner: 0, started_at: at, until: at, takes: true, facts }
    }

    #[test]
    fn a_key_is_given_to_those_who_lack_it_before_and_after_a_change() {
        let (old, next) = (MasterKey::mint(), MasterKey::mint());
        let other = Keyring::kept_nowhere(copy(&old).unwrap());
        let ring = Keyring::kept_nowhere(copy(&old).unwrap());
        let gives =
            |theirs: KeyFacts| ring.facts("a", &[told("a", KeyFacts::default()), told("b", theirs)]).gives;
        assert!(gives(other.facts("b", &[])).is_empty(), "there is nothing to give");
        ring.hand_out(Some(copy(&next).unwrap()));
        let given = gives(other.facts("b", &[])).remove("b").unwrap();
        let taken = other.recipient.take(&given, &old, "b").unwrap().unwrap();
        assert_eq!(taken.id(), next.id());
        other.expect(taken);
        assert!(gives(other.facts("b", &[])).is_empty(), "it has it");

        ring.hand_out(None);
        ring.change_to(next, old);
        let late = Keyring::kept_nowhere(copy(other.keys().current()).unwrap());
        assert_eq!(gives(late.facts("b", &[])).len(), 1, "one that came in between");
        let stranger = Keyring::kept_nowhere(MasterKey::mint());
        assert!(gives(stranger.facts("b", &[])).is_empty());
    }
}
