//! The gateway is killed again and again while people write.

use crate::agent::Agent;
use crate::dice::Dice;
use crate::judge::{Accepted, judge};
use crate::room::Room;
use crate::server::Server;
use crate::stage::{busy, report};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const TEST: &str = "killed_gateway";
const MESSAGES: usize = 2_400;
const ROOMS: usize = 4;
const KILLS: usize = 16;

/// SIGKILL of the gateway loses nothing: what it did not acknowledge comes
/// again to the next process, in order, and nothing else does.
#[test]
fn sixteen_kills_of_the_gateway() {
    busy(async {
        let mut dice = Dice::roll_for(TEST);
        let began = Instant::now();
        let server = Server::start(TEST).await;
        let credentials = server.gateway("default", "gw-log").await;
        let mut agent = Agent::start(&server, &credentials, &[]);
        let mut posters = JoinSet::new();
        for number in 0..ROOMS {
            let room = Room::enter(&server, &format!("room{number}"), "gw-log").await;
            posters.spawn(async move {
                let mut texts = Vec::new();
                for number in 0..MESSAGES / ROOMS {
                    let text = format!("{}-{number:05}", room.name);
                    room.post(&text, &text).await;
                    texts.push(text);
                }
                (room.chat(), texts)
            });
        }
        let mut done = 0;
        for _ in 0..KILLS {
            // Three sockets in a row that end without any acknowledgement make a dead
            // letter, by design: every process gets to acknowledge something first.
            let share = u64::try_from(MESSAGES / KILLS).unwrap();
            let target = done + usize::try_from(dice.within(3, share)).unwrap();
            let deadline = Instant::now() + Duration::from_secs(30);
            while agent.acked().len() < target {
                assert!(Instant::now() < deadline, "{} of {target} acknowledged", agent.acked().len());
                sleep(Duration::from_millis(2)).await;
            }
            sleep(Duration::from_micros(dice.within(0, 5_000))).await;
            agent.kill_and_restart().await;
            done = agent.acked().len();
        }
        let accepted: Accepted = posters.join_all().await.into_iter().collect();
        agent.wait_for(MESSAGES, Duration::from_secs(30)).await;
        let verdict = judge(&accepted, &agent.seen());
        assert_eq!(server.dead_letters().await, 0);
        server.assert_never_panicked();
        report(TEST, &format!("{KILLS} kills of the gateway: {verdict}; {:.1?}", began.elapsed()));
    });
}
