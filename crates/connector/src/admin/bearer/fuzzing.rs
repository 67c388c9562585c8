//! What a caller of the identity endpoints proves itself with, as a target for a fuzzer.

use super::super::oauth;
use super::jwt::{Key, Unproven, claims, header};
use super::oidc;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Map, Value, json};

/// A bearer as it comes; and one whose header and claims are these bytes, parted
/// by a newline, signed with a key that is trusted.
pub fn bearer_token(data: &[u8]) {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("any seed will do");
    let keys = [published(&pair)];
    if let Ok(bearer) = std::str::from_utf8(data) {
        let _ = (header(bearer), claims(bearer), oidc::issuer_of(bearer));
        assert!(proven(bearer, &keys).is_none(), "nobody has the key that would sign this");
    }
    let _ = serde_json::from_slice(data).ok().and_then(|key: Value| Key::read(&key));
    let (header, claims) = split(data);
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let bearer = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(pair.sign(signed.as_bytes())));
    if let Some(found) = proven(&bearer, &keys) {
        assert_eq!(serde_json::from_slice::<Map<String, Value>>(claims).ok(), Some(found));
    }
    let mut altered = bearer.into_bytes();
    let at = data.len() % altered.len();
    altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
    let altered = String::from_utf8(altered).expect("base64url is text");
    assert!(proven(&altered, &keys).is_none(), "what was changed is still signed");
}

/// What a client asks the token endpoint with: the form, or the header, whose
/// two parts are these bytes.
pub fn token_request(data: &[u8]) {
    let _ = oauth::read(&HeaderMap::new(), data);
    let (id, secret) = split(data);
    let encoded = |part: &[u8]| url::form_urlencoded::byte_serialize(part).collect::<String>();
    let credentials = STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)));
    for (header, is_ours) in [(format!("Basic {credentials}").into_bytes(), true), (data.to_vec(), false)] {
        let Ok(header) = HeaderValue::from_bytes(&header) else { continue };
        let ask = oauth::read(&HeaderMap::from_iter([(AUTHORIZATION, header)]), b"");
        let is_sent = [(ask.client_id, id), (ask.client_secret, secret)]
            .iter()
            .all(|(read, sent)| *read == String::from_utf8_lossy(sent));
        assert!(is_sent || !is_ours, "credentials are read as they were sent");
    }
}

fn published(pair: &Ed25519KeyPair) -> Key {
    let x = URL_SAFE_NO_PAD.encode(pair.public_key());
    Key::read(&json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": "k" })).expect("it is a key")
}

fn proven(bearer: &str, keys: &[Key]) -> Option<Map<String, Value>> {
    let token = Unproven::read(bearer)?;
    token.prove(token.find(keys)?)
}

fn split(data: &[u8]) -> (&[u8], &[u8]) {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    (&data[..at], data.get(at + 1..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_of_bearer_tokens_is_survived() {
        angelia_corpus::replay("bearer_token", bearer_token);
    }

    #[test]
    fn the_corpus_of_token_requests_is_survived() {
        angelia_corpus::replay("token_request", token_request);
    }
}
