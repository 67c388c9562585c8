//! The master keys at hand, and the rules of a change from one to the next.

use super::envelope::{self, Head, Unreadable, key_id};
use super::master_key::{KeyId, MasterKey};
use crate::error::Result;
use crate::secret::Secret;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The key that seals, the one before it while something may need it, and the one after it
/// while nodes wait for each other to have it. All of them open.
#[derive(Clone, Debug)]
pub struct Keys {
    current: Arc<MasterKey>,
    former: Option<Arc<MasterKey>>,
    next: Option<Arc<MasterKey>>,
}

impl Keys {
    /// One key for everything.
    pub fn new(current: MasterKey) -> Self {
        Self { current: Arc::new(current), former: None, next: None }
    }

    /// The same, and a key that opens what was sealed before.
    pub fn with_former(self, former: MasterKey) -> Self {
        Self { former: Some(Arc::new(former)), ..self }
    }

    /// The same, and a key that is to seal soon: another node may seal with it already.
    pub fn with_next(self, next: MasterKey) -> Self {
        Self { next: Some(Arc::new(next)), ..self }
    }

    /// The key that seals.
    pub fn current(&self) -> &Arc<MasterKey> {
        &self.current
    }

    /// The key before it.
    pub fn former(&self) -> Option<&MasterKey> {
        self.former.as_deref()
    }

    /// The key after it.
    pub fn next(&self) -> Option<&MasterKey> {
        self.next.as_deref()
    }

    /// Seals `secret` for exactly the row that `bound_to` describes.
    pub fn seal(&self, secret: &Secret, bound_to: &str) -> Result<Sealed> {
        let bytes = self.current.seal(secret, bound_to)?;
        Ok(Sealed { bytes, key: Some(self.current.clone()) })
    }

    /// Opens what was sealed with one of the keys for the same row.
    pub fn open(&self, sealed: &[u8], bound_to: &str) -> Result<Secret, Unreadable> {
        self.for_value(sealed).open(sealed, bound_to)
    }

    /// Whether a change of keys has to wrap a value anew: its data key is not wrapped
    /// with the current key, or it has none.
    pub fn is_due(&self, sealed: &[u8]) -> bool {
        !self.current.head().begins(sealed)
    }

    /// The same value under the current key.
    pub fn rewrap(&self, sealed: &[u8], bound_to: &str) -> Result<Vec<u8>> {
        envelope::rewrap(self.for_value(sealed), &self.current, sealed, bound_to)
    }

    /// The key to try a value with. Of one that none of them opens the current key
    /// says which it needs.
    fn for_value(&self, sealed: &[u8]) -> &MasterKey {
        let needed: Option<KeyId> = key_id(sealed);
        let mut others = self.former.iter().chain(&self.next);
        others.find(|other| Some(other.id()) == needed).unwrap_or(&self.current)
    }
}

/// Whether the key before the current one may be forgotten: when everything stored begins
/// as what the current key seals does. A value of a key that nobody knows keeps the former
/// key as well: somebody has to look at it first.
///
/// Asked in the transaction that forgets it, and only when nobody holds a [`Sealed`] of
/// it any more, who might store it later.
pub fn may_retire<'a>(current: &Head, mut stored: impl Iterator<Item = &'a [u8]>) -> bool {
    stored.all(|head| current.begins(head))
}

/// A sealed value on its way into the store. Until it is dropped its key is not given up,
/// so it is kept until the value is committed. An engine with one writer may drop it when
/// it writes: whether the key may go is asked behind it, by the same writer.
#[derive(Clone, Default)]
pub struct Sealed {
    bytes: Vec<u8>,
    /// Held, never used.
    key: Option<Arc<MasterKey>>,
}

impl Deref for Sealed {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes, {:?})", self.bytes.len(), self.key)
    }
}

/// Bytes that no change of keys has to wait for.
impl From<Vec<u8>> for Sealed {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, key: None }
    }
}

impl From<Sealed> for Vec<u8> {
    fn from(sealed: Sealed) -> Self {
        sealed.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value as the release before sealed it, with the key 07…: "s3cret", for gw of acme.
    const BEFORE: &str = "4622a5b577bfe1937fe1ed1027b7a17c7304476c80414c12c61a4fbfbdd914088022b84c6c42b66deb824fd0ccf411cf80d0";
    const ROW: &str = "gateway-secret/acme/gw";

    fn unhex(text: &str) -> Vec<u8> {
        let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    }

    fn sevens() -> MasterKey {
        MasterKey::from_hex(&"07".repeat(32)).unwrap()
    }

    /// Keys in the middle of a change, and a value under each of them.
    fn changing() -> (Keys, Vec<u8>, Vec<u8>) {
        let (old, new) = (MasterKey::mint(), MasterKey::mint());
        let sealed = [&old, &new].map(|key| key.seal(&Secret::new("s3cret"), ROW).unwrap());
        let [under_old, under_new] = sealed;
        (Keys::new(new).with_former(old), under_old, under_new)
    }

    #[test]
    fn both_keys_open_and_the_current_one_seals() {
        let (keys, old, new) = changing();
        let made = keys.seal(&Secret::new("s3cret"), ROW).unwrap();
        for sealed in [&*old, &new, &made] {
            assert_eq!(keys.open(sealed, ROW).unwrap().expose(), "s3cret");
            assert_eq!(keys.open(sealed, "another row").unwrap_err(), Unreadable::Damaged);
        }
        assert_eq!(key_id(&made), Some(keys.current().id()));
    }

    #[test]
    fn what_is_due_is_what_the_current_key_did_not_wrap() {
        let (keys, old, new) = changing();
        assert!(keys.is_due(&old) && !keys.is_due(&new));
        assert!(keys.is_due(&unhex(BEFORE)) && keys.is_due(&[]));
        let keys = Keys::new(sevens());
        assert!(keys.is_due(&unhex(BEFORE)), "a value without a data key, of the current key too");
    }

    #[test]
    fn a_value_wrapped_anew_needs_the_old_key_no_more() {
        let (keys, old, _) = changing();
        let anew = keys.rewrap(&old, ROW).unwrap();
        assert!(!keys.is_due(&anew));
        assert_eq!(keys.current().open(&anew, ROW).unwrap().expose(), "s3cret");
        assert!(keys.former().unwrap().open(&anew, ROW).is_err());
        assert!(keys.rewrap(&old, "another row").is_err(), "it is bound to its row all the while");
        let again = keys.rewrap(&anew, ROW).unwrap();
        assert_eq!(keys.open(&again, ROW).unwrap().expose(), "s3cret", "once more does no harm");
    }

    #[test]
    fn what_the_release_before_sealed_opens_and_is_brought_here() {
        let sealed = unhex(BEFORE);
        assert_eq!(sevens().open(&sealed, ROW).unwrap().expose(), "s3cret");
        assert_eq!(sevens().open(&sealed, "another row").unwrap_err(), Unreadable::Damaged);
        assert_eq!(key_id(&sealed), Some(sevens().id()));
        for keys in [Keys::new(MasterKey::mint()).with_former(sevens()), Keys::new(sevens())] {
            let anew = keys.rewrap(&sealed, ROW).unwrap();
            assert!(!keys.is_due(&anew));
            assert_eq!(keys.open(&anew, ROW).unwrap().expose(), "s3cret");
        }
        for at in 0..sealed.len() {
            let mut bent = sealed.clone();
            bent[at] ^= 1;
            assert!(sevens().open(&bent, ROW).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_value_of_an_unknown_key_names_it() {
        let (keys, ..) = changing();
        let stranger = MasterKey::mint();
        let sealed = stranger.seal(&Secret::new("x"), ROW).unwrap();
        let expected = Unreadable::Key { needed: stranger.id(), at_hand: keys.current().id() };
        assert_eq!(keys.open(&sealed, ROW).unwrap_err(), expected);
        let text = keys.rewrap(&sealed, ROW).unwrap_err().to_string();
        assert!(text.contains(&format!("needs master key {}", stranger.id())), "{text}");
    }

    #[test]
    fn a_key_is_retired_when_nothing_needs_it() {
        let (keys, old, new) = changing();
        let (current, stored) = (keys.current().head(), |values: &[&[u8]]| {
            may_retire(&keys.current().head(), values.iter().copied())
        });
        assert!(stored(&[]) && stored(&[&new, current.bytes()]));
        assert!(!stored(&[&new, &old]) && !stored(&[&unhex(BEFORE)]));
        assert!(!stored(&[&MasterKey::mint().seal(&Secret::new("x"), ROW).unwrap()]), "whoever's it is");
        assert!(!stored(&[&[]]));
    }

    #[test]
    fn a_value_holds_its_key_until_it_is_dropped() {
        let keys = Keys::new(MasterKey::mint());
        let key = Arc::downgrade(keys.current());
        let sealed = keys.seal(&Secret::new("hunter2"), ROW).unwrap();
        drop(keys);
        assert_eq!(key.strong_count(), 1);
        let shown = format!("{sealed:?}");
        assert!(!shown.contains("hunter2") && shown.contains("bytes"), "{shown}");
        drop(sealed);
        assert_eq!(key.strong_count(), 0);
    }
}
