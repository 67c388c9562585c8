//! A command while a turn runs.

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{READING, Stage, TENANT, TURN, note};
use crate::hermes::Version;
use crate::model::Outcome;

/// How quickly things must go; a reader that stalls takes 30 s.
const NO_STALL: Duration = Duration::from_secs(15);

/// Somebody asks for help while the agent works in the web chat: another room
/// is served meanwhile, and both the work and the help come in time.
pub async fn help_in_mid_turn(version: Version, binary: &Path, folder: &Path) {
    let stage = Stage::set(version, binary, folder).await;
    let ann = stage.person("lobby").await;
    let bob = stage.connector.person(TENANT, "kitchen", "bob").await;
    for person in [&ann, &bob] {
        person.say("warm-up").await;
        person.wait_for_answer("echo: warm-up", TURN).await;
    }
    sleep(READING).await;
    stage.model.hang_on("slow-work");
    ann.say("slow-work").await;
    stage.model.wait_for_text("slow-work", TURN).await;
    ann.say("/help").await;
    // Fixed pause: a command pushed into the turn would have made the reader stall by now.
    sleep(Duration::from_secs(1)).await;

    let asked = Instant::now();
    bob.say("another-room").await;
    bob.wait_for_answer("echo: another-room", NO_STALL).await;
    note(version, "another room, in mid-turn", asked);
    assert_eq!(stage.model.outcome("slow-work"), Some(Outcome::Running), "help cuts nothing short");
    stage.model.release();
    let released = Instant::now();
    ann.wait_for_answer("echo: slow-work", NO_STALL).await;
    ann.wait_for_answer("/new", NO_STALL).await;
    note(version, "/help, behind the turn", released);
    ann.say("after-help").await;
    ann.wait_for_answer("echo: after-help", NO_STALL).await;
    assert_eq!(stage.model.arrivals("/help"), 0, "a command is no text for the model");
}
