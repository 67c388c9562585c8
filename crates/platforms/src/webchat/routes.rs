//! The JSON API of the web chat: its addresses, what all of them work on, and how they answer.

use super::guide::Guides;
use super::hub::Hub;
use super::open_rooms::{self, OpenDoors};
use super::read::{Look, Reads};
use super::room::person_of;
use super::{BOT, NAME, commands, files, follow, ingest, page, press, read, story, verify};
use crate::admission::{Admission, Presence};
use crate::files::FileKeeper;
use angelia_core::directory::BotKey;
use angelia_core::error::Error;
use angelia_core::limit::{GcraOf, Rate};
use angelia_core::limit_per_address::Address;
use angelia_core::own_words::Language;
use angelia_core::ports::Ports;
use angelia_core::store::Guest;
use axum::extract::{ConnectInfo, DefaultBodyLimit, FromRequest, FromRequestParts, Query, Request, State};
use axum::http::header::{ACCEPT_LANGUAGE, CACHE_CONTROL, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, StatusCode};
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

/// Largest request body: the longest text, escaped, with room for its ids.
const MAX_BODY: usize = 64 * 1024;
/// How long a body may take to arrive: plenty for 64 KiB, short for whoever
/// only wants to hold a socket.
const BODY_WITHIN: Duration = Duration::from_secs(10);

angelia_contract::limits! {
    /// More than write within a minute. Beyond it whoever has rested most begins anew.
    const MAX_PACED: usize = 10_000, count "people of the web chat whose pace is remembered";
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
    /// Who keeps files, if there is a place for them.
    pub files: Option<Arc<dyn FileKeeper>>,
}

/// What the API works on.
pub(super) struct Api {
    pub(super) ports: Ports,
    pub(super) hub: Arc<Hub>,
    pub(super) admission: Arc<dyn Admission>,
    pub(super) source_flags: bool,
    pub(super) bot: BotKey,
    /// One `/link` at a time on this node: a repeated one must find the answer of the first. Sent
    /// through two nodes in the same moment, both are told that it worked; the store knows who used it.
    pub(super) linking: Mutex<()>,
    /// The rooms anybody may enter.
    pub(super) doors: OpenDoors,
    guides: Arc<Guides>,
    /// Who is being given lines.
    pub(super) reads: Reads,
    /// How fast people write, by room and name.
    pub(super) pace: Rate,
    /// By room and name.
    pub(super) posts: parking_lot::Mutex<GcraOf<(String, String)>>,
    /// Who keeps files, and who is sending and getting them.
    pub(super) files: Option<Arc<dyn FileKeeper>>,
    pub(super) transfers: files::Transfers,
}

/// The page at `/chat` and the routes below `/chat/api`.
pub fn routes(setup: Setup) -> Router {
    let Setup { ports, hub, admission, source_flags, open_rooms: open, guides, pace, files } = setup;
    let posts = parking_lot::Mutex::new(GcraOf::new(MAX_PACED));
    let (bot, doors) = (BotKey::new(NAME, BOT), OpenDoors::new(open));
    let (linking, reads, transfers) = (Mutex::default(), Reads::default(), files::Transfers::default());
    let api = Api {
        ports,
        hub,
        admission,
        source_flags,
        bot,
        linking,
        doors,
        guides,
        reads,
        pace,
        posts,
        files,
        transfers,
    };
    Router::new()
        .route("/chat/api/me", get(me))
        .route("/chat/api/open", get(open_rooms::list))
        .route("/chat/api/rooms/{room}/enter", post(open_rooms::enter))
        .route("/chat/api/rooms/{room}/messages", post(ingest::post).get(read::read))
        .route("/chat/api/rooms/{room}/messages/{id}", put(ingest::edit))
        .route("/chat/api/rooms/{room}/messages/{id}/story", get(story::story))
        .route("/chat/api/rooms/{room}/messages/{id}/press", post(press::press))
        .route("/chat/api/rooms/{room}/files", post(files::upload))
        .route("/chat/api/rooms/{room}/files/{id}", get(files::download))
        .route("/chat/api/rooms/{room}/commands", get(commands::list))
        .route("/chat/api/rooms/{room}/events", get(follow::follow))
        .route("/chat/api/rooms/{room}/interrupt", post(ingest::stop))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(Arc::new(api))
        .merge(page::routes())
}

/// What is answered as JSON. It holds what people write and the keys they get:
/// nobody on the way keeps it.
pub(super) struct Answer(pub(super) StatusCode, pub(super) Value);

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        (self.0, [(CACHE_CONTROL, "no-store")], Json(self.1)).into_response()
    }
}

/// Why something is not done, and when to try again.
pub(super) struct Refusal(StatusCode, Option<Duration>, String);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = StatusCode::from_u16(error.kind().http_status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self(status, error.retry_after(), error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self(status, again, why) = self;
        // Whoever keeps to it is not too early.
        let seconds = |wait: Duration| wait.as_millis().div_ceil(1_000).max(1).to_string();
        let again = again.map(|wait| [(RETRY_AFTER, seconds(wait))]);
        (status, again, Json(json!({ "error": why }))).into_response()
    }
}

pub(super) type Answered = Result<Answer, Refusal>;

/// From where on somebody reads, and whether they want agents' lines as HTML.
#[derive(Deserialize)]
pub(super) struct Reading {
    #[serde(default)]
    pub(super) after: i64,
    #[serde(default)]
    html: u8,
    #[serde(skip)]
    language: Language,
}

impl Reading {
    pub(super) fn look(&self) -> Look {
        Look { html: self.html != 0, language: self.language }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Reading {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let read = Query::from_request_parts(parts, state).await;
        let language = language(&parts.headers);
        read.map(|Query(reading)| Self { language, ..reading })
            .map_err(|bad| Refusal(bad.status(), None, bad.body_text()))
    }
}

/// What people are told of the agent of their room.
pub(super) fn told_of_agent(presence: Presence) -> Value {
    let mut told = json!({ "connected": presence == Presence::Here });
    if presence == Presence::Awaited {
        told["awaited"] = true.into();
    }
    told
}

/// Who the holder of a key is, and how their room stands.
async fn me(State(api): State<Arc<Api>>, headers: HeaderMap) -> Answered {
    let Guest { person, alone, visiting, .. } =
        verify::someone(&*api.ports.lines, verify::key(&headers)?).await?;
    let mut agent = api.agent(&person).await.map(told_of_agent);
    if let (Some(agent), Some(name)) = (&mut agent, api.agent_name(&person)) {
        agent["name"] = name.into();
    }
    let guide = api.guides.of(&person.room).map(|lines| json!({ "lines": lines }));
    let private = person_of(&person.room).is_some();
    let mut me = json!({
        "room": person.room, "user": person.user, "private": private, "guest": visiting, "alone": alone,
        "agent": agent, "guide": guide,
    });
    if let Some(command) = api.guides.explain() {
        me["explain"] = command.into();
    }
    Ok(Answer(StatusCode::OK, me))
}

/// In which language the sender of a request is told something.
pub(super) fn language(headers: &HeaderMap) -> Language {
    let wanted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    wanted.map(Language::of_accept).unwrap_or_default()
}

/// Where a request came from, if the listener knows that of whoever is there.
pub(super) fn peer(extensions: &Extensions) -> Address {
    Address::of(extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip()))
}

/// What a request's body says, within bounds of size and time.
pub(super) async fn body<T: DeserializeOwned>(request: Request, example: &str) -> Result<T, Refusal> {
    let late = "the body took too long to arrive; send it again";
    let body = match timeout(BODY_WITHIN, Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => body,
        Ok(Err(rejection)) => return Err(Refusal(rejection.status(), None, rejection.body_text())),
        Err(_) => return Err(Refusal(StatusCode::REQUEST_TIMEOUT, None, late.into())),
    };
    serde_json::from_slice(&body)
        .map_err(|error| Error::invalid(format!("send JSON like {example}: {error}")).into())
}
