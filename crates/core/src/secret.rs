//! Secrets that cannot be printed.

use std::fmt;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Bytes of randomness in a minted secret: as much as its HMAC-SHA256 can use.
const MINTED_BYTES: usize = 32;

/// A text nobody may see: no `Display`, no `Serialize`, wiped on drop.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes a text into custody.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// A fresh random secret, as lowercase hex.
    pub fn mint() -> Self {
        Self::new(random_hex::<MINTED_BYTES>())
    }

    /// The text itself, for the one call that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the two are the same, in a time that does not tell where they differ.
    pub fn matches(&self, other: &str) -> bool {
        self.0.as_bytes().ct_eq(other.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// `N` random bytes as lowercase hex.
///
/// # Panics
/// When the operating system has no randomness to give: nothing safe can follow.
pub fn random_hex<const N: usize>() -> String {
    hex(&random_bytes::<N>())
}

/// Bytes as lowercase hex.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// `N` random bytes from the operating system.
///
/// # Panics
/// When the operating system has no randomness to give: nothing safe can follow.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has no randomness");
    bytes
}

/// A SHA-256 of a bearer key, which is what the store keeps of keys it only has to recognise.
pub fn fingerprint(key: &str) -> [u8; 32] {
    use sha2::Digest;
    sha2::Sha256::digest(key.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        let secret = Secret::new("hunter2");
        assert!(!format!("{secret:?}").contains("hunter2"));
        assert!(secret.matches("hunter2"));
        assert!(!secret.matches("hunter"));
        assert_ne!(Secret::mint().expose(), Secret::mint().expose());
        assert_eq!(Secret::mint().expose().len(), 64);
    }
}
