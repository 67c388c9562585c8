//! Upgrade tokens: upstream's vectors, and the laws they stand for.

use angelia_contract::token::{self, Token, TokenError};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{Dice, cases, rounds};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../vectors/upgrade-tokens.json")).unwrap()
}

const SECRET: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

#[test]
fn vectors_are_minted_and_verified() {
    for vector in vectors()["vectors"].as_array().unwrap() {
        let text = |key: &str| vector[key].as_str().unwrap();
        let now = vector["now"].as_f64().unwrap() as u64;
        let ttl = vector["ttl"].as_u64().unwrap();
        let minted = token::mint(text("gateway_id"), text("secret"), now, ttl);
        assert_eq!(minted, text("token"));
        let read = token::parse(text("token")).unwrap();
        assert_eq!(read.gateway_id(), text("gateway_id"));
        assert_eq!(read.exp(), if ttl == 0 { 0 } else { now + ttl });
        assert!(read.signed_by(text("secret")));
        assert!(!read.signed_by("another"));
    }
}

#[test]
fn checks_come_out_as_upstream() {
    let minted = token::mint("gw-instance-1", SECRET, 1_750_000_000, 300);
    let verified = |token: &Token, now, secrets: &[&str]| {
        let good = token.is_fresh(now, 0) && token.first_match(secrets.iter().copied()).is_some();
        good.then(|| token.gateway_id().to_owned())
    };
    let read = token::parse(&minted).unwrap();
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(&minted).unwrap()).unwrap();
    let (signed, signature) = text.rsplit_once(':').unwrap();
    let upper = URL_SAFE_NO_PAD.encode(format!("{signed}:{}", signature.to_uppercase()));
    let padded = format!("{minted}{}", "=".repeat((4 - minted.len() % 4) % 4));
    let now = 1_750_000_000;
    for (check, expected) in vectors()["checks"].as_object().unwrap() {
        let got = match check.split(' ').next().unwrap() {
            "valid" => verified(&read, 1_750_000_300, &[SECRET]),
            "at" => verified(&read, 1_750_000_301, &[SECRET]),
            "uppercase" => verified(&token::parse(&upper).unwrap(), now, &[SECRET]),
            "padded" => verified(&token::parse(&padded).unwrap(), now, &[SECRET]),
            "rotation" => verified(&read, now, &["old", SECRET]),
            other => panic!("no test for the check {other}"),
        };
        assert_eq!(got.as_deref(), expected.as_str(), "{check}");
    }
    assert!(padded.ends_with('=') || padded == minted);
    assert_eq!(read.first_match(["old", SECRET, SECRET]), Some(1));
    assert_eq!(read.first_match(["old"]), None);
    // The connector gives late tokens some leeway that upstream does not.
    assert_eq!(read.check_time(1_750_000_600), Ok(()));
    assert_eq!(read.check_time(1_750_000_601), Err(TokenError::Expired));
}

/// Whether two tokens differ at most in padding and in the case of hex digits,
/// which upstream's own rule ignores: a wound may turn `b` into `B`.
fn is_twin(token: &str, original: &str) -> bool {
    let plain = |token: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(token.trim_end_matches('='));
        String::from_utf8(bytes.unwrap()).unwrap()
    };
    let (token, original) = (plain(token), plain(original));
    let signed = |text: &str| text.rsplit_once(':').map(|(signed, _)| signed.to_owned());
    token.eq_ignore_ascii_case(&original) && signed(&token) == signed(&original)
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn what_is_minted_verifies(
        id in "[^\u{0}]{1,40}", secret in ".{0,80}", now in 0..u64::MAX / 2, ttl in 1..100_000u64,
    ) {
        let read = token::parse(&token::mint(&id, &secret, now, ttl)).unwrap();
        prop_assert_eq!(read.gateway_id(), &id);
        prop_assert_eq!(read.exp(), now + ttl);
        prop_assert!(read.signed_by(&secret));
        prop_assert_eq!(read.check_time(now).is_ok(), ttl <= token::MAX_AHEAD_SECONDS);
        let other = format!("{secret}x");
        prop_assert!(!read.signed_by(&other));
    }

    #[test]
    fn a_flipped_bit_is_noticed(id in "[a-z:ü-]{1,20}", bit in 0..4096usize) {
        let minted = token::mint(&id, SECRET, 1_750_000_000, 300);
        let mut bytes = minted.clone().into_bytes();
        let bit = bit % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        let Ok(flipped) = String::from_utf8(bytes) else { return Ok(()) };
        if let Ok(read) = token::parse(&flipped) {
            let twin = is_twin(&flipped, &minted) && read.gateway_id() == id;
            prop_assert_eq!(read.signed_by(SECRET), twin);
        }
    }
}

#[test]
fn hostile_tokens_never_panic() {
    let good = token::mint("gw:ü", SECRET, 1_750_000_000, 300);
    let alphabet: Vec<char> = "AZaz09-_=+/ :\u{0}é".chars().collect();
    for seed in 0..rounds() {
        let mut dice = Dice::new(seed);
        let mut text: Vec<char> = match dice.below(3) {
            0 => Vec::new(),
            1 => good.chars().collect(),
            _ => {
                let inner: String = (0..dice.below(90))
                    .map(|_| *dice.pick(&[&':', &'0', &'9', &'f', &'F', &'-', &'é', &'\u{0}']))
                    .collect();
                URL_SAFE_NO_PAD.encode(inner).chars().collect()
            }
        };
        for _ in 0..dice.below(6) {
            let c = alphabet[dice.below(alphabet.len())];
            let at = dice.below(text.len() + 1);
            match dice.below(3) {
                0 => text.insert(at, c),
                1 if at < text.len() => text[at] = c,
                _ => text.truncate(at),
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(read) = token::parse(&text) {
            let _ = (read.check_time(dice.roll()), read.signed_by(""), read.gateway_id().len());
            let twin = is_twin(&text, &good);
            assert!(twin || !read.signed_by(SECRET), "seed {seed}: {text}");
        }
    }
}
