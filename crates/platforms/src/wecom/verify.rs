//! Whether a callback is WeCom's, and what it says then.

use super::crypto::{Key, decrypt};
use angelia_core::clock::UnixMillis;
use angelia_core::secret::{Secret, hex};
use sha1::{Digest, Sha1};
use std::time::Duration;
use subtle::ConstantTimeEq;
use url::form_urlencoded;

/// How old a signature may be, or how far ahead of our clock. What is repeated
/// within that time is known by its id.
pub const WINDOW: Duration = Duration::from_secs(300);

/// What an app's callbacks are signed and encrypted with.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The token that signs.
    pub token: Secret,
    /// The key that encrypts.
    pub key: Key,
    /// Whom everything must be for: the company.
    pub corp_id: String,
}

/// What the address of a callback carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The signature, in hex.
    pub signature: String,
    /// When it was signed, in seconds since 1970.
    pub timestamp: String,
    /// Something that is there once.
    pub nonce: String,
    /// What has to be sent back, if the address is being tried.
    pub echo: Option<String>,
}

impl Signed {
    /// Reads a query; `None` if anything is missing, or there twice.
    pub fn of(query: &str) -> Option<Self> {
        // A plus is a plus: base64 has no spaces, and not everybody escapes it.
        let query = query.replace('+', "%2B");
        let one = |name: &str| {
            let mut found = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
            match (found.next(), found.next()) {
                (Some((_, value)), None) => Some(value.into_owned()),
                _ => None,
            }
        };
        Some(Self {
            signature: one("msg_signature")?,
            timestamp: one("timestamp")?,
            nonce: one("nonce")?,
            echo: one("echostr"),
        })
    }

    /// Whether it was signed not long ago.
    pub fn is_fresh(&self, now: UnixMillis) -> bool {
        let digits = self.timestamp.bytes().all(|byte| byte.is_ascii_digit());
        let signed_at: Option<u64> = self.timestamp.parse().ok().filter(|_| digits);
        signed_at.is_some_and(|at| at.abs_diff(now.seconds()) <= WINDOW.as_secs())
    }
}

impl Keys {
    /// The signature of something encrypted.
    pub fn signature(&self, timestamp: &str, nonce: &str, encrypted: &str) -> String {
        let mut parts = [self.token.expose(), timestamp, nonce, encrypted];
        parts.sort_unstable();
        let mut hash = Sha1::new();
        parts.iter().for_each(|part| hash.update(part.as_bytes()));
        hex(&hash.finalize())
    }

    /// What something encrypted says, if it was signed with our token not long
    /// ago and is for our company. Otherwise nothing, for whatever reason.
    pub fn open(&self, signed: &Signed, encrypted: &str, now: UnixMillis) -> Option<Vec<u8>> {
        if !signed.is_fresh(now) || !self.has_signed(signed, encrypted) {
            return None;
        }
        decrypt(&self.key, encrypted, &self.corp_id)
    }

    /// Whether something was signed with our token, but not at our time: long ago, or by
    /// another clock.
    pub fn is_stale(&self, signed: &Signed, encrypted: &str, now: UnixMillis) -> bool {
        !signed.is_fresh(now) && self.has_signed(signed, encrypted)
    }

    fn has_signed(&self, signed: &Signed, encrypted: &str) -> bool {
        let expected = self.signature(&signed.timestamp, &signed.nonce, encrypted);
        expected.as_bytes().ct_eq(signed.signature.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::crypto::encrypt;
    use super::*;

    fn keys() -> Keys {
        let key = Key::parse("jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C").unwrap();
        Keys { token: Secret::new("QDG6eK"), key, corp_id: "wx5823bf96d3bd56c7".into() }
    }

    /// The example of WeCom's own documentation.
    #[test]
    fn the_documented_example_opens() {
        let query = "msg_signature=5c45ff5e21c57e6ad56bac8758b79b1d9ac89fd3&timestamp=1409659589&nonce=263014780\
            &echostr=P9nAzCzyDtyTWESHep1vC5X9xho%2FqYX3Zpb4yKa9SKld1DsH3Iyt3tP3zNdtp%2B4RPcs8TgAE7OaBO%2BFZXvnaqQ%3D%3D";
        let signed = Signed::of(query).unwrap();
        let echo = signed.echo.clone().unwrap();
        let told = keys().open(&signed, &echo, UnixMillis(1_409_659_589_000)).unwrap();
        assert_eq!(String::from_utf8(told).unwrap(), "1616140317555161061");
        // The same with the plus as it is.
        let bare = Signed::of(&query.replace("%2B", "+")).unwrap();
        assert_eq!(bare, signed);
    }

    #[test]
    fn a_query_is_whole_and_unambiguous() {
        let good = "msg_signature=a&timestamp=1&nonce=2";
        assert!(Signed::of(good).is_some_and(|signed| signed.echo.is_none()));
        for bad in ["", "msg_signature=a&timestamp=1", &format!("{good}&nonce=3"), "timestamp=1&nonce=2"] {
            assert_eq!(Signed::of(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_signature_is_good_for_five_minutes() {
        let (keys, at) = (keys(), 1_700_000_000_i64);
        let encrypted = encrypt(&keys.key, [1; 16], b"hi", &keys.corp_id);
        let signed = |timestamp: &str| Signed {
            signature: keys.signature(timestamp, "n", &encrypted),
            timestamp: timestamp.into(),
            nonce: "n".into(),
            echo: None,
        };
        let now = UnixMillis(at * 1000);
        for (by, good) in [(0, true), (-300, true), (300, true), (-301, false), (301, false)] {
            let opened = keys.open(&signed(&(at + by).to_string()), &encrypted, now);
            assert_eq!(opened.is_some(), good, "{by}");
            assert_eq!(keys.is_stale(&signed(&(at + by).to_string()), &encrypted, now), !good, "{by}");
        }
        let forged = Signed { signature: "0".repeat(40), ..signed("1") };
        assert!(!keys.is_stale(&forged, &encrypted, now), "nobody signed it");
        for odd in ["", "+1700000000", " 1700000000", "1700000000.0", "99999999999999999999999"] {
            assert_eq!(keys.open(&signed(odd), &encrypted, now), None, "{odd}");
        }
    }
}
