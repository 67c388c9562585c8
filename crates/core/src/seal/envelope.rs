//! The bytes of a sealed value, in both formats there are.
//!
//! | bytes | since schema 5 | | bytes | before |
//! |---|---|---|---|---|
//! | 4 | zero: the name that no key has | | 4 | name of the master key |
//! | 1 | version, 2 | | 24 | nonce |
//! | 4 | name of the master key | | 16 + n | the secret under the master key |
//! | 24 | nonce | | | |
//! | 48 | the data key under the master key | | | |
//! | 24 | nonce | | | |
//! | 16 + n | the secret under the data key | | | |
//!
//! Both layers are bound to the row. The wrapped data key is bound to all nine bytes in
//! front of it as well, the secret to the first five, which a change of keys leaves alone.

use super::master_key::{KEY_BYTES, KEY_ID_BYTES, KeyId, MasterKey};
use crate::error::{Error, Kind, Result};
use crate::secret::{Secret, random_bytes};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
const WRAPPED_BYTES: usize = KEY_BYTES + TAG_BYTES;
/// The version of what is sealed now. The format before had none.
const VERSION: u8 = 2;
const VERSION_AT: usize = KEY_ID_BYTES;
/// How much of a value a change of keys has to look at.
pub const HEAD_BYTES: usize = VERSION_AT + 1 + KEY_ID_BYTES;

/// Why a sealed value does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Its bytes, or the row they are bound to, are not what was sealed.
    #[error("a stored secret could not be opened: it was damaged or moved")]
    Damaged,
    /// It was written by a release that is newer than this one.
    #[error(
        "a stored secret has format {0}, which this release does not know: run the newer one that wrote it"
    )]
    Format(u8),
    /// It was sealed with a key that is not at hand: another database's, or one that
    /// was given up. Nothing but that key opens it.
    #[error("a stored secret needs master key {needed}, but the key at hand is {at_hand}")]
    Key {
        /// The key it was sealed with.
        needed: KeyId,
        /// The key that seals now.
        at_hand: KeyId,
    },
}

impl From<Unreadable> for Error {
    fn from(error: Unreadable) -> Self {
        Self::new(Kind::Internal, error.to_string())
    }
}

/// What every value begins with whose data key is wrapped with one master key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head([u8; HEAD_BYTES]);

impl Head {
    pub(super) fn of(key: KeyId) -> Self {
        let mut head = [0; HEAD_BYTES];
        let (mark, rest) = head.split_at_mut(VERSION_AT);
        mark.copy_from_slice(&KeyId::NOBODY.bytes());
        rest[0] = VERSION;
        rest[1..].copy_from_slice(&key.bytes());
        Self(head)
    }

    /// The bytes themselves.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether a value begins so; its first [`HEAD_BYTES`] are enough to tell.
    pub fn begins(&self, sealed: &[u8]) -> bool {
        sealed.starts_with(&self.0)
    }
}

/// The parts of a sealed value, still sealed.
enum Parts<'a> {
    /// Sealed with the master key itself.
    Direct { key: KeyId, nonce: &'a [u8; NONCE_BYTES], body: &'a [u8] },
    /// Sealed with a data key of its own.
    Envelope { key: KeyId, nonce: &'a [u8; NONCE_BYTES], wrapped: &'a [u8; WRAPPED_BYTES], body: Body<'a> },
}

/// What the data key opens.
#[derive(Clone, Copy)]
struct Body<'a> {
    nonce: &'a [u8; NONCE_BYTES],
    sealed: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(sealed: &'a [u8]) -> Result<Self, Unreadable> {
        let damaged = Unreadable::Damaged;
        let (key, rest) = first_key(sealed).ok_or(damaged)?;
        if key != KeyId::NOBODY {
            let (nonce, body) = rest.split_first_chunk().ok_or(damaged)?;
            return Ok(Self::Direct { key, nonce, body });
        }
        let (version, rest) = rest.split_first().ok_or(damaged)?;
        if *version != VERSION {
            return Err(Unreadable::Format(*version));
        }
        let (key, rest) = first_key(rest).ok_or(damaged)?;
        let (nonce, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let (wrapped, rest) = rest.split_first_chunk().ok_or(damaged)?;
        let (body_nonce, body) = rest.split_first_chunk().ok_or(damaged)?;
        Ok(Self::Envelope { key, nonce, wrapped, body: Body { nonce: body_nonce, sealed: body } })
    }

    fn key(&self) -> KeyId {
        match self {
            Self::Direct { key, .. } | Self::Envelope { key, .. } => *key,
        }
    }
}

fn first_key(bytes: &[u8]) -> Option<(KeyId, &[u8])> {
    bytes.split_first_chunk().map(|(id, rest)| (KeyId::from_bytes(*id), rest))
}

/// The public name of the master key that a sealed value needs.
pub fn key_id(sealed: &[u8]) -> Option<KeyId> {
    let (key, rest) = first_key(sealed)?;
    if key != KeyId::NOBODY {
        return Some(key);
    }
    match rest.split_first()? {
        (&VERSION, rest) => first_key(rest).map(|(key, _)| key),
        _ => None,
    }
}

/// A key for one value only.
struct DataKey(Zeroizing<[u8; KEY_BYTES]>);

impl DataKey {
    fn mint() -> Self {
        Self(Zeroizing::new(random_bytes()))
    }

    fn wrap(&self, with: &MasterKey, bound_to: &str) -> Result<Vec<u8>> {
        let nonce: [u8; NONCE_BYTES] = random_bytes();
        let head = with.head();
        let aad = [head.bytes(), bound_to.as_bytes()].concat();
        let wrapped = encrypt(&with.cipher(), &nonce, &*self.0, &aad)?;
        Ok([head.bytes(), &nonce, &wrapped].concat())
    }

    fn unwrap(
        with: &MasterKey,
        nonce: &[u8; NONCE_BYTES],
        wrapped: &[u8],
        bound_to: &str,
    ) -> Result<Self, Unreadable> {
        let aad = [with.head().bytes(), bound_to.as_bytes()].concat();
        let opened = Zeroizing::new(decrypt(&with.cipher(), nonce, wrapped, &aad)?);
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        if opened.len() != KEY_BYTES {
            return Err(Unreadable::Damaged);
        }
        key.copy_from_slice(&opened);
        Ok(Self(key))
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(*self.0))
    }
}

/// What the secret under a data key is bound to: nothing that names the master key.
fn body_aad(bound_to: &str) -> Vec<u8> {
    [&KeyId::NOBODY.bytes(), [VERSION].as_slice(), bound_to.as_bytes()].concat()
}

fn encrypt(cipher: &XChaCha20Poly1305, nonce: &[u8; NONCE_BYTES], msg: &[u8], aad: &[u8]) -> Result<Vec<u8>> {
    let sealed = cipher.encrypt(&XNonce::from(*nonce), Payload { msg, aad });
    sealed.map_err(|_| Error::internal("a secret could not be sealed"))
}

fn decrypt(
    cipher: &XChaCha20Poly1305,
    nonce: &[u8; NONCE_BYTES],
    msg: &[u8],
    aad: &[u8],
) -> Result<Vec<u8>, Unreadable> {
    cipher.decrypt(&XNonce::from(*nonce), Payload { msg, aad }).map_err(|_| Unreadable::Damaged)
}

pub(super) fn seal(key: &MasterKey, secret: &Secret, bound_to: &str) -> Result<Vec<u8>> {
    let data_key = DataKey::mint();
    let nonce: [u8; NONCE_BYTES] = random_bytes();
    let body = encrypt(&data_key.cipher(), &nonce, secret.expose().as_bytes(), &body_aad(bound_to))?;
    Ok([data_key.wrap(key, bound_to)?.as_slice(), &nonce, &body].concat())
}

pub(super) fn open(key: &MasterKey, sealed: &[u8], bound_to: &str) -> Result<Secret, Unreadable> {
    let parts = Parts::of(sealed)?;
    if parts.key() != key.id() {
        return Err(Unreadable::Key { needed: parts.key(), at_hand: key.id() });
    }
    let opened = match parts {
        Parts::Direct { nonce, body, .. } => decrypt(&key.cipher(), nonce, body, bound_to.as_bytes())?,
        Parts::Envelope { nonce, wrapped, body, .. } => {
            let data_key = DataKey::unwrap(key, nonce, wrapped, bound_to)?;
            decrypt(&data_key.cipher(), body.nonce, body.sealed, &body_aad(bound_to))?
        }
    };
    String::from_utf8(opened).map(Secret::new).map_err(|_| Unreadable::Damaged)
}

/// The same value under `to`: its data key wrapped anew, or, where it has none, sealed anew.
pub(super) fn rewrap(from: &MasterKey, to: &MasterKey, sealed: &[u8], bound_to: &str) -> Result<Vec<u8>> {
    match Parts::of(sealed)? {
        Parts::Envelope { key, nonce, wrapped, body } if key == from.id() => {
            let data_key = DataKey::unwrap(from, nonce, wrapped, bound_to)?;
            Ok([data_key.wrap(to, bound_to)?.as_slice(), body.nonce, body.sealed].concat())
        }
        _ => seal(to, &open(from, sealed, bound_to)?, bound_to),
    }
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;
