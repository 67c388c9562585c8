//! Who waits for an answer that does not come is told in time, once.

use super::ledger::Crashing;
use super::platform::{Scripted, Told, sent};
use super::vault::{Asks, asks, reply, token};
use super::world::{QUICK, World, until};
use angelia_core::egress::Dedupe;
use angelia_core::error::Error;
use angelia_core::vault::{Deferral, NOTICE_BEFORE, Way};
use angelia_engines::inspect::Inspect;
use std::time::Duration;

/// Nearly over: whoever waits for this one is told at once.
const NEARLY: Duration = Duration::from_secs(20);

fn told(platform: &Scripted) -> Vec<(Way, String)> {
    let mut told: Vec<_> =
        platform.told.lock().unwrap().iter().map(|it| (it.way, it.credential.clone())).collect();
    told.sort_by(|a, b| a.1.cmp(&b.1));
    told
}

async fn until_told(platform: &Scripted, count: usize) {
    until(|| told(platform).len() == count, || format!("{:?}", told(platform))).await;
}

#[tokio::test]
async fn they_are_told_in_their_place_and_a_later_answer_is_a_message() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    let mut agent = world.agent().await;
    let soon = |id: &str| Asks { lasts: NEARLY, ..asks(id, "ann") };
    world.take(&asks("answered", "ann")).await;
    assert_eq!(agent.asked(reply("x-lab", "in time", "answered")).await["success"], true);
    let held = platform.hold();
    world.take(&asks("being-answered", "ann")).await;
    agent.ask("held", reply("x-lab", "on its way", "being-answered")).await;
    world.until_stages(&["answered", "claimed"]).await;
    for id in ["answered", "being-answered"] {
        world.ends_in(id, NEARLY.as_millis() as i64);
    }
    platform.tell_fails.lock().unwrap().push_back(Error::unavailable("it is down"));
    world.take(&soon("typed")).await;
    world.take(&Asks { deferral: Deferral::Update, ..soon("pressed") }).await;
    world.take(&Asks { lasts: NOTICE_BEFORE + NEARLY, ..asks("later", "ann") }).await;
    until_told(&platform, 2).await;
    assert_eq!(told(&platform), [(Way::Further, token("pressed")), (Way::Original, token("typed"))]);
    let Told { text, .. } = platform.told.lock().unwrap()[0].clone();
    assert!(text.contains("new message"), "{text}");
    held.send(sent("m")).unwrap();
    assert_eq!(agent.answer("held").await["success"], true);
    world.until_stages(&["answered", "answered", "noticed", "noticed", "open"]).await;

    assert_eq!(agent.asked(reply("x-lab", "late", "typed")).await["success"], true);
    let calls = platform.calls();
    assert_eq!(calls.last().map(|call| (call.text.as_str(), call.answer.is_none())), Some(("late", true)));
    // A later look finds one who is due, and passes over those who know.
    world.take(&soon("one more")).await;
    until_told(&platform, 3).await;
    let once = [(Way::Original, "one more"), (Way::Further, "pressed"), (Way::Original, "typed")];
    assert_eq!(told(&platform), once.map(|(way, id)| (way, token(id))), "each once");
}

#[tokio::test]
async fn whoever_cannot_be_told_is_not_tried_for_ever() {
    let platform = Scripted::new(Dedupe::No);
    let world = World::new(platform.clone()).await;
    world.agent().await.close().await;
    platform.tell_fails.lock().unwrap().push_back(Error::invalid("it will not be told"));
    world.take(&Asks { lasts: NEARLY, ..asks("i1", "ann") }).await;
    let fails = || platform.tell_fails.lock().unwrap().is_empty();
    until(fails, || "nobody tried".into()).await;
    // The next who is due is told by a later look, which passes over the first.
    world.take(&Asks { lasts: NEARLY, ..asks("i2", "ann") }).await;
    until_told(&platform, 1).await;
    assert_eq!(told(&platform), [(Way::Original, token("i2"))]);
}

#[test]
fn a_restart_forgets_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let platform = Scripted::new(Dedupe::No);
    platform.tell_fails.lock().unwrap().extend((0..50).map(|_| Error::unavailable("it is down")));
    let before = Crashing::start(folder.path(), platform.clone(), QUICK);
    let (_, agent) = before.first_gateway();
    before.client.block_on(async {
        before.world.take(&Asks { lasts: NEARLY, ..asks("begun", "ann") }).await;
        before.world.until_stages(&["noticed"]).await;
        before.world.take(&asks("waits", "bob")).await;
    });
    before.crash(agent);
    platform.tell_fails.lock().unwrap().clear();
    let disk = Inspect::of(folder.path());
    let first_end = disk.capabilities().iter().map(|one| one.expires_at).min().unwrap();
    disk.set_every_expiry(first_end);
    let again = Crashing::start(folder.path(), platform.clone(), QUICK);
    again.client.block_on(until_told(&platform, 2));
    assert_eq!(told(&platform), [(Way::Original, token("begun")), (Way::Original, token("waits"))]);
}
