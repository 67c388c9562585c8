//! Somebody who writes in a room, and follows it on a stream that breaks.

use super::books::{Books, count};
use super::dice::Dice;
use super::{DONE, Stop};
use crate::webchat::http_client;
use futures_util::StreamExt;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// Fixed pause: before a request that was refused or failed is made again, and how often it is.
const AGAIN: Duration = Duration::from_millis(500);
const TRIES: usize = 120;

/// One person in one room.
#[derive(Clone, Debug)]
pub(super) struct Person {
    /// Distinguishes the readers of the whole run.
    pub(super) number: usize,
    /// The readers of this person's room.
    pub(super) room_readers: Vec<usize>,
    pub(super) base: String,
    pub(super) key: String,
    pub(super) name: String,
    /// Between two posts, on average.
    pub(super) pause: Duration,
    pub(super) books: Arc<Books>,
}

impl Person {
    /// Writes until the end of the run, each post under an id of its own until it is accepted.
    pub(super) async fn write(self, stop: Stop) {
        let mut dice = Dice::new(self.number as u64 + 100);
        let client = http_client();
        let messages = format!("{}/messages", self.base);
        let pause = u64::try_from(self.pause.as_millis()).unwrap_or(u64::MAX / 2);
        for post in 0_u64.. {
            sleep(Duration::from_millis(dice.within(pause / 2, pause * 3 / 2))).await;
            if stop.is_set() {
                return;
            }
            let name = format!("{}-{post}", self.name);
            let length = if dice.one_in(10) { 3_000 } else { 300 };
            let length = dice.within(10, length);
            let text = format!("{name} {}", dice.words(length));
            self.books.posted(&name, &self.room_readers);
            let body = json!({ "text": text, "client_id": name });
            let posted = self.until_done(|| client.post(&messages).json(&body)).await;
            let own = format!("{messages}/{}", posted["message_id"].as_str().unwrap_or_default());
            if dice.one_in(8) {
                let body = json!({ "text": format!("{text} (edited)") });
                self.until_done(|| client.put(&own).json(&body)).await;
            }
            if dice.one_in(10) {
                self.until_done(|| client.get(format!("{own}/story"))).await;
            }
            if dice.one_in(10) {
                self.until_done(|| client.get(format!("{messages}?after=0&html=1"))).await;
            }
        }
    }

    /// Asks until the answer is a good one.
    async fn until_done(&self, request: impl Fn() -> RequestBuilder) -> Value {
        let mut last = None;
        for _ in 0..TRIES {
            let answer = request().bearer_auth(&self.key).send().await;
            let answer = match answer.and_then(Response::error_for_status) {
                Ok(answer) => answer.json().await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(value) => return value,
                Err(error) => last = Some(error),
            }
            count(&self.books.repeated);
            sleep(AGAIN).await;
        }
        panic!("{} is refused for good: {last:?}", self.name);
    }

    /// Follows the room until this is dropped. Every stream is given up after some seconds, and
    /// the next one goes on behind the last event, as a browser's does.
    pub(super) async fn follow(self) {
        let mut dice = Dice::new(self.number as u64 + 200);
        let client = http_client();
        let mut last = None;
        loop {
            let until = Instant::now() + Duration::from_millis(dice.within(3_000, 20_000));
            let mut request = client.get(format!("{}/events?html=1", self.base)).bearer_auth(&self.key);
            if let Some(last) = &last {
                request = request.header("Last-Event-ID", last);
            }
            match request.send().await.and_then(Response::error_for_status) {
                Ok(stream) => {
                    count(&self.books.streams);
                    self.read(stream, until, &mut last).await;
                }
                Err(_) => count(&self.books.repeated),
            }
            sleep(Duration::from_millis(dice.within(100, 1_500))).await;
        }
    }

    async fn read(&self, stream: Response, until: Instant, last: &mut Option<String>) {
        let (mut chunks, mut buffer) = (stream.bytes_stream(), Vec::new());
        while let Ok(Some(Ok(chunk))) = timeout_at(until, chunks.next()).await {
            buffer.extend_from_slice(&chunk);
            while let Some(end) = buffer.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = buffer.drain(..end + 2).collect();
                self.take(&String::from_utf8_lossy(&block), last);
            }
        }
    }

    fn take(&self, block: &str, last: &mut Option<String>) {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        let Some(id) = field("id: ") else { return };
        let line: Value = serde_json::from_str(field("data: ").unwrap_or_default()).unwrap_or_default();
        *last = Some(id.to_owned());
        let text = line["text"].as_str().unwrap_or_default();
        if line["from_agent"] == true
            && let Some((_, rest)) = text.split_once(DONE)
        {
            self.books.answered(rest.split(' ').next().unwrap_or_default(), self.number);
        }
    }
}
