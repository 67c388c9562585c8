//! A stand-in for Discord that real clients accept, and a handle to drive it.
//!
//! It runs simcord behind a real HTTP API and a real gateway; the head of
//! `python/fake_discord/control.py` lists everything a test can order or read.
//! Ids are strings here, as on Discord's wire.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use crate::process::Process;
use crate::webchat::http_client;

mod interactions;
mod records;

pub use interactions::{Followup, Interaction, Volley};
pub use records::{Guild, Message, Request};
use records::{message, request, text};

/// How long Python may take to start on a busy machine.
const START: Duration = Duration::from_secs(60);

/// How often a state is read while waiting for it.
const POLL: Duration = Duration::from_millis(50);

/// The Python that has simcord, discord.py and aiohttp.
///
/// # Panics
///
/// When it is not installed.
pub fn oracle_python() -> PathBuf {
    let folder = std::env::var_os("ANGELIA_TEST_ENV")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.test-env"), PathBuf::from);
    let python = folder.join("oracles/bin/python");
    assert!(python.exists(), "{} is missing: run ./test once, it installs it", python.display());
    python
}

/// The running stand-in; it ends when dropped.
#[derive(Debug)]
pub struct FakeDiscord {
    url: String,
    gateway_url: String,
    token: String,
    bot_id: String,
    public_key: String,
    http: reqwest::Client,
    _process: Process,
}

impl FakeDiscord {
    /// Starts one with its log in `folder`; `options` are those of
    /// `python/fake_discord/options.py`.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn start(folder: &Path, options: &Value) -> Self {
        fs::create_dir_all(folder).expect("create the stand-in's folder");
        let log = folder.join("discord.log");
        // A restart appends: the line of the run before must not be found.
        let _ = fs::remove_file(&log);
        let mut command = Command::new(oracle_python());
        command
            .args(["-m", "fake_discord", &options.to_string()])
            .env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("python"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let mut process = Process::spawn("fake Discord", command, &log);
        let ready = || {
            let text = fs::read_to_string(&log).ok()?;
            text.lines().find_map(|line| serde_json::from_str::<Value>(line).ok())
        };
        process.wait_until("the line that says it is ready", START, || ready().is_some()).await;
        let ready = ready().unwrap();
        Self {
            url: text(&ready, "url"),
            gateway_url: text(&ready, "gateway_url"),
            token: text(&ready, "token"),
            bot_id: text(&ready, "bot_id"),
            public_key: text(&ready, "public_key"),
            http: http_client(),
            _process: process,
        }
    }

    /// Where it listens; the API is below `/api/v10`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where its gateway is.
    pub fn gateway_url(&self) -> &str {
        &self.gateway_url
    }

    /// The bot's token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The bot's user id, which is also its application's.
    pub fn bot_id(&self) -> &str {
        &self.bot_id
    }

    /// A person.
    pub async fn user(&self, name: &str) -> String {
        self.make("user", json!({ "name": name })).await
    }

    /// Another bot.
    pub async fn other_bot(&self, name: &str) -> String {
        self.make("user", json!({ "name": name, "bot": true })).await
    }

    /// A guild with the bot in it.
    pub async fn guild(&self, name: &str) -> Guild {
        let answer = self.order("guild", json!({ "name": name })).await;
        Guild { id: text(&answer, "id"), role: text(&answer, "role") }
    }

    /// A text channel.
    pub async fn channel(&self, guild: &str, name: &str) -> String {
        self.make("channel", json!({ "guild": guild, "name": name })).await
    }

    /// A public thread that `owner` starts, from a message or on its own.
    pub async fn thread(&self, parent: &str, name: &str, owner: &str, message: Option<&str>) -> String {
        let ask = json!({ "parent": parent, "name": name, "owner": owner, "message": message });
        self.make("thread", ask).await
    }

    /// The channel of the bot's direct messages with a person.
    pub async fn dm(&self, user: &str) -> String {
        self.make("dm", json!({ "user": user })).await
    }

    /// Somebody writes; returns the message's id.
    pub async fn say(&self, channel: &str, author: &str, content: &str) -> String {
        self.make("say", json!({ "channel": channel, "author": author, "content": content })).await
    }

    /// Somebody writes to the bot.
    pub async fn mention(&self, channel: &str, author: &str, content: &str) -> String {
        let ask = json!({ "channel": channel, "author": author, "content": content, "mention_bot": true });
        self.make("say", ask).await
    }

    /// Somebody writes many messages; `{n}` in the content is the number, from 0.
    pub async fn say_many(&self, channel: &str, author: &str, content: &str, count: usize) -> Vec<String> {
        let ask = json!({ "channel": channel, "author": author, "content": content, "count": count });
        let answer = self.order("say", ask).await;
        let ids = answer["ids"].as_array().into_iter().flatten();
        ids.filter_map(|id| id.as_str().map(str::to_owned)).collect()
    }

    /// Somebody changes a message.
    pub async fn edit(&self, channel: &str, message: &str, content: &str) {
        self.order("edit", json!({ "channel": channel, "message": message, "content": content })).await;
    }

    /// Somebody takes a message back.
    pub async fn delete(&self, channel: &str, message: &str) {
        self.order("delete", json!({ "channel": channel, "message": message })).await;
    }

    /// Makes something (`user`, `guild`, `channel`, `thread`, `dm`, `role`,
    /// `say`) with everything that can be asked for; returns its id.
    pub async fn make(&self, what: &str, ask: Value) -> String {
        text(&self.order(what, ask).await, "id")
    }

    /// Cuts every gateway connection, or closes it with a code.
    pub async fn close_gateway(&self, code: Option<u16>) {
        self.order("gateway/close", json!({ "code": code })).await;
    }

    /// Asks every client to come back (op 7).
    pub async fn ask_reconnect(&self) {
        self.order("gateway/reconnect", json!({})).await;
    }

    /// Tells every client that its session is invalid (op 9); one that is not
    /// resumable is gone.
    pub async fn invalidate(&self, resumable: bool) {
        self.order("gateway/invalidate", json!({ "resumable": resumable })).await;
    }

    /// The connections of now acknowledge no more heartbeats; mute ones are
    /// dead in every way and still open.
    pub async fn zombify(&self, mute: bool) {
        self.order("gateway/zombie", json!({ "mute": mute })).await;
    }

    /// Refuses the next resumes, with op 9 or with a close code.
    pub async fn refuse_resumes(&self, count: usize, code: Option<u16>) {
        self.order("gateway/refuse_resumes", json!({ "count": count, "code": code })).await;
    }

    /// Ends every session that has no connection.
    pub async fn expire_sessions(&self) {
        self.order("gateway/expire", json!({})).await;
    }

    /// Cuts new connections for a while, and REST calls with them if so asked.
    pub async fn refuse_connections(&self, seconds: f64, rest: bool) {
        self.order("gateway/refuse", json!({ "seconds": seconds, "rest": rest })).await;
    }

    /// Orders a fault for REST calls; see the control API.
    pub async fn fault(&self, fault: Value) {
        self.order("fault", fault).await;
    }

    /// Spoils the next events of a kind; see the control API.
    pub async fn mangle(&self, rule: Value) {
        self.order("mangle", rule).await;
    }

    /// Changes options while it runs.
    pub async fn set(&self, options: Value) {
        self.order("options", options).await;
    }

    /// Any order of the control API.
    ///
    /// # Panics
    ///
    /// When it is refused.
    pub async fn order(&self, what: &str, ask: Value) -> Value {
        let url = format!("{}/_fake/{what}", self.url);
        let answer = self.http.post(url).json(&ask).send().await.expect("the stand-in answers");
        let status = answer.status();
        let body = answer.json::<Value>().await.unwrap_or_default();
        assert!(status.is_success(), "{what} {ask}: {status} {body}");
        body
    }

    /// A channel as it stands, oldest first.
    pub async fn messages(&self, channel: &str) -> Vec<Message> {
        let shown = self.read(&format!("messages?channel={channel}")).await;
        shown.as_array().into_iter().flatten().map(message).collect()
    }

    /// The threads below a channel, oldest first, as (id, name).
    pub async fn threads(&self, channel: &str) -> Vec<(String, String)> {
        let shown = self.read(&format!("threads?channel={channel}")).await;
        let word = |thread: &Value, name: &str| thread[name].as_str().unwrap_or_default().to_owned();
        shown.as_array().into_iter().flatten().map(|it| (word(it, "id"), word(it, "name"))).collect()
    }

    /// What the bot wrote in a channel, oldest first.
    pub async fn answers(&self, channel: &str) -> Vec<Message> {
        self.messages(channel).await.into_iter().filter(|message| message.own).collect()
    }

    /// The REST calls after number `since`.
    pub async fn requests(&self, since: u64) -> Vec<Request> {
        let shown = self.read(&format!("log?since={since}")).await;
        shown.as_array().into_iter().flatten().map(request).collect()
    }

    /// Counters of the gateway (`gateway`) and the API (`rest`).
    pub async fn state(&self) -> Value {
        self.read("state").await
    }

    /// One counter, such as `/gateway/resumes` or `/rest/limited`.
    pub async fn count(&self, pointer: &str) -> u64 {
        let state = self.state().await;
        let found = state.pointer(pointer).and_then(Value::as_u64);
        found.unwrap_or_else(|| panic!("no number at {pointer} of {state}"))
    }

    /// Waits until the channel satisfies `enough`.
    ///
    /// # Panics
    ///
    /// When that does not happen in time; the message shows the channel.
    pub async fn until_messages(
        &self,
        channel: &str,
        limit: Duration,
        enough: impl Fn(&[Message]) -> bool,
    ) -> Vec<Message> {
        let deadline = Instant::now() + limit;
        loop {
            let messages = self.messages(channel).await;
            if enough(&messages) {
                return messages;
            }
            assert!(Instant::now() < deadline, "not within {limit:?} in channel {channel}: {messages:#?}");
            sleep(POLL).await;
        }
    }

    /// Waits until the state satisfies `enough`.
    ///
    /// # Panics
    ///
    /// When that does not happen in time; the message shows the state.
    pub async fn until_state(&self, limit: Duration, enough: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + limit;
        loop {
            let state = self.state().await;
            if enough(&state) {
                return state;
            }
            assert!(Instant::now() < deadline, "not within {limit:?}: {state:#}");
            sleep(POLL).await;
        }
    }

    async fn read(&self, what: &str) -> Value {
        let url = format!("{}/_fake/{what}", self.url);
        let answer = self.http.get(url).send().await.expect("the stand-in answers");
        assert!(answer.status().is_success(), "{what}: {}", answer.status());
        answer.json().await.expect("the stand-in answers in JSON")
    }
}

#[cfg(test)]
mod tests;
