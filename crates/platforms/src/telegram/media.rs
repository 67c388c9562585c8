//! What a message carries beside words.
//!
//! A link to a file at Telegram contains the bot's token, and the id of a file
//! is good for whoever holds a token; neither is handed out. So an attachment
//! is described and has no address: `media` tells its kind, type, size and
//! name, `media_urls` stays empty, and where nothing was written beside it the
//! text says what came.

use super::parse::{Attachments, File, Message};
use angelia_contract::event::{Media, message_type};
use serde_json::Value;

/// What a message carries.
pub(super) struct Carried {
    /// The message's type.
    pub(super) message_type: &'static str,
    /// What an agent reads if there is no caption.
    pub(super) placeholder: String,
    /// Its row, if it is a file.
    pub(super) media: Option<Media>,
}

/// What a message carries beside its words, if anything.
pub(super) fn carried(message: &Message) -> Option<Carried> {
    let Attachments { photo, voice, audio, video, video_note, animation, document, sticker, .. } =
        &message.media;
    // A film without sound comes as a document too, so that one is asked last.
    let files = [
        (photo.last(), "photo", message_type::PHOTO, "photo"),
        (voice.as_ref(), "voice", message_type::VOICE, "voice message"),
        (audio.as_ref(), "audio", message_type::AUDIO, "audio"),
        (video.as_ref(), "video", message_type::VIDEO, "video"),
        (video_note.as_ref(), "video_note", message_type::VIDEO, "video message"),
        (animation.as_ref(), "animation", message_type::VIDEO, "animation"),
        (sticker.as_ref(), "sticker", message_type::STICKER, "sticker"),
        (document.as_ref(), "document", message_type::DOCUMENT, "document"),
    ];
    let file = files.into_iter().find_map(|(file, kind, sort, word)| Some((file?, kind, sort, word)));
    match file {
        Some((file, kind, message_type, word)) => {
            Some(Carried { message_type, placeholder: placeholder(word, file), media: Some(row(kind, file)) })
        }
        None => other(&message.media),
    }
}

/// What is no file: a place, a contact, a poll, a throw of dice.
fn other(media: &Attachments) -> Option<Carried> {
    let said = |message_type, placeholder| Some(Carried { message_type, placeholder, media: None });
    if let Some(location) = &*media.location {
        let position = format!("{}, {}", location.latitude, location.longitude);
        let placeholder = match &*media.venue {
            Some(venue) if venue.address.is_empty() => format!("[{}: {position}]", venue.title),
            Some(venue) => format!("[{}, {}: {position}]", venue.title, venue.address),
            None => format!("[location: {position}]"),
        };
        return said(message_type::LOCATION, placeholder);
    }
    if let Some(contact) = &*media.contact {
        let name = format!("{} {}", contact.first_name, contact.last_name);
        return said(message_type::TEXT, format!("[contact {}, {}]", name.trim(), contact.phone_number));
    }
    if let Some(poll) = &*media.poll {
        return said(message_type::TEXT, format!("[poll: {}]", poll.question));
    }
    let dice = media.dice.as_ref()?;
    said(message_type::TEXT, format!("[{} {}]", dice.emoji, dice.value))
}

fn row(kind: &str, file: &File) -> Media {
    let mut media =
        Media { mime: file.mime_type.0.clone(), filename: file.file_name.0.clone(), ..Media::default() };
    media.extra.insert("kind".into(), kind.into());
    if let Some(size) = file.file_size.0 {
        media.extra.insert("size".into(), Value::from(size));
    }
    media
}

/// Such as `[document report.pdf, 1.2 MB]`.
fn placeholder(word: &str, file: &File) -> String {
    let mut text = format!("[{word}");
    if let Some(name) = file.file_name.as_ref().or(file.title.as_ref()).or(file.emoji.as_ref()) {
        text.push(' ');
        text.push_str(name);
    }
    let size = file.file_size.filter(|_| file.duration.is_none() && file.width.is_none());
    let facts = [
        file.width
            .zip(*file.height)
            .filter(|_| word != "sticker")
            .map(|(width, height)| format!("{width}×{height}")),
        file.duration.map(|seconds| format!("{seconds} s")),
        size.map(readable),
    ];
    for fact in facts.into_iter().flatten() {
        text.push_str(", ");
        text.push_str(&fact);
    }
    text.push(']');
    text
}

fn readable(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn carries(extra: Value) -> Option<Carried> {
        let mut message = json!({"message_id": 5, "chat": {"id": 1, "type": "private"}});
        message.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        carried(&serde_json::from_value(message).unwrap())
    }

    #[test]
    fn every_kind_has_its_type_and_says_what_it_is() {
        for (extra, message_type, text) in [
            (
                json!({"photo": [{"file_id": "a", "width": 90, "height": 67}, {"file_id": "b", "width": 1280, "height": 960, "file_size": 9}]}),
                "photo",
                "[photo, 1280×960]",
            ),
            (
                json!({"voice": {"file_id": "a", "duration": 12, "mime_type": "audio/ogg"}}),
                "voice",
                "[voice message, 12 s]",
            ),
            (json!({"audio": {"duration": 200, "title": "Song"}}), "audio", "[audio Song, 200 s]"),
            (
                json!({"video": {"width": 640, "height": 480, "duration": 3}}),
                "video",
                "[video, 640×480, 3 s]",
            ),
            (json!({"video_note": {"length": 240, "duration": 3}}), "video", "[video message, 3 s]"),
            (
                json!({"animation": {"width": 2, "height": 1, "duration": 3}, "document": {"file_name": "a.mp4"}}),
                "video",
                "[animation, 2×1, 3 s]",
            ),
            (
                json!({"document": {"file_name": "report.pdf", "file_size": 1_234_567}}),
                "document",
                "[document report.pdf, 1.2 MB]",
            ),
            (json!({"sticker": {"width": 512, "height": 512, "emoji": "👍"}}), "sticker", "[sticker 👍]"),
            (
                json!({"location": {"latitude": 52.5, "longitude": 13.4}}),
                "location",
                "[location: 52.5, 13.4]",
            ),
            (
                json!({"location": {"latitude": 1.0, "longitude": 2.0}, "venue": {"title": "Café", "address": "Main St"}}),
                "location",
                "[Café, Main St: 1, 2]",
            ),
            (json!({"contact": {"first_name": "Bob", "phone_number": "+1"}}), "text", "[contact Bob, +1]"),
            (json!({"poll": {"question": "Tea?"}}), "text", "[poll: Tea?]"),
            (json!({"dice": {"emoji": "🎲", "value": 4}}), "text", "[🎲 4]"),
        ] {
            let carried = carries(extra.clone()).unwrap();
            assert_eq!((carried.message_type, carried.placeholder.as_str()), (message_type, text), "{extra}");
        }
        assert!(carries(json!({"pinned_message": {}})).is_none());
    }

    #[test]
    fn a_row_describes_a_file_and_leads_nowhere() {
        let file = json!({"document": {"file_id": "AgADsecret", "file_unique_id": "u", "file_name": "a.pdf", "mime_type": "application/pdf", "file_size": 5}});
        let row = serde_json::to_value(carries(file).unwrap().media.unwrap()).unwrap();
        assert_eq!(
            row,
            json!({"url": "", "mime": "application/pdf", "filename": "a.pdf", "kind": "document", "size": 5})
        );
    }
}
