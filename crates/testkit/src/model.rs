//! A stand-in for an OpenAI-compatible model.
//!
//! A gateway's answers are a poor witness of delivery: several texts of one
//! chat may be merged into one turn, and a text that arrives during a turn cuts
//! it. What reaches the model is the truth, so the [`Model`] keeps every turn.
//!
//! How hermes talks to a model, seen with 0.17.0, 0.18.2 and 0.19.0:
//!
//! - a turn is a streaming `POST /v1/chat/completions` with tools; the whole
//!   history comes along each time. A request without both is an auxiliary one
//!   (the title of a new chat; 0.19.0 can switch it off, the others cannot);
//! - user messages with no answer between them are joined: a turn that was cut
//!   comes again as `first\n\nsecond`. [`Turn::new_text`] is only the new part;
//! - two conversations that begin at once in a process that has just started may fail over
//!   each other in its model client (it builds its classes with the first answer it reads;
//!   `PydanticUserError`). The agent then asks once more, word for word, under the same key:
//!   that is its own affair, and no second arrival;
//! - texts that waited for a turn to end are joined with one newline (0.17.0);
//! - 0.19.0 appends a `[System note: …]` to the first text ever; it is left out
//!   of all texts here;
//! - before the first turn of a chat it probes `/api/v1/models`, `/api/tags`,
//!   `/v1/props`, `/props`, `/version`; 404 is a good answer to all of them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::process::eventually;

/// Name of the one model there is.
pub const MODEL_NAME: &str = "test-model";

/// Largest request taken; a long chat with tools is far below it.
const BODY_LIMIT: usize = 64 << 20;

/// What an auxiliary request (a chat's title) is answered with.
const AUXILIARY_REPLY: &str = "A title";

/// What became of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The model has not answered yet.
    Running,
    /// The whole answer was handed to the client.
    Answered,
    /// The client went away before the answer.
    Cut,
}

/// One request for a turn.
#[derive(Clone, Debug)]
pub struct Turn {
    /// All user messages of the request, oldest first, without system notes.
    pub user_messages: Vec<String>,
    /// The part of the last user message that no earlier request had.
    pub new_text: String,
    /// What became of it so far.
    pub outcome: Outcome,
    /// When the request arrived.
    pub at: Instant,
    /// The request as it came.
    pub body: Value,
    /// The key it came under: each gateway has its own.
    asker: String,
}

type Reply = Arc<dyn Fn(&str) -> String + Send + Sync>;

struct Shared {
    turns: Mutex<Vec<Turn>>,
    reply: Mutex<Reply>,
    delay: Mutex<Duration>,
    /// Turns whose new text contains this wait; empty: none does.
    hang: watch::Sender<String>,
}

/// The running stand-in; it stops when dropped.
pub struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Model {
    /// Starts a model that answers `echo: <new text>` at once.
    ///
    /// # Panics
    ///
    /// When no port of the loopback address can be had.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind a port for the model");
        let address = listener.local_addr().expect("address of a bound socket");
        let shared = Arc::new(Shared {
            turns: Mutex::default(),
            reply: Mutex::new(Arc::new(|text: &str| format!("echo: {text}"))),
            delay: Mutex::default(),
            hang: watch::Sender::default(),
        });
        let routes = Router::new()
            .route("/v1/models", get(models))
            .route("/v1/chat/completions", post(complete))
            .layer(DefaultBodyLimit::max(BODY_LIMIT))
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            axum::serve(listener, routes).await.expect("serve the model");
        });
        Self { address, shared, server }
    }

    /// The base URL for a gateway's `model.base_url`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Chooses what is answered; the argument is the turn's new text.
    pub fn reply_with(&self, reply: impl Fn(&str) -> String + Send + Sync + 'static) {
        *locked(&self.shared.reply) = Arc::new(reply);
    }

    /// Makes every later turn take this long.
    pub fn delay(&self, delay: Duration) {
        *locked(&self.shared.delay) = delay;
    }

    /// Holds every turn whose new text contains `marker` until [`Self::release`].
    pub fn hang_on(&self, marker: &str) {
        self.shared.hang.send_replace(marker.to_owned());
    }

    /// Lets held turns be answered and holds none from now on.
    pub fn release(&self) {
        self.shared.hang.send_replace(String::new());
    }

    /// Every turn so far, in the order of arrival.
    pub fn turns(&self) -> Vec<Turn> {
        locked(&self.shared.turns).clone()
    }

    /// The new text of every turn so far, in the order of arrival.
    pub fn texts(&self) -> Vec<String> {
        locked(&self.shared.turns).iter().map(|turn| turn.new_text.clone()).collect()
    }

    /// How often `text` arrived as something new, alone or merged with others.
    pub fn arrivals(&self, text: &str) -> usize {
        self.texts().iter().map(|new| new.matches(text).count()).sum()
    }

    /// Those of `texts` that arrived, in the order of their first arrival.
    pub fn order_of<'a>(&self, texts: &[&'a str]) -> Vec<&'a str> {
        let all = self.texts().join("\n");
        let mut found: Vec<_> =
            texts.iter().filter_map(|text| all.find(text).map(|at| (at, *text))).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, text)| text).collect()
    }

    /// Outcome of the first turn whose new text contains `text`.
    pub fn outcome(&self, text: &str) -> Option<Outcome> {
        let turns = self.turns();
        let turn = turns.iter().find(|turn| turn.new_text.contains(text))?;
        Some(turn.outcome)
    }

    /// Waits until a turn with `text` arrived.
    ///
    /// # Panics
    ///
    /// When none does within `limit`.
    pub async fn wait_for_text(&self, text: &str, limit: Duration) {
        let what = format!("{text:?} at the model");
        eventually(&what, limit, || (self.arrivals(text) > 0).then_some(())).await;
    }

    /// Waits until the turn with `text` has this outcome.
    ///
    /// # Panics
    ///
    /// When it does not within `limit`.
    pub async fn wait_for_outcome(&self, text: &str, outcome: Outcome, limit: Duration) {
        let what = format!("turn with {text:?} {outcome:?}");
        eventually(&what, limit, || (self.outcome(text) == Some(outcome)).then_some(())).await;
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Marks its turn as cut when it is dropped before the answer: the server drops
/// the handler with it as soon as the client's connection is gone.
struct Running {
    shared: Arc<Shared>,
    index: usize,
}

impl Running {
    fn end(&self, outcome: Outcome) {
        let mut turns = locked(&self.shared.turns);
        let turn = &mut turns[self.index];
        if turn.outcome == Outcome::Running {
            turn.outcome = outcome;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end(Outcome::Cut);
    }
}

async fn models() -> Json<Value> {
    Json(json!({"object": "list", "data": [{"id": MODEL_NAME, "object": "model"}]}))
}

async fn complete(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let streaming = body["stream"] == Value::Bool(true);
    let with_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    if !streaming && !with_tools {
        return whole(AUXILIARY_REPLY);
    }
    let asker = headers.get(AUTHORIZATION).and_then(|key| key.to_str().ok()).unwrap_or_default();
    if let Some(text) = asked_before(&shared, asker, &body) {
        let reply = Arc::clone(&locked(&shared.reply))(&text);
        return if streaming { streamed(&reply) } else { whole(&reply) };
    }
    let (running, text) = record(&shared, asker, body);
    let delay = *locked(&shared.delay);
    sleep(delay).await;
    let mut hang = shared.hang.subscribe();
    let free = hang.wait_for(|marker| marker.is_empty() || !text.contains(marker.as_str())).await;
    drop(free.expect("the sender lives as long as the model"));
    let reply = Arc::clone(&locked(&shared.reply));
    let reply = reply(&text);
    running.end(Outcome::Answered);
    if streaming { streamed(&reply) } else { whole(&reply) }
}

/// The new text of a turn that was answered, and that its agent asks for once more, word for word.
/// A text that was delivered twice looks different: the first one is in the history by then.
fn asked_before(shared: &Shared, asker: &str, body: &Value) -> Option<String> {
    let turns = locked(&shared.turns);
    let same = |turn: &&Turn| turn.asker == asker && turn.body["messages"] == body["messages"];
    let before =
        turns.iter().find(|turn| !asker.is_empty() && turn.outcome == Outcome::Answered && same(turn));
    before.map(|turn| turn.new_text.clone())
}

fn record(shared: &Arc<Shared>, asker: &str, body: Value) -> (Running, String) {
    let user_messages = user_messages(&body);
    let mut turns = locked(&shared.turns);
    let new_text = new_text(&turns, &user_messages);
    let index = turns.len();
    turns.push(Turn {
        user_messages,
        new_text: new_text.clone(),
        outcome: Outcome::Running,
        at: Instant::now(),
        body,
        asker: asker.to_owned(),
    });
    let shared = Arc::clone(shared);
    (Running { shared, index }, new_text)
}

/// The last user message without what an earlier request of the same chat
/// already showed as its last one.
fn new_text(earlier: &[Turn], messages: &[String]) -> String {
    let Some((last, history)) = messages.split_last() else {
        return String::new();
    };
    let carried = earlier.iter().rev().find_map(|turn| {
        let (before, past) = turn.user_messages.split_last()?;
        let rest = last.strip_prefix(before.as_str())?.strip_prefix("\n\n")?;
        (past == history).then_some(rest)
    });
    carried.unwrap_or(last).to_owned()
}

fn user_messages(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array();
    messages
        .into_iter()
        .flatten()
        .filter(|message| message["role"] == "user")
        .map(|message| without_notes(&content_text(&message["content"])))
        .collect()
}

/// Content is a string, or a list of parts of which some have text.
fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<_> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// Cuts out every `[System note: …]`, brackets inside it included.
fn without_notes(text: &str) -> String {
    let mut kept = text.to_owned();
    while let Some(start) = kept.find("[System note:") {
        let mut depth = 0_i32;
        let end = kept[start..].char_indices().find_map(|(at, letter)| {
            depth += i32::from(letter == '[') - i32::from(letter == ']');
            (depth == 0).then_some(start + at + 1)
        });
        kept.replace_range(start..end.unwrap_or(kept.len()), "");
    }
    kept.trim().to_owned()
}

fn whole(text: &str) -> Response {
    let message = json!({"role": "assistant", "content": text});
    let mut body = envelope("chat.completion");
    body["choices"] = json!([{"index": 0, "message": message, "finish_reason": "stop"}]);
    body["usage"] = usage();
    Json(body).into_response()
}

fn streamed(text: &str) -> Response {
    let delta = json!({"role": "assistant", "content": text});
    let mut first = envelope("chat.completion.chunk");
    first["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": null}]);
    let mut last = envelope("chat.completion.chunk");
    last["choices"] = json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]);
    last["usage"] = usage();
    let body = format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n");
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn envelope(object: &str) -> Value {
    json!({"id": "turn", "object": object, "created": 0, "model": MODEL_NAME})
}

fn usage() -> Value {
    json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2})
}

/// A poisoned lock only means that another test failed first.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
