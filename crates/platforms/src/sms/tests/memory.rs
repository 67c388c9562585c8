//! What is known of messages, for longer than the journal is kept.

use super::readback::{listed, page};
use super::*;
use crate::sms::parse::Received;
use angelia_core::clock;
use angelia_core::store::Settlement;
use serde_json::Value;

fn received(sid: &str, body: &str) -> Received {
    Received { sid: sid.into(), from: ANN.into(), to: OWN.into(), body: body.into(), ..Default::default() }
}

impl World {
    /// Three days pass in which nobody writes: agents got everything, and the journal forgets.
    async fn three_days_pass(&self) {
        let store = &self.desk.store;
        let waiting = store.load(self.door.instance, Seq(0), 10_000).await.unwrap();
        let settled = waiting.iter().map(|entry| Settlement { seq: entry.seq, by: None, pushed_at: None });
        store.settle(self.door.instance, settled.collect()).await.unwrap();
        let db = self.database();
        let before = clock::wall().before(Duration::from_secs(73 * 3600)).0;
        db.execute("UPDATE journal SET received_at = ?", [before]).unwrap();
        store.prune().await.unwrap();
        let left: i64 = db.query_row("SELECT count(*) FROM journal", [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "the journal has forgotten");
    }

    fn database(&self) -> rusqlite::Connection {
        let db = rusqlite::Connection::open(self.folder.path().join("data/angelia.db")).unwrap();
        db.busy_timeout(Duration::from_secs(5)).unwrap();
        db
    }

    async fn looks_at(&self, sms: &Arc<Sms>, list: &Value) {
        self.twilio.answers(200, list);
        sms.catch_up(&self.desk).await.unwrap();
    }

    fn next_process(&self) -> Arc<Sms> {
        Sms::new(self.sms.config.clone(), self.desk.store.clone()).unwrap()
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
    assert!(world.sms.take(&world.desk, &received("SM1", "one")).await.unwrap());
    world.three_days_pass().await;
    let list = page(&[listed("SM2", "two", 2), listed("SM1", "one", 1)], None);
    world.looks_at(&world.next_process(), &list).await;
    assert_eq!(world.texts().await, ["two"]);
}

#[tokio::test]
async fn an_old_word_listed_again_tells_the_network_nothing() {
    let world = World::new().await;
    assert!(world.sms.take(&world.desk, &received("SM1", "yes")).await.unwrap(), "an answer to an agent");
    assert!(!world.sms.take(&world.desk, &received("SM2", "stop")).await.unwrap());
    let has_stopped = |sms: &Sms| sms.stopped.keyword(ANN, "yes", None).is_some();
    assert!(has_stopped(&world.sms));
    let list = page(&[listed("SM2", "stop", 2), listed("SM1", "yes", 1)], None);
    world.looks_at(&world.sms, &list).await;
    assert!(has_stopped(&world.sms), "an old yes is no START");
    // However it comes again, and though only the journal knows it.
    let next = world.next_process();
    next.stopped.stop(ANN);
    *next.reading.lock().await = Some(crate::sms::Position::beginning(0));
    assert!(!next.take(&world.desk, &received("SM1", "yes")).await.unwrap());
    assert!(has_stopped(&next));
    assert_eq!(world.texts().await, ["yes"]);
    assert_eq!(*world.door.dropped.lock().unwrap(), [("SM2".to_owned(), DropReason::Keyword)]);
}

#[tokio::test]
async fn what_nobody_serves_is_noted_once() {
    let world = World::new().await;
    world.desk.store.revoke_gateway("acme", "gw", &Actor::operator()).await.unwrap();
    let list = page(&[listed("SM1", "one", 1)], None);
    for sms in [&world.sms, &world.sms, &world.next_process()] {
        world.looks_at(sms, &list).await;
    }
    assert_eq!(*world.door.dropped.lock().unwrap(), [("SM1".to_owned(), DropReason::NoInstance)]);
    assert!(!world.sms.take(&world.desk, &received("SM2", "two")).await.unwrap());
    let list = page(&[listed("SM2", "two", 2), listed("SM1", "one", 1)], None);
    world.looks_at(&world.sms, &list).await;
    assert_eq!(world.door.dropped.lock().unwrap().len(), 2, "posted and then listed");
}

#[tokio::test]
async fn what_is_known_is_not_written_again() {
    let world = World::new().await;
    let list: Vec<Value> = (0..20).rev().map(|n| listed(&format!("SM{n}"), "x", n)).collect();
    for n in 0..10 {
        world.sms.take(&world.desk, &received(&format!("SM{n}"), "x")).await.unwrap();
    }
    world.looks_at(&world.sms, &page(&list, None)).await;
    let db = world.database();
    let version = || db.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
    let before = version();
    world.looks_at(&world.sms, &page(&list, None)).await;
    assert_eq!((version(), world.texts().await.len()), (before, 20), "somebody wrote");
}
