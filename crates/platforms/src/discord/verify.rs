//! Whether a request is Discord's: its signature over the time it names and the
//! exact bytes of its body.

use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Result};
use ed25519_dalek::{Signature, VerifyingKey};
use std::time::Duration;

/// The header that holds the signature.
pub const SIGNATURE: &str = "x-signature-ed25519";
/// The header that holds the time, which is signed with the body.
pub const TIMESTAMP: &str = "x-signature-timestamp";

/// How far the time of a request may be from ours. Whoever overheard one cannot
/// use it for longer than this; a clock that is further off has to be set.
pub const WINDOW: Duration = Duration::from_secs(5 * 60);
/// Digits of a time in seconds, with room for some millennia.
const MAX_DIGITS: usize = 12;

const KEY_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 64;

/// The key Discord signs an application's interactions with.
#[derive(Clone, Debug)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads a key as the developer portal shows it.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(
                "`public_key` has to be the 64 hexadecimal digits that the developer portal shows under \
                 General Information as Public Key: copy it again",
            )
        };
        let bytes = unhex::<KEY_BYTES>(text.trim().to_ascii_lowercase().as_bytes()).ok_or_else(wrong)?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| wrong())?;
        // With such a key anybody can sign.
        if key.is_weak() { Err(wrong()) } else { Ok(Self(key)) }
    }

    /// When a request was signed; `None` if Discord did not sign exactly this, or
    /// not just now. The first two are the values of [`SIGNATURE`] and [`TIMESTAMP`].
    pub fn signed_at(
        &self,
        signature: &[u8],
        timestamp: &[u8],
        body: &[u8],
        now: UnixMillis,
    ) -> Option<UnixMillis> {
        let at = read_time(timestamp)?;
        if at.0.abs_diff(now.0) > WINDOW.as_millis() as u64 {
            return None;
        }
        let signature = Signature::from_bytes(&unhex::<SIGNATURE_BYTES>(signature)?);
        self.0.verify_strict(&[timestamp, body].concat(), &signature).ok().map(|()| at)
    }
}

fn read_time(digits: &[u8]) -> Option<UnixMillis> {
    let are_digits = (1..=MAX_DIGITS).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    let seconds: i64 = std::str::from_utf8(digits).ok().filter(|_| are_digits)?.parse().ok()?;
    Some(UnixMillis(seconds * 1000))
}

/// Reads hexadecimal digits. Only small letters, as Discord writes them: two
/// headers must never mean one signature.
fn unhex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let are_digits = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let digits = std::str::from_utf8(digits).ok().filter(|text| are_digits && text.len() == 2 * N)?;
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::{Signer, SigningKey};

    const BODY: &[u8] = br#"{"type":1}"#;
    const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn signed(timestamp: &str, body: &[u8]) -> (PublicKey, String) {
        let key = SigningKey::from_bytes(&[7; 32]);
        let signature = key.sign(&[timestamp.as_bytes(), body].concat());
        (PublicKey::parse(&hex(key.verifying_key().as_bytes())).unwrap(), hex(&signature.to_bytes()))
    }

    #[test]
    fn what_discord_signed_just_now_is_authentic() {
        let (key, signature) = signed("1700000000", BODY);
        let at = |now| key.signed_at(signature.as_bytes(), b"1700000000", BODY, now);
        assert_eq!(at(NOW), Some(NOW));
        assert_eq!(at(NOW.after(WINDOW)), Some(NOW));
        assert_eq!(at(NOW.before(WINDOW)), Some(NOW));
        assert_eq!(at(NOW.after(WINDOW + Duration::from_millis(1))), None, "overheard");
        assert_eq!(at(NOW.before(WINDOW + Duration::from_millis(1))), None, "of a time to come");
    }

    #[test]
    fn one_bit_makes_another_request() {
        let (key, signature) = signed("1700000000", BODY);
        let parts = [signature.into_bytes(), b"1700000000".to_vec(), BODY.to_vec()];
        let is_good = |parts: &[Vec<u8>; 3]| key.signed_at(&parts[0], &parts[1], &parts[2], NOW).is_some();
        assert!(is_good(&parts));
        for part in 0..parts.len() {
            for bit in 0..parts[part].len() * 8 {
                let mut bent = parts.clone();
                bent[part][bit / 8] ^= 1 << (bit % 8);
                assert!(!is_good(&bent), "part {part}, bit {bit}");
            }
            let mut short = parts.clone();
            short[part].pop();
            assert!(!is_good(&short));
        }
    }

    #[test]
    fn a_time_is_digits_even_if_it_was_signed_otherwise() {
        for time in ["", "+1700000000", "-1700000000", "1700000000.0", " 1700000000", "١٧", "9999999999999"]
        {
            let (key, signature) = signed(time, BODY);
            assert!(key.signed_at(signature.as_bytes(), time.as_bytes(), BODY, NOW).is_none(), "{time:?}");
        }
    }

    #[test]
    fn a_key_is_what_the_portal_shows() {
        let good = hex(SigningKey::from_bytes(&[7; 32]).verifying_key().as_bytes());
        assert!(PublicKey::parse(&format!(" {} \n", good.to_ascii_uppercase())).is_ok());
        let weak = format!("01{}", "00".repeat(31));
        for wrong in ["", "abc", &good[1..], &format!("{good}00"), &"zz".repeat(32), &weak] {
            let error = PublicKey::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("developer portal"), "{wrong}: {error}");
        }
    }
}
