//! Sealing secrets for the store: XChaCha20-Poly1305 under the master key.
//!
//! A sealed value names the key that made it and is bound to the row it
//! belongs to, so a value moved to another row, kind or tenant does not open.

use crate::directory::BotKey;
use crate::error::{Error, Kind, Result};
use crate::inbox::InstanceId;
use crate::secret::{Secret, random_bytes};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

/// Length of the master key: what the cipher takes.
pub const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
const KEY_ID_BYTES: usize = 4;

/// The note that is sealed only so that a wrong key is recognised at start.
pub const KEY_CHECK: &str = "key_check";
/// The note that holds the key of the built-in token endpoint.
pub const OAUTH_KEY: &str = "oauth_key";

/// What a gateway's secret is bound to.
pub fn gateway_secret(tenant: &str, gateway_id: &str) -> String {
    format!("gateway-secret/{tenant}/{gateway_id}")
}

/// What a tenant's delivery key is bound to.
pub fn delivery_key(tenant: &str) -> String {
    format!("delivery-key/{tenant}")
}

/// What a bot's unreadable updates are bound to.
pub fn quarantine(platform: &str, bot: &str) -> String {
    format!("quarantine/{platform}/{bot}")
}

/// What a capability is bound to: who may use it, as which bot, and for which
/// chat, person and interaction.
pub fn capability(tenant: &str, instance: InstanceId, bot: &BotKey, whom: [&str; 3]) -> String {
    let [chat, user, interaction] = whom;
    let BotKey { platform, bot } = bot;
    format!("capability/{tenant}/{}/{platform}/{bot}/{chat}/{user}/{interaction}", instance.0)
}

/// The key under which secrets rest.
pub struct MasterKey {
    key: Zeroizing<[u8; KEY_BYTES]>,
    id: [u8; KEY_ID_BYTES],
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MasterKey({})", self.id())
    }
}

impl MasterKey {
    /// A fresh random key.
    pub fn mint() -> Self {
        Self::from_bytes(Zeroizing::new(random_bytes()))
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
        Ok(Self::from_bytes(key))
    }

    fn from_bytes(key: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        use sha2::Digest;
        let digest = sha2::Sha256::new().chain_update(b"angelia key id").chain_update(*key).finalize();
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&digest[..KEY_ID_BYTES]);
        Self { key, id }
    }

    /// The key as text, for the file it lives in.
    pub fn to_hex(&self) -> Secret {
        Secret::new(hex(&*self.key))
    }

    /// A short public name of the key; tells keys apart, reveals nothing.
    pub fn id(&self) -> String {
        hex(&self.id)
    }

    /// Seals `secret` for exactly the row that `bound_to` describes.
    pub fn seal(&self, secret: &Secret, bound_to: &str) -> Result<Vec<u8>> {
        let nonce: [u8; NONCE_BYTES] = random_bytes();
        let payload = Payload { msg: secret.expose().as_bytes(), aad: bound_to.as_bytes() };
        let sealed = self
            .cipher()
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| Error::internal("a secret could not be sealed"))?;
        Ok([self.id.as_slice(), &nonce, &sealed].concat())
    }

    /// Opens what [`MasterKey::seal`] made for the same row.
    pub fn open(&self, sealed: &[u8], bound_to: &str) -> Result<Secret> {
        let unreadable =
            || Error::new(Kind::Internal, "a stored secret could not be opened: it was damaged or moved");
        if sealed.len() < KEY_ID_BYTES + NONCE_BYTES {
            return Err(unreadable());
        }
        let (id, rest) = sealed.split_at(KEY_ID_BYTES);
        if id != self.id {
            let needed = hex(id);
            return Err(Error::new(
                Kind::Internal,
                format!("a stored secret needs master key {needed}, but the key at hand is {}", self.id()),
            ));
        }
        let (nonce, body) = rest.split_at(NONCE_BYTES);
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| unreadable())?;
        let payload = Payload { msg: body, aad: bound_to.as_bytes() };
        let opened = self.cipher().decrypt(&XNonce::from(nonce), payload).map_err(|_| unreadable())?;
        String::from_utf8(opened).map(Secret::new).map_err(|_| unreadable())
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(*self.key))
    }
}

/// The public name of the key that a sealed value needs.
pub fn key_id(sealed: &[u8]) -> Option<String> {
    sealed.get(..KEY_ID_BYTES).map(hex)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_where_it_was_sealed() {
        let key = MasterKey::mint();
        let sealed = key.seal(&Secret::new("s3cret"), "gateway/acme/gw-1").unwrap();
        assert_eq!(key.open(&sealed, "gateway/acme/gw-1").unwrap().expose(), "s3cret");
        assert!(key.open(&sealed, "gateway/evil/gw-1").is_err());
        assert!(!sealed.windows(6).any(|w| w == b"s3cret"));
        for i in 0..sealed.len() {
            let mut bent = sealed.clone();
            bent[i] ^= 1;
            assert!(key.open(&bent, "gateway/acme/gw-1").is_err());
        }
    }

    #[test]
    fn a_foreign_key_names_the_key_it_needs() {
        let (old, new) = (MasterKey::mint(), MasterKey::mint());
        let sealed = old.seal(&Secret::new("x"), "row").unwrap();
        let error = new.open(&sealed, "row").unwrap_err().to_string();
        assert!(error.contains(&old.id()) && error.contains(&new.id()), "{error}");
        assert_eq!(key_id(&sealed), Some(old.id()));
        assert_eq!(MasterKey::from_hex(old.to_hex().expose()).unwrap().id(), old.id());
        assert!(MasterKey::from_hex(&"+f".repeat(KEY_BYTES)).is_err());
    }
}
