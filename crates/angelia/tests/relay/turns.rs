//! People do not wait for an agent to finish before they write again.
//!
//! Each story is told with a gateway that marks its turns and with one that
//! never does. Pushed into a running turn, both would hear nothing for half a
//! minute; here nobody ever notices.

use super::interrupt::join_as;
use super::world::{World, binary};
use angelia_testkit::connector::Connector;
use angelia_testkit::newer_gateway::{ASKS_BACK, NEEDS_APPROVAL, NewerGateway, Settings};
use angelia_testkit::webchat::Person;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// The tenant of them all.
const TENANT: &str = "acme";
/// How long the model takes.
const TURN: Duration = Duration::from_secs(5);
/// What the rest of the way may take on a busy machine; a stall is ten times as long.
const ON_THE_WAY: Duration = Duration::from_secs(3);
/// Longer than all turns of a story, and shorter than a stall and what comes behind it.
const PATIENCE: Duration = Duration::from_secs(28);

/// A connector, and a newer gateway that has connected.
struct Stage {
    connector: Connector,
    agent: NewerGateway,
    _folder: TempDir,
}

impl Stage {
    async fn set(settings: Settings) -> Self {
        angelia_connector::ssrf_guard::install_tls_provider();
        let folder = tempfile::tempdir().unwrap();
        let connector = Connector::start(binary(), folder.path()).await;
        let gateway = connector.gateway(TENANT, "gw").await;
        let agent = NewerGateway::start(&connector.url(), &gateway, settings).await;
        Self { connector, agent, _folder: folder }
    }

    async fn person(&self, name: &str) -> Person {
        self.connector.private(TENANT, name).await
    }

    /// What was new to the model of what somebody wrote, line by line.
    fn lines(&self, name: &str) -> Vec<String> {
        self.agent.lines(&format!("web-dm:{name}"))
    }

    /// One turn as it should be: from it the connector knows how this gateway ends them.
    async fn warm_up(&self, person: &Person) {
        person.say("warm-up").await;
        person.wait_for_answer("echo: warm-up", PATIENCE).await;
        self.agent.wait_until_free(PATIENCE).await;
    }

    /// Somebody writes, and is served as if nobody else had an agent here.
    async fn served_as_if_alone(&self, person: &Person, text: &str) {
        let posted = Instant::now();
        person.say(text).await;
        let given = self.agent.wait_for_text(text, PATIENCE).await;
        assert!(given - posted < ON_THE_WAY, "{text:?} waited {:?}", given - posted);
        person.wait_for_answer(&format!("echo: {text}"), PATIENCE).await;
        assert!(posted.elapsed() < TURN + ON_THE_WAY, "{text:?} took {:?}", posted.elapsed());
    }
}

/// Two lines two seconds apart, and somebody else a second later.
async fn another_chat_is_served_as_if_alone(settings: Settings) {
    let stage = Stage::set(settings).await;
    let (ann, bob) = (stage.person("ann").await, stage.person("bob").await);
    ann.say("ann-one").await;
    // Fixed pause: somebody types the next line.
    sleep(Duration::from_secs(2)).await;
    ann.say("ann-two").await;
    // Fixed pause: somebody else writes a second later.
    sleep(Duration::from_secs(1)).await;
    stage.served_as_if_alone(&bob, "bob-one").await;
    ann.wait_for_answer("ann-two", PATIENCE).await;
    assert_eq!(stage.lines("ann"), ["ann-one", "ann-two"]);
    stage.agent.assert_unharmed();
}

/// Sixty lines in three seconds in each of two chats.
async fn of_a_burst_every_line_arrives_once_and_in_order(settings: Settings) {
    let stage = Stage::set(settings.turn(Duration::from_secs(2))).await;
    let (ann, bob) = (stage.person("ann").await, stage.person("bob").await);
    let line = |name: &str, n: u32| format!("{name}-{n:02}");
    for n in 0..60 {
        let (of_ann, of_bob) = (line("ann", n), line("bob", n));
        tokio::join!(ann.say(&of_ann), bob.say(&of_bob), sleep(Duration::from_millis(50)));
    }
    for name in ["ann", "bob"] {
        stage.agent.wait_for_text(&line(name, 59), PATIENCE).await;
        let wanted: Vec<_> = (0..60).map(|n| line(name, n)).collect();
        assert_eq!(stage.lines(name), wanted);
    }
    stage.agent.wait_until_free(PATIENCE).await;
    stage.agent.assert_unharmed();
}

/// A command while a turn runs is answered, and costs nobody anything.
async fn a_command_in_mid_turn_is_answered(settings: Settings) {
    let stage = Stage::set(settings).await;
    let (ann, bob) = (stage.person("ann").await, stage.person("bob").await);
    ann.say("ann-one").await;
    stage.agent.wait_for_text("ann-one", PATIENCE).await;
    ann.say("/status").await;
    stage.served_as_if_alone(&bob, "bob-one").await;
    ann.wait_for_answer("about /status", PATIENCE).await;
    ann.wait_for_answer("echo: ann-one", PATIENCE).await;
    stage.agent.assert_unharmed();
}

/// An approval that nobody gives for a minute; people write all the same.
async fn an_open_approval_holds_up_its_own_chat_only(settings: Settings) {
    let stage = Stage::set(settings).await;
    let (ann, bob) = (stage.person("ann").await, stage.person("bob").await);
    stage.warm_up(&ann).await;
    ann.say(NEEDS_APPROVAL).await;
    ann.wait_for_answer("pproval", PATIENCE).await;
    let asked = Instant::now();
    // Fixed pause: somebody reads it and asks something else; the agent types no more.
    sleep(Duration::from_secs(5)).await;
    ann.say("ann-waits").await;
    for n in 1.. {
        stage.served_as_if_alone(&bob, &format!("bob-{n}")).await;
        if asked.elapsed() > Duration::from_secs(60) {
            break;
        }
        // Fixed pause: an approval left open is time that goes by.
        sleep(Duration::from_secs(8)).await;
    }
    assert_eq!(stage.agent.given_at("ann-waits"), None, "pushed into the open approval, it would be lost");
    ann.interrupt().await;
    ann.wait_for_answer("ann-waits", PATIENCE).await;
    stage.agent.assert_unharmed();
}

/// The agent asks something back in words, and is answered three seconds later.
async fn an_answer_to_a_question_reaches_the_agent(settings: Settings) {
    let stage = Stage::set(settings).await;
    let ann = stage.person("ann").await;
    ann.say(ASKS_BACK).await;
    ann.wait_for_answer("Which colour?", PATIENCE).await;
    // Fixed pause: somebody thinks about it.
    sleep(Duration::from_secs(3)).await;
    ann.say("green").await;
    stage.agent.wait_for_text("green", PATIENCE).await;
    stage.agent.wait_until_free(PATIENCE).await;
    assert_eq!(stage.lines("ann"), [ASKS_BACK, "green"]);
    stage.agent.assert_unharmed();
}

/// The line breaks in mid-turn; the process works on.
async fn a_reconnect_in_mid_turn_loses_nothing(settings: Settings) {
    let stage = Stage::set(settings).await;
    let (ann, bob) = (stage.person("ann").await, stage.person("bob").await);
    ann.say("ann-one").await;
    stage.agent.wait_for_text("ann-one", PATIENCE).await;
    stage.agent.cut().await;
    ann.say("ann-two").await;
    bob.say("bob-one").await;
    ann.wait_for_answer("ann-two", PATIENCE).await;
    bob.wait_for_answer("echo: bob-one", PATIENCE).await;
    assert_eq!(stage.agent.sockets(), 2);
    assert_eq!(stage.lines("ann"), ["ann-one", "ann-two"]);
    assert_eq!(stage.lines("bob"), ["bob-one"]);
    stage.agent.assert_unharmed();
}

macro_rules! told_of {
    ($module:ident, $settings:expr, $($story:ident,)*) => {
        mod $module {
            use angelia_testkit::newer_gateway::Settings;

            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $story() {
                    super::$story($settings.turn(super::TURN)).await;
                }
            )*
        }
    };
}

macro_rules! stories {
    ($($story:ident,)*) => {
        told_of! { a_peer_that_marks_its_turns, Settings::default(), $($story,)* }
        told_of! { a_peer_that_never_reacts, Settings::default().never_reacts(), $($story,)* }
    };
}

stories! {
    another_chat_is_served_as_if_alone,
    of_a_burst_every_line_arrives_once_and_in_order,
    a_command_in_mid_turn_is_answered,
    an_open_approval_holds_up_its_own_chat_only,
    an_answer_to_a_question_reaches_the_agent,
    a_reconnect_in_mid_turn_loses_nothing,
}

/// A gateway is gone in mid-turn, and what comes back knows nothing of it.
#[tokio::test]
#[ignore = "takes more than two minutes; docs/reliability.md has the command"]
async fn a_turn_that_was_cut_off_is_told_of_once() {
    const PUBLISHED: &str = "Python/3.11 websockets/15.0.1";
    let world = World::new().await;
    let mut socket = join_as(&world, PUBLISHED).await;
    world.post("one").await;
    assert_eq!(socket.take_text().await, "one");
    drop(socket);
    let mut socket = join_as(&world, PUBLISHED).await;
    let back = Instant::now();
    let told = async |world: &World| {
        let lines = world.lines().await;
        lines.iter().filter(|line| line.to_string().contains("has not answered since")).count()
    };
    while told(&world).await == 0 {
        assert!(back.elapsed() < Duration::from_secs(130), "nobody was told");
        socket.next(Duration::from_secs(1)).await;
    }
    assert!(back.elapsed() > Duration::from_secs(115), "told after {:?}", back.elapsed());
    socket.next(Duration::from_secs(5)).await;
    assert_eq!(told(&world).await, 1);
}
