//! A stand-in for Telegram's Bot API, and a real client to hold it to.
//!
//! [`FakeTelegram`] is a process that speaks the Bot API as Telegram does:
//! its limits, its descriptions of what went wrong, one poller at a time.
//! Whatever it emits is checked against aiogram's models; [`Aiogram`] is that
//! library itself, as a bot that a test can watch.

mod client;
pub(crate) mod peer;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use peer::{checked, list, number, peer, text};

pub use client::{Aiogram, Refused};

use crate::process::Process;
use crate::webchat::http_client;

/// How often something is looked at while waiting for it.
const POLL: Duration = Duration::from_millis(50);

/// How a stand-in is started.
#[derive(Debug, Default, Clone)]
pub struct Options {
    /// The bot's token; one for tests when not given. Its number is the bot's id.
    pub token: Option<String>,
    /// The bot sees only what addresses it in groups.
    pub privacy: bool,
    /// Private chats with the bot have topics.
    pub private_topics: bool,
    /// Changes to the limits, see [`FakeTelegram::limits`].
    pub limits: Option<Value>,
    /// The port of the API, for a stand-in that comes back where it was.
    pub port: Option<u16>,
}

impl Options {
    fn arguments(&self) -> Vec<OsString> {
        let mut all: Vec<OsString> = Vec::new();
        let mut pair = |name: &str, value: String| all.extend([name.into(), value.into()]);
        if let Some(token) = &self.token {
            pair("--token", token.clone());
        }
        if let Some(limits) = &self.limits {
            pair("--limits", limits.to_string());
        }
        if let Some(port) = self.port {
            pair("--port", port.to_string());
        }
        all.extend(self.privacy.then(|| "--privacy".into()));
        all.extend(self.private_topics.then(|| "--private-topics".into()));
        all
    }
}

/// What somebody said: the message, and the update if the bot may see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// The message's id, which is unique in its chat only.
    pub message: i64,
    /// The update that tells the bot.
    pub update: Option<i64>,
}

/// A running stand-in.
#[derive(Debug)]
pub struct FakeTelegram {
    ready: Value,
    http: reqwest::Client,
    _process: Process,
}

impl FakeTelegram {
    /// Starts one, with its log in `folder`.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn start(folder: &Path, options: &Options) -> Self {
        let arguments = options.arguments();
        let (process, ready) = peer("fake-telegram", &["-m", "fake_telegram"], &arguments, folder).await;
        Self { ready, http: http_client(), _process: process }
    }

    /// The base of the API: clients append `/bot<token>/<method>`.
    pub fn url(&self) -> &str {
        text(&self.ready["api"])
    }

    /// The token it was started with.
    pub fn token(&self) -> &str {
        text(&self.ready["token"])
    }

    /// The bot's id.
    pub fn bot_id(&self) -> i64 {
        number(&self.ready["bot_id"])
    }

    /// The bot's name, without the `@`.
    pub fn username(&self) -> &str {
        text(&self.ready["username"])
    }

    // --- people and chats ---

    /// A person; returns the id.
    pub async fn user(&self, name: &str) -> i64 {
        self.made("user", &json!({ "first_name": name })).await
    }

    /// A person with whom the bot has a private chat; the chat's id is the person's.
    pub async fn person(&self, name: &str) -> i64 {
        let user = self.user(name).await;
        self.made("private", &json!({ "user": user })).await
    }

    /// The same with somebody whose Telegram speaks a language.
    pub async fn person_speaking(&self, name: &str, language: &str) -> i64 {
        let user = self.made("user", &json!({ "first_name": name, "language_code": language })).await;
        self.made("private", &json!({ "user": user })).await
    }

    /// A small group of which the first member is the owner.
    pub async fn group(&self, title: &str, members: &[i64]) -> i64 {
        self.made("group", &json!({ "title": title, "members": members })).await
    }

    /// A supergroup without topics.
    pub async fn supergroup(&self, title: &str, members: &[i64]) -> i64 {
        self.made("supergroup", &json!({ "title": title, "members": members })).await
    }

    /// A supergroup with topics; General is there from the start.
    pub async fn forum(&self, title: &str, members: &[i64]) -> i64 {
        self.made("supergroup", &json!({ "title": title, "members": members, "forum": true })).await
    }

    /// The same where the bot may open topics: it is an administrator.
    pub async fn managed_forum(&self, title: &str, members: &[i64]) -> i64 {
        let ask = json!({ "title": title, "members": members, "forum": true, "admin": true });
        self.made("supergroup", &ask).await
    }

    /// A channel in which the bot may post.
    pub async fn channel(&self, title: &str, owner: i64) -> i64 {
        self.made("channel", &json!({ "title": title, "members": [owner] })).await
    }

    /// Opens a topic; returns its thread id.
    pub async fn topic(&self, forum: i64, by: i64, name: &str) -> i64 {
        let ask = json!({ "chat": forum, "from": by, "name": name });
        number(&self.ask("topic", &ask).await["thread"])
    }

    /// A person renames a topic.
    pub async fn rename_topic(&self, forum: i64, thread: i64, by: i64, name: &str) {
        self.ask("rename_topic", &json!({ "chat": forum, "thread": thread, "from": by, "name": name })).await;
    }

    /// The topics of a forum, as (thread id, name).
    pub async fn topics(&self, forum: i64) -> Vec<(i64, String)> {
        let shown = self.ask("topics", &json!({ "chat": forum })).await;
        let topics = shown["topics"].as_array().into_iter().flatten();
        topics.map(|topic| (number(&topic["thread"]), text(&topic["name"]).to_owned())).collect()
    }

    /// Makes a supergroup of a group; returns the new chat's id.
    pub async fn migrate(&self, group: i64) -> i64 {
        self.migrate_with(&json!({ "chat": group })).await
    }

    /// The same, with `new_first` (the new chat's line comes first) or
    /// `member_updates` (the bot is told that it left the one and joined the other).
    pub async fn migrate_with(&self, ask: &Value) -> i64 {
        number(&self.ask("migrate", ask).await["chat"])
    }

    /// A person blocks the bot.
    pub async fn block(&self, person: i64) {
        self.ask("block", &json!({ "chat": person })).await;
    }

    /// The bot is thrown out of a group.
    pub async fn kick(&self, chat: i64) {
        self.ask("kick", &json!({ "chat": chat })).await;
    }

    /// The bot is unblocked, or taken back.
    pub async fn welcome(&self, chat: i64) {
        self.ask("welcome", &json!({ "chat": chat })).await;
    }

    // --- what people say ---

    /// A person says something; in a channel it is a post.
    pub async fn say(&self, chat: i64, from: i64, text: &str) -> Said {
        self.say_with(&json!({ "chat": chat, "from": from, "text": text })).await
    }

    /// The same in a topic.
    pub async fn say_in(&self, chat: i64, thread: i64, from: i64, text: &str) -> Said {
        self.say_with(&json!({ "chat": chat, "thread": thread, "from": from, "text": text })).await
    }

    /// Anything that can be said: media, replies, forwards, other bots. The
    /// stand-in's own description has the fields.
    pub async fn say_with(&self, ask: &Value) -> Said {
        let answer = self.ask("say", ask).await;
        Said { message: number(&answer["message_id"]), update: answer["update_id"].as_i64() }
    }

    /// Says the same thing many times; `{n}` in it counts from 0.
    pub async fn say_many(&self, chat: i64, from: i64, text: &str, count: usize) -> Vec<Said> {
        let ask = json!({ "chat": chat, "from": from, "text": text, "count": count });
        let answer = self.ask("say", &ask).await;
        let messages = answer["message_ids"].as_array().unwrap();
        let updates = answer["update_ids"].as_array().unwrap();
        let said = messages.iter().zip(updates);
        said.map(|(message, update)| Said { message: number(message), update: update.as_i64() }).collect()
    }

    /// A person edits a message.
    pub async fn edit(&self, chat: i64, message: i64, text: &str) {
        self.ask("edit", &json!({ "chat": chat, "message": message, "text": text })).await;
    }

    /// A person deletes a message, which bots are not told.
    pub async fn delete(&self, chat: i64, message: i64) {
        self.ask("delete", &json!({ "chat": chat, "message": message })).await;
    }

    /// A person presses the button with this label below a message of the bot; returns the id of
    /// the callback query.
    pub async fn press(&self, chat: i64, message: i64, from: i64, label: &str) -> String {
        self.press_with(&json!({ "chat": chat, "message": message, "from": from, "label": label })).await
    }

    /// The same with any data, on a button or not: a modified client sends what it likes.
    pub async fn press_data(&self, chat: i64, message: i64, from: i64, data: &str) -> String {
        self.press_with(&json!({ "chat": chat, "message": message, "from": from, "data": data })).await
    }

    async fn press_with(&self, ask: &Value) -> String {
        text(&self.ask("press", ask).await["id"]).to_owned()
    }

    /// Puts any update in the queue, also one that nobody can read; returns its id.
    pub async fn inject(&self, update: &Value) -> i64 {
        number(&self.ask("update", &json!({ "update": update })).await["update_id"])
    }

    // --- settings and faults ---

    /// Whether the bot sees only what addresses it.
    pub async fn privacy(&self, on: bool) {
        self.ask("privacy", &json!({ "on": on })).await;
    }

    /// Changes limits: `enabled`, `bot_per_second`, `chat_per_second`,
    /// `chat_burst`, `group_per_minute`. What was spent so far is forgotten.
    pub async fn limits(&self, change: &Value) {
        self.ask("limits", change).await;
    }

    /// Makes the token void and another one valid.
    pub async fn replace_token(&self, token: &str) {
        self.ask("token", &json!({ "token": token })).await;
    }

    /// Lets time pass for what it keeps.
    pub async fn advance_clock(&self, by: Duration) {
        self.ask("clock", &json!({ "advance": by.as_secs() })).await;
    }

    /// The next calls of a method (or `*`) are answered with this instead of
    /// being performed. A text is sent as HTML.
    pub async fn answer_next(&self, method: &str, times: usize, status: u16, body: &Value) {
        let ask = json!({ "method": method, "times": times, "status": status, "body": body });
        self.ask("fault", &ask).await;
    }

    /// The next calls are not performed and never answered.
    pub async fn hang_next(&self, method: &str, times: usize) {
        self.fault(method, times, "hang").await;
    }

    /// The next calls are not performed and the connection breaks.
    pub async fn drop_next(&self, method: &str, times: usize) {
        self.fault(method, times, "drop").await;
    }

    /// The next calls are performed, but the connection breaks before the answer.
    pub async fn perform_and_drop_next(&self, method: &str, times: usize) {
        self.fault(method, times, "perform_and_drop").await;
    }

    /// The next calls are performed and never answered.
    pub async fn perform_and_hang_next(&self, method: &str, times: usize) {
        self.fault(method, times, "perform_and_hang").await;
    }

    /// Forgets the faults that were not used up.
    pub async fn clear_faults(&self) {
        self.ask("faults/clear", &json!({})).await;
    }

    /// Accepts nothing for a while and breaks what is open.
    pub async fn outage(&self, length: Duration) {
        self.ask("outage", &json!({ "seconds": length.as_secs_f64() })).await;
    }

    /// Somebody else polls with the same token.
    pub async fn foreign_poller(&self, on: bool) {
        self.ask("foreign_poller", &json!({ "on": on })).await;
    }

    async fn fault(&self, method: &str, times: usize, action: &str) {
        self.fault_with(&json!({ "method": method, "times": times, "action": action })).await;
    }

    /// Any fault that the stand-in has; its own description has the fields.
    pub async fn fault_with(&self, ask: &Value) {
        self.ask("fault", ask).await;
    }

    // --- what can be read ---

    /// Confirmed offset, pending updates, polls, answers by method and status.
    pub async fn state(&self) -> Value {
        self.read("state").await
    }

    /// The offset that was confirmed last: all before it is gone.
    pub async fn confirmed(&self) -> Option<i64> {
        self.state().await["confirmed"].as_i64()
    }

    /// The messages of a chat as they stand: `message_id`, `by_bot`, `text`,
    /// `entities`, `sent_entities`, `edits`, `reactions` (the bot's), `reply_to`, `thread`, `raw`.
    pub async fn messages(&self, chat: i64) -> Vec<Value> {
        list(self.read(&format!("messages?chat={chat}")).await)
    }

    /// The bytes of a file, asked for as a bot does.
    ///
    /// # Panics
    ///
    /// When there is no such file.
    pub async fn file(&self, id: &str) -> Vec<u8> {
        let (url, token) = (self.url(), self.token());
        let found = reqwest::get(format!("{url}/bot{token}/getFile?file_id={id}")).await.expect("an answer");
        let found: Value = found.json().await.expect("JSON");
        let path = found["result"]["file_path"].as_str().unwrap_or_else(|| panic!("no file: {found}"));
        let file = reqwest::get(format!("{url}/file/bot{token}/{path}")).await.expect("an answer");
        file.bytes().await.expect("bytes").to_vec()
    }

    /// The texts that the bot has standing in a chat.
    pub async fn bot_texts(&self, chat: i64) -> Vec<String> {
        let messages = self.messages(chat).await;
        let own = messages.iter().filter(|message| message["by_bot"] == true);
        own.map(|message| text(&message["text"]).to_owned()).collect()
    }

    /// The drafts that were shown in a chat, one after the other: `draft_id`, `text`, `entities`.
    pub async fn drafts(&self, chat: i64) -> Vec<Value> {
        list(self.read(&format!("drafts?chat={chat}")).await)
    }

    /// What "typing…" was shown in a chat: `action`, `thread`.
    pub async fn actions(&self, chat: i64) -> Vec<Value> {
        list(self.read(&format!("actions?chat={chat}")).await)
    }

    /// The same, as soon as there are any: what shows that a bot writes is asked for beside
    /// everything else.
    pub async fn first_actions(&self, chat: i64, limit: Duration) -> Vec<Value> {
        let deadline = Instant::now() + limit;
        loop {
            let actions = self.actions(chat).await;
            if !actions.is_empty() {
                return actions;
            }
            assert!(Instant::now() < deadline, "nothing was shown in {chat} within {limit:?}");
            sleep(POLL).await;
        }
    }

    /// What the bot answered to a press, by its callback query's id: `text` (null for none) and
    /// `show_alert`. `None` as long as it did not.
    pub async fn press_answer(&self, id: &str) -> Option<Value> {
        let answer = self.read(&format!("press_answer?id={id}")).await;
        (!answer.is_null()).then_some(answer)
    }

    /// Every request to the API: `method`, `chat_id`, `chats` (all it names),
    /// `thread`, `text`, `at` (seconds since 1970), `status`, `error`.
    pub async fn log(&self) -> Vec<Value> {
        list(self.read("log").await)
    }

    /// Every chat that any request ever named, as it was written.
    pub async fn chats_named(&self) -> BTreeSet<String> {
        let log = self.log().await;
        let named = log.iter().filter_map(|entry| entry["chats"].as_array()).flatten();
        named.map(|chat| chat.as_str().map_or_else(|| chat.to_string(), str::to_owned)).collect()
    }

    /// Waits until the bot has a text standing in a chat that contains `needle`.
    ///
    /// # Panics
    ///
    /// When that does not happen in time.
    pub async fn wait_for_text(&self, chat: i64, needle: &str, limit: Duration) -> Value {
        let deadline = Instant::now() + limit;
        loop {
            let messages = self.messages(chat).await;
            let found = messages.iter().find(|message| {
                message["by_bot"] == true && message["text"].as_str().unwrap_or_default().contains(needle)
            });
            if let Some(message) = found {
                return message.clone();
            }
            assert!(Instant::now() < deadline, "no {needle:?} in {chat} within {limit:?}: {messages:#?}");
            sleep(POLL).await;
        }
    }

    /// Waits until its state is as wanted and returns it.
    ///
    /// # Panics
    ///
    /// When that does not happen in time.
    pub async fn wait_for_state(
        &self,
        what: &str,
        limit: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let deadline = Instant::now() + limit;
        loop {
            let state = self.state().await;
            if wanted(&state) {
                return state;
            }
            assert!(Instant::now() < deadline, "{what}: not within {limit:?}: {state:#}");
            sleep(POLL).await;
        }
    }

    /// Panics when anything crossed the wire that aiogram's models do not take.
    pub async fn assert_no_violations(&self) {
        let state = self.state().await;
        assert_eq!(state["violations"], json!([]), "against aiogram's models");
    }

    async fn made(&self, what: &str, ask: &Value) -> i64 {
        number(&self.ask(what, ask).await["id"])
    }

    async fn ask(&self, what: &str, ask: &Value) -> Value {
        let answer = self.http.post(self.control(what)).json(ask).send().await.unwrap();
        checked(what, ask, answer).await
    }

    async fn read(&self, what: &str) -> Value {
        let answer = self.http.get(self.control(what)).send().await.unwrap();
        checked(what, &Value::Null, answer).await
    }

    fn control(&self, what: &str) -> String {
        format!("{}/_fake/{what}", text(&self.ready["control"]))
    }
}
