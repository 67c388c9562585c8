//! A text message, as the event a gateway reads.

use super::NAME;
use super::parse::{Attachment, Received};
use crate::kit::attached;
use crate::kit::inbound::from_person;
use angelia_contract::event::{Event, Media, message_type};
use angelia_core::media::{Origin, attach};

/// What an agent reads of a message with nothing in it.
const EMPTY: &str = "[empty message]";

/// The event a message makes.
pub(super) fn event(received: &Received, source_flags: bool) -> Event {
    let text = match (received.body.trim(), received.media.as_slice()) {
        ("", []) => EMPTY.to_owned(),
        (_, files) => attached::below(&received.body, &note(files)),
    };
    let message_type = match received.media.first() {
        Some(file) => kind(file).0,
        None if text.starts_with('/') => message_type::COMMAND,
        None => message_type::TEXT,
    };
    Event {
        text,
        message_type: message_type.into(),
        message_id: Some(received.sid.clone()),
        media: received.media.iter().map(row).collect(),
        source: from_person(NAME, &received.from, &received.sid, source_flags),
        ..Event::default()
    }
}

/// The type of a message with such a file, and the words for it.
fn kind(file: &Attachment) -> (&'static str, &'static str) {
    let mime = file.mime.as_deref().unwrap_or_default().to_ascii_lowercase();
    match mime.split('/').next().unwrap_or_default() {
        "image" => (message_type::PHOTO, "photo"),
        "video" => (message_type::VIDEO, "video"),
        // Phones send what somebody just said as AMR, and music as anything else.
        "audio" if mime.starts_with("audio/amr") => (message_type::VOICE, "voice message"),
        "audio" => (message_type::AUDIO, "audio"),
        _ if matches!(mime.as_str(), "text/vcard" | "text/x-vcard") => (message_type::DOCUMENT, "contact"),
        _ => (message_type::DOCUMENT, "document"),
    }
}

fn row(file: &Attachment) -> Media {
    let mut media = Media { url: file.url.clone(), mime: file.mime.clone(), ..Media::default() };
    media.extra.insert("kind".into(), kind(file).0.into());
    if let Some(at) = file.at.clone() {
        attach(&mut media, &Origin { at, album: None });
    }
    media
}

/// Such as `[photo] [photo]`.
fn note(files: &[Attachment]) -> String {
    attached::note(files.iter().map(|file| attached::named(kind(file).1, None)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_contract::session_key::{KeyOptions, Rules, session_key};
    use serde_json::json;

    fn received(body: &str, mimes: &[&str]) -> Received {
        let file = |mime: &&str| Attachment {
            url: format!("https://x/{mime}"),
            at: Some("a".into()),
            mime: Some((*mime).into()),
        };
        Received {
            sid: "SM1".into(),
            from: "+15550199".into(),
            to: "+15550100".into(),
            body: body.into(),
            media: mimes.iter().map(file).collect(),
            opt_out: None,
        }
    }

    #[test]
    fn a_person_is_a_private_chat() {
        let event = event(&received("hello", &[]), false);
        assert_eq!((event.text.as_str(), event.message_type.as_str()), ("hello", "text"));
        assert_eq!(
            serde_json::to_value(&event.source).unwrap(),
            json!({
                "platform": "sms", "chat_id": "+15550199", "chat_type": "dm", "chat_name": "+15550199",
                "user_id": "+15550199", "user_name": "+15550199", "message_id": "SM1",
                "thread_id": null, "chat_topic": null
            })
        );
        let key = session_key(&event.source, &KeyOptions::default(), Rules::Published);
        assert_eq!(key, "agent:main:sms:dm:+15550199");
        assert_eq!(super::event(&received("/new", &[]), false).message_type, "command");
        assert_eq!(super::event(&received(" ", &[]), false).text, EMPTY);
    }

    #[test]
    fn files_have_a_type_an_address_and_a_word() {
        for (mime, message_type, text) in [
            ("image/jpeg", "photo", "[photo]"),
            ("IMAGE/PNG", "photo", "[photo]"),
            ("video/mp4", "video", "[video]"),
            ("audio/amr", "voice", "[voice message]"),
            ("audio/mpeg", "audio", "[audio]"),
            ("text/vcard", "document", "[contact]"),
            ("application/pdf", "document", "[document]"),
        ] {
            let event = event(&received("", &[mime]), false);
            assert_eq!((event.message_type.as_str(), event.text.as_str()), (message_type, text), "{mime}");
            assert!(event.media_urls.is_empty(), "that is written when it goes");
            assert_eq!(event.media[0].extra["angelia_file"]["at"], "a");
            assert_eq!(
                (event.media[0].mime.as_deref(), &event.media[0].extra["kind"]),
                (Some(mime), &json!(message_type))
            );
        }
        let two = event(&received("look", &["image/png", "image/png"]), true);
        assert_eq!(
            (two.text.as_str(), two.media.len(), two.source.is_bot),
            ("look\n[photo] [photo]", 2, Some(false))
        );
        assert_eq!(event(&received("", &["image/png", "video/mp4"]), false).text, "[photo] [video]");
    }
}
