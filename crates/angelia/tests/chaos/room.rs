//! Somebody who writes in a room, carefully: again until it was accepted.

use crate::server::{Server, keep_alive_client};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long one message may be tried for.
const PATIENCE: Duration = Duration::from_secs(60);

/// One person in one room, with a connection of their own.
#[derive(Clone)]
pub(crate) struct Room {
    pub(crate) name: String,
    base: String,
    key: String,
    client: reqwest::Client,
}

impl Room {
    /// Enters a room that `gateway` serves.
    pub(crate) async fn enter(server: &Server, name: &str, gateway: &str) -> Self {
        let key = server.invite(name, "ann", gateway).await;
        let base = format!("{}/chat/api/rooms/{name}", server.url());
        Self { name: name.to_owned(), base, key, client: keep_alive_client() }
    }

    /// The same person, who takes another server for this one.
    pub(crate) fn at(&self, url: String) -> Self {
        Self { base: url, client: keep_alive_client(), ..self.clone() }
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The room's chat, as gateways see it.
    pub(crate) fn chat(&self) -> String {
        format!("web-{}", self.name)
    }

    /// Posts once; the status, or `None` when no answer came.
    pub(crate) async fn post_once(&self, id: &str, text: &str) -> Option<u16> {
        let body = json!({ "text": text, "client_id": id });
        let post = self.client.post(format!("{}/messages", self.base)).bearer_auth(&self.key).json(&body);
        let answer = post.send().await.ok()?;
        let status = answer.status().as_u16();
        // An answer that breaks off is no answer.
        answer.bytes().await.ok().map(|_| status)
    }

    /// Posts once; the status, how long to wait, and what the answer says.
    pub(crate) async fn post_telling(&self, id: &str, text: &str) -> (u16, Option<u64>, String) {
        let body = json!({ "text": text, "client_id": id });
        let post = self.client.post(format!("{}/messages", self.base)).bearer_auth(&self.key).json(&body);
        let answer = post.send().await.expect("the server answers");
        let (status, headers) = (answer.status().as_u16(), answer.headers());
        let wait = headers.get("retry-after").and_then(|wait| wait.to_str().ok()?.parse().ok());
        (status, wait, answer.text().await.expect("a whole answer"))
    }

    /// Posts under the same client id until the server says it has it.
    pub(crate) async fn post(&self, id: &str, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.post_once(id, text).await;
            match status {
                Some(200..=299) => return,
                None | Some(500..=599) => {}
                Some(other) => panic!("{id} was refused with {other}"),
            }
            assert!(Instant::now() < deadline, "{id} was not accepted in {PATIENCE:?}: {status:?}");
            sleep(Duration::from_millis(3)).await;
        }
    }

    /// Presses the stop button.
    pub(crate) async fn interrupt(&self) {
        let post = self.client.post(format!("{}/interrupt", self.base)).bearer_auth(&self.key);
        let status = post.send().await.expect("the server answers").status();
        assert!(status.is_success(), "interrupt: {status}");
    }

    /// The texts the agent wrote in the room, oldest first.
    pub(crate) async fn answers(&self) -> Vec<String> {
        self.try_answers().await.expect("the server answers")
    }

    /// The same; `None` when the server does not answer.
    pub(crate) async fn try_answers(&self) -> Option<Vec<String>> {
        let (mut after, mut texts) = (0, Vec::new());
        loop {
            let url = format!("{}/messages?after={after}", self.base);
            let answer = self.client.get(url).bearer_auth(&self.key).send().await.ok()?;
            let page: Value = answer.json().await.ok()?;
            let lines = page["messages"].as_array().cloned().unwrap_or_default();
            let Some(last) = lines.last() else { return Some(texts) };
            after = last["id"].as_i64().expect("lines have ids");
            let ours = lines.iter().filter(|line| line["from_agent"] == true);
            texts.extend(ours.filter_map(|line| line["text"].as_str().map(str::to_owned)));
        }
    }
}
