//! A person in a web-chat room.

use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::process::eventually;

/// Pause before an event stream that ended is opened again.
const REOPEN: Duration = Duration::from_millis(100);

/// Start of the notice a gateway sends into a chat of a platform it has no home
/// channel for: it comes before the first answer and answers nothing.
const HOME_NOTICE: &str = "\u{1f4ec} No home channel is set";

/// One event of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `message`, `edit` or `typing`.
    pub kind: String,
    /// The event's place in the room.
    pub id: String,
    /// The message it is about.
    pub message_id: String,
    /// Who wrote it.
    pub author: String,
    /// What was written.
    pub text: String,
    /// The message it answers, if any.
    pub reply_to: Option<String>,
}

/// One person's view of one room; events are collected from the start.
#[derive(Debug)]
pub struct Person {
    base: String,
    key: String,
    user: String,
    client: reqwest::Client,
    events: Arc<Mutex<Vec<Event>>>,
    listener: JoinHandle<()>,
}

impl Person {
    /// Enters `room` at the server `url` with an invitation's key.
    pub fn enter(url: &str, room: &str, user: &str, key: &str) -> Self {
        let base = format!("{url}/chat/api/rooms/{room}");
        let client = http_client();
        let events = Arc::new(Mutex::new(Vec::new()));
        let (address, secret) = (base.clone(), key.to_owned());
        let listening = listen(client.clone(), address, secret, Arc::clone(&events));
        let listener = tokio::spawn(listening);
        Self { base, key: key.to_owned(), user: user.to_owned(), client, events, listener }
    }

    /// Writes into the room and returns the id of the message.
    ///
    /// # Panics
    ///
    /// When the server does not take it.
    pub async fn say(&self, text: &str) -> String {
        let answer = self.tell(text).await;
        let id = answer["message_id"].as_str();
        id.unwrap_or_else(|| panic!("no message_id in {answer}")).to_owned()
    }

    /// Writes into the room; an error is the reason why no agent gets it.
    ///
    /// # Errors
    ///
    /// When no agent gets it.
    ///
    /// # Panics
    ///
    /// When the server does not take it.
    pub async fn try_say(&self, text: &str) -> Result<(), String> {
        self.tell(text).await["undelivered"].as_str().map_or(Ok(()), |reason| Err(reason.to_owned()))
    }

    /// Answers a line of the room and returns the id of the answer.
    ///
    /// # Panics
    ///
    /// When the server does not take it.
    pub async fn reply(&self, to: &str, text: &str) -> String {
        let answer = self.post("messages", &json!({"text": text, "client_id": text, "reply_to": to})).await;
        let id = answer["message_id"].as_str();
        id.unwrap_or_else(|| panic!("no message_id in {answer}")).to_owned()
    }

    /// Sends a file, as the page does, and says something with it.
    ///
    /// # Panics
    ///
    /// When the server does not take it.
    pub async fn say_with(&self, text: &str, (name, media_type): (&str, &str), file: &'static [u8]) {
        let ask = self.client.post(format!("{}/files", self.base)).bearer_auth(&self.key).body(file);
        let ask = ask.header("Content-Type", media_type).header("X-File-Name", name);
        let sent: Value = ask.send().await.expect("an answer").json().await.expect("JSON");
        assert!(sent["id"].is_string(), "the file is not taken: {sent}");
        let said = json!({ "text": text, "client_id": text, "files": [{ "id": sent["id"] }] });
        let answer = self.post("messages", &said).await;
        assert!(answer["message_id"].is_string(), "{answer}");
    }

    async fn tell(&self, text: &str) -> Value {
        // The text is unique in a test, so it also serves as the client's id.
        self.post("messages", &json!({"text": text, "client_id": text})).await
    }

    /// Presses the stop button.
    ///
    /// # Panics
    ///
    /// When the server does not take it.
    pub async fn interrupt(&self) {
        self.post("interrupt", &json!({})).await;
    }

    /// Every event seen so far.
    ///
    /// # Panics
    ///
    /// Never in practice: the lock is only held to copy or append.
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().expect("the listener does not panic").clone()
    }

    /// What others wrote, the home-channel notice left out, in order.
    pub fn answers(&self) -> Vec<String> {
        let others = self.events().into_iter().filter(|event| {
            event.kind == "message" && event.author != self.user && !event.text.starts_with(HOME_NOTICE)
        });
        others.map(|event| event.text).collect()
    }

    /// Those answers that came from the model, which echoes.
    pub fn echoes(&self) -> Vec<String> {
        let answers = self.answers().into_iter();
        answers.filter(|answer| answer.starts_with("echo: ")).collect()
    }

    /// Waits for an answer that contains `text`.
    ///
    /// # Panics
    ///
    /// When none comes within `limit`.
    pub async fn wait_for_answer(&self, text: &str, limit: Duration) {
        let what = format!("answer with {text:?} for {}", self.user);
        let found = || self.answers().iter().any(|answer| answer.contains(text)).then_some(());
        eventually(&what, limit, found).await;
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let url = format!("{}/{path}", self.base);
        let request = self.client.post(&url).bearer_auth(&self.key).json(body);
        let response = request.send().await;
        let response = response.unwrap_or_else(|error| panic!("POST {url}: {error}"));
        let status = response.status();
        let text = response.text().await.unwrap_or_default();
        assert!(status.is_success(), "POST {url}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// A client for plain HTTP that ignores the environment's proxies.
pub fn http_client() -> reqwest::Client {
    // The client wants a TLS provider even for addresses without TLS.
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let client = reqwest::Client::builder().no_proxy().build();
    client.expect("build an HTTP client")
}

/// Collects events for ever; after a break it goes on behind the last one.
async fn listen(client: reqwest::Client, base: String, key: String, events: Arc<Mutex<Vec<Event>>>) {
    let mut last = String::new();
    loop {
        let url =
            if last.is_empty() { format!("{base}/events") } else { format!("{base}/events?after={last}") };
        let request = client.get(url).bearer_auth(&key);
        if let Ok(response) = request.send().await.and_then(reqwest::Response::error_for_status) {
            let mut stream = response.bytes_stream();
            let mut buffer = Vec::new();
            while let Some(Ok(chunk)) = stream.next().await {
                // Bytes first: a chunk may end inside a letter.
                buffer.extend(chunk.iter().filter(|byte| **byte != b'\r'));
                while let Some(end) = buffer.windows(2).position(|pair| pair == b"\n\n") {
                    let block: Vec<u8> = buffer.drain(..end + 2).collect();
                    if let Some(event) = parse(&String::from_utf8_lossy(&block)) {
                        if !event.id.is_empty() {
                            last.clone_from(&event.id);
                        }
                        events.lock().expect("nobody panics with the lock").push(event);
                    }
                }
            }
        }
        sleep(REOPEN).await;
    }
}

/// One block of an event stream; `None` for comments and keep-alives.
fn parse(block: &str) -> Option<Event> {
    let field = |name: &str| {
        let lines = block.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let lines: Vec<_> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    };
    let data: Value = serde_json::from_str(&field("data")?).ok()?;
    let text = |name: &str| match &data[name] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    Some(Event {
        kind: field("event").unwrap_or_else(|| "message".to_owned()),
        id: text("id").or_else(|| field("id")).unwrap_or_default(),
        message_id: text("message_id").unwrap_or_default(),
        author: text("author").unwrap_or_default(),
        text: text("text").unwrap_or_default(),
        reply_to: text("reply_to"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_an_event() {
        let block = "event: edit\nid: 7\ndata: {\"message_id\":\"m1\",\"author\":\"bot\",\ndata: \"text\":\"hi\",\"reply_to\":null}\n\n";
        let event = parse(block).unwrap();
        assert_eq!((event.kind.as_str(), event.id.as_str()), ("edit", "7"));
        assert_eq!((event.author.as_str(), event.text.as_str()), ("bot", "hi"));
        assert_eq!(event.reply_to, None);
    }

    #[test]
    fn skips_keep_alives() {
        assert_eq!(parse(": ping\n\n"), None);
    }
}
