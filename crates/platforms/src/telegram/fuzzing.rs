//! What Telegram posts, as a target for a fuzzer.

use super::address::{Me, addresses, is_for_another, said};
use super::normalize::{event, is_service};
use super::parse::{Message, Raw, Update};
use super::{commands, learn, media, verify};
use angelia_core::secret::Secret;
use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// An update, posted or polled.
pub fn update(data: &[u8]) {
    verified(data);
    let raw = Raw::new(String::from_utf8_lossy(data));
    let Ok(update) = serde_json::from_str::<Update>(&raw.json) else { return };
    let messages = [update.message, update.edited_message, update.channel_post, update.edited_channel_post];
    for message in messages.into_iter().flatten() {
        read(&message);
    }
    if let Some(change) = update.my_chat_member {
        let _ = (learn::described(&change.chat), change.new_chat_member.status);
    }
}

fn verified(body: &[u8]) {
    let secret = verify::webhook_secret(&Secret::new("77:token"));
    let Ok(value) = HeaderValue::from_bytes(&body[..body.len().min(64)]) else { return };
    let is_secret = value.as_bytes() == secret.expose().as_bytes();
    let headers = HeaderMap::from_iter([(HeaderName::from_static(verify::HEADER), value)]);
    assert_eq!(verify::is_authentic(&secret, &headers), is_secret);
}

fn read(message: &Message) {
    let me = Me { id: 77, username: "angelia_bot".into() };
    let addressed = addresses(&me, message);
    assert!(!(addressed && is_for_another(&me, message)));
    let text = said(&me, message.words().0);
    let _ = (commands::migration(message), commands::command(&me, message, &text, addressed));
    let _ = (message.author_name(), learn::described(&message.chat), media::carried(message));
    let Some(event) = event(&me, message, None, Some(false)) else {
        return assert!(is_service(message), "what a person says is never nothing");
    };
    assert!(!event.text.is_empty(), "an agent is given something to read");
    assert_eq!(event.source.chat_id, message.chat.id.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_of_updates_is_survived() {
        angelia_corpus::replay("telegram_update", update);
    }
}
