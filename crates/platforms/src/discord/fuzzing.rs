//! What Discord's name is on before it is verified, and what is read of it
//! then, as targets for a fuzzer.

use super::interaction::Interaction;
use super::parse::{Envelope, Message, Ready, Update};
use super::verify::PublicKey;
use super::{address, chats, normalize, sanitize};
use angelia_core::clock::UnixMillis;
use ed25519_dalek::{Signer, SigningKey};
use serde_json::Value;

const OWN_ID: &str = "1234567890";
/// The time the requests of the corpus are signed at.
const TIME: (&[u8], UnixMillis) = (b"1750000000", UnixMillis(1_750_000_000_000));

/// Signatures cost a hundred times what reading does: few inputs are signed.
const SIGNED_EVERY: usize = 64;

/// The body of an interaction, as it is posted or comes over the gateway.
pub fn interaction(data: &[u8]) {
    if data.len().is_multiple_of(SIGNED_EVERY) {
        verified(data);
    }
    let Ok(body) = serde_json::from_slice::<Value>(data) else { return };
    let Ok(interaction) = Interaction::read(&body) else { return };
    let (token, credential) = (interaction.token.expose(), interaction.credential());
    assert!(credential.expose().ends_with(token));
    let _ = (interaction.deferral(), interaction.text(), interaction.prompt_response());
    let message = &interaction.said;
    assert!(address::snowflake(&message.id).is_some() && address::snowflake(&message.author.id).is_some());
    let request = sanitize::request(&body, &interaction, "main");
    let passed: Value = serde_json::from_str(&request.body).expect("what is passed on is JSON");
    assert!(!texts(&passed).any(|text| text.contains(token)), "a credential is passed on");
}

/// Nothing is authentic but the very bytes that were signed.
fn verified(body: &[u8]) {
    let secret = SigningKey::from_bytes(&[7; 32]);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let key = PublicKey::parse(&hex(secret.verifying_key().as_bytes())).expect("it is a key");
    let (time, now) = TIME;
    let signature = hex(&secret.sign(&[time, body].concat()).to_bytes()).into_bytes();
    assert_eq!(key.signed_at(&signature, time, body, now), Some(now));
    assert_eq!(key.signed_at(&signature, time, &[body, b" "].concat(), now), None);
    assert_eq!(key.signed_at(&signature, b"1750000001", body, now), None);
    // A body that brings its own headers.
    let (head, rest) = body.split_at(body.len().min(2 * 64));
    assert_eq!(key.signed_at(head, time, rest, now), None);
    let _ = key.signed_at(&signature, head, rest, now);
}

/// Every text in a value, except for the names of its fields.
fn texts(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::String(text) => Box::new(std::iter::once(text.as_str())),
        Value::Array(items) => Box::new(items.iter().flat_map(texts)),
        Value::Object(fields) => Box::new(fields.values().flat_map(texts)),
        _ => Box::new(std::iter::empty()),
    }
}

/// A message of Discord's gateway.
pub fn event(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(text) else { return };
    let (Some(name), Some(data)) = (envelope.t.as_deref(), envelope.d) else { return };
    let lesson = chats::lesson(name, data.get(), OWN_ID).ok().flatten();
    for chat in lesson.iter().flat_map(|lesson| &lesson.chats) {
        let _ = (address::places(chat), address::link_place(chat));
    }
    match name {
        "READY" => drop(serde_json::from_str::<Ready>(data.get())),
        "MESSAGE_UPDATE" => drop(serde_json::from_str::<Update>(data.get())),
        "INTERACTION_CREATE" => interaction(data.get().as_bytes()),
        _ => {}
    }
    if let Ok(mut message) = serde_json::from_str::<Message>(data.get()) {
        said(&mut message);
    }
}

fn said(message: &mut Message) {
    let _ = (normalize::is_said(message), normalize::is_by_bot(message));
    normalize::spell_out(message);
    if normalize::is_empty(message) {
        normalize::mark_unsupported(message);
    }
    let roles = ["77".to_owned()];
    let _ = address::addresses(message, OWN_ID, &roles);
    let written = message.content.as_deref().unwrap_or_default();
    let text = address::said(written, OWN_ID, &roles);
    assert!(written.contains(text), "an agent reads what was written and nothing else");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_of_interactions_is_survived() {
        angelia_corpus::replay("discord_interaction", interaction);
    }

    #[test]
    fn the_corpus_of_gateway_events_is_survived() {
        angelia_corpus::replay("discord_event", event);
    }
}
