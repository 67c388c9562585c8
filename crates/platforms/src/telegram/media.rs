//! What a message carries beside words, and the files among it.
//!
//! A link to a file at Telegram contains the bot's token, and the id of a file
//! is good for whoever holds a token; neither is handed out. The row of a file keeps
//! its id in the log, and the file itself is fetched before its message goes on.

use super::Telegram;
use super::api::TELEGRAM;
use super::parse::Message;
use crate::kit::{ApiError, ErrorKind, attached};
use crate::platform::FetchedFile;
use angelia_contract::event::{Media, message_type};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::media::{Origin, attach, readable_size};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Bots are given no larger ones.
const MOST: u64 = 20_000_000;
/// How long the transfer of a file may take.
const FETCH_WITHIN: Duration = Duration::from_secs(110);

/// What a message carries.
pub(super) struct Carried {
    /// The message's type.
    pub(super) message_type: &'static str,
    /// What an agent reads of it, below the caption if there is one.
    pub(super) placeholder: String,
    /// Its row, if it is a file.
    pub(super) media: Option<Media>,
}

/// Files: Telegram's name for a sort, the message's type, and a word for it. A film without
/// sound comes as a document too, so that one is asked last.
const FILES: [(&str, &str, &str); 8] = [
    ("photo", message_type::PHOTO, "photo"),
    ("voice", message_type::VOICE, "voice message"),
    ("audio", message_type::AUDIO, "audio"),
    ("video", message_type::VIDEO, "video"),
    ("video_note", message_type::VIDEO, "video message"),
    ("animation", message_type::VIDEO, "animation"),
    ("sticker", message_type::STICKER, "sticker"),
    ("document", message_type::DOCUMENT, "document"),
];

/// What a message carries beside its words, if anything.
pub(super) fn carried(message: &Message) -> Option<Carried> {
    let album = message.rest.get("media_group_id").and_then(Value::as_str);
    let file = FILES.iter().find_map(|(kind, message_type, word)| {
        let file = match message.rest.get(*kind)? {
            // A photo comes in several sizes, the largest last.
            Value::Array(sizes) => sizes.iter().rfind(|size| size.is_object())?,
            file => Some(file).filter(|file| file.is_object())?,
        };
        Some(Carried {
            message_type,
            placeholder: placeholder(word, file),
            media: Some(row(kind, file, album)),
        })
    });
    file.or_else(|| no_file(message))
}

/// What is no file: a place, a contact, a poll, a throw of dice.
fn no_file(message: &Message) -> Option<Carried> {
    let said = |message_type, placeholder| Some(Carried { message_type, placeholder, media: None });
    let text = |what, key| message.text_of(what, key);
    let coordinate = |key| message.rest.get("location")?.get(key)?.as_f64();
    if let Some((latitude, longitude)) = coordinate("latitude").zip(coordinate("longitude")) {
        let address = text("venue", "address").filter(|address| !address.is_empty());
        let place = match (text("venue", "title"), address) {
            (Some(title), Some(address)) => format!("{title}, {address}"),
            (title, _) => title.unwrap_or("location").to_owned(),
        };
        let place = attached::one_row(&place);
        return said(message_type::LOCATION, format!("[{place}: {latitude}, {longitude}]"));
    }
    if let Some(first_name) = text("contact", "first_name") {
        let name = format!("{first_name} {}", text("contact", "last_name").unwrap_or_default());
        let number = text("contact", "phone_number").unwrap_or_default();
        return said(
            message_type::TEXT,
            attached::titled("contact", Some(&format!("{}, {number}", name.trim()))),
        );
    }
    if let Some(question) = text("poll", "question") {
        return said(message_type::TEXT, attached::titled("poll:", Some(question)));
    }
    let value = message.rest.get("dice")?.get("value")?.as_i64()?;
    said(message_type::TEXT, format!("[{} {value}]", text("dice", "emoji")?))
}

fn row(kind: &str, file: &Value, album: Option<&str>) -> Media {
    let text = |key| file[key].as_str().map(str::to_owned);
    let mime = text("mime_type");
    let filename = attached::file_name(file["file_name"].as_str(), mime.as_deref());
    let mut media = Media { mime, filename, ..Media::default() };
    media.extra.insert("kind".into(), kind.into());
    if let Some(size) = file["file_size"].as_u64() {
        media.extra.insert("size".into(), size.into());
    }
    let size = file["file_size"].as_u64();
    if let Some(id) = text("file_id") {
        let at = if size.is_some_and(|size| size > MOST) { TOO_LARGE.to_owned() } else { id };
        attach(&mut media, &Origin { at, album: album.map(str::to_owned) });
    }
    media
}

/// What stands in the place of a file that Telegram does not hand out; no id looks like it.
const TOO_LARGE: &str = "!too large";

/// What Telegram answers to the question where a file is.
#[derive(Deserialize)]
struct Located {
    file_path: Option<String>,
}

impl Telegram {
    /// Begins to fetch a file by its id.
    pub(super) async fn fetch(&self, id: &str) -> Result<FetchedFile> {
        let too_large = || {
            Error::new(
                Kind::TooLarge,
                "Telegram hands no files over 20 MB to bots; ask for a link to it instead",
            )
        };
        if id == TOO_LARGE {
            return Err(too_large());
        }
        let located = self.api.call::<Located>("getFile", &json!({ "file_id": id })).await;
        let located = located.map_err(|error| match error {
            ApiError { kind: ErrorKind::Refused(_), why } if why.contains("too big") => too_large(),
            ApiError { kind: ErrorKind::Refused(_), why } => Error::not_found(why),
            error => error.of_read(),
        })?;
        let path = located.file_path.filter(|path| is_below(path)).ok_or_else(|| {
            Error::not_found(
                "Telegram does not say where it is: a Bot API server of your own must not run with --local",
            )
        })?;
        self.api.open(&path, FETCH_WITHIN).await.map_err(ApiError::of_read)?.file(&TELEGRAM)
    }
}

/// Whether a path leads below the address of files, and nowhere else.
fn is_below(path: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
    !path.starts_with('/')
        && path.chars().all(is_plain)
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Such as `[document report.pdf, 1.2 MB]`.
fn placeholder(word: &str, file: &Value) -> String {
    let number = |key| file[key].as_u64();
    let title = || ["title", "emoji"].iter().find_map(|key| file[key].as_str()).map(attached::one_row);
    let name = attached::file_name(file["file_name"].as_str(), file["mime_type"].as_str()).or_else(title);
    let (width, duration) = (number("width"), number("duration"));
    let extent = width.zip(number("height")).filter(|_| word != "sticker");
    let size = number("file_size").filter(|_| duration.is_none() && width.is_none());
    let facts = [
        Some(format!("{word} {}", name.unwrap_or_default()).trim_end().to_owned()),
        extent.map(|(width, height)| format!("{width}×{height}")),
        duration.map(|seconds| format!("{seconds} s")),
        size.map(readable_size),
    ];
    format!("[{}]", facts.into_iter().flatten().collect::<Vec<_>>().join(", "))
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
    fn a_row_describes_a_file_and_says_where_it_is() {
        let file = json!({"media_group_id": "12", "document": {"file_id": "AgAD", "file_unique_id": "u", "file_name": "a.pdf", "mime_type": "application/pdf", "file_size": 5}});
        let row = serde_json::to_value(carries(file).unwrap().media.unwrap()).unwrap();
        assert_eq!(
            row,
            json!({
                "url": "", "mime": "application/pdf", "filename": "a.pdf", "kind": "document", "size": 5,
                "angelia_file": {"at": "AgAD", "album": "12"}
            })
        );
        let large = json!({"video": {"file_id": "AgAD", "file_size": 20_000_001}});
        let row = carries(large).unwrap().media.unwrap();
        assert_eq!(row.extra["angelia_file"]["at"], TOO_LARGE);
    }

    #[test]
    fn a_path_stays_among_the_files() {
        for path in ["photos/file_1.jpg", "voice/file-2.oga", "a"] {
            assert!(is_below(path), "{path}");
        }
        for path in ["/var/lib/a", "../getMe", "a/../../b", "a//b", "a?b", "a#b", "a%2e", "", "a\\b"] {
            assert!(!is_below(path), "{path}");
        }
    }
}
