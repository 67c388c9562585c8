//! Whether a request is Twilio's: it is signed with what only Twilio and we know.
//!
//! Signed is the address that Twilio was given, followed by the fields of a form:
//! names in order, each distinct value of a name in order, name and value one
//! after the other. Other bodies are not part of that; their hash stands in the
//! address. Twilio is not consistent about ports, so the address counts with and
//! without one, as it does for the vendor's own libraries.

use angelia_core::secret::{Secret, hex};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use subtle::ConstantTimeEq;
use url::form_urlencoded;

/// The field of an address that has the hash of a body that is no form.
const BODY_HASH: &str = "bodySHA256";

/// What a request may be signed with.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    /// The account's auth token.
    pub auth_token: &'a Secret,
    /// A shared key and its id.
    pub signing_key: Option<(&'a str, &'a Secret)>,
}

/// A request, as far as its signature is concerned.
#[derive(Clone, Copy, Debug)]
pub struct Signed<'a> {
    /// The whole address that Twilio was given.
    pub url: &'a str,
    /// The `X-Twilio-Signature` header.
    pub signature: &'a str,
    /// The `X-Twilio-Webhooks-Signature-Settings` header: which key, and how.
    pub settings: Option<&'a str>,
    /// The `Content-Type` header.
    pub content_type: Option<&'a str>,
    /// The body, exactly as it came.
    pub body: &'a [u8],
}

/// How the bytes are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Sha1,
    Sha256,
}

/// Whether a request is signed by one of the keys. The time it takes does not
/// tell how much of a signature was right.
pub fn is_authentic(keys: Keys<'_>, request: Signed<'_>) -> bool {
    let Some((secret, algorithm)) = key_for(keys, request.settings) else { return false };
    let Some(fields) = signed_fields(&request) else { return false };
    let [bare, with_port] = spellings(request.url);
    let matches = |url: &str| {
        let expected = signature(secret, algorithm, &[url, &fields]);
        expected.as_bytes().ct_eq(request.signature.as_bytes())
    };
    // Both are looked at, whatever comes of the first.
    (matches(&bare) | matches(&with_port)).into()
}

/// Whether a body is a form.
pub(super) fn is_form(content_type: Option<&str>) -> bool {
    let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// The key that signs, and how. Without settings, or with some that name no
/// algorithm, that is the auth token; with them it is the shared key they name,
/// and nobody signs for a key that is not ours.
fn key_for<'a>(keys: Keys<'a>, settings: Option<&str>) -> Option<(&'a Secret, Algorithm)> {
    let setting = |wanted: &str| {
        settings.unwrap_or_default().split(',').find_map(|part| {
            let (name, value) = part.split_once('=')?;
            Some(value.trim()).filter(|value| name.trim() == wanted && !value.is_empty())
        })
    };
    let Some(named) = setting("algorithm") else { return Some((keys.auth_token, Algorithm::Sha1)) };
    let algorithm = match named.to_ascii_uppercase().as_str() {
        "HMAC_SHA1" => Algorithm::Sha1,
        "HMAC_SHA256" => Algorithm::Sha256,
        _ => return None,
    };
    let (id, secret) = keys.signing_key?;
    (setting("key")? == id).then_some((secret, algorithm))
}

/// What of the body is signed; `None` if the body is not the one that was meant.
fn signed_fields(request: &Signed<'_>) -> Option<String> {
    if is_form(request.content_type) {
        return Some(joined(request.body));
    }
    match body_hash(request.url) {
        Some(hash) => {
            let found = hex(&Sha256::digest(request.body));
            bool::from(found.as_bytes().ct_eq(hash.as_bytes())).then(String::new)
        }
        // Nothing vouches for a body of another sort.
        None => request.body.is_empty().then(String::new),
    }
}

fn body_hash(url: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let query = query.split('#').next().unwrap_or_default();
    let mut found = form_urlencoded::parse(query.as_bytes())
        .filter(|(name, value)| name == BODY_HASH && !value.is_empty());
    found.next().map(|(_, value)| value.into_owned())
}

fn joined(form: &[u8]) -> String {
    let fields: BTreeSet<_> = form_urlencoded::parse(form).collect();
    fields.into_iter().flat_map(|(name, value)| [name, value]).collect()
}

/// An address without its port, and with it. A question mark with nothing
/// behind it is not signed.
fn spellings(url: &str) -> [String; 2] {
    let url = url.strip_suffix('?').unwrap_or(url);
    let Some((scheme, rest)) = url.split_once("://") else { return [url.to_owned(), url.to_owned()] };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    match port_at(host) {
        Some(at) => [format!("{scheme}://{}{path}", &host[..at]), url.to_owned()],
        None => {
            let port = if scheme == "https" { 443 } else { 80 };
            [url.to_owned(), format!("{scheme}://{host}:{port}{path}")]
        }
    }
}

/// Where the port begins, with its colon. The colons of an IPv6 address are
/// in brackets.
fn port_at(host: &str) -> Option<usize> {
    let at = host.rfind(':')?;
    let port = &host[at + 1..];
    (!port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())).then_some(at)
}

fn signature(secret: &Secret, algorithm: Algorithm, parts: &[&str]) -> String {
    match algorithm {
        Algorithm::Sha1 => signed::<Hmac<Sha1>>(secret, parts),
        Algorithm::Sha256 => signed::<Hmac<Sha256>>(secret, parts),
    }
}

fn signed<M: Mac + KeyInit>(secret: &Secret, parts: &[&str]) -> String {
    let Ok(mut mac) = <M as KeyInit>::new_from_slice(secret.expose().as_bytes()) else {
        unreachable!("HMAC takes keys of any length");
    };
    parts.iter().for_each(|part| mac.update(part.as_bytes()));
    STANDARD.encode(mac.finalize().into_bytes())
}

/// What Twilio signs a form with.
#[cfg(test)]
pub(crate) fn signature_of(secret: &Secret, url: &str, form: &str) -> String {
    signature(secret, Algorithm::Sha1, &[url, &joined(form.as_bytes())])
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Option<&str> = Some("application/x-www-form-urlencoded; charset=UTF-8");

    fn check(request: Signed<'_>, shared: bool) -> bool {
        let (token, key) = (Secret::new("12345"), Secret::new("s3cret"));
        let signing_key = shared.then_some(("webhooks_1", &key));
        is_authentic(Keys { auth_token: &token, signing_key }, request)
    }

    /// The example of the vendor's documentation.
    const URL: &str = "https://example.com/myapp.php?foo=1&bar=2";
    const BODY: &[u8] =
        b"Digits=1234&To=%2B18005551212&From=%2B14158675310&Caller=%2B14158675310&CallSid=CA1234567890ABCDE";
    const SIGNATURE: &str = "L/OH5YylLD5NRKLltdqwSvS0BnU=";

    fn documented() -> Signed<'static> {
        Signed { url: URL, signature: SIGNATURE, settings: None, content_type: FORM, body: BODY }
    }

    #[test]
    fn the_documented_example_is_authentic_and_nothing_beside_it() {
        assert!(check(documented(), false));
        assert!(check(Signed { settings: Some(""), ..documented() }, false), "no settings");
        assert!(check(
            Signed { url: "https://example.com:443/myapp.php?foo=1&bar=2", ..documented() },
            false
        ));
        assert!(!check(Signed { url: "https://example.com/myapp.php?foo=1&bar=3", ..documented() }, false));
        assert!(!check(Signed { signature: "", ..documented() }, false));
        assert!(!check(Signed { body: b"Digits=1235", ..documented() }, false));
        assert!(!check(Signed { content_type: Some("text/plain"), ..documented() }, false));
        let settings = Some("key=webhooks_1,algorithm=HMAC_SHA256");
        assert!(!check(Signed { settings, ..documented() }, true), "signed with the token");
        assert!(!check(Signed { settings, ..documented() }, false), "no shared key here");
    }

    #[test]
    fn settings_choose_the_key_and_the_hash() {
        let (token, key) = (Secret::new("token"), Secret::new("key"));
        let keys = Keys { auth_token: &token, signing_key: Some(("k1", &key)) };
        let chosen = |settings: Option<&str>| {
            key_for(keys, settings).map(|(secret, algorithm)| (secret.expose().to_owned(), algorithm))
        };
        for none in [None, Some(""), Some("key=k1"), Some("algorithm="), Some("nonsense")] {
            assert_eq!(chosen(none), Some(("token".into(), Algorithm::Sha1)), "{none:?}");
        }
        for ours in ["key=k1,algorithm=HMAC_SHA256", " algorithm = hmac_sha256 , key = k1 "] {
            assert_eq!(chosen(Some(ours)), Some(("key".into(), Algorithm::Sha256)), "{ours}");
        }
        assert_eq!(chosen(Some("key=k1,algorithm=HMAC_SHA1")), Some(("key".into(), Algorithm::Sha1)));
        for others in ["key=k2,algorithm=HMAC_SHA256", "algorithm=HMAC_SHA256", "key=k1,algorithm=NONE"] {
            assert_eq!(chosen(Some(others)), None, "{others}");
        }
    }

    #[test]
    fn ports_come_and_go() {
        for (url, bare, with_port) in [
            ("https://h/p?q", "https://h/p?q", "https://h:443/p?q"),
            ("http://h/p", "http://h/p", "http://h:80/p"),
            ("https://h:8443/p", "https://h/p", "https://h:8443/p"),
            ("http://[::1]:8787/p", "http://[::1]/p", "http://[::1]:8787/p"),
            ("http://[::1]/p", "http://[::1]/p", "http://[::1]:80/p"),
            ("https://h", "https://h", "https://h:443"),
            ("https://h/p?", "https://h/p", "https://h:443/p"),
        ] {
            assert_eq!(spellings(url), [bare, with_port], "{url}");
        }
    }
}
