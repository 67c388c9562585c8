//! The JSON API of the web chat: post, edit, read, follow, interrupt.

use super::follow::{PAGE, Reader};
use super::hub::Hub;
use super::normalize::{BOT, NAME};
use super::speak::{Api, Said};
use super::verify;
use crate::admit::Admit;
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Result};
use angelia_core::store::{Guest, Store};
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
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
/// How long a body may take to arrive: plenty for 64 KiB, short for whoever
/// only wants to hold a socket.
const BODY_WITHIN: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A post, as a client sends it. Who wrote it is not among its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Post {
    text: String,
    #[serde(default)]
    client_id: Option<String>,
    #[serde(default)]
    reply_to: Option<String>,
}

/// What an edit may change.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    text: String,
}

#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: i64,
}

type Answer = Result<(StatusCode, Value)>;

/// The routes below `/chat/api`.
pub fn routes(store: Arc<dyn Store>, hub: Arc<Hub>, admit: Arc<dyn Admit>, source_flags: bool) -> Router {
    let bot = BotKey::new(NAME, BOT);
    Router::new()
        .route("/chat/api/rooms/{room}/messages", post(post_line).get(read_lines))
        .route("/chat/api/rooms/{room}/messages/{id}", put(edit_line))
        .route("/chat/api/rooms/{room}/events", get(follow))
        .route("/chat/api/rooms/{room}/interrupt", post(stop))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(Arc::new(Api { store, hub, admit, source_flags, bot, linking: Mutex::default() }))
}

async fn post_line(State(api): State<Arc<Api>>, Path(room): Path<String>, request: Request) -> Response {
    let (guest, body) = match received(&api, &room, request).await {
        Ok(received) => received,
        Err(rejection) => return rejection,
    };
    let post = async {
        let Post { text, client_id, reply_to } = read_post(&body)?;
        Ok(posted(api.post(guest, text, reply_to, client_id).await?))
    };
    answer(post.await)
}

async fn edit_line(
    State(api): State<Arc<Api>>,
    Path((room, id)): Path<(String, String)>,
    request: Request,
) -> Response {
    let (guest, body) = match received(&api, &room, request).await {
        Ok(received) => received,
        Err(rejection) => return rejection,
    };
    let edit = async {
        let Edit { text } = read(&body, r#"{"text": "hello"}"#)?;
        check_text(&text)?;
        let revised = api.edit(guest, &id, text).await?;
        let mut answer = json!({ "message_id": id, "replaced": revised.is_ok() });
        if let Err((reason, hint)) = revised {
            answer["reason"] = reason.into();
            answer["hint"] = hint.into();
        }
        Ok((StatusCode::OK, answer))
    };
    answer(edit.await)
}

async fn read_lines(
    State(api): State<Arc<Api>>,
    Path(room): Path<String>,
    after: Result<Query<After>, QueryRejection>,
    headers: HeaderMap,
) -> Response {
    let after = match position(after) {
        Ok(after) => after,
        Err(rejection) => return rejection,
    };
    let read = async {
        verify::guest(&*api.store, &headers, &room).await?;
        let lines = api.store.lines(&room, after, PAGE).await?;
        Ok((StatusCode::OK, json!({ "messages": lines })))
    };
    answer(read.await)
}

async fn stop(State(api): State<Arc<Api>>, Path(room): Path<String>, headers: HeaderMap) -> Response {
    let stop = async {
        let guest = verify::guest(&*api.store, &headers, &room).await?;
        let message_id = api.stop(guest.person).await?;
        Ok((StatusCode::ACCEPTED, json!({ "message_id": message_id })))
    };
    answer(stop.await)
}

async fn follow(
    State(api): State<Arc<Api>>,
    Path(room): Path<String>,
    after: Result<Query<After>, QueryRejection>,
    headers: HeaderMap,
) -> Response {
    let after = match position(after) {
        Ok(after) => after,
        Err(rejection) => return rejection,
    };
    let take_seat = async {
        let key = verify::key(&headers)?;
        let guest = verify::holder(&*api.store, key, &room).await?;
        Ok((key, api.hub.read(&guest.person)?))
    };
    let (key, seat) = match take_seat.await {
        Ok(taken) => taken,
        Err(error) => return answer(Err(error)),
    };
    // A browser that reconnects says where it was.
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let reader = Reader::new(api.store.clone(), seat, key, room, resumed.unwrap_or(after));
    Sse::new(reader.stream()).keep_alive(sse::KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

/// Who sent a request, and its body. The key comes first: for strangers nothing
/// is held, however much they send and however slowly.
async fn received(api: &Api, room: &str, request: Request) -> Result<(Guest, Bytes), Response> {
    let guest = verify::guest(&*api.store, request.headers(), room).await;
    let guest = guest.map_err(|error| answer(Err(error)))?;
    match timeout(BODY_WITHIN, Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => Ok((guest, body)),
        Ok(Err(rejection)) => Err(rejected(rejection.status(), &rejection.body_text())),
        Err(_) => {
            Err(rejected(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive; send it again"))
        }
    }
}

fn read<T: DeserializeOwned>(body: &[u8], example: &str) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| Error::invalid(format!("send JSON like {example}: {error}")))
}

fn read_post(body: &[u8]) -> Result<Post> {
    let post: Post = read(body, r#"{"text": "hello", "client_id": "1"}"#)?;
    check_text(&post.text)?;
    let ids = [&post.client_id, &post.reply_to];
    if ids.into_iter().flatten().any(|id| id.is_empty() || id.len() > MAX_CLIENT_ID) {
        return Err(Error::invalid(format!("client_id and reply_to have 1 to {MAX_CLIENT_ID} bytes")));
    }
    Ok(post)
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
fn posted(said: Said) -> (StatusCode, Value) {
    let status = if said.posted.new { StatusCode::CREATED } else { StatusCode::OK };
    let mut answer = json!({ "message_id": said.posted.message_id });
    if let Some((reason, hint)) = said.undelivered {
        answer["undelivered"] = reason.into();
        answer["hint"] = hint.into();
    }
    if let Some(text) = said.answer {
        answer["answer"] = text.into();
    }
    (status, answer)
}

/// Where a reader continues, or why that cannot be read.
#[expect(clippy::result_large_err, reason = "the answer is ready to be returned")]
fn position(after: Result<Query<After>, QueryRejection>) -> Result<i64, Response> {
    after
        .map(|Query(After { after })| after)
        .map_err(|rejection| rejected(rejection.status(), &rejection.body_text()))
}

fn rejected(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}

fn answer(result: Answer) -> Response {
    match result {
        Ok((status, body)) => (status, Json(body)).into_response(),
        Err(error) => {
            let status = StatusCode::from_u16(error.kind().http_status());
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, Json(json!({ "error": error.to_string() }))).into_response()
        }
    }
}
