//! Iris, who answers at once and writes word by word.
//!
//! She has no language model: what she says is in `phrases`, and she picks it by
//! what was said. The answer is one message that grows by edits.

use super::phrases::{self, Heard, Topic};
use angelia_gateway::{Agent, CallError, Conversation, Event};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How long an answer takes to write: as long as it takes to read along.
const WRITES_FOR: Duration = Duration::from_millis(1_800);
/// Answers she remembers the topic of, for when somebody replies to one.
const REMEMBERED: usize = 32;

/// The agent of the lobby.
#[derive(Default)]
pub(super) struct Iris {
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// Her last answers, oldest first: the message and what it was about.
    said: VecDeque<(String, Topic)>,
    /// How many messages came so far; it varies what she says.
    heard: usize,
}

impl Agent for Iris {
    async fn on_event(&self, event: Event, conversation: Conversation) {
        let (topic, answer) = self.answer(&event, conversation.session_key());
        match write(&answer, &conversation).await {
            Ok(messages) => self.remember(messages, topic),
            // The room shows as much as arrived; there is nobody else to tell.
            Err(error) => tracing::debug!(%error, "Iris could not finish an answer"),
        }
    }
}

impl Iris {
    fn answer(&self, event: &Event, session_key: &str) -> (Topic, String) {
        let mut memory = self.memory.lock();
        let replied_to = event.reply_to_message_id.as_deref();
        let heard = Heard {
            text: &event.text,
            message_id: event.message_id.as_deref().unwrap_or_default(),
            session_key,
            count: memory.heard,
            reply: replied_to.map(|id| memory.said.iter().find(|(said, _)| said == id).map(|it| it.1)),
        };
        let topic = Topic::of(&heard);
        let answer = phrases::say(topic, &heard);
        memory.heard = memory.heard.wrapping_add(1);
        (topic, answer)
    }

    fn remember(&self, messages: Vec<String>, topic: Topic) {
        let mut memory = self.memory.lock();
        memory.said.extend(messages.into_iter().map(|message| (message, topic)));
        let surplus = memory.said.len().saturating_sub(REMEMBERED);
        memory.said.drain(..surplus);
    }
}

/// Writes a text piece by piece, until it is done or somebody stops it.
async fn write(text: &str, conversation: &Conversation) -> Result<Vec<String>, CallError> {
    let pieces = phrases::pieces(text);
    let mut pace = pace(pieces.len());
    let mut stream = conversation.stream().as_message();
    for piece in pieces {
        tokio::select! {
            biased;
            () = conversation.cancelled() => {
                stream.push(phrases::STOPPED).await?;
                break;
            }
            _ = pace.tick() => stream.push(piece).await?,
        }
    }
    stream.finish().await
}

/// One tick for each piece. What a slow disk holds up is made up for, so that a
/// long answer takes no longer than a short one.
fn pace(pieces: usize) -> Interval {
    let pieces = u32::try_from(pieces.max(1)).unwrap_or(u32::MAX);
    let mut pace = interval((WRITES_FOR / pieces).max(Duration::from_millis(1)));
    pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
    pace
}
