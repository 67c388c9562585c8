//! The connector is killed again and again while people write.

use crate::agent::Agent;
use crate::dice::Dice;
use crate::judge::{Accepted, judge};
use crate::room::Room;
use crate::server::Server;
use crate::stage::{busy, report};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const TEST: &str = "killed_connector";
const MESSAGES: u64 = 10_000;
const ROOMS: u64 = 8;
const KILLS: usize = 60;

/// SIGKILL at random moments of 10,000 messages loses none of them, keeps each
/// chat in order and repeats only what was in flight.
#[test]
fn sixty_kills_during_ten_thousand_messages() {
    busy(async {
        let mut dice = Dice::roll_for(TEST);
        let began = Instant::now();
        let mut server = Server::start(TEST).await;
        let credentials = server.gateway("default", "gw-log").await;
        let agent = Agent::start(&server, &credentials, &[]);
        let accepted_so_far = Arc::new(AtomicU64::new(0));
        let mut posters = JoinSet::new();
        for number in 0..ROOMS {
            let room = Room::enter(&server, &format!("room{number}"), "gw-log").await;
            posters.spawn(write(room, MESSAGES / ROOMS, accepted_so_far.clone()));
        }

        // Each kill waits for a random share of the messages, and then a random moment more.
        let mut moments: Vec<u64> = (0..KILLS).map(|_| dice.within(1, MESSAGES - 100)).collect();
        moments.sort_unstable();
        let (mut kills, mut in_startup) = (0, 0);
        for moment in moments {
            while accepted_so_far.load(Ordering::Relaxed) < moment {
                sleep(Duration::from_millis(1)).await;
            }
            sleep(Duration::from_micros(dice.within(0, 8_000))).await;
            server.process.kill().await;
            kills += 1;
            server.respawn(None);
            // Some find the server still busy with coming back.
            if dice.one_in(6) {
                sleep(Duration::from_millis(dice.within(0, 60))).await;
                server.process.kill().await;
                kills += 1;
                in_startup += 1;
                server.respawn(None);
            }
        }

        let accepted: Accepted = posters.join_all().await.into_iter().collect();
        agent.wait_for(usize::try_from(MESSAGES).unwrap(), Duration::from_secs(60)).await;
        let verdict = judge(&accepted, &agent.seen());
        assert_eq!(verdict.messages as u64, MESSAGES);
        assert!(kills >= 50, "{kills} kills");
        assert_eq!(server.dead_letters().await, 0, "a kill of the connector is nobody's strike");
        server.assert_never_panicked();
        report(
            TEST,
            &format!("{kills} kills ({in_startup} during a start): {verdict}; {:.1?}", began.elapsed()),
        );
    });
}

/// Writes `count` messages one after the other; returns the chat and its texts.
async fn write(room: Room, count: u64, accepted: Arc<AtomicU64>) -> (String, Vec<String>) {
    let mut texts = Vec::new();
    for number in 0..count {
        let text = format!("{}-{number:05}", room.name);
        room.post(&text, &text).await;
        accepted.fetch_add(1, Ordering::Relaxed);
        texts.push(text);
    }
    (room.chat(), texts)
}
