//! The JSON API of the web chat: post, edit, read, follow, interrupt.

use super::follow::Reader;
use super::guide::Guides;
use super::hub::Hub;
use super::normalize::{BOT, NAME};
use super::page;
use super::read::{PAGE, Reads};
use super::room::person_of;
use super::speak::{Api, Post, Said};
use super::verify;
use super::visit::OpenDoors;
use crate::admission::Admission;
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Result};
use angelia_core::limit::{GcraOf, Rate};
use angelia_core::limit_per_address::Address;
use angelia_core::ports::Ports;
use angelia_core::store::{Guest, Person, Unrelayed};
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, FromRequest, Path, Query, Request, State};
use axum::http::header::{CACHE_CONTROL, RETRY_AFTER};
use axum::http::{Extensions, HeaderMap, StatusCode};
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Longest text a person may post.
pub const MAX_POST_CHARS: usize = 8_000;
/// Largest request body: the longest text, escaped, with room for its ids.
const MAX_BODY: usize = 64 * 1024;
/// Longest id a client may give to a post.
const MAX_CLIENT_ID: usize = 64;
/// Files named in one post, and how long their names are: a few lines of a page.
const MAX_FILES: usize = 8;
const MAX_FILE_NAME: usize = 200;
/// How long a body may take to arrive: plenty for 64 KiB, short for whoever
/// only wants to hold a socket.
const BODY_WITHIN: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(15);

angelia_contract::limits! {
    /// More than write within a minute. Beyond it whoever has rested most begins anew.
    const MAX_PACED: usize = 10_000, count "people of the web chat whose pace is remembered";
}

/// What an edit may change.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    text: String,
}

/// From where on somebody reads, and whether they want agents' lines as HTML.
#[derive(Clone, Copy, Deserialize)]
struct Reading {
    #[serde(default)]
    after: i64,
    #[serde(default)]
    html: u8,
}

/// Somebody who wants to come into an open room.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Enter {
    #[serde(default)]
    name: Option<String>,
}

/// What the web chat is made of.
pub struct Setup {
    /// Where lines, people and inboxes are.
    pub ports: Ports,
    /// Whoever reads live.
    pub hub: Arc<Hub>,
    /// Who decides whose message it is.
    pub admission: Arc<dyn Admission>,
    /// Whether sources carry `is_bot` and `message_is_edit`.
    pub source_flags: bool,
    /// Rooms anybody may enter.
    pub open_rooms: Vec<String>,
    /// What rooms show to whoever brings an agent.
    pub guides: Arc<Guides>,
    /// How fast one person may post, edit and stop.
    pub pace: Rate,
}

/// The page at `/chat` and the routes below `/chat/api`.
pub fn routes(setup: Setup) -> Router {
    let Setup { ports, hub, admission, source_flags, open_rooms, guides, pace } = setup;
    let posts = parking_lot::Mutex::new(GcraOf::new(MAX_PACED));
    let (bot, doors) = (BotKey::new(NAME, BOT), OpenDoors::new(open_rooms));
    let (linking, reads) = (Mutex::default(), Reads::default());
    let api = Api { ports, hub, admission, source_flags, bot, linking, doors, guides, reads, pace, posts };
    Router::new()
        .route("/chat/api/me", get(me))
        .route("/chat/api/open", get(open_rooms_there_are))
        .route("/chat/api/rooms/{room}/enter", post(enter))
        .route("/chat/api/rooms/{room}/messages", post(post_line).get(read_lines))
        .route("/chat/api/rooms/{room}/messages/{id}", put(edit_line))
        .route("/chat/api/rooms/{room}/messages/{id}/story", get(story))
        .route("/chat/api/rooms/{room}/events", get(follow))
        .route("/chat/api/rooms/{room}/interrupt", post(stop))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(Arc::new(api))
        .merge(page::routes())
}

/// What is answered as JSON. It holds what people write and the keys they get:
/// nobody on the way keeps it.
struct Answer(StatusCode, Value);

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        (self.0, [(CACHE_CONTROL, "no-store")], Json(self.1)).into_response()
    }
}

/// Why something is not done, and when to try again.
struct Refusal(StatusCode, Option<Duration>, String);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = StatusCode::from_u16(error.kind().http_status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self(status, error.retry_after(), error.to_string())
    }
}

impl From<QueryRejection> for Refusal {
    fn from(rejection: QueryRejection) -> Self {
        Self(rejection.status(), None, rejection.body_text())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self(status, again, why) = self;
        let again = again.map(|wait| [(RETRY_AFTER, whole_seconds(wait).to_string())]);
        (status, again, Json(json!({ "error": why }))).into_response()
    }
}

type Answered = Result<Answer, Refusal>;

/// Who the holder of a key is, and how their room stands.
async fn me(State(api): State<Arc<Api>>, headers: HeaderMap) -> Answered {
    let Guest { person, alone, visiting, .. } =
        verify::someone(&*api.ports.lines, verify::key(&headers)?).await?;
    let agent = api.is_agent_present(&person).map(|connected| json!({ "connected": connected }));
    let guide = api.guides.of(&person.room).map(|lines| json!({ "lines": lines }));
    let private = person_of(&person.room).is_some();
    let Person { room, user } = person;
    let mut me = json!({
        "room": room, "user": user, "private": private, "guest": visiting, "alone": alone,
        "agent": agent, "guide": guide,
    });
    if let Some(command) = api.guides.explain() {
        me["explain"] = command.into();
    }
    Ok(Answer(StatusCode::OK, me))
}

async fn open_rooms_there_are(State(api): State<Arc<Api>>) -> Answer {
    Answer(StatusCode::OK, json!({ "rooms": api.doors.rooms() }))
}

async fn enter(State(api): State<Arc<Api>>, Path(room): Path<String>, request: Request) -> Answered {
    // Asked first: for strangers at a closed door nothing is held.
    api.doors.check_open(&room)?;
    let from = peer(request.extensions());
    let Enter { name } = read(&body(request).await?, r#"{"name": "ann"}"#)?;
    let (key, person) = api.enter(&room, from, name.as_deref()).await?;
    let entered = json!({ "key": key.expose(), "room": person.room, "user": person.user });
    Ok(Answer(StatusCode::CREATED, entered))
}

async fn story(
    State(api): State<Arc<Api>>,
    Path((room, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> Answered {
    verify::guest(&*api.ports.lines, &headers, &room).await?;
    let told = serde_json::to_value(api.story(&room, &id).await?);
    Ok(Answer(StatusCode::OK, told.map_err(|e| Error::internal(e.to_string()))?))
}

async fn post_line(State(api): State<Arc<Api>>, Path(room): Path<String>, request: Request) -> Answered {
    let from = peer(request.extensions());
    let (guest, body) = received(&api, &room, request).await?;
    Ok(posted(api.post(guest, from, read_post(&body)?).await?))
}

async fn edit_line(
    State(api): State<Arc<Api>>,
    Path((room, id)): Path<(String, String)>,
    request: Request,
) -> Answered {
    let from = peer(request.extensions());
    let (guest, body) = received(&api, &room, request).await?;
    let Edit { text } = read(&body, r#"{"text": "hello"}"#)?;
    check_text(&text)?;
    let revised = api.edit(guest, from, &id, text).await?;
    let mut answer = json!({ "message_id": id, "replaced": revised.is_ok() });
    if let Err((reason, hint)) = revised {
        answer["reason"] = reason.into();
        answer["hint"] = hint.into();
    }
    Ok(Answer(StatusCode::OK, answer))
}

async fn read_lines(
    State(api): State<Arc<Api>>,
    Path(room): Path<String>,
    reading: Result<Query<Reading>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let Query(Reading { after, html }) = reading?;
    let key = verify::key(&headers)?;
    let guest = verify::holder(&*api.ports.lines, key, &room).await?;
    // Held until the answer is gone: it lies in memory for as long.
    let place = api.reads.begin(key, guest.visiting)?;
    let lines = api.ports.lines.lines(&room, after, PAGE).await?;
    Ok(api.reads.answer(lines, html != 0, place).await?)
}

async fn stop(
    State(api): State<Arc<Api>>,
    Path(room): Path<String>,
    headers: HeaderMap,
    extensions: Extensions,
) -> Answered {
    let guest = verify::guest(&*api.ports.lines, &headers, &room).await?;
    let message_id = api.stop(guest, peer(&extensions)).await?;
    Ok(Answer(StatusCode::ACCEPTED, json!({ "message_id": message_id })))
}

async fn follow(
    State(api): State<Arc<Api>>,
    Path(room): Path<String>,
    reading: Result<Query<Reading>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let Query(Reading { after, html }) = reading?;
    let key = verify::key(&headers)?;
    let Guest { person, visiting, .. } = verify::holder(&*api.ports.lines, key, &room).await?;
    let happenings = api.hub.read(&person, visiting)?;
    // A browser that reconnects says where it was.
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let lines = api.ports.lines.clone();
    let is_present = Box::new(move || api.is_agent_present(&person));
    let reader = Reader::new(lines, happenings, key, room, resumed.unwrap_or(after), is_present);
    let events = reader.with_html(html != 0).stream();
    Ok(Sse::new(events).keep_alive(sse::KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// Where a request came from, if the listener knows that of whoever is there.
fn peer(extensions: &Extensions) -> Address {
    Address::of(extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip()))
}

/// Who sent a request, and its body. The key comes first: for strangers nothing
/// is held, however much they send and however slowly.
async fn received(api: &Api, room: &str, request: Request) -> Result<(Guest, Bytes), Refusal> {
    let guest = verify::guest(&*api.ports.lines, request.headers(), room).await?;
    Ok((guest, body(request).await?))
}

/// A request's body, within bounds of size and time.
async fn body(request: Request) -> Result<Bytes, Refusal> {
    let late = "the body took too long to arrive; send it again";
    match timeout(BODY_WITHIN, Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(rejection)) => Err(Refusal(rejection.status(), None, rejection.body_text())),
        Err(_) => Err(Refusal(StatusCode::REQUEST_TIMEOUT, None, late.into())),
    }
}

fn read<T: DeserializeOwned>(body: &[u8], example: &str) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| Error::invalid(format!("send JSON like {example}: {error}")))
}

fn read_post(body: &[u8]) -> Result<Post> {
    let post: Post = read(body, r#"{"text": "hello", "client_id": "1"}"#)?;
    check_files(&post.files)?;
    if post.files.is_empty() || !post.text.is_empty() {
        check_text(&post.text)?;
    }
    let ids = [&post.client_id, &post.reply_to];
    if ids.into_iter().flatten().any(|id| id.is_empty() || id.len() > MAX_CLIENT_ID) {
        return Err(Error::invalid(format!("client_id and reply_to have 1 to {MAX_CLIENT_ID} bytes")));
    }
    Ok(post)
}

fn check_files(files: &[Unrelayed]) -> Result<()> {
    let good = |file: &Unrelayed| {
        let name = file.name.chars().count();
        (1..=MAX_FILE_NAME).contains(&name)
            && !file.name.contains(char::is_control)
            && file.mime.len() <= MAX_FILE_NAME
    };
    if files.len() > MAX_FILES || !files.iter().all(good) {
        return Err(Error::invalid(format!(
            "files are up to {MAX_FILES}, with a name of 1 to {MAX_FILE_NAME} characters each; \
             only their names are kept"
        )));
    }
    Ok(())
}

fn check_text(text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::invalid("the text is empty"));
    }
    if text.chars().count() > MAX_POST_CHARS {
        return Err(Error::invalid(format!("the text is longer than {MAX_POST_CHARS} characters")));
    }
    Ok(())
}

/// What a post's writer is told.
fn posted(said: Said) -> Answer {
    let status = if said.posted.new { StatusCode::CREATED } else { StatusCode::OK };
    let mut answer = json!({ "message_id": said.posted.message_id });
    if let Some((reason, hint)) = said.undelivered {
        answer["undelivered"] = reason.into();
        answer["hint"] = hint.into();
    }
    if let Some(text) = said.answer {
        answer["answer"] = text.into();
    }
    Answer(status, answer)
}

/// A pause in seconds, as the header has it: whoever keeps to it is not too early.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_millis().div_ceil(1_000).max(1) as u64
}
