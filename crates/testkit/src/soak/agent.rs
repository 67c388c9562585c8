//! A gateway whose agent streams its answers, and that comes and goes.

use super::DONE;
use super::books::{Books, count};
use super::dice::Dice;
use crate::connector::Credentials;
use crate::socket::{Next, Socket};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often it looks whether something is to be said.
const BEAT: Duration = Duration::from_millis(50);
/// Fixed pause: after an action that failed, and after a dial that was refused.
const AGAIN: Duration = Duration::from_secs(1);
/// How long it waits for the answer to its going idle, and for the end of a socket it replaced.
const FAREWELL: Duration = Duration::from_secs(5);

/// An answer that is being written.
#[derive(Debug)]
struct Answer {
    chat: String,
    to: String,
    text: String,
    /// Its line in the room, once it is there.
    line: Option<String>,
    shown_typing: bool,
    /// Edits that are still to come.
    edits: u64,
    /// What ends it: the name of the post.
    name: String,
    due: Instant,
    /// The request that is under way.
    awaited: Option<String>,
}

/// One gateway, over all its sockets.
pub(super) struct Agent {
    url: String,
    credentials: Credentials,
    books: Arc<Books>,
    dice: Dice,
    answers: Vec<Answer>,
    /// Messages it has taken: a repeated one gets no second answer.
    taken: HashSet<String>,
    requests: u64,
    /// Whether the server confirmed that it may sleep.
    may_sleep: bool,
}

impl Agent {
    pub(super) fn new(url: String, credentials: Credentials, books: Arc<Books>, number: u64) -> Self {
        let dice = Dice::new(number);
        let (answers, taken) = (Vec::new(), HashSet::new());
        Self { url, credentials, books, dice, answers, taken, requests: 0, may_sleep: false }
    }

    /// Serves for ever; every half a minute it leaves in one of four ways and comes again.
    pub(super) async fn serve(mut self) {
        let mut socket = self.join().await;
        loop {
            let until = Instant::now() + Duration::from_millis(self.dice.within(20_000, 40_000));
            let open = self.work(&mut socket, until).await;
            let way = if open { self.dice.within(0, 4) } else { 3 };
            socket = match way {
                0 => {
                    let new = self.join().await;
                    tokio::spawn(drain(socket));
                    new
                }
                1 => {
                    self.sleep(socket).await;
                    self.join().await
                }
                2 => {
                    socket.close().await;
                    self.join().await
                }
                _ => {
                    drop(socket);
                    sleep(Duration::from_millis(self.dice.within(10, 2_000))).await;
                    self.join().await
                }
            };
            // Nobody tells any more what came of these.
            self.answers.iter_mut().for_each(|answer| answer.awaited = None);
        }
    }

    /// Dials until it is let in.
    async fn join(&mut self) -> Socket {
        loop {
            match Socket::dial(&self.url, &self.credentials).await {
                Ok(mut socket) => {
                    socket.hello("webchat", "webchat").await;
                    count(&self.books.sockets);
                    return socket;
                }
                Err(_) => {
                    count(&self.books.repeated);
                    sleep(AGAIN).await;
                }
            }
        }
    }

    /// Goes idle properly, and stays away for some seconds.
    async fn sleep(&mut self, mut socket: Socket) {
        self.may_sleep = false;
        socket.send(&json!({ "type": "going_idle" })).await;
        let until = Instant::now() + FAREWELL;
        while !self.may_sleep && Instant::now() < until {
            match socket.next(BEAT).await {
                Next::Frame(frame) => self.hear(&mut socket, &frame).await,
                Next::Silence => {}
                Next::Closed(..) | Next::Gone => break,
            }
        }
        socket.close().await;
        sleep(Duration::from_millis(self.dice.within(1_000, 6_000))).await;
    }

    /// Reads and answers; tells whether the socket is still open.
    async fn work(&mut self, socket: &mut Socket, until: Instant) -> bool {
        while Instant::now() < until {
            self.speak(socket).await;
            match socket.next(BEAT).await {
                Next::Frame(frame) => self.hear(socket, &frame).await,
                Next::Silence => {}
                Next::Closed(..) | Next::Gone => return false,
            }
        }
        true
    }

    async fn hear(&mut self, socket: &mut Socket, frame: &Value) {
        match frame["type"].as_str().unwrap_or_default() {
            "inbound" => {
                self.take(&frame["event"]);
                socket.ack(frame).await;
            }
            "outbound_result" => self.done(frame),
            "going_idle_ack" => self.may_sleep = true,
            _ => {}
        }
    }

    fn take(&mut self, event: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let message = text(&event["message_id"]);
        if !self.taken.insert(message.clone()) {
            return;
        }
        let asked = text(&event["text"]);
        // One in four says all at once, the others write while one looks on.
        let edits = if self.dice.one_in(4) { 0 } else { self.dice.within(2, 8) };
        let length = if self.dice.one_in(40) { 20_000 } else { self.dice.within(50, 600) };
        self.answers.push(Answer {
            chat: text(&event["source"]["chat_id"]),
            to: message,
            text: self.dice.words(length),
            line: None,
            shown_typing: false,
            edits,
            name: asked.split(' ').next().unwrap_or_default().to_owned(),
            due: Instant::now(),
            awaited: None,
        });
    }

    /// Asks for the next action of every answer that has one.
    async fn speak(&mut self, socket: &mut Socket) {
        let now = Instant::now();
        for answer in self.answers.iter_mut().filter(|it| it.awaited.is_none() && it.due <= now) {
            self.requests += 1;
            let request = format!("{}-{}", self.credentials.gateway_id, self.requests);
            let more = self.dice.words(100);
            let frame = json!({ "type": "outbound", "requestId": request, "action": answer.next(&more) });
            answer.awaited = Some(request);
            answer.due = now + Duration::from_millis(self.dice.within(100, 400));
            socket.send(&frame).await;
        }
    }

    /// Takes the result of an action.
    fn done(&mut self, frame: &Value) {
        let request = frame["requestId"].as_str().unwrap_or_default();
        let by_request: HashMap<&str, usize> = self
            .answers
            .iter()
            .enumerate()
            .filter_map(|(at, it)| Some((it.awaited.as_deref()?, at)))
            .collect();
        let Some(&at) = by_request.get(request) else { return };
        let answer = &mut self.answers[at];
        answer.awaited = None;
        if frame["result"]["success"] != true {
            count(&self.books.repeated);
            answer.due = Instant::now() + AGAIN;
            return;
        }
        count(&self.books.actions);
        if answer.advance(frame["result"]["message_id"].as_str()) {
            self.answers.swap_remove(at);
        }
    }
}

impl Answer {
    /// The action to ask for: typing, the line, its edits.
    fn next(&mut self, more: &str) -> Value {
        let chat = &self.chat;
        match &self.line {
            None if !self.shown_typing => json!({ "op": "typing", "chat_id": chat }),
            None => {
                let metadata = json!({ "notify": self.edits == 0 });
                json!({ "op": "send", "chat_id": chat, "content": self.shown(), "reply_to": self.to, "metadata": metadata })
            }
            Some(line) => {
                self.text.push_str(more);
                json!({ "op": "edit", "chat_id": chat, "message_id": line, "content": self.shown() })
            }
        }
    }

    /// What is to be seen now; the last form has the end in front, where no cut takes it away.
    fn shown(&self) -> String {
        let last = self.edits == u64::from(self.line.is_some());
        if last { format!("{DONE}{} {}", self.name, self.text) } else { self.text.clone() }
    }

    /// Notes that the action was done; tells whether it was the last one.
    fn advance(&mut self, line: Option<&str>) -> bool {
        if self.line.is_some() {
            self.edits -= 1;
        } else if self.shown_typing {
            self.line = line.map(str::to_owned);
        } else {
            self.shown_typing = true;
            return false;
        }
        self.edits == 0
    }
}

/// Reads a socket that another one replaced, until it is closed.
async fn drain(mut socket: Socket) {
    let until = Instant::now() + FAREWELL;
    while Instant::now() < until {
        if matches!(socket.next(BEAT).await, Next::Closed(..) | Next::Gone) {
            return;
        }
    }
}
