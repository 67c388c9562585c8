//! Metis, who thinks for half a minute, so that there is something to stop.
//!
//! It writes one message and replaces its text with every step. Stopped, it says
//! at once how far it came.

use super::phrases::quote;
use angelia_gateway::{CallError, Conversation, Event};
use std::time::Duration;

/// Steps of a thought. With [`STEP`] about 30 s: nobody misses the stop button.
const STEPS: usize = 20;
const STEP: Duration = Duration::from_millis(1_500);
/// How long it shows that it types before the first step.
const TYPES_FOR: Duration = Duration::from_millis(1_000);

/// What it is at, for two steps each.
const THOUGHTS: [&str; STEPS / 2] = [
    "Reading your words once more.",
    "Turning them over.",
    "Asking what they mean if they mean the opposite.",
    "Counting the syllables.",
    "Consulting a book that does not exist.",
    "Weighing *yes* against *no*.",
    "Finding that both weigh the same.",
    "Having tea.",
    "Starting over, with more confidence.",
    "Putting the answer into one sentence.",
];

/// The agent of the private chat.
pub(super) async fn metis(event: Event, conversation: Conversation) {
    if let Err(error) = think(&event.text, &conversation).await {
        tracing::debug!(%error, "Metis could not finish a thought");
    }
}

async fn think(about: &str, conversation: &Conversation) -> Result<(), CallError> {
    let quote = quote(about);
    conversation.typing().await?;
    if stopped_within(TYPES_FOR, conversation).await {
        return conversation.send(&format!("{quote}\n\n**Stopped before the first step.**")).await.map(drop);
    }
    let first = conversation.send(&at_step(&quote, 1)).await?;
    let Some(message) = first.message_id.as_deref() else { return Ok(()) };
    for step in 1..=STEPS {
        if stopped_within(STEP, conversation).await {
            return conversation.edit(message, &stopped(&quote, step)).await.map(drop);
        }
        let text = if step < STEPS { at_step(&quote, step + 1) } else { done(&quote) };
        match conversation.edit(message, &text).await {
            // The next step shows what this one did not.
            Err(error) if !matches!(error, CallError::Stopped) => tracing::debug!(%error, "a step was lost"),
            shown => drop(shown?),
        }
    }
    Ok(())
}

/// Waits; tells whether somebody stopped the turn meanwhile.
async fn stopped_within(time: Duration, conversation: &Conversation) -> bool {
    tokio::time::timeout(time, conversation.cancelled()).await.is_ok()
}

fn at_step(quote: &str, step: usize) -> String {
    let thought = THOUGHTS[(step - 1) / 2 % THOUGHTS.len()];
    let bar = "▰".repeat(step) + &"▱".repeat(STEPS - step);
    format!(
        "{quote}\n\nI am **Metis**, and I am thinking about it: step **{step} of {STEPS}**.\n\n`{bar}`\n\n\
         {thought} Press **Stop** if you have seen enough."
    )
}

fn stopped(quote: &str, step: usize) -> String {
    format!(
        "{quote}\n\n**Stopped at step {step} of {STEPS}.** The interrupt went ahead of everything that waits, \
         over the same socket as your message. I keep nothing half done: ask again whenever you like."
    )
}

fn done(quote: &str) -> String {
    format!(
        "{quote}\n\nI thought about it in **{STEPS} steps**, and my answer is: *perhaps*. I am a demo agent, I \
         only count. Write something else and press **Stop** while I think."
    )
}
