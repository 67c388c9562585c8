//! Turns that are stopped.

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{READING, Stage, TURN, note};
use crate::hermes::Version;
use crate::model::Outcome;
use crate::process::eventually;
use crate::webchat::Person;

/// How quickly a stopped turn must end; seen: 0.1–0.3 s.
const STOP: Duration = Duration::from_secs(10);

/// How a person ends a running turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// By writing `/stop`.
    Typed,
    /// By the room's stop button.
    Button,
}

/// A running turn is stopped; it ends at once and nothing comes of it later.
pub async fn stop(version: Version, binary: &Path, folder: &Path, how: Stop) {
    let stage = Stage::set(version, binary, folder).await;
    let ann = stage.person("lobby").await;
    ann.say("warm-up").await;
    ann.wait_for_answer("echo: warm-up", TURN).await;
    sleep(READING).await;
    stage.model.hang_on("endless");
    ann.say("endless-work").await;
    stage.model.wait_for_text("endless-work", TURN).await;
    // Fixed pause: the agent must be waiting for the model, not still be opening the request.
    sleep(Duration::from_millis(500)).await;
    assert_eq!(stage.model.outcome("endless-work"), Some(Outcome::Running));

    let begun = Instant::now();
    match how {
        Stop::Typed => {
            ann.say("/stop").await;
        }
        Stop::Button => ann.interrupt().await,
    }
    stage.model.wait_for_outcome("endless-work", Outcome::Cut, STOP).await;
    note(version, &format!("stopped ({how:?})"), begun);
    stage.model.release();
    stage.connector.until_quiet().await;
    no_echo(&ann, "endless-work");
    assert_eq!(stage.model.arrivals("/stop"), 0, "a command is no text for the model");

    // The room is usable again, after the reader's stall if there was one. The
    // agent may see the stopped text once more, joined with the new one.
    ann.say("after-stop").await;
    stage.model.wait_for_text("after-stop", TURN).await;
    let answered = || ann.answers().iter().any(|text| text.contains("after-stop")).then_some(());
    eventually("an answer after the stop", TURN, answered).await;
    note(version, &format!("usable again ({how:?})"), begun);
    no_echo(&ann, "endless-work");
}

/// Notices ("Stopped", "Operation interrupted") are fine, the answer is not.
fn no_echo(person: &Person, text: &str) {
    let answers = person.answers();
    let echo = format!("echo: {text}");
    assert!(!answers.contains(&echo), "the stopped turn was answered: {answers:?}");
}
