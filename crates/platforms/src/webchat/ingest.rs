//! The JSON API of the web chat: post, read, follow, interrupt.

use super::hub::{Happening, Hub};
use super::normalize::{self, BOT, NAME};
use super::verify;
use crate::platform::Admit;
use angelia_contract::session_key::{KeyOptions, Rules, session_key};
use angelia_core::admission::Observed;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::inbox::EntryKind;
use angelia_core::store::{Line, NewEntry, NewLine, Person, Store};
use angelia_core::{clock, interrupt, secret};
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::Stream;
use serde::Deserialize;
use serde_json::json;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;

/// Longest text a person may post.
pub const MAX_POST_CHARS: usize = 8_000;
/// Largest request body: the longest text, escaped, with room for its ids.
const MAX_BODY: usize = 64 * 1024;
/// Longest id a client may give to a post.
const MAX_CLIENT_ID: usize = 64;
/// Lines in one answer.
const PAGE: usize = 200;
/// People who may follow rooms at the same time.
const MAX_READERS: usize = 2_000;
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What the API works on.
struct Api {
    store: Arc<dyn Store>,
    hub: Arc<Hub>,
    admit: Arc<dyn Admit>,
    source_flags: bool,
}

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

#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: i64,
}

/// The routes below `/chat/api`.
pub fn routes(store: Arc<dyn Store>, hub: Arc<Hub>, admit: Arc<dyn Admit>, source_flags: bool) -> Router {
    Router::new()
        .route("/chat/api/rooms/{room}/messages", post(post_line).get(read_lines))
        .route("/chat/api/rooms/{room}/events", get(follow))
        .route("/chat/api/rooms/{room}/interrupt", post(stop))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(Arc::new(Api { store, hub, admit, source_flags }))
}

async fn post_line(
    State(api): State<Arc<Api>>,
    Path(room): Path<String>,
    headers: HeaderMap,
    body: Result<bytes::Bytes, BytesRejection>,
) -> Response {
    match body {
        Ok(body) => answer(api.post(&room, &headers, &body).await),
        Err(rejection) => rejected(rejection.status(), &rejection.body_text()),
    }
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
        verify::person(&*api.store, &headers, &room).await?;
        let lines = api.store.lines(&room, after, PAGE).await?;
        Ok((StatusCode::OK, json!({ "messages": lines })))
    };
    answer(read.await)
}

async fn stop(State(api): State<Arc<Api>>, Path(room): Path<String>, headers: HeaderMap) -> Response {
    let stop = async {
        let person = verify::person(&*api.store, &headers, &room).await?;
        let line = api.line(person, "/stop".into(), None, None);
        let entry = api.entry(&line)?;
        api.store.append(entry).await?;
        Ok((StatusCode::ACCEPTED, json!({ "message_id": line.message_id })))
    };
    answer(stop.await)
}

impl Api {
    async fn post(
        &self,
        room: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<(StatusCode, serde_json::Value)> {
        let person = verify::person(&*self.store, headers, room).await?;
        let post = read_post(body)?;
        let line = self.line(person, post.text, post.reply_to, post.client_id);
        // A line that nobody receives is still a line of the room; its writer is told.
        let (entry, dropped) = match self.entry(&line) {
            Ok(entry) => (Some(entry), None),
            Err(error) if error.kind() == Kind::Forbidden => (None, Some(error.to_string())),
            Err(error) => return Err(error),
        };
        let posted = self.store.post_line(line, entry).await?;
        let status = if posted.new { StatusCode::CREATED } else { StatusCode::OK };
        let mut answer = json!({ "message_id": posted.message_id });
        if let Some(reason) = dropped {
            answer["undelivered"] = reason.into();
        }
        Ok((status, answer))
    }

    fn line(
        &self,
        person: Person,
        text: String,
        reply_to: Option<String>,
        client_id: Option<String>,
    ) -> NewLine {
        NewLine {
            room: person.room,
            message_id: format!("wp{}", secret::random_hex::<12>()),
            author: person.user,
            from_agent: false,
            text,
            reply_to,
            client_id,
            at: clock::wall(),
        }
    }

    /// The inbox entry a line makes, for the one instance it is admitted to.
    fn entry(&self, line: &NewLine) -> Result<NewEntry> {
        let places = [line.room.as_str(), "*"];
        let observed = Observed { platform: NAME, bot: BOT, places: &places, author: &line.author };
        let admitted =
            self.admit.admit(observed).map_err(|reason| Error::new(Kind::Forbidden, reason.as_str()))?;
        let event = normalize::event(line, self.source_flags);
        let body =
            serde_json::to_vec(&event).map_err(|_| Error::internal("the event could not be written"))?;
        let is_stop = interrupt::is_stop(&line.text);
        Ok(NewEntry {
            tenant: admitted.tenant,
            instance: admitted.instance,
            kind: if is_stop { EntryKind::Stop } else { EntryKind::Message },
            platform: NAME.into(),
            bot: BOT.into(),
            chat_id: event.source.chat_id.as_str().into(),
            message_id: line.message_id.clone(),
            session_key: session_key(&event.source, &KeyOptions::default(), Rules::Published).into(),
            body: body.into(),
            ahead: is_stop,
            received_at: line.at,
        })
    }
}

fn read_post(body: &[u8]) -> Result<Post> {
    let post: Post = serde_json::from_slice(body).map_err(|error| {
        Error::invalid(format!("send JSON like {{\"text\": \"hello\", \"client_id\": \"1\"}}: {error}"))
    })?;
    if post.text.trim().is_empty() {
        return Err(Error::invalid("the text is empty"));
    }
    if post.text.chars().count() > MAX_POST_CHARS {
        return Err(Error::invalid(format!("the text is longer than {MAX_POST_CHARS} characters")));
    }
    let ids = [&post.client_id, &post.reply_to];
    if ids.into_iter().flatten().any(|id| id.is_empty() || id.len() > MAX_CLIENT_ID) {
        return Err(Error::invalid(format!("client_id and reply_to have 1 to {MAX_CLIENT_ID} bytes")));
    }
    Ok(post)
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
    if let Err(error) = verify::person(&*api.store, &headers, &room).await {
        return answer(Err(error));
    }
    if api.hub.readers() >= MAX_READERS {
        return answer(Err(Error::unavailable("too many people are following rooms; try again later")));
    }
    // A browser that reconnects says where it was.
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let reader = Reader {
        happenings: api.hub.read(&room),
        store: api.store.clone(),
        room,
        after: resumed.unwrap_or(after),
        ready: VecDeque::new(),
        behind: true,
    };
    Sse::new(reader.stream()).keep_alive(sse::KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

/// One follower of a room: first what the store has, then what happens.
struct Reader {
    store: Arc<dyn Store>,
    happenings: broadcast::Receiver<Happening>,
    room: String,
    after: i64,
    ready: VecDeque<Line>,
    behind: bool,
}

impl Reader {
    fn stream(self) -> impl Stream<Item = std::result::Result<sse::Event, Infallible>> {
        futures_util::stream::unfold(self, |mut reader| async move {
            let event = reader.next().await?;
            Some((Ok(event), reader))
        })
    }

    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                self.after = line.id;
                return line_event(&line);
            }
            if self.behind {
                self.ready = self.store.lines(&self.room, self.after, PAGE).await.ok()?.into();
                self.behind = self.ready.len() == PAGE;
                continue;
            }
            match self.happenings.recv().await {
                Ok(Happening::Line(line)) if line.id > self.after => self.ready.push_back(line),
                Ok(Happening::Line(_)) => {}
                Ok(Happening::Typing) => return Some(sse::Event::default().event("typing").data("{}")),
                Err(broadcast::error::RecvError::Lagged(_)) => self.behind = true,
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

fn line_event(line: &Line) -> Option<sse::Event> {
    let kind = if line.edited { "edit" } else { "message" };
    sse::Event::default().event(kind).id(line.id.to_string()).json_data(line).ok()
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

fn answer(result: Result<(StatusCode, serde_json::Value)>) -> Response {
    match result {
        Ok((status, body)) => (status, Json(body)).into_response(),
        Err(error) => {
            let status = StatusCode::from_u16(error.kind().http_status());
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, Json(json!({ "error": error.to_string() }))).into_response()
        }
    }
}
