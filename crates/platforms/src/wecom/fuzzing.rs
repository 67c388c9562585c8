//! What WeCom posts, as a target for a fuzzer.

use super::crypto::{Key, SALT, decrypt, encrypt};
use super::normalize::{Meaning, Message};
use super::verify::{Keys, Signed};
use super::xml;
use angelia_core::clock::UnixMillis;
use angelia_core::secret::Secret;

const NOW: (&str, UnixMillis) = ("1750000000", UnixMillis(1_750_000_000_000));

/// The body of a callback: the envelope that anybody can send, and what is in it
/// once it is WeCom's.
pub fn callback(data: &[u8]) {
    let keys = keys();
    let text = String::from_utf8_lossy(data);
    if let Ok(envelope) = xml::read(data) {
        let encrypted = envelope.get("Encrypt").unwrap_or_default();
        let signed = Signed::of(&text);
        assert!(signed.is_none_or(|signed| keys.open(&signed, encrypted, NOW.1).is_none()));
    }
    let _ = Signed::of(&text).map(|signed| keys.is_stale(&signed, &text, NOW.1));
    let _ = decrypt(&keys.key, &text, &keys.corp_id);
    opened(&keys, data);
    meant(data);
}

fn keys() -> Keys {
    let key = Key::parse("jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C").expect("it is a key");
    Keys { token: Secret::new("QDG6eK"), key, corp_id: "wx5823bf96d3bd56c7".into() }
}

/// What is encrypted and signed opens, and nothing that was changed since.
fn opened(keys: &Keys, message: &[u8]) {
    let (time, now) = NOW;
    let encrypted = encrypt(&keys.key, [9; SALT], message, &keys.corp_id);
    let signature = keys.signature(time, "nonce", &encrypted);
    let signed = Signed { signature, timestamp: time.into(), nonce: "nonce".into(), echo: None };
    assert_eq!(keys.open(&signed, &encrypted, now).as_deref(), Some(message));
    let mut altered = encrypted.clone().into_bytes();
    let at = message.len() % altered.len();
    altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
    let altered = String::from_utf8(altered).expect("base64 is text");
    assert_eq!(keys.open(&signed, &altered, now), None);
    // Signed anew it is still not for us, or not of the same length: never a panic.
    let _ = decrypt(&keys.key, &altered, &keys.corp_id);
    assert_eq!(decrypt(&keys.key, &encrypted, "another company"), None);
}

fn meant(plain: &[u8]) {
    let Ok(message) = Message::read(plain) else { return };
    assert!(!message.id().is_empty());
    let _ = message.is_for("1000002");
    if let Meaning::Said(event) = message.meaning(true) {
        assert!(!event.text.trim().is_empty(), "an agent is given something to read");
        assert_eq!(event.source.chat_id, message.from());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_of_callbacks_is_survived() {
        angelia_corpus::replay("wecom_callback", callback);
    }
}
