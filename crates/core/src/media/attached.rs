//! The files of an event: how they stand in the log, and how a gateway is told of them.
//!
//! An entry is written before any of its files is fetched. Its rows say where the provider has them,
//! in words that only its adapter understands and that never leave the server. When the entry goes to
//! a gateway, the files are here by then, and the rows become references to them for a gateway that
//! fetches, or lines with links for one that reads text alone.

use super::{FileId, MediaKind, kind_of};
use angelia_contract::event::{Event, Media, message_type};
use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a row keeps its [`Origin`].
const ORIGIN: &str = "angelia_file";
/// The same as it stands in an entry. In what people write the quotation marks are escaped.
const MARK: &[u8] = b"\"angelia_file\":";
/// What the path of a reference begins with. Older gateways send their token to whoever has that in a
/// URL, so nobody else's may.
const REFERENCE: &str = "/relay/media/";
/// What hermes calls the types of `media_urls`.
const MEDIA_TYPES: &str = "media_types";

/// Where the file of a row is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// What its platform finds it by.
    pub at: String,
    /// The album it is part of: what came with it belongs together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub album: Option<String>,
}

/// A file of an event that is not here yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// What its platform finds it by.
    pub at: String,
    /// What its sender called it.
    pub name: Option<String>,
    /// What its sender says it is.
    pub media_type: Option<String>,
}

/// What came of bringing a file here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Brought {
    /// It is here.
    Here {
        /// How it is referred to.
        file: FileId,
        /// What it is called.
        name: String,
        /// What it is.
        media_type: String,
        /// Its bytes.
        size: u64,
    },
    /// It could not be had.
    Missing {
        /// What it is called.
        name: String,
        /// Why, for the agent.
        why: String,
        /// Whether that is because it is too large.
        too_large: bool,
    },
}

/// How a gateway is given the files of an event.
pub enum Handing<'a> {
    /// As references that it fetches, below this address.
    References(&'a str),
    /// As links in the text, for a while; `None` for one that cannot be made.
    Links(&'a dyn Fn(&FileId) -> Option<String>),
}

/// Says in a row where its file is.
pub fn attach(row: &mut Media, origin: &Origin) {
    row.extra.insert(ORIGIN.into(), serde_json::to_value(origin).unwrap_or_default());
}

/// Whether an entry's event has files, without reading it.
pub fn has_files(body: &[u8]) -> bool {
    memmem::find(body, MARK).is_some()
}

/// How many files an entry's event has, without reading it.
pub fn count_files(body: &[u8]) -> usize {
    memmem::find_iter(body, MARK).count()
}

fn origin(row: &Media) -> Option<Origin> {
    row.extra.get(ORIGIN).and_then(|value| Origin::deserialize(value).ok())
}

/// The files of an event, in its order.
pub fn attached(event: &Event) -> Vec<Attached> {
    let file = |row: &Media| {
        let Origin { at, .. } = origin(row)?;
        Some(Attached { at, name: row.filename.clone(), media_type: row.mime.clone() })
    };
    event.media.iter().filter_map(file).collect()
}

/// The album that an event is part of.
pub fn album(event: &Event) -> Option<String> {
    event.media.iter().find_map(|row| origin(row)?.album)
}

/// Writes the files of an event into it, as a gateway reads them. Those of which nothing is known,
/// because no files are kept here, are described and lead nowhere.
pub fn hand_over(event: &mut Event, brought: &[Brought], handing: &Handing<'_>) {
    let mut brought = brought.iter();
    let (mut lines, mut types, mut first) = (Vec::new(), Vec::new(), None);
    let mut rows = std::mem::take(&mut event.media);
    rows.retain_mut(|row| {
        if row.extra.remove(ORIGIN).is_none() {
            return true;
        }
        match brought.next() {
            // Only what a provider shows everybody has an address of its own.
            None if row.url.is_empty() || row.url.contains(REFERENCE) => row.url.clear(),
            None => event.media_urls.push(row.url.clone()),
            Some(Brought::Missing { name, why, .. }) => {
                lines.push(format!("[{name} is not here: {why}]"));
                return false;
            }
            Some(Brought::Here { file, name, media_type, size }) => {
                row.mime = Some(media_type.clone());
                row.filename = Some(name.clone());
                row.extra.insert("size".into(), (*size).into());
                first.get_or_insert(kind_of(media_type, false));
                match handing {
                    Handing::References(base) => {
                        row.url = format!("{base}{REFERENCE}{file}");
                        event.media_urls.push(row.url.clone());
                        types.push(Value::from(media_type.clone()));
                    }
                    Handing::Links(link) => {
                        row.url.clear();
                        let about = format!("{name} ({media_type}, {})", readable_size(*size));
                        lines.extend(link(file).map(|link| format!("{about}: {link}")));
                    }
                }
            }
        }
        true
    });
    event.media = rows;
    event.text = below(&event.text, &lines.join("\n"));
    if !types.is_empty() {
        event.extra.insert(MEDIA_TYPES.into(), types.into());
    }
    if let Some(kind) = first.filter(|_| event.message_type == message_type::TEXT) {
        event.message_type = message_type_of(kind).into();
    }
}

/// The type of a message that is a file.
pub fn message_type_of(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => message_type::PHOTO,
        MediaKind::Voice => message_type::VOICE,
        MediaKind::Audio => message_type::AUDIO,
        MediaKind::Video => message_type::VIDEO,
        MediaKind::Document => message_type::DOCUMENT,
    }
}

/// A text and, in the line below it, what came with it. Where nothing was written, that is
/// all there is to read. A bare command stays as it was typed: the note would be its argument.
pub fn below(text: &str, note: &str) -> String {
    match text.trim() {
        _ if note.is_empty() => text.to_owned(),
        "" => note.to_owned(),
        said if said.starts_with('/') && !said.contains(char::is_whitespace) => text.to_owned(),
        _ => format!("{text}\n{note}"),
    }
}

/// A size as people write it, such as `1.2 MB`.
pub fn readable_size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str, files: usize) -> Event {
        let row = |number| {
            let mut row = Media { filename: Some(format!("{number}.png")), ..Media::default() };
            attach(&mut row, &Origin { at: format!("secret-{number}"), album: None });
            row
        };
        Event { text: text.into(), media: (0..files).map(row).collect(), ..Event::default() }
    }

    fn here(number: u8) -> Brought {
        let file = FileId::named(&[&number.to_string()]);
        Brought::Here { file, name: format!("{number}.png"), media_type: "image/png".into(), size: 1_234 }
    }

    #[test]
    fn files_are_found_where_they_are_and_not_in_what_people_write() {
        let body = |event: &Event| serde_json::to_vec(event).unwrap();
        assert!(has_files(&body(&event("", 1))));
        assert!(!has_files(&body(&event("\"angelia_file\":", 0))));
        assert_eq!([0, 1, 3].map(|files| count_files(&body(&event("\"angelia_file\":", files)))), [0, 1, 3]);
        assert!(!has_files(b"") && !has_files(b"\"a") && !has_files(br#""an":"ang""#));
        let names: Vec<_> = attached(&event("", 2)).into_iter().map(|file| file.at).collect();
        assert_eq!(names, ["secret-0", "secret-1"]);
    }

    #[test]
    fn a_gateway_that_fetches_gets_references_and_their_types() {
        let mut event = event("look", 2);
        hand_over(&mut event, &[here(0), here(1)], &Handing::References("https://relay.example"));
        assert_eq!(event.media_urls.len(), 2);
        for (row, url) in event.media.iter().zip(&event.media_urls) {
            assert!(row.url == *url && url.starts_with("https://relay.example/relay/media/"), "{url}");
            assert_eq!(row.mime.as_deref(), Some("image/png"));
        }
        assert_eq!(event.extra["media_types"], serde_json::json!(["image/png", "image/png"]));
        assert_eq!((&*event.text, &*event.message_type), ("look", "photo"));
        assert!(!serde_json::to_string(&event).unwrap().contains("secret"));
    }

    #[test]
    fn a_gateway_that_does_not_gets_a_line_for_each() {
        let mut event = event("look", 2);
        let link = |file: &FileId| Some(format!("https://relay.example/media/{}", &file.as_str()[..4]));
        hand_over(&mut event, &[here(0), here(1)], &Handing::Links(&link));
        assert!(event.media_urls.is_empty() && !event.extra.contains_key("media_types"));
        let lines: Vec<_> = event.text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("0.png (image/png, 1.2 kB): https://relay.example/media/"), "{lines:?}");
        assert!(!serde_json::to_string(&event).unwrap().contains("secret"));
    }

    #[test]
    fn what_is_missing_is_said_and_what_nobody_looked_for_is_described() {
        let missing = Brought::Missing { name: "0.png".into(), why: "too large".into(), too_large: true };
        let mut one = event("", 2);
        hand_over(&mut one, &[missing, here(1)], &Handing::References("http://h"));
        assert_eq!(
            (&*one.text, one.media.len(), one.media_urls.len()),
            ("[0.png is not here: too large]", 1, 1)
        );
        let mut none = event("look", 1);
        hand_over(&mut none, &[], &Handing::References("http://h"));
        assert_eq!((&*none.text, none.media_urls.len(), &*none.media[0].url), ("look", 0, ""));
        assert!(!serde_json::to_string(&none).unwrap().contains("secret"));
        let mut command = event("/new", 1);
        hand_over(&mut command, &[here(0)], &Handing::Links(&|_| Some("http://h".into())));
        assert_eq!(command.text, "/new");
    }

    #[test]
    fn a_note_stands_below_the_words() {
        for (text, note, read) in [
            ("look", "[photo]", "look\n[photo]"),
            ("", "[photo]", "[photo]"),
            (" \n", "[photo]", "[photo]"),
            ("look", "", "look"),
            (" ", "", " "),
            ("/ask what is it?", "[photo]", "/ask what is it?\n[photo]"),
            ("/stop", "[photo]", "/stop"),
            (" /new ", "[photo]", " /new "),
        ] {
            assert_eq!(below(text, note), read, "{text:?}");
        }
    }
}
