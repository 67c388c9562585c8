//! A connector of a few lines, at the other end of a pipe: it offers, pushes and answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Message;

use crate::newer_gateway::gateway::Gateway;
use crate::newer_gateway::{Settings, serve};
use crate::process::eventually;

/// Every operation that matters here.
pub(super) const ALL: &[&str] = &["send", "typing", "react", "prompt"];

/// Longer than any story takes, on a clock that jumps.
const PATIENCE: Duration = Duration::from_secs(600);
/// Room for everything that is on its way.
const PIPE: usize = 1 << 20;

/// Something the gateway sent, in a few words.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    at: Instant,
    words: String,
}

impl Seen {
    pub(super) fn is(&self, words: &str) -> bool {
        self.words.starts_with(words)
    }
}

/// What the connector offers, how slow it is, and what it saw.
#[derive(Debug, Default)]
struct Notes {
    ops: Vec<String>,
    slow: Option<(String, Duration)>,
    seen: Mutex<Vec<Seen>>,
}

/// The connector, and the gateway it talks to.
pub(super) struct Fake {
    pub(super) gateway: Arc<Gateway>,
    notes: Arc<Notes>,
    pushes: mpsc::Sender<Value>,
    tasks: Vec<JoinHandle<()>>,
}

impl Fake {
    /// Starts a gateway that this connector describes itself to.
    pub(super) async fn meet(settings: Settings, ops: &[&str]) -> Self {
        Self::meet_slow(settings, ops, None).await
    }

    /// The same with a connector that takes its time over one operation.
    pub(super) async fn meet_slow(settings: Settings, ops: &[&str], slow: Option<(&str, Duration)>) -> Self {
        let gateway = Arc::new(Gateway::new(settings));
        let ops = ops.iter().map(|op| (*op).to_owned()).collect();
        let slow = slow.map(|(op, time)| (op.to_owned(), time));
        let notes = Arc::new(Notes { ops, slow, seen: Mutex::default() });
        let (pushes, tasks) = connect(&gateway, &notes).await;
        let fake = Self { gateway, notes, pushes, tasks };
        eventually("a hello", PATIENCE, || fake.gateway.is_described().then_some(())).await;
        fake
    }

    /// Cuts the line, and lets the gateway in again a second later.
    pub(super) async fn break_line(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.gateway.detach();
        // Fixed pause: on a clock that jumps.
        tokio::time::sleep(Duration::from_secs(1)).await;
        (self.pushes, self.tasks) = connect(&self.gateway, &self.notes).await;
    }

    /// Pushes an event; when.
    pub(super) async fn push(&self, buffer: &str, event: Value) -> Instant {
        self.write(json!({ "type": "inbound", "bufferId": buffer, "event": event })).await
    }

    /// Asks for the end of a turn; when.
    pub(super) async fn interrupt(&self, key: &str) -> Instant {
        self.write(json!({ "type": "interrupt_inbound", "session_key": key, "chat_id": "" })).await
    }

    async fn write(&self, frame: Value) -> Instant {
        self.pushes.send(frame).await.expect("the connector runs");
        Instant::now()
    }

    /// Waits for something that begins with these words; all of it.
    pub(super) async fn until(&self, words: &str) -> String {
        let found = || self.seen().into_iter().find(|seen| seen.is(words)).map(|seen| seen.words);
        eventually(&format!("{words:?} among {:?}", self.words()), PATIENCE, found).await
    }

    /// Waits until a gateway's turns have ended.
    pub(super) async fn until_free(&self) {
        let free = || self.gateway.diary.turns().values().all(|it| it.begun == it.ended).then_some(());
        eventually("the end of every turn", PATIENCE, free).await;
    }

    /// When something came that begins with these words.
    pub(super) fn at(&self, words: &str) -> Instant {
        let found = self.seen().into_iter().find(|seen| seen.is(words));
        found.unwrap_or_else(|| panic!("no {words:?} among {:?}", self.words())).at
    }

    /// Everything but typing, in order.
    pub(super) fn words(&self) -> Vec<String> {
        let seen = self.seen().into_iter().map(|seen| seen.words);
        seen.filter(|words| !words.starts_with("typing")).collect()
    }

    /// When things came that begin with these words.
    pub(super) fn times(&self, words: &str) -> Vec<Instant> {
        self.seen().into_iter().filter(|seen| seen.is(words)).map(|seen| seen.at).collect()
    }

    /// What was new to the model.
    pub(super) fn given(&self) -> Vec<String> {
        self.gateway.diary.given().into_iter().map(|given| given.text).collect()
    }

    fn seen(&self) -> Vec<Seen> {
        self.notes.seen.lock().unwrap().clone()
    }
}

async fn connect(gateway: &Arc<Gateway>, notes: &Arc<Notes>) -> (mpsc::Sender<Value>, Vec<JoinHandle<()>>) {
    let (here, there) = tokio::io::duplex(PIPE);
    let dial = tokio_tungstenite::client_async("ws://connector/relay", there);
    let (accepted, dialled) = tokio::join!(tokio_tungstenite::accept_async(here), dial);
    let (pushes, pushed) = mpsc::channel(64);
    let (gateway, notes) = (Arc::clone(gateway), Arc::clone(notes));
    let answering = tokio::spawn(answer(accepted.unwrap(), notes, pushed));
    let serving = tokio::spawn(async move { serve(&gateway, dialled.unwrap().0).await });
    (pushes, vec![answering, serving])
}

/// Takes notes, and answers everything at once that it is not slow with.
async fn answer(
    mut socket: WebSocketStream<DuplexStream>,
    notes: Arc<Notes>,
    mut pushed: mpsc::Receiver<Value>,
) {
    let mut late: Vec<(Instant, Value)> = Vec::new();
    loop {
        let next = late.first().map_or_else(|| Instant::now() + PATIENCE, |(at, _)| *at);
        let frame = tokio::select! {
            Some(frame) = pushed.recv() => Some(frame),
            () = sleep_until(next) => late.pop().map(|(_, frame)| frame),
            came = socket.next() => match came {
                Some(Ok(Message::Text(text))) => {
                    let frame: Value = serde_json::from_str(&text).unwrap();
                    notes.seen.lock().unwrap().extend(words(&frame).map(|words| Seen { at: Instant::now(), words }));
                    match (reply(&notes, &frame), &notes.slow) {
                        (Some(reply), Some((op, time))) if frame["action"]["op"] == *op => {
                            late.push((Instant::now() + *time, reply));
                            None
                        }
                        (reply, _) => reply,
                    }
                }
                Some(Ok(_)) => None,
                _ => return,
            },
        };
        if let Some(frame) = frame {
            let _ = socket.send(Message::text(format!("{frame}\n"))).await;
        }
    }
}

fn reply(notes: &Notes, frame: &Value) -> Option<Value> {
    match frame["type"].as_str().unwrap() {
        "hello" => Some(json!({ "type": "descriptor", "descriptor": {
            "contract_version": 1, "platform": "relay", "label": "Fake", "max_message_length": 4000,
            "supports_draft_streaming": false, "supports_edit": true, "supports_threads": false,
            "markdown_dialect": "plain", "len_unit": "chars", "supported_ops": notes.ops,
        }})),
        "going_idle" => Some(json!({ "type": "going_idle_ack" })),
        "outbound" => {
            let result = json!({ "success": true, "message_id": "out" });
            Some(json!({ "type": "outbound_result", "requestId": frame["requestId"], "result": result }))
        }
        _ => None,
    }
}

/// A frame in a few words; `!` is for `notify`.
fn words(frame: &Value) -> Option<String> {
    let action = &frame["action"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if frame["type"] == "inbound_ack" {
        return Some(format!("ack {}", text(&frame["bufferId"])));
    }
    Some(match action["op"].as_str()? {
        "typing" => format!("typing {}", text(&action["chat_id"])),
        "react" => {
            let sign = if action["remove"] == true { "-" } else { "" };
            format!("{sign}{} {}", text(&action["emoji"]), text(&action["message_id"]))
        }
        "prompt" => format!("prompt {}", text(&action["prompt_id"])),
        "send" => {
            let sign = if action["metadata"]["notify"] == true { "!" } else { "" };
            let to = action["reply_to"].as_str().map(|id| format!(" -> {id}")).unwrap_or_default();
            format!("send{sign} {}{to}", text(&action["content"]))
        }
        other => other.to_owned(),
    })
}

/// A line of somebody's private chat.
pub(super) fn event(user: &str, text: &str, id: &str) -> Value {
    let source = json!({ "platform": "webchat", "chat_id": user, "chat_type": "dm", "user_id": user });
    json!({ "text": text, "message_type": "text", "message_id": id, "source": source })
}

/// A line in a group.
pub(super) fn in_group(user: &str, text: &str, id: &str) -> Value {
    let source = json!({ "platform": "webchat", "chat_id": "team", "chat_type": "group", "user_id": user });
    json!({ "text": text, "message_type": "text", "message_id": id, "source": source })
}

/// The press of a prompt's button.
pub(super) fn press(user: &str, prompt: &str, option: &str, id: &str) -> Value {
    let mut event = event(user, "", id);
    event["prompt_response"] = json!({ "prompt_id": prompt, "option_id": option });
    event
}
