//! Gateways that are away for a while.

use std::path::Path;

use tokio::time::{Instant, sleep};

use super::{BOOT, QUIET, READING, SHUTDOWN, Stage, TURN, note};
use crate::hermes::Version;
use crate::model::Model;

/// The gateway is away while people write in three rooms; nothing is lost.
///
/// `crash` ends it without notice instead of with SIGTERM.
pub async fn restart(version: Version, binary: &Path, folder: &Path, crash: bool) {
    let mut stage = Stage::set(version, binary, folder).await;
    let rooms = ["alpha", "beta", "gamma"];
    let mut people = Vec::new();
    for room in rooms {
        let person = stage.person(room).await;
        person.say(&format!("{room}-before")).await;
        person.wait_for_answer(&format!("echo: {room}-before"), TURN).await;
        people.push(person);
    }
    sleep(READING).await;
    if crash {
        stage.hermes.kill().await;
    } else {
        stage.hermes.terminate(SHUTDOWN).await;
    }
    for number in 1..=3 {
        for (room, person) in rooms.iter().zip(&people) {
            person.say(&format!("{room}-away-{number}")).await;
        }
    }
    let begun = Instant::now();
    stage.hermes.restart();
    stage.hermes.wait_connected(BOOT).await;
    for room in rooms {
        stage.model.wait_for_text(&format!("{room}-away-3"), TURN).await;
    }
    note(version, "backlog at the model", begun);
    // A text that is sent twice comes late: give it the time to.
    sleep(QUIET).await;
    for (room, person) in rooms.iter().zip(&people) {
        check_backlog(version, &stage.model, room);
        // The last text's turn is never cut, so its answer must be there.
        person.wait_for_answer(&format!("{room}-away-3"), TURN).await;
    }
}

fn check_backlog(version: Version, model: &Model, room: &str) {
    let texts: Vec<_> = (1..=3).map(|number| format!("{room}-away-{number}")).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    assert_eq!(model.order_of(&texts), texts, "order in {room}: {:?}", model.texts());
    for text in texts {
        let times = model.arrivals(text);
        if version.acknowledges() {
            assert_eq!(times, 1, "{text} at the model: {:?}", model.texts());
        } else if times > 1 {
            eprintln!("{version}: {text} reached the model {times} times");
        }
    }
}
