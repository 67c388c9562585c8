//! What is known of messages, for longer than the journal is kept.

use super::read_back::{listed, page};
use super::*;
use crate::sms::parse::Received;
use angelia_core::clock;
use angelia_core::inbox::Epoch;
use angelia_core::ports::{Leases, Term};
use angelia_core::store::{IdentityStore, PageSize, Settlement, StreamStore};
use angelia_engines::inspect::Inspect;
use serde_json::Value;

fn received(sid: &str, body: &str) -> Received {
    Received { sid: sid.into(), from: ANN.into(), to: OWN.into(), body: body.into(), ..Default::default() }
}

impl World {
    /// Three days pass in which nobody writes: agents got everything, and the journal forgets.
    async fn three_days_pass(&self) {
        let ports = &self.ingress.ports;
        let waiting = ports.log.load(self.door.instance, Seq(0), &[], PageSize::of(10_000)).await.unwrap();
        let settled = waiting.iter().map(|entry| Settlement {
            seq: entry.seq,
            by: angelia_core::inbox::SettledBy::Ack,
            pushed_at: None,
        });
        ports.log.settle(self.door.instance, Epoch(0), settled.collect()).await.unwrap();
        let disk = self.disk();
        disk.age_journal(Duration::from_secs(73 * 3600));
        ports.upkeep.prune().await.unwrap();
        assert_eq!(disk.journaled(), 0, "the journal has forgotten");
    }

    fn disk(&self) -> Inspect {
        Inspect::of(&self.folder.path().join("data"))
    }

    async fn looks_at(&self, sms: &Arc<Sms>, list: &Value) {
        self.twilio.answers(200, list);
        sms.catch_up(&self.ingress).await.unwrap();
    }

    fn next_process(&self) -> Arc<Sms> {
        Sms::new(self.sms.config.clone(), self.ingress.ports.clone()).unwrap()
    }
}

#[tokio::test]
async fn a_quiet_number_gets_its_last_messages_once() {
    let world = World::new().await;
    // More than each message's own mark is kept of.
    let messages: Vec<Value> = (0..300).rev().map(|n| listed(&format!("SM{n}"), "x", n)).collect();
    let list = page(&messages, None);
    world.looks_at(&world.sms, &list).await;
    assert_eq!(world.texts().await.len(), 300);
    for _ in 0..2 {
        world.three_days_pass().await;
        world.looks_at(&world.sms, &list).await;
        assert!(world.texts().await.is_empty(), "again");
    }
    let next = world.next_process();
    world.looks_at(&next, &list).await;
    assert!(world.texts().await.is_empty(), "again after a restart");
    let messages = [vec![listed("SM300", "new", 300)], messages].concat();
    world.looks_at(&next, &page(&messages, None)).await;
    assert_eq!(world.texts().await, ["new"]);
}

#[tokio::test]
async fn what_was_posted_just_before_a_long_absence_is_not_read_back_after_it() {
    let world = World::new().await;
    world.looks_at(&world.sms, &page(&[], None)).await;
    assert_eq!(world.sms.take(&world.ingress, &received("SM1", "one")).await.unwrap(), Took::Message);
    world.three_days_pass().await;
    let list = page(&[listed("SM2", "two", 2), listed("SM1", "one", 1)], None);
    world.looks_at(&world.next_process(), &list).await;
    assert_eq!(world.texts().await, ["two"]);
}

#[tokio::test]
async fn an_old_word_listed_again_tells_the_network_nothing() {
    let world = World::new().await;
    assert_eq!(
        world.sms.take(&world.ingress, &received("SM1", "yes")).await.unwrap(),
        Took::Message,
        "an answer to an agent"
    );
    assert_eq!(world.sms.take(&world.ingress, &received("SM2", "stop")).await.unwrap(), Took::Nothing);
    let has_stopped = async |sms: &Sms| sms.keyword(ANN, "yes", None).await.unwrap().is_some();
    assert!(has_stopped(&world.sms).await);
    let list = page(&[listed("SM2", "stop", 2), listed("SM1", "yes", 1)], None);
    world.looks_at(&world.sms, &list).await;
    assert!(has_stopped(&world.sms).await, "an old yes is no START");
    // However it comes again, and though only the journal knows it.
    let next = world.next_process();
    *next.reading.lock().await = Some((None, crate::sms::Position::beginning(0)));
    assert_eq!(next.take(&world.ingress, &received("SM1", "yes")).await.unwrap(), Took::Nothing);
    assert!(has_stopped(&next).await);
    assert_eq!(world.texts().await, ["yes"]);
    assert_eq!(*world.door.dropped.lock(), [("SM2".to_owned(), DropReason::Keyword)]);
}

#[tokio::test]
async fn who_stopped_is_known_to_whoever_reads_the_number_next() {
    let world = World::new().await;
    let (one, other) = (&world.sms, world.next_process());
    let takes = async |sms: &Arc<Sms>, sid: &str, body: &str| {
        sms.take(&world.ingress, &received(sid, body)).await.unwrap()
    };
    assert_eq!(takes(&other, "SM1", "Yes").await, Took::Message, "an answer to an agent");
    assert_eq!(takes(one, "SM2", "stop").await, Took::Nothing);
    assert_eq!(takes(&other, "SM3", "YES").await, Took::Nothing, "it is for the network");
    assert_eq!(takes(one, "SM4", "yes").await, Took::Message, "they started again");
    // Twilio tells it to whoever sends.
    world.twilio.answers(400, serde_json::json!({ "code": 21610, "message": "unsubscribed", "status": 400 }));
    assert!(matches!(world.send("hi").await, Outcome::Refused { .. }));
    assert_eq!(takes(&other, "SM5", "yes").await, Took::Nothing);
    assert_eq!(world.texts().await, ["Yes", "yes"]);
}

#[tokio::test]
async fn under_a_new_lease_everything_is_known_that_another_node_took_in() {
    let world = World::new().await;
    let key = BotKey::new(NAME, OWN);
    let take_lease = async |node: &str| {
        let lease = angelia_core::lease::of_bot(&key);
        let token = world.ingress.ports.records.acquire(&lease, node, Term::Alone).await.unwrap();
        token.unwrap().token
    };
    let elsewhere = Ingress { held: Arc::default(), ..world.ingress.clone() };
    let other = world.next_process();
    *world.door.open.lock() = false;
    world.ingress.held.took(&key, take_lease("here").await);
    world.sms.take(&world.ingress, &received("SM1", "one")).await.unwrap();
    elsewhere.held.took(&key, take_lease("there").await);
    other.take(&elsewhere, &received("SM2", "two")).await.unwrap();
    // Whoever lost it writes nothing, and nothing of what it knew counts later.
    assert!(world.sms.take(&world.ingress, &received("SM3", "three")).await.is_err());
    world.ingress.held.took(&key, take_lease("here").await);
    for (sid, dropped) in [("SM1", 2), ("SM2", 2), ("SM3", 3)] {
        world.sms.take(&world.ingress, &received(sid, "again")).await.unwrap();
        assert_eq!(world.door.dropped.lock().len(), dropped, "{sid}");
    }
    let third = world.next_process();
    for sid in ["SM1", "SM2", "SM3"] {
        assert!(third.knows(&world.ingress, &received(sid, "")).await.unwrap(), "{sid} is not lost");
    }
}

#[tokio::test]
async fn a_number_that_stopped_is_read_again() {
    let world = World::new().await;
    for (round, sid) in ["SM1", "SM2"].into_iter().enumerate() {
        let (tell, stop) = Stop::new();
        world.twilio.answers(200, page(&[listed(sid, sid, round as i64)], None));
        let ingress = Ingress { stop, ..world.ingress.clone() };
        let listens = tokio::spawn(world.sms.clone().listen(ingress));
        while world.texts().await.len() <= round {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tell.send_replace(true);
        listens.await.unwrap();
    }
    assert_eq!(world.texts().await, ["SM1", "SM2"]);
}

#[tokio::test]
async fn what_nobody_serves_is_noted_once() {
    let world = World::new().await;
    world.ingress.ports.records.revoke_gateway("acme", "gw", &Actor::operator()).await.unwrap();
    let list = page(&[listed("SM1", "one", 1)], None);
    for sms in [&world.sms, &world.sms, &world.next_process()] {
        world.looks_at(sms, &list).await;
    }
    assert_eq!(*world.door.dropped.lock(), [("SM1".to_owned(), DropReason::NoInstance)]);
    assert_eq!(world.sms.take(&world.ingress, &received("SM2", "two")).await.unwrap(), Took::Nothing);
    let list = page(&[listed("SM2", "two", 2), listed("SM1", "one", 1)], None);
    world.looks_at(&world.sms, &list).await;
    assert_eq!(world.door.dropped.lock().len(), 2, "posted and then listed");
}

#[tokio::test]
async fn what_is_known_is_not_written_again() {
    let world = World::new().await;
    let list: Vec<Value> = (0..20).rev().map(|n| listed(&format!("SM{n}"), "x", n)).collect();
    for n in 0..10 {
        world.sms.take(&world.ingress, &received(&format!("SM{n}"), "x")).await.unwrap();
    }
    world.looks_at(&world.sms, &page(&list, None)).await;
    let watch = world.disk().watch_commits();
    world.looks_at(&world.sms, &page(&list, None)).await;
    assert!(!watch.saw_one(), "somebody wrote");
    assert_eq!(world.texts().await.len(), 20);
}

#[tokio::test]
async fn what_a_full_inbox_refuses_is_read_back_when_there_is_room() {
    let world = World::with(Quota { entries: 2, ..Quota::default() }).await;
    assert_eq!(world.sms.take(&world.ingress, &received("SM1", "one")).await.unwrap(), Took::Message);
    let list = page(&[listed("SM4", "four", 4), listed("SM3", "three", 3), listed("SM2", "two", 2)], None);
    world.twilio.answers(200, &list);
    world.sms.catch_up(&world.ingress).await.unwrap();
    assert_eq!(world.texts().await, ["one", "two"]);
    assert_eq!(world.sms.take(&world.ingress, &received("SM3", "three")).await.unwrap(), Took::Full);
    assert_eq!(
        world.sms.take(&world.ingress, &received("SM2", "two")).await.unwrap(),
        Took::Nothing,
        "it is there"
    );
    assert!(world.door.dropped.lock().contains(&("SM3".to_owned(), DropReason::InboxFull)));
    // The agent comes, and nothing of it is lost.
    let waiting =
        world.ingress.ports.log.load(world.door.instance, Seq(0), &[], PageSize::of(9)).await.unwrap();
    let by = angelia_core::inbox::SettledBy::Ack;
    let settled = waiting.iter().map(|entry| Settlement { seq: entry.seq, by, pushed_at: None });
    world.ingress.ports.log.settle(world.door.instance, Epoch(0), settled.collect()).await.unwrap();
    world.twilio.answers(200, &list);
    world.sms.catch_up(&world.ingress).await.unwrap();
    assert_eq!(world.texts().await, ["three", "four"]);
    assert!(world.ingress.ports.inboxes.inboxes().await.unwrap()[0].gaps.is_empty());
}

#[tokio::test]
async fn what_a_full_inbox_refuses_for_a_day_is_told_and_does_not_hold_up_the_list() {
    let world = World::with(Quota { entries: 1, ..Quota::default() }).await;
    let three_days_ago = clock::wall().0 / 1000 - 3 * 24 * 3600;
    *world.sms.reading.lock().await = Some((None, crate::sms::Position::beginning(three_days_ago)));
    assert_eq!(world.sms.take(&world.ingress, &received("SM1", "one")).await.unwrap(), Took::Message);
    let list = page(&[listed("SM3", "three", -60), listed("SM2", "two", -25 * 3600)], None);
    for _ in 0..2 {
        world.looks_at(&world.sms, &list).await;
    }
    let missed = world.ingress.ports.records.missed(&world.sms.account.key, 9).await.unwrap();
    assert_eq!(missed.len(), 1, "the one of an hour ago is still tried: {missed:?}");
    assert!(missed[0].chat_id.as_deref() == Some(ANN) && missed[0].why.contains("full for a day"));
    assert_eq!(missed[0].after.as_deref(), Some("SM2"));
}
