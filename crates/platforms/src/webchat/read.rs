//! Reading a room: pages bounded in bytes, and few of them at a time.
//!
//! An answer lies in memory until its reader has taken it, and whoever asks need
//! not read. So the place that a reader takes is free again when the bytes are
//! gone, not when the request was understood.

use super::address;
use super::render::to_html;
use super::routes::{Api, Reading, Refusal};
use super::seats::{Seat, Seats};
use super::verify::{Caller, Fingerprint};
use angelia_core::admission::DropReason;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::own_words::Language;
use angelia_core::store::{Filling, Line, Page, PageSize};
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

angelia_contract::limits! {
    /// More than anybody reads at a glance; the answer says that there is more.
    pub const PAGE_LINES: usize = 200, count "lines in one answer to who reads a room";
    /// Some thirty of the longest lines. One line is given whatever its size, and the
    /// answer says that there is more.
    pub const PAGE_BYTES: usize = 256 * 1024, bytes "in one answer to who reads a room";
    /// What a stream reads ahead of a follower who does not keep up; the rest is read
    /// when they do. One line is read whatever its size.
    pub const STREAM_PAGE_BYTES: usize = 64 * 1024, bytes "of lines read ahead for one stream";
    /// A few tabs that open at once; further reads are refused with 429 until an answer was taken.
    pub const MAX_READS_EACH: usize = 4, count "answers with lines at a time for one web-chat key";
    /// The same for somebody nobody invited.
    pub const MAX_READS_VISITOR: usize = 2, count "answers with lines at a time for one visitor";
    /// With their bytes no more than 64 MiB; further reads are refused with 503.
    pub const MAX_READS: usize = 128, count "answers with lines at a time for everybody";
    /// Half of them: visitors leave room for those who were invited.
    pub const MAX_READS_VISITORS: usize = MAX_READS / 2, count "answers with lines at a time for all visitors";
    /// Each keeps a thread busy; further ones wait for their turn.
    pub const MAX_MADE: usize = 4, count "answers with lines being made at the same time";
}

/// What one answer takes from the store.
const PAGE: PageSize = PageSize { count: PAGE_LINES, bytes: PAGE_BYTES };
/// What a stream takes at once.
pub(super) const STREAM_PAGE: PageSize = PageSize { count: PAGE_LINES, bytes: STREAM_PAGE_BYTES };
/// When to come back: an answer is read in less.
const AGAIN: Duration = Duration::from_secs(1);

/// Who is being answered.
#[derive(Debug)]
pub(super) struct Reads {
    places: Arc<Seats<Fingerprint>>,
    making: Semaphore,
}

impl Default for Reads {
    fn default() -> Self {
        let places = Seats::new(MAX_READS, MAX_READS_VISITORS);
        Self { places, making: Semaphore::new(MAX_MADE) }
    }
}

/// One answer's place; free again when it is dropped.
pub(super) type Place = Seat<Fingerprint>;

impl Reads {
    /// Takes a place for one more answer, if there is one.
    pub(super) fn begin(&self, key: Fingerprint, visiting: bool) -> Result<Place> {
        let most = if visiting { MAX_READS_VISITOR } else { MAX_READS_EACH };
        self.places.take(key, visiting, most).map_err(|full| {
            let own = format!("you read {most} pages at a time already; read one of them to its end first");
            let refused = if full.each {
                Error::new(Kind::TooMany, own)
            } else {
                Error::unavailable("many people are reading just now; try again")
            };
            refused.retry_in(AGAIN)
        })
    }

    /// The answer to a reader. Made off the threads that everybody shares: a page of
    /// Markdown takes a while.
    pub(super) async fn answer(&self, lines: Page<Line>, look: Look, place: Place) -> Result<Response> {
        let _turn = self.making.acquire().await;
        let made = move || Placed { bytes: written(&lines, look), _place: place };
        let made = tokio::task::spawn_blocking(made).await;
        let placed = made.map_err(|_| Error::internal("the page could not be made"))?;
        let body = Body::from(Bytes::from_owner(placed));
        Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
    }
}

/// Lines of a room, from where its reader is.
pub(super) async fn read(
    State(api): State<Arc<Api>>,
    reading: Reading,
    caller: Caller,
) -> Result<Response, Refusal> {
    let Caller { guest, key, .. } = caller;
    // Held until the answer is gone: it lies in memory for as long.
    let place = api.reads.begin(key, guest.visiting)?;
    let lines = api.ports.lines.lines(&guest.person.room, reading.after, PAGE).await?;
    Ok(api.reads.answer(lines, reading.look(), place).await?)
}

/// The bytes of an answer, which keep its place for as long as they are there.
struct Placed {
    bytes: Box<[u8]>,
    _place: Place,
}

impl AsRef<[u8]> for Placed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// What a reader gets.
#[derive(Serialize)]
struct Written {
    messages: Vec<Box<RawValue>>,
    more: bool,
}

/// As many of the lines as fit, with what was made of them.
fn written(lines: &Page<Line>, look: Look) -> Box<[u8]> {
    let mut filling = Filling::new(PAGE);
    let shown = lines.iter().filter_map(|line| to_raw_value(&Shown::new(line, look)).ok());
    let messages: Vec<_> = shown.take_while(|line| filling.takes(line.get().len())).collect();
    let more = lines.more || messages.len() < lines.len();
    serde_json::to_vec(&Written { messages, more }).unwrap_or_default().into()
}

/// How a reader gets lines.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Look {
    /// An agent's Markdown also as HTML.
    pub(super) html: bool,
    /// In which language they are told something of them.
    pub(super) language: Language,
}

/// A line as a reader gets it.
#[derive(Serialize)]
pub(super) struct Shown<'a> {
    #[serde(flatten)]
    line: &'a Line,
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<String>,
    /// Why no agent got it, and what its writer can do about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    undelivered: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

impl<'a> Shown<'a> {
    pub(super) fn new(line: &'a Line, look: Look) -> Self {
        let rendered = look.html && line.from_agent;
        Self {
            line,
            html: rendered.then(|| to_html(&line.text)),
            undelivered: line.undelivered.map(DropReason::as_str),
            hint: line.undelivered.map(|reason| address::hint(reason, look.language)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn line(id: i64, text: &str) -> Line {
        let (message_id, author) = (format!("wa{id}"), "agent".into());
        Line { id, message_id, author, from_agent: true, text: text.into(), ..Line::default() }
    }

    fn read(lines: Page<Line>, html: bool) -> (usize, Value, usize) {
        let text = written(&lines, Look { html, ..Look::default() });
        let answer: Value = serde_json::from_slice(&text).unwrap();
        (answer["messages"].as_array().unwrap().len(), answer["more"].clone(), text.len())
    }

    #[test]
    fn what_is_made_of_the_lines_counts_too() {
        let small: Vec<Line> = (0..100).map(|id| line(id, "hello")).collect();
        assert_eq!(read(Page::last(small.clone()), true).0, 100);
        assert_eq!(read(Page::last(small), true).1, false);
        // 100 × 8 kB of text is what the store gives; as HTML it is several times that.
        let large: Vec<Line> = (0..100).map(|id| line(id, &"<".repeat(8_000))).collect();
        let (shown, more, bytes) = read(Page::last(large.clone()), true);
        assert!(shown < 10 && more == true, "{shown} shown");
        assert!(bytes <= PAGE_BYTES + 1_000, "{bytes} bytes");
        assert!(read(Page::last(large), false).0 > 20);
        let huge = vec![line(1, &"\u{1}".repeat(60_000)), line(2, "next")];
        let (shown, more, _) = read(Page::last(huge), false);
        assert_eq!((shown, more), (1, true.into()), "one is given whatever its size");
        assert_eq!(read(Page { items: vec![line(1, "x")], more: true }, false).1, true, "the store has more");
    }

    #[tokio::test]
    async fn a_key_has_so_many_answers_until_their_bytes_are_gone() {
        let reads = Reads::default();
        let begin = |key: u8| reads.begin([key; 32], false);
        let mut answers = Vec::new();
        for _ in 0..MAX_READS_EACH {
            let page = Page::last(vec![line(1, "x")]);
            answers.push(reads.answer(page, Look::default(), begin(1).unwrap()).await.unwrap());
        }
        let refused = begin(1).unwrap_err();
        assert_eq!((refused.kind(), refused.retry_after()), (Kind::TooMany, Some(AGAIN)));
        assert!(begin(2).is_ok(), "another key");
        let bytes = axum::body::to_bytes(answers.pop().unwrap().into_body(), 10_000).await.unwrap();
        assert!(begin(1).is_err(), "the bytes are still there");
        drop(bytes);
        assert!(begin(1).is_ok());
        drop(answers);
        assert!(reads.places.are_free(), "nothing is kept of who left");
    }

    #[test]
    fn everybody_together_has_so_many_and_visitors_leave_some() {
        let reads = Reads::default();
        let key = |n: usize| [n as u8; 32];
        let visit = |n: usize| reads.begin(key(n), true);
        let visits: Vec<Place> = (0..MAX_READS_VISITORS).map(|n| visit(n / 2).unwrap()).collect();
        assert_eq!(visit(0).unwrap_err().kind(), Kind::TooMany);
        assert_eq!(visit(200).unwrap_err().kind(), Kind::Unavailable);
        let rest: Vec<Place> =
            (visits.len()..MAX_READS).map(|n| reads.begin(key(100 + n / 4), false).unwrap()).collect();
        assert_eq!(reads.begin(key(255), false).unwrap_err().kind(), Kind::Unavailable);
        drop((visits, rest));
        assert!(reads.places.are_free());
        assert!(visit(200).is_ok());
    }
}
