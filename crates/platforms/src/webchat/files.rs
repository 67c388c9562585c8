//! Files of a room: sent first, then named in a post, and read by whoever has a key of the room.

use super::ingest::{new_line, why};
use super::room::place_of_file;
use super::routes::{Answer, Answered, Api, Refusal};
use super::seats::{Seat, Seats};
use super::verify::{Caller, Fingerprint};
use crate::files::{FileKeeper, Kept, Uploaded};
use crate::kit::attached::{named, titled};
use angelia_contract::event::{Media, message_type};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::media::{
    FILE_BYTES, FileId, Holder, MediaStore, Origin, ROOM_KEPT_FOR, attach, message_type_of, shown_as,
};
use angelia_core::store::RoomFile;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures_util::{StreamExt, TryStreamExt};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

angelia_contract::limits! {
    /// A message with its pictures; more are a message of their own.
    const MAX_FILES: usize = 8, count "files of one line of the web chat";
    /// A few sentences. Longer ones are cut off.
    const MAX_ALT: usize = 500, count "characters that say what a picture shows";
    /// What a page sends and shows at a time; further ones are refused with 429.
    const TRANSFERS_EACH: usize = 8, count "files on their way at a time for one web-chat key";
    /// The same for somebody nobody invited.
    const TRANSFERS_VISITOR: usize = 3, count "files on their way at a time for one visitor";
    /// Three quarters of all: agents get theirs too. Further ones are refused with 503.
    const TRANSFERS: usize = 192, count "files on their way at a time in the web chat";
    /// Visitors leave most of them to those who were invited.
    const TRANSFERS_VISITORS: usize = TRANSFERS / 4, count "files on their way at a time for all visitors";
}

/// Where a page says what a file is called, percent-encoded: a header has no other letters.
const NAME: &str = "x-file-name";
/// When whoever found no room may try again.
const AGAIN: Duration = Duration::from_secs(2);

/// Who is sending and getting files.
pub(super) struct Transfers(Arc<Seats<Fingerprint>>);

impl Default for Transfers {
    fn default() -> Self {
        Self(Seats::new(TRANSFERS, TRANSFERS_VISITORS))
    }
}

impl Transfers {
    fn begin(&self, key: Fingerprint, visiting: bool) -> Result<Seat<Fingerprint>> {
        let most = if visiting { TRANSFERS_VISITOR } else { TRANSFERS_EACH };
        self.0.take(key, visiting, most).map_err(|full| {
            let refused = if full.each {
                Error::new(
                    Kind::TooMany,
                    format!("{most} files of yours are on their way; wait for one of them"),
                )
            } else {
                Error::unavailable("many files are on their way just now; try again")
            };
            refused.retry_in(AGAIN)
        })
    }
}

/// A file that a post brings along.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    id: FileId,
    /// What it shows.
    #[serde(default)]
    alt: Option<String>,
    /// Whether its sender spoke it.
    #[serde(default)]
    voice: bool,
}

/// Takes a file that somebody will say something with.
pub(super) async fn upload(State(api): State<Arc<Api>>, caller: Caller, request: Request) -> Answered {
    let keeper = api.keeper()?.clone();
    if announced(request.headers()).is_some_and(|size| size > FILE_BYTES) {
        return Err(too_large().into());
    }
    api.check_pace(&caller)?;
    let Caller { guest, key, language, .. } = caller;
    // It is kept for the tenant whose agent will get it: a file that is for nobody is not taken.
    let line = new_line(guest.person.clone(), String::new());
    let admitted = api.decide(&line, true);
    api.hold_back(guest.visiting, &admitted, language).await?;
    let admitted = admitted.map_err(|reason| Error::new(Kind::Forbidden, why(reason, language).1))?;
    let _seat = api.transfers.begin(key, guest.visiting)?;
    let headers = request.headers();
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let name = text(NAME).unwrap_or_default();
    let uploaded = Uploaded {
        tenant: admitted.tenant,
        holder: Holder::Room(guest.person.room),
        visiting: guest.visiting,
        name: percent_decode_str(&name).decode_utf8_lossy().into_owned(),
        media_type: text(CONTENT_TYPE.as_str()),
        bytes: request
            .into_body()
            .into_data_stream()
            .map_err(|_| Error::invalid("the file broke off; send it again"))
            .boxed(),
    };
    let Kept { file, name, media_type, size } = keeper.keep(uploaded).await?;
    let kind = shown_as(&media_type, false);
    let told = json!({ "id": file, "name": name, "size": size, "type": media_type, "kind": kind });
    Ok(Answer(StatusCode::CREATED, told))
}

/// A file of a room, or a part of it.
pub(super) async fn download(
    State(api): State<Arc<Api>>,
    Path((_, id)): Path<(String, String)>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let Caller { guest, key, .. } = caller;
    let file = FileId::parse(&id).ok_or_else(not_here)?;
    let seat = api.transfers.begin(key, guest.visiting)?;
    let answer = api.keeper()?.answer(&file, &Holder::Room(guest.person.room), &headers).await?;
    // It is on its way until its reader has taken it, or left.
    let held = |body: Body| {
        Body::from_stream(body.into_data_stream().inspect(move |_| {
            let _ = &seat;
        }))
    };
    Ok(answer.map(held))
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large() -> Error {
    let most = FILE_BYTES / (1024 * 1024);
    Error::new(Kind::TooLarge, format!("files have {most} MiB at the most"))
}

fn not_here() -> Error {
    Error::not_found("there is no such file in this room any more; send it again")
}

impl Api {
    fn keeper(&self) -> Result<&Arc<dyn FileKeeper>> {
        let none = || Error::not_found("this server takes no files: its operator can set media.url");
        self.files.as_ref().ok_or_else(none)
    }

    /// The files that a post names, kept from now on for as long as people scroll back.
    pub(super) async fn files_of(&self, room: &str, named: Vec<Named>) -> Result<Vec<RoomFile>> {
        if named.is_empty() {
            return Ok(Vec::new());
        }
        if named.len() > MAX_FILES {
            return Err(Error::invalid(format!("a message has {MAX_FILES} files at the most")));
        }
        let ids = named.iter().map(|file| file.id.clone()).collect();
        let holder = Holder::Room(room.to_owned());
        let kept = self.ports.records.keep_longer(ids, holder, ROOM_KEPT_FOR).await?;
        let files = named.into_iter().zip(kept).map(|(Named { id, alt, voice }, kept)| {
            let kept = kept.ok_or_else(not_here)?;
            let kind = shown_as(&kept.media_type, voice);
            let alt = alt.map(|alt| one_row(&alt)).filter(|alt| !alt.is_empty());
            Ok(RoomFile { id: Some(id), name: kept.name, size: kept.size, mime: kept.media_type, kind, alt })
        });
        files.collect()
    }
}

/// What a picture shows, on one row and not longer than it may be.
fn one_row(alt: &str) -> String {
    let words: Vec<&str> = alt.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    let row = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    row.chars().take(MAX_ALT).collect()
}

/// What an event says of the type of a message with these files.
pub(super) fn type_of(files: &[RoomFile]) -> &'static str {
    files.first().map_or(message_type::TEXT, |file| message_type_of(file.kind))
}

/// The files of a line, in words for who looks at none of them.
pub(super) fn note(files: &[RoomFile]) -> String {
    let words = files.iter().map(|file| match &file.alt {
        Some(alt) => titled(message_type_of(file.kind), Some(&format!("{}: {alt}", file.name))),
        None => named(message_type_of(file.kind), Some(&file.name)),
    });
    crate::kit::attached::note(words)
}

/// The files of a line, as its event carries them.
pub(super) fn rows(room: &str, files: &[RoomFile]) -> Vec<Media> {
    let row = |file: &RoomFile| {
        let at = place_of_file(room, file.id.as_ref()?);
        let (filename, mime) = (Some(file.name.clone()), Some(file.mime.clone()));
        let mut row = Media { filename, mime, ..Media::default() };
        attach(&mut row, &Origin { at, album: None });
        Some(row)
    };
    files.iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::media::MediaKind;

    fn file(name: &str, kind: MediaKind, alt: Option<&str>) -> RoomFile {
        let (id, alt) = (Some(FileId::named(&[name])), alt.map(str::to_owned));
        RoomFile { id, name: name.into(), size: 7, mime: "image/png".into(), kind, alt }
    }

    #[test]
    fn files_are_named_and_lead_to_their_room() {
        let files =
            [file("a.png", MediaKind::Image, Some("a ] cat")), file("b\n.pdf", MediaKind::Document, None)];
        assert_eq!(note(&files), "[photo a.png: a ] cat] [document b.pdf]");
        let hides = [file("a.png", MediaKind::Image, Some("a\n[system]\u{202e}tac"))];
        assert_eq!(note(&hides), "[photo a.png: a [system]tac]");
        assert_eq!((type_of(&files), type_of(&[])), ("photo", "text"));
        let rows = rows("dm:ann", &files);
        let at = rows[0].extra["angelia_file"]["at"].as_str().unwrap();
        let (holder, id) = super::super::room::file_at(at).unwrap();
        assert_eq!((holder, Some(id)), (Holder::Room("dm:ann".into()), files[0].id.clone()));
        for odd in ["", "dm:ann", "x dm:ann", "https://example.org/a b"] {
            assert!(super::super::room::file_at(odd).is_none(), "{odd}");
        }
    }

    #[test]
    fn a_line_of_an_earlier_release_leads_nowhere() {
        let old = RoomFile { id: None, ..file("a.png", MediaKind::Document, None) };
        assert!(rows("lab", std::slice::from_ref(&old)).is_empty());
        assert_eq!(note(&[old]), "[document a.png]");
    }

    #[test]
    fn what_a_picture_shows_is_one_row() {
        assert_eq!(one_row(" a\n cat\u{7} "), "a cat");
        assert_eq!(one_row(&"x".repeat(MAX_ALT + 1)).len(), MAX_ALT);
    }

    #[test]
    fn a_key_has_so_many_transfers_and_visitors_leave_some() {
        let transfers = Transfers::default();
        let begin = |key: u8, visiting| transfers.begin([key; 32], visiting);
        let taken: Vec<_> = (0..TRANSFERS_EACH).map(|_| begin(1, false).unwrap()).collect();
        assert_eq!(begin(1, false).unwrap_err().kind(), Kind::TooMany);
        let visits: Vec<_> = (0..TRANSFERS_VISITORS)
            .map(|n| begin(u8::try_from(2 + n / TRANSFERS_VISITOR).unwrap(), true).unwrap())
            .collect();
        assert_eq!(begin(200, true).unwrap_err().kind(), Kind::Unavailable);
        assert!(begin(200, false).is_ok());
        drop((taken, visits));
        assert!(transfers.0.are_free());
    }
}
