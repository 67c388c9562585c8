//! Whole stories: a person, the connector, a real gateway, a model.
//!
//! Each scenario starts everything it needs in `folder` and panics when the
//! story goes wrong. Assertions follow what the gateways really do: texts are
//! counted at the model (answers may be merged), the home-channel notice that
//! precedes a first answer is left out, and 0.17.0, which never acknowledges,
//! may get a text twice but never not at all.

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::connector::Connector;
use crate::hermes::{Hermes, Options, Version};
use crate::model::{Model, Outcome};
use crate::process::eventually;
use crate::webchat::Person;

/// A gateway starts in 1–2 s; machines are busy while tests run.
const BOOT: Duration = Duration::from_secs(60);

/// A first turn takes 4–7 s, and a stalled reader adds 30 s.
const TURN: Duration = Duration::from_secs(90);

/// An idle gateway ends in less than a second.
const SHUTDOWN: Duration = Duration::from_secs(30);

/// How long something that must not happen is awaited.
const QUIET: Duration = Duration::from_secs(3);

/// How quickly a stopped turn must end; seen: 0.1–0.3 s.
const STOP: Duration = Duration::from_secs(10);

/// A person reads before writing again. It also keeps clear of a hole in
/// 0.19.0: a text that arrives in the very moment a turn ends is acknowledged,
/// but stays parked until the chat's next one.
const READING: Duration = Duration::from_secs(2);

/// How a person ends a running turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// By writing `/stop`.
    Typed,
    /// By the room's stop button.
    Button,
}

/// A connector, a model and one gateway that has connected.
struct Stage {
    connector: Connector,
    model: Model,
    hermes: Hermes,
}

impl Stage {
    const TENANT: &str = "acme";

    async fn set(version: Version, binary: &Path, folder: &Path) -> Self {
        let connector = Connector::start(binary, &folder.join("connector")).await;
        let model = Model::start().await;
        let gateway = connector.gateway(Self::TENANT, "gw-test").await;
        let options = Options {
            // Its stall has nothing to do with the stories told here.
            busy_ack: Some(false),
            ..Options::default()
        };
        let begun = Instant::now();
        let mut hermes = Hermes::start_with(
            version,
            folder.join("hermes"),
            &connector.url(),
            &gateway.gateway_id,
            &gateway.secret,
            &model.url(),
            options,
        );
        hermes.wait_connected(BOOT).await;
        note(version, "connected", begun);
        Self { connector, model, hermes }
    }

    async fn person(&self, room: &str) -> Person {
        self.connector.person(Self::TENANT, room, "ann").await
    }
}

/// A person writes, the agent's answer appears in the room, and once only.
pub async fn round_trip(version: Version, binary: &Path, folder: &Path) {
    let stage = Stage::set(version, binary, folder).await;
    let ann = stage.person("lobby").await;
    for text in ["first-question", "second-question"] {
        let begun = Instant::now();
        ann.say(text).await;
        ann.wait_for_answer(&format!("echo: {text}"), TURN).await;
        note(version, text, begun);
        sleep(READING).await;
        assert_eq!(stage.model.arrivals(text), 1, "{:?}", stage.model.texts());
    }
    sleep(QUIET).await;
    assert_eq!(ann.answers(), ["echo: first-question", "echo: second-question"]);
}

/// Two rooms of one gateway: answers stay in their room, contexts apart.
pub async fn two_rooms(version: Version, binary: &Path, folder: &Path) {
    let stage = Stage::set(version, binary, folder).await;
    let (red, blue) = (stage.person("red").await, stage.person("blue").await);
    for round in 1..=2 {
        red.say(&format!("red-{round}")).await;
        blue.say(&format!("blue-{round}")).await;
        red.wait_for_answer(&format!("echo: red-{round}"), TURN).await;
        blue.wait_for_answer(&format!("echo: blue-{round}"), TURN).await;
        sleep(READING).await;
    }
    sleep(QUIET).await;
    assert_eq!(red.answers(), ["echo: red-1", "echo: red-2"]);
    assert_eq!(blue.answers(), ["echo: blue-1", "echo: blue-2"]);
    for turn in stage.model.turns() {
        let context = turn.body["messages"].to_string();
        let mixed = context.contains("red-") && context.contains("blue-");
        assert!(!mixed, "one turn knows both rooms: {:?}", turn.user_messages);
    }
}

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
    // The agent must be waiting for the model, not still be opening the request.
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
    sleep(QUIET).await;
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

fn note(version: Version, what: &str, begun: Instant) {
    eprintln!("{version}: {what}: {:.2} s", begun.elapsed().as_secs_f64());
}
