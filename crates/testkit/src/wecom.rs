//! A stand-in for WeCom.
//!
//! [`FakeWecom`] is a process that has WeCom's API for apps, with its limits and
//! error codes, and posts callbacks that wechatpy signed and encrypted.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::process::Process;
use crate::telegram::peer::{checked, list, peer, text};
use crate::webchat::http_client;

/// How often something is looked at while waiting for it.
const POLL: Duration = Duration::from_millis(50);

/// A running stand-in.
#[derive(Debug)]
pub struct FakeWecom {
    ready: Value,
    http: reqwest::Client,
    _process: Process,
}

impl FakeWecom {
    /// Starts one, with its log in `folder`. More arguments are its own, see its description.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub async fn start(folder: &Path, arguments: &[&str]) -> Self {
        let arguments: Vec<_> = arguments.iter().map(Into::into).collect();
        let (process, ready) = peer("fake-wecom", &["-m", "fake_wecom"], &arguments, folder).await;
        Self { ready, http: http_client(), _process: process }
    }

    /// The base of the API.
    pub fn url(&self) -> &str {
        text(&self.ready["api"])
    }

    /// Company and app, with a `/` between.
    pub fn id(&self) -> String {
        format!("{}/{}", text(&self.ready["corp_id"]), self.ready["agent_id"])
    }

    /// The app's secret.
    pub fn secret(&self) -> &str {
        text(&self.ready["secret"])
    }

    /// The token that signs callbacks.
    pub fn token(&self) -> &str {
        text(&self.ready["token"])
    }

    /// The key that encrypts callbacks; another one each time.
    pub fn aes_key(&self) -> &str {
        text(&self.ready["aes_key"])
    }

    /// Sets where callbacks go, and tries the address: `status`, `body`, `expected`.
    pub async fn callback(&self, url: &str) -> Value {
        self.ask("callback", &json!({ "url": url })).await
    }

    /// A member of the company who sees the app.
    pub async fn person(&self, id: &str) {
        self.person_with(&json!({ "id": id })).await;
    }

    /// The same, with `visible` or `licensed` false.
    pub async fn person_with(&self, ask: &Value) {
        self.ask("person", ask).await;
    }

    /// A person writes; answers the message's id. It has to be taken at once.
    ///
    /// # Panics
    ///
    /// When the callback is refused.
    pub async fn say(&self, from: &str, said: &str) -> String {
        let said = self.say_with(&json!({ "from": from, "text": said })).await;
        assert_eq!(said[0]["attempts"][0]["status"], 200, "{said:?}");
        text(&said[0]["id"]).to_owned()
    }

    /// Anything that can be said: `id` and `attempts` (`status`, `ms`, `body`) of each.
    pub async fn say_with(&self, ask: &Value) -> Vec<Value> {
        list(self.ask("say", ask).await)
    }

    /// Something happens: `from`, `event`, `key`; answers its `attempts`.
    pub async fn event(&self, ask: &Value) -> Vec<Value> {
        list(self.ask("event", ask).await["attempts"].clone())
    }

    /// Posts anything; answers the status of each attempt.
    pub async fn post(&self, ask: &Value) -> Vec<u64> {
        let attempts = list(self.ask("post", ask).await["attempts"].clone());
        attempts.iter().map(|attempt| attempt["status"].as_u64().unwrap()).collect()
    }

    /// The access token ends before its time.
    pub async fn expire_token(&self) {
        self.ask("expire", &json!({})).await;
    }

    /// The next call of a method goes wrong: `action`, `errcode`, `status`, `times`.
    pub async fn fault(&self, ask: &Value) {
        self.ask("fault", ask).await;
    }

    /// The texts a member has in the app.
    pub async fn texts(&self, user: &str) -> Vec<String> {
        let messages = list(self.read(&format!("messages?user={user}")).await);
        messages.iter().map(|message| text(&message["content"]).to_owned()).collect()
    }

    /// What a member has in the app: `type` and `content`, which of a file is its id.
    pub async fn messages(&self, user: &str) -> Vec<Value> {
        list(self.read(&format!("messages?user={user}")).await)
    }

    /// A file by its id: `name`, `media_type`, and `content` in base64.
    pub async fn file(&self, id: &str) -> Value {
        self.read(&format!("file?id={id}")).await
    }

    /// Tokens `fetched`, which `tokens` these are, `calls` by method and errcode, messages `dropped` for a limit.
    pub async fn state(&self) -> Value {
        self.read("state").await
    }

    /// Every call: `method`, `errcode`, `at`, `user`, `content`.
    pub async fn log(&self) -> Vec<Value> {
        list(self.read("log").await)
    }

    /// Waits until a member has a text that contains `needle`.
    ///
    /// # Panics
    ///
    /// When that does not happen in time.
    pub async fn wait_for_text(&self, user: &str, needle: &str, limit: Duration) -> String {
        let deadline = Instant::now() + limit;
        loop {
            let texts = self.texts(user).await;
            if let Some(found) = texts.iter().find(|text| text.contains(needle)) {
                return found.clone();
            }
            assert!(Instant::now() < deadline, "no {needle:?} for {user} within {limit:?}: {texts:#?}");
            sleep(POLL).await;
        }
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
