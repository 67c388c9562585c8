//! One death at every named point between receive and acknowledge.

use crate::agent::Agent;
use crate::judge::{Accepted, judge};
use crate::room::Room;
use crate::server::Server;
use crate::stage::{busy, report};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Points on the way of a message, in its order.
const ON_THE_WAY_IN: [&str; 5] =
    ["before_append", "before_commit", "after_commit", "after_push", "after_ack"];
/// Points on the way of an answer.
const ON_THE_WAY_OUT: [&str; 2] = ["action_accepted", "action_sending"];
/// At which pass of the point the process ends.
const PASSES: [u64; 3] = [1, 4, 17];
/// How a process ends itself.
const SIGABRT: i32 = 6;
const SOON: Duration = Duration::from_secs(30);

/// Wherever the process ends on the way of a message, nothing accepted is lost.
#[test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
fn on_the_way_of_a_message() {
    const TEST: &str = "named_points_in";
    busy(async {
        let began = Instant::now();
        let mut server = Server::start(TEST).await;
        let credentials = server.gateway("default", "gw-log").await;
        let agent = Agent::start(&server, &credentials, &[]);
        let enough = Arc::new(AtomicBool::new(false));
        let mut posters = JoinSet::new();
        for number in 0..3 {
            let room = Room::enter(&server, &format!("room{number}"), "gw-log").await;
            posters.spawn(write_until(room, enough.clone()));
        }
        let mut deaths = 0;
        for point in ON_THE_WAY_IN {
            for pass in PASSES {
                server.process.kill().await;
                die_at(&mut server, &format!("{point}@{pass}")).await;
                deaths += 1;
                server.wait_ready().await;
                // What it died on, and some more, before the next.
                agent.wait_for(agent.seen().len() + 10, SOON).await;
            }
        }
        enough.store(true, Ordering::Relaxed);
        let accepted: Accepted = posters.join_all().await.into_iter().collect();
        let count = accepted.values().map(Vec::len).sum();
        agent.wait_for(count, SOON).await;
        let verdict = judge(&accepted, &agent.seen());
        server.assert_never_panicked();
        report(TEST, &format!("{deaths} deaths: {verdict}; {:.1?}", began.elapsed()));
    });
}

/// An answer whose action the connector had written down appears in the room
/// exactly once, although the gateway never got its result and does not repeat
/// it: the ledger does, and its id keeps the line from appearing twice.
#[test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
fn on_the_way_of_an_answer() {
    const TEST: &str = "named_points_out";
    busy(async {
        let began = Instant::now();
        let mut server = Server::start(TEST).await;
        let credentials = server.gateway("default", "gw-log").await;
        let agent = Agent::start(&server, &credentials, &["--reply"]);
        let room = Room::enter(&server, "den", "gw-log").await;
        let mut texts = Vec::new();
        for point in ON_THE_WAY_OUT {
            for pass in PASSES {
                server.process.kill().await;
                server.respawn(Some(&format!("{point}@{pass}")));
                // One at a time: only the last answer can be the one it died on.
                while server.process.is_running() {
                    let text = format!("den-{:05}", texts.len());
                    room.post_while_alive(&text, &mut server).await;
                    texts.push(text);
                    if server.process.is_running() {
                        wait_answered(&room, &mut server, texts.len()).await;
                    }
                }
                assert_died_there(server.process.wait(SOON).await, point);
                server.respawn(None);
                server.wait_ready().await;
                // A last post whose answer the dead server never gave is repeated under its id.
                let last = texts.last().cloned().unwrap_or_default();
                room.post(&last, &last).await;
                wait_answered(&room, &mut server, texts.len()).await;
            }
        }
        let expected: Vec<String> = texts.iter().map(|text| format!("re:{text}")).collect();
        assert_eq!(room.answers().await, expected, "every answer once, in order");
        let sends = agent.records("send").len();
        assert_eq!(sends, texts.len(), "the agent sent every answer once");
        let results = agent.records("result").len();
        let deaths = ON_THE_WAY_OUT.len() * PASSES.len();
        assert_eq!(sends - results, deaths, "the answers it died on are those without a result");
        judge(&Accepted::from([(room.chat(), texts)]), &agent.seen());
        server.assert_never_panicked();
        report(
            TEST,
            &format!(
                "{deaths} deaths: {sends} answers sent once, {results} results, each line once; {:.1?}",
                began.elapsed()
            ),
        );
    });
}

/// An answer that ends the server whenever it is sent: it goes on being tried until
/// two processes ended while they were calling for it, and is set aside then, by name.
#[test]
#[cfg_attr(not(feature = "fail-points"), ignore = "needs --features angelia/fail-points")]
fn an_answer_that_ends_the_server_is_set_aside() {
    busy(async {
        let mut server = Server::start("poison").await;
        let credentials = server.gateway("default", "gw-log").await;
        let agent = Agent::start(&server, &credentials, &["--reply"]);
        let room = Room::enter(&server, "den", "gw-log").await;
        server.process.kill().await;
        let (mut deaths, fail) = (0, "action_sending@1");
        server.respawn(Some(fail));
        room.post_while_alive("poison", &mut server).await;
        while let Some(status) = server.process.wait(Duration::from_secs(10)).await {
            assert_died_there(Some(status), fail);
            deaths += 1;
            assert!(deaths < 9, "it is tried at every start");
            server.respawn(Some(fail));
        }
        // Whoever had it first did not note it, so that costs one more. What its room is told of
        // it ends the server as well here, and is set aside too.
        assert_eq!(deaths, 6);
        let aside = "set aside: it was under way at two crashes";
        let log = server.log();
        let line = log.lines().find(|line| line.contains(aside)).expect("the log says so");
        assert!(line.contains("default") && line.contains("gw-log"), "{line}");
        server.process.kill().await;
        server.respawn(None);
        server.wait_ready().await;
        room.post("well", "well").await;
        wait_answered(&room, &mut server, 1).await;
        assert_eq!(room.answers().await, ["re:well"], "others go on");
        drop(agent);
    });
}

/// Starts the server so that it ends itself at `fail`, waits for that, and
/// starts it again without.
async fn die_at(server: &mut Server, fail: &str) {
    server.respawn(Some(fail));
    let status = server.process.wait(SOON).await;
    assert_died_there(status, fail);
    server.respawn(None);
}

/// The process ended itself: not by the test's hand, and not for another reason.
fn assert_died_there(status: Option<ExitStatus>, fail: &str) {
    let status = status.unwrap_or_else(|| panic!("the server never passed {fail}"));
    assert_eq!(status.signal(), Some(SIGABRT), "the server did not end at {fail} but with {status}");
}

async fn write_until(room: Room, enough: Arc<AtomicBool>) -> (String, Vec<String>) {
    let mut texts = Vec::new();
    while !enough.load(Ordering::Relaxed) {
        let text = format!("{}-{:05}", room.name, texts.len());
        room.post(&text, &text).await;
        texts.push(text);
        sleep(Duration::from_millis(2)).await;
    }
    (room.chat(), texts)
}

impl Room {
    /// Posts until it is accepted or the server is dead.
    async fn post_while_alive(&self, text: &str, server: &mut Server) {
        while !matches!(self.post_once(text, text).await, Some(200..=299)) && server.process.is_running() {
            sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Waits until the room has `count` answers or the server is dead.
async fn wait_answered(room: &Room, server: &mut Server, count: usize) {
    let deadline = Instant::now() + SOON;
    while server.process.is_running() && room.try_answers().await.is_none_or(|answers| answers.len() < count)
    {
        assert!(Instant::now() < deadline, "fewer than {count} answers after {SOON:?}");
        sleep(Duration::from_millis(10)).await;
    }
}
