//! aiogram as a bot: a client of the Bot API that nobody here wrote.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::peer::{checked, list, peer, text};
use super::{FakeTelegram, POLL};
use crate::process::Process;
use crate::webchat::http_client;

/// What aiogram raised instead of giving a result.
#[derive(Debug, Clone)]
pub struct Refused {
    /// The exception's class.
    pub class: String,
    /// Telegram's description, as aiogram shows it.
    pub message: String,
    /// How long to wait, where it says so.
    pub retry_after: Option<i64>,
    /// The group's new id, where it says so.
    pub migrate_to_chat_id: Option<i64>,
}

/// A bot that runs on aiogram and tells what it saw.
#[derive(Debug)]
pub struct Aiogram {
    ready: Value,
    http: reqwest::Client,
    _process: Process,
}

impl Aiogram {
    /// Starts one against a stand-in; it does nothing until it is told to.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn start(folder: &Path, telegram: &FakeTelegram) -> Self {
        let arguments = [telegram.url().into(), telegram.token().into()];
        let (process, ready) = peer("aiogram", &["telegram_client.py"], &arguments, folder).await;
        Self { ready, http: http_client(), _process: process }
    }

    /// Begins to poll.
    pub async fn poll(&self) {
        self.ask("poll", &json!({})).await;
    }

    /// Ends polling.
    pub async fn stop(&self) {
        self.ask("stop", &json!({})).await;
    }

    /// Listens as a webhook that wants `secret`, and tells the stand-in so
    /// with `told`.
    pub async fn webhook(&self, secret: &str, told: &str) {
        self.ask("webhook", &json!({ "secret": secret, "told": told })).await;
    }

    /// Calls a method of aiogram's `Bot` by its Python name.
    ///
    /// # Errors
    ///
    /// What aiogram raised.
    pub async fn call(&self, method: &str, arguments: Value) -> Result<Value, Refused> {
        let answer = self.ask("call", &json!({ "method": method, "arguments": arguments })).await;
        let refused = &answer["refused"];
        if refused.is_null() {
            return Ok(answer["result"].clone());
        }
        Err(Refused {
            class: text(&refused["class"]).to_owned(),
            message: text(&refused["message"]).to_owned(),
            retry_after: refused["retry_after"].as_i64(),
            migrate_to_chat_id: refused["migrate_to_chat_id"].as_i64(),
        })
    }

    /// What its handlers were given so far: `kind` and `event`.
    pub async fn seen(&self) -> Vec<Value> {
        list(self.ask("seen", &json!({})).await)
    }

    /// Waits for an event with this text and returns it.
    ///
    /// # Panics
    ///
    /// When it does not come in time.
    pub async fn wait_for(&self, wanted: &str, limit: Duration) -> Value {
        let deadline = Instant::now() + limit;
        loop {
            let seen = self.seen().await;
            if let Some(found) = seen.iter().find(|one| one["event"]["text"] == wanted) {
                return found.clone();
            }
            assert!(Instant::now() < deadline, "aiogram saw no {wanted:?} within {limit:?}: {seen:#?}");
            sleep(POLL).await;
        }
    }

    async fn ask(&self, what: &str, ask: &Value) -> Value {
        let url = format!("{}/{what}", text(&self.ready["control"]));
        checked(what, ask, self.http.post(url).json(ask).send().await.unwrap()).await
    }
}
