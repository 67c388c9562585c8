//! The one reader of a stand-in: a frame is handled to its end before the next is read.
//!
//! For a text or a command in mid-turn that end is far away: the reader sends a
//! notice and waits for its result, which only the reader could read.

use std::sync::Arc;
use std::time::Duration;

use angelia_contract::event::{Event, PromptResponse};
use angelia_contract::frame::{ConnectorFrame, GatewayFrame, Inbound};
use angelia_contract::line::LineBuffer;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::files;
use super::gateway::{Gateway, Nudge, send};
use super::turn::{Turn, about};

/// More than a connector may send in one line.
const LINE_LIMIT: usize = 64 * 1024 * 1024;

/// Fixed pause: so long it waits for a turn to be gone that a command took down, deaf as before.
const TAKING_DOWN: Duration = Duration::from_secs(5);

/// Reads until the socket ends; what it had not read by then it never reads.
pub(super) async fn read(gateway: &Arc<Gateway>, mut messages: mpsc::Receiver<String>) {
    let mut lines = LineBuffer::new(LINE_LIMIT);
    while let Some(message) = messages.recv().await
        && gateway.is_attached()
    {
        for line in lines.push(message.as_bytes()) {
            let line = line.expect("a line within bounds");
            let frame = ConnectorFrame::parse(&line).expect("a frame of the contract");
            hear(gateway, frame).await;
        }
    }
}

async fn hear(gateway: &Arc<Gateway>, frame: ConnectorFrame) {
    match frame {
        ConnectorFrame::Descriptor { descriptor } => gateway.described(descriptor.supported_ops),
        ConnectorFrame::Inbound(inbound) => take(gateway, inbound).await,
        ConnectorFrame::OutboundResult { request_id, result } => gateway.resolve(&request_id, result),
        ConnectorFrame::InterruptInbound { session_key, .. } => gateway.nudge(&session_key, Nudge::Interrupt),
        ConnectorFrame::GoingIdleAck => gateway.idle_confirmed(),
        ConnectorFrame::PassthroughForward { .. } | ConnectorFrame::Unknown { .. } => {}
    }
}

/// Handles an event, acknowledges it, and only then lets its turn begin.
async fn take(gateway: &Arc<Gateway>, Inbound { event, buffer_id, .. }: Inbound) {
    let turn = if gateway.is_repeated(&event) {
        gateway.diary.repeated();
        None
    } else if let Some(press) = &event.prompt_response {
        resolve(gateway, &event, press);
        None
    } else {
        files::fetch(gateway, &event).await;
        dispatch(gateway, event).await
    };
    if let Some(buffer_id) = buffer_id {
        gateway.write(&GatewayFrame::InboundAck { buffer_id }).await;
    }
    if let Some(turn) = turn {
        tokio::spawn(turn.run());
    }
}

/// A press is answered beside the reader, which does not wait for it.
fn resolve(gateway: &Arc<Gateway>, event: &Event, press: &PromptResponse) {
    let words = match gateway.pressed(&press.prompt_id) {
        None => "⌛ That prompt is no longer waiting for an answer. Send your reply as a normal message.",
        Some(key) => {
            gateway.nudge(&key, Nudge::Reply(press.option_id.clone()));
            if press.option_id == "deny" { "❌ Denied" } else { "✅ Approved once" }
        }
    };
    let (gateway, event) = (Arc::clone(gateway), event.clone());
    tokio::spawn(async move {
        gateway.ask(&event, send(&event, words, None, false)).await;
    });
}

/// A turn for an idle conversation; for a busy one, whatever a busy one does.
async fn dispatch(gateway: &Arc<Gateway>, event: Event) -> Option<Turn> {
    let key = gateway.key(&event);
    if let Some(nudged) = gateway.open(&key) {
        return Some(Turn::new(Arc::clone(gateway), key, event, nudged));
    }
    if event.text.starts_with('/') {
        command_in_turn(gateway, &key, &event).await;
    } else if gateway.running(&key, |running| std::mem::take(&mut running.asks)) == Some(true) {
        gateway.nudge(&key, Nudge::Reply(event.text));
    } else {
        gateway.nudge(&key, Nudge::Redirect(event.text.clone()));
        let words = "↪ Redirected current run. I'll adjust using your correction.";
        deaf(gateway, &event, words, false).await;
    }
    None
}

async fn command_in_turn(gateway: &Gateway, key: &str, event: &Event) {
    let name = event.text.split_whitespace().next().unwrap_or_default();
    let words = match name {
        "/stop" | "/new" | "/reset" => {
            gateway.nudge(key, Nudge::Cancel);
            "⚡ Stopped. You can continue this session.".to_owned()
        }
        "/approve" | "/deny"
            if gateway.running(key, |it| std::mem::take(&mut it.wants_approval)) == Some(true) =>
        {
            gateway.nudge(key, Nudge::Reply(name.trim_start_matches('/').to_owned()));
            "✅ Command approved.".to_owned()
        }
        _ => about(&event.text),
    };
    deaf(gateway, event, &words, true).await;
    if matches!(name, "/stop" | "/new" | "/reset") {
        sleep(TAKING_DOWN).await;
    }
}

/// Waits for a result on the reader, which is what it takes to get none.
async fn deaf(gateway: &Gateway, event: &Event, words: &str, notify: bool) {
    let (begun, number) = (Instant::now(), gateway.diary.stalls_now());
    gateway.ask(event, send(event, words, event.message_id.clone(), notify)).await;
    gateway.diary.stalled(number, begun.elapsed());
}
