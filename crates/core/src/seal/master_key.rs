//! The master key: 32 random bytes, and a short public name that tells keys apart.

use super::FORMER_KEY;
use super::envelope::{self, Head, Unreadable};
use crate::error::{Error, Result};
use crate::secret::{Secret, random_bytes};
use chacha20poly1305::aead::KeyInit;
use chacha20poly1305::{Key, XChaCha20Poly1305};
use std::fmt;
use zeroize::Zeroizing;

/// Length of a key: what the cipher takes.
pub const KEY_BYTES: usize = 32;
pub(super) const KEY_ID_BYTES: usize = 4;

/// The public name of a master key; tells keys apart, reveals nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId([u8; KEY_ID_BYTES]);

impl KeyId {
    /// The name that no key has: what values with a data key of their own begin with,
    /// where older ones begin with the name of their key.
    pub(super) const NOBODY: Self = Self([0; KEY_ID_BYTES]);

    pub(super) fn from_bytes(bytes: [u8; KEY_ID_BYTES]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(self) -> [u8; KEY_ID_BYTES] {
        self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

/// The key that wraps the keys of everything sealed.
pub struct MasterKey {
    key: Zeroizing<[u8; KEY_BYTES]>,
    id: KeyId,
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({})", self.id)
    }
}

impl MasterKey {
    /// A fresh random key.
    pub fn mint() -> Self {
        loop {
            if let Ok(key) = Self::from_bytes(Zeroizing::new(random_bytes())) {
                return key;
            }
        }
    }

    /// Reads a key written by [`MasterKey::to_hex`].
    pub fn from_hex(text: &str) -> Result<Self> {
        let text = text.trim();
        let wrong = || Error::invalid("the master key must be 64 hexadecimal digits");
        if text.len() != KEY_BYTES * 2 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        for (byte, pair) in key.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Self::from_bytes(key)
    }

    fn from_bytes(key: Zeroizing<[u8; KEY_BYTES]>) -> Result<Self> {
        use sha2::Digest;
        let digest = sha2::Sha256::new().chain_update(b"angelia key id").chain_update(*key).finalize();
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&digest[..KEY_ID_BYTES]);
        let id = usable(KeyId(id))?;
        Ok(Self { key, id })
    }

    /// The key as text, for the file it lives in.
    pub fn to_hex(&self) -> Secret {
        use fmt::Write;
        let mut text = Zeroizing::new(String::with_capacity(KEY_BYTES * 2));
        for byte in *self.key {
            let _ = write!(text, "{byte:02x}");
        }
        Secret::new(std::mem::take(&mut *text))
    }

    /// Its public name.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// What everything begins with whose data key this key wrapped.
    pub fn head(&self) -> Head {
        Head::of(self.id)
    }

    /// Seals `secret` for exactly the row that `bound_to` describes.
    pub fn seal(&self, secret: &Secret, bound_to: &str) -> Result<Vec<u8>> {
        envelope::seal(self, secret, bound_to)
    }

    /// Opens what was sealed with this key for the same row, in this format or an older one.
    pub fn open(&self, sealed: &[u8], bound_to: &str) -> Result<Secret, Unreadable> {
        envelope::open(self, sealed, bound_to)
    }

    /// Seals the key before this one, for the note [`FORMER_KEY`].
    pub fn enclose(&self, former: &Self) -> Result<Vec<u8>> {
        self.seal(&former.to_hex(), FORMER_KEY)
    }

    /// The key that [`MasterKey::enclose`] sealed.
    pub fn disclose(&self, enclosed: &[u8]) -> Result<Self> {
        Self::from_hex(self.open(enclosed, FORMER_KEY)?.expose())
    }

    pub(super) fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(*self.key))
    }
}

/// Refuses the one name in four thousand million that would make older values look like
/// newer ones. So the two are told apart by what they are, not by what they look like.
fn usable(id: KeyId) -> Result<KeyId> {
    if id == KeyId::NOBODY {
        return Err(Error::invalid(format!(
            "a master key with the name {id} cannot be used; make another one, and if it was in use \
             before, change it with the release that used it"
        )));
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_same_after_it_was_written_down() {
        let key = MasterKey::mint();
        assert_eq!(MasterKey::from_hex(key.to_hex().expose()).unwrap().id(), key.id());
        assert!(MasterKey::from_hex(&"+f".repeat(KEY_BYTES)).is_err());
        assert!(MasterKey::from_hex("07").is_err());
    }

    #[test]
    fn no_key_has_the_name_that_newer_values_begin_with() {
        assert!(usable(KeyId::NOBODY).is_err());
        assert!(usable(KeyId([0, 0, 0, 1])).is_ok());
    }

    #[test]
    fn a_key_prints_its_name_only() {
        let key = MasterKey::from_hex(&"07".repeat(KEY_BYTES)).unwrap();
        assert_eq!(format!("{key:?} {:?}", key.id()), "MasterKey(4622a5b5) KeyId(4622a5b5)");
    }

    #[test]
    fn the_key_before_is_found_with_the_key_after_it_alone() {
        let (old, new) = (MasterKey::mint(), MasterKey::mint());
        let enclosed = new.enclose(&old).unwrap();
        assert_eq!(new.disclose(&enclosed).unwrap().id(), old.id());
        assert!(old.disclose(&enclosed).is_err(), "who has the old key does not get the new one");
    }
}
