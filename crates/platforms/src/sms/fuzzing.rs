//! What Twilio posts, as a target for a fuzzer.

use super::address::is_sender;
use super::normalize::event;
use super::parse::Fields;
use super::verify::{Keys, Signed, is_authentic};
use super::{date, verify};
use angelia_core::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use std::collections::BTreeSet;
use url::form_urlencoded;

const FORM: &str = "application/x-www-form-urlencoded";
const URL: &str = "https://angelia.example:8443/webhooks/sms/main?a=b";

/// The body of a post, as a form and as JSON.
pub fn form(data: &[u8]) {
    verified(data);
    for content_type in [Some(FORM), Some("application/json"), None] {
        let fields = Fields::of(content_type, data);
        let _ = (fields.body(), fields.is_other_channel(), fields.status());
        if let Ok(received) = fields.message() {
            assert!(is_sender(&received.from));
            let event = event(&received, true);
            assert!(!event.text.is_empty() || received.body.is_empty());
            assert_eq!(event.source.chat_id, received.from);
        }
    }
    if let Some(seconds) = std::str::from_utf8(data).ok().and_then(date::read) {
        assert!(!date::write(seconds).is_empty());
    }
}

/// Only what was signed is authentic, by whatever name its key goes.
fn verified(body: &[u8]) {
    let (auth_token, shared) = (Secret::new("an auth token"), Secret::new("a shared key"));
    let keys = Keys { auth_token: &auth_token, signing_key: Some(("SK1", &shared)) };
    let settings = std::str::from_utf8(body).ok();
    let bare = Signed { url: URL, signature: "", settings: None, content_type: Some(FORM), body };
    let signature = sign(&auth_token, body);
    let signed = Signed { signature: &signature, ..bare };
    assert!(is_authentic(keys, signed));
    assert!(!is_authentic(Keys { auth_token: &shared, ..keys }, signed));
    assert!(!is_authentic(keys, Signed { url: "https://elsewhere.example/", ..signed }));
    assert!(!is_authentic(keys, Signed { body: &[body, b"&Body2=more"].concat(), ..signed }));
    assert!(!is_authentic(keys, Signed { signature: "", ..signed }));
    let _ = is_authentic(keys, Signed { settings, ..signed });
    let as_json = Signed { content_type: Some("application/json"), ..signed };
    assert!(body.is_empty() || !is_authentic(keys, as_json), "nothing vouches for another sort of body");
    // Addresses and headers of anybody's making.
    let _ = settings.map(|url| is_authentic(keys, Signed { url, signature: url, ..bare }));
    let _ = verify::is_form(settings);
}

/// The signature of a form, as Twilio's documents describe it.
fn sign(auth_token: &Secret, form: &[u8]) -> String {
    let fields: BTreeSet<_> = form_urlencoded::parse(form).collect();
    let mut mac = Hmac::<Sha1>::new_from_slice(auth_token.expose().as_bytes()).expect("any key will do");
    mac.update(URL.as_bytes());
    for (name, value) in fields {
        mac.update(name.as_bytes());
        mac.update(value.as_bytes());
    }
    STANDARD.encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_of_forms_is_survived() {
        angelia_corpus::replay("sms_form", form);
    }
}
