//! WeCom's message crypto: AES-256-CBC under the app's key, with the receiver
//! inside.
//!
//! It hides and does not authenticate. That a message is WeCom's is what its
//! signature says, so nothing is decrypted before that was checked.

use aes::Aes256;
use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use cbc::cipher::block_padding::NoPadding;
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use cbc::{Decryptor, Encryptor};
use std::fmt;

/// Characters of a key as the console shows it; a `=` is left out.
const KEY_CHARS: usize = 43;
/// What texts are padded to. The cipher would need half of it.
const PADDED_TO: usize = 32;
/// Random bytes that a text begins with.
pub const SALT: usize = 16;
/// Bytes that tell how long the message is.
const LENGTH: usize = 4;

/// Keys are made of characters drawn one by one, so the last one has bits that
/// belong to no byte. A strict reader refuses three of four real keys.
const KEY_READER: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The key of an app's callbacks.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// Reads an `EncodingAESKey`; `None` if it is not one.
    pub fn parse(encoding_aes_key: &str) -> Option<Self> {
        if encoding_aes_key.len() != KEY_CHARS {
            return None;
        }
        let bytes = KEY_READER.decode(format!("{encoding_aes_key}=")).ok()?;
        bytes.try_into().ok().map(Self)
    }

    fn iv(&self) -> [u8; 16] {
        let mut iv = [0; 16];
        iv.copy_from_slice(&self.0[..16]);
        iv
    }
}

/// Encrypts a message for a receiver, as WeCom does.
pub fn encrypt(key: &Key, salt: [u8; SALT], message: &[u8], receiver: &str) -> String {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut plain = [&salt[..], &length, message, receiver.as_bytes()].concat();
    let padding = PADDED_TO - plain.len() % PADDED_TO;
    plain.resize(plain.len() + padding, padding as u8);
    let cipher = Encryptor::<Aes256>::new(&key.0.into(), &key.iv().into());
    STANDARD.encode(cipher.encrypt_padded_vec::<NoPadding>(&plain))
}

/// Decrypts a message that must be for this receiver. Why it is not one is
/// nobody's business.
pub fn decrypt(key: &Key, encrypted: &str, receiver: &str) -> Option<Vec<u8>> {
    let bytes = STANDARD.decode(encrypted).ok()?;
    if bytes.is_empty() || bytes.len() % PADDED_TO != 0 {
        return None;
    }
    let cipher = Decryptor::<Aes256>::new(&key.0.into(), &key.iv().into());
    let plain = cipher.decrypt_padded_vec::<NoPadding>(&bytes).ok()?;
    let plain = unpadded(&plain)?.get(SALT..)?;
    let (length, rest) = plain.split_first_chunk::<LENGTH>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (message, named) = rest.split_at_checked(length)?;
    (named == receiver.as_bytes()).then(|| message.to_vec())
}

/// A text without its padding: the last byte says how many there are, and all say the same.
fn unpadded(plain: &[u8]) -> Option<&[u8]> {
    let padding = usize::from(*plain.last()?);
    if !(1..=PADDED_TO).contains(&padding) {
        return None;
    }
    let (text, padded) = plain.split_at_checked(plain.len().checked_sub(padding)?)?;
    padded.iter().all(|byte| usize::from(*byte) == padding).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C";

    fn key() -> Key {
        Key::parse(KEY).unwrap()
    }

    #[test]
    fn keys_are_43_characters_whatever_the_last_one_is() {
        for last in ('a'..='z').chain('A'..='Z').chain('0'..='9') {
            assert!(Key::parse(&format!("{}{last}", &KEY[..42])).is_some(), "{last}");
        }
        for wrong in ["", &KEY[..42], &format!("{KEY}="), &format!("{KEY}A"), &format!("{}*", &KEY[..42])] {
            assert!(Key::parse(wrong).is_none(), "{wrong}");
        }
        assert!(!format!("{:?}", key()).contains("jWm"));
    }

    #[test]
    fn what_is_encrypted_is_for_one_receiver() {
        for length in 0..100 {
            let message = vec![b'x'; length];
            let encrypted = encrypt(&key(), [7; SALT], &message, "ww1");
            assert_eq!(decrypt(&key(), &encrypted, "ww1"), Some(message));
            for receiver in ["", "ww", "ww12", "ww2"] {
                assert_eq!(decrypt(&key(), &encrypted, receiver), None);
            }
        }
    }

    #[test]
    fn padding_is_whole_or_the_text_is_refused() {
        assert_eq!(unpadded(&[[b'x'; 30].as_slice(), &[2, 2]].concat()), Some([b'x'; 30].as_slice()));
        assert_eq!(unpadded(&[32; 32]), Some([].as_slice()));
        for bad in
            [[b'x'; 32].to_vec(), [[b'x'; 31].as_slice(), &[0]].concat(), vec![3, 2], vec![33; 64], vec![]]
        {
            assert_eq!(unpadded(&bad), None, "{bad:?}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for nonsense in ["", "AAAA", "!!!!", &"A".repeat(43), &"A".repeat(64), &STANDARD.encode([0; 48])] {
            assert_eq!(decrypt(&key(), nonsense, "ww1"), None, "{nonsense}");
        }
    }
}
