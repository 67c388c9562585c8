//! Taking in what bots receive.

use super::directory::{bot, chat, seen};
use super::identity::by;
use super::open::{Opened, entry};
use crate::ports::seals::{anew, sealed_in};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::directory::BotKey;
use angelia_core::error::Kind;
use angelia_core::inbox::{InstanceId, Quota, Seq, WhenFull};
use angelia_core::lease;
use angelia_core::ports::{Leases, Term, Under};
use angelia_core::store::{
    Appended, Cursor, IdentityStore, Intake, JournalStore, Missed, NewEntry, NewQuarantined, PageSize,
    Revised, Revision, SealStore, StreamStore, Taken,
};
use std::time::Duration;

fn received(instance: InstanceId, chat_id: &str, message_id: &str) -> NewEntry {
    NewEntry {
        platform: "discord".into(),
        bot: "main".into(),
        chat_id: chat_id.into(),
        ..entry(instance, message_id)
    }
}

fn cursor(stream: &str, position: &str) -> Cursor {
    Cursor { stream: stream.into(), position: position.into() }
}

fn unreadable(n: usize) -> NewQuarantined {
    NewQuarantined {
        what: format!("update {n}"),
        why: "no field of that name".into(),
        sealed: vec![7, n as u8].into(),
        at: clock::wall(),
    }
}

fn broken(n: usize) -> Intake {
    Intake { quarantined: Some(unreadable(n)), ..Intake::default() }
}

/// A message and where the stream is with it.
fn message(instance: InstanceId, n: usize) -> Intake {
    Intake {
        chats: vec![chat("lab")],
        traffic: vec![seen("lab", &format!("m{n}"), n as i64)],
        entry: Some(received(instance, "lab", &format!("m{n}"))),
        engaged: Some(("lab".into(), instance)),
        cursor: Some(cursor("shard 0", &n.to_string())),
        ..Intake::default()
    }
}

#[tokio::test]
async fn a_message_is_committed_with_the_place_it_was_read_at() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let other = Intake { cursor: Some(cursor("shard 1", "x")), ..Intake::default() };
    let taken = opened.store.take_in(&bot(), None, vec![message(a, 1), other, message(a, 2)]).await.unwrap();
    let new = |seq| Taken { appended: Some(Appended::New(Seq(seq))), ..Taken::default() };
    assert_eq!(taken, [new(1), Taken::default(), new(2)]);
    assert_eq!(*opened.witness.appended.lock().unwrap(), [(a, Seq(1)), (a, Seq(2))], "told in order");
    let opened = opened.reopen();
    assert_eq!(opened.seqs(a).await, [Seq(1), Seq(2)]);
    let read = opened.store.cursors(&bot()).await.unwrap();
    assert_eq!(read, [cursor("shard 0", "2"), cursor("shard 1", "x")]);
    assert!(opened.store.cursors(&BotKey::new("telegram", "main")).await.unwrap().is_empty());
    let known = opened.known(&bot(), "lab").await.unwrap();
    assert_eq!((known.engaged, known.last_message.as_deref()), (Some(a), Some("m2")));
    let again = Intake { cursor: Some(cursor("shard 0", "3")), ..message(a, 1) };
    let taken = opened.store.take_in(&bot(), None, vec![again]).await.unwrap();
    assert_eq!(taken[0].appended, Some(Appended::Seen(Seq(1))));
    assert_eq!(opened.store.cursors(&bot()).await.unwrap()[0].position, "3", "what was seen is read too");
    assert!(opened.store.take_in(&bot(), None, Vec::new()).await.unwrap().is_empty());
}

#[tokio::test]
async fn who_lost_the_lease_of_a_bot_writes_nothing() {
    let opened = Opened::new();
    let (a, store) = (opened.instance("a").await, &opened.store);
    let name = lease::of_bot(&bot());
    let stale = store.acquire(&name, "one", Term::Alone).await.unwrap().unwrap().token;
    let stale = Under::bot(&bot(), stale);
    store.take_in(&bot(), Some(stale.clone()), vec![message(a, 1)]).await.unwrap();
    let current = store.acquire(&name, "other", Term::Alone).await.unwrap().unwrap().token;
    store.take_in(&bot(), Some(Under::bot(&bot(), current)), vec![message(a, 5)]).await.unwrap();

    let unread = Intake { cursor: None, ..message(a, 2) };
    for (under, intake) in
        [(Some(stale.clone()), message(a, 2)), (None, message(a, 2)), (Some(stale), unread.clone())]
    {
        let refused = store.take_in(&bot(), under, vec![intake]).await.unwrap_err();
        assert_eq!(refused.kind(), Kind::Unavailable, "{refused}");
    }
    assert_eq!(store.cursors(&bot()).await.unwrap(), [cursor("shard 0", "5")], "it did not go back");
    assert_eq!(opened.seqs(a).await, [Seq(1), Seq(2)]);
    store.take_in(&bot(), None, vec![unread]).await.unwrap();
    assert_eq!(opened.seqs(a).await.len(), 3, "what reads no stream needs no lease");
    let other = BotKey::new("discord", "another");
    store.take_in(&other, None, vec![message(a, 9)]).await.unwrap();
}

#[tokio::test]
async fn a_shard_is_read_under_its_own_lease() {
    let opened = Opened::new();
    let (a, store) = (opened.instance("a").await, &opened.store);
    let take = async |lease: &str, node: &str| {
        let token = store.acquire(lease, node, Term::Alone).await.unwrap().unwrap().token;
        Under { lease: lease.to_owned(), token }
    };
    // Somebody else has the bot, and makes its calls.
    take(&lease::of_bot(&bot()), "one").await;
    let first = take(&lease::of_shard(&bot(), 0, 2), "other").await;
    let second = take(&lease::of_shard(&bot(), 1, 2), "third").await;
    let read = |shard: &str, number: usize| {
        let intake = message(a, number);
        vec![Intake { cursor: Some(cursor(shard, &number.to_string())), ..intake }]
    };
    store.take_in(&bot(), Some(first.clone()), read("shard:0/2", 1)).await.unwrap();
    store.take_in(&bot(), Some(second.clone()), read("shard:1/2", 2)).await.unwrap();
    let next = take(&lease::of_shard(&bot(), 0, 2), "third").await;
    let refused = store.take_in(&bot(), Some(first), read("shard:0/2", 3)).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Unavailable, "{refused}");
    store.take_in(&bot(), Some(next), read("shard:0/2", 4)).await.unwrap();
    store.take_in(&bot(), Some(second), read("shard:1/2", 5)).await.unwrap();
    let mut cursors = store.cursors(&bot()).await.unwrap();
    cursors.sort_by(|a, b| a.stream.cmp(&b.stream));
    assert_eq!(cursors, [cursor("shard:0/2", "4"), cursor("shard:1/2", "5")]);
    assert_eq!(opened.seqs(a).await.len(), 4);
}

#[tokio::test]
async fn an_intake_that_fails_changes_nothing() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    opened.store.take_in(&bot(), None, vec![message(a, 1)]).await.unwrap();
    opened.refuse("UPDATE", "cursors", "NEW.position = '3'");
    let fallen = Intake { quarantined: Some(unreadable(1)), ..message(a, 3) };
    assert!(opened.store.take_in(&bot(), None, vec![message(a, 2), fallen.clone()]).await.is_err());
    assert_eq!(opened.seqs(a).await, [Seq(1)]);
    assert_eq!(opened.store.usage(a).await.unwrap().entries, 1);
    assert_eq!(opened.witness.appended.lock().unwrap().len(), 1, "nobody was told");
    assert_eq!(opened.store.cursors(&bot()).await.unwrap(), [cursor("shard 0", "1")]);
    assert!(opened.store.quarantine(None, 10).await.unwrap().is_empty());
    assert_eq!(opened.known(&bot(), "lab").await.unwrap().last_message.as_deref(), Some("m1"));
    opened.allow("cursors");
    let taken = opened.store.take_in(&bot(), None, vec![message(a, 2), fallen]).await.unwrap();
    assert!(taken.iter().all(|taken| matches!(taken.appended, Some(Appended::New(_)))), "{taken:?}");
    assert_eq!(opened.store.usage(a).await.unwrap().entries, 3);
}

#[tokio::test]
async fn for_an_instance_that_is_gone_everything_but_the_message_is_written() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    opened.store.revoke_gateway("acme", "a", &by()).await.unwrap();
    let taken = opened.store.take_in(&bot(), None, vec![message(a, 1)]).await.unwrap();
    assert_eq!(taken, [Taken { no_instance: true, ..Taken::default() }]);
    assert!(opened.seqs(a).await.is_empty());
    assert!(opened.store.explain("m1").await.unwrap().is_empty());
    assert_eq!(opened.store.cursors(&bot()).await.unwrap(), [cursor("shard 0", "1")]);
    assert_eq!(opened.known(&bot(), "lab").await.unwrap().last_message.as_deref(), Some("m1"));
}

#[tokio::test]
async fn a_change_reaches_what_waits_in_its_own_chat() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let waits = |chat: &str| Intake { entry: Some(received(a, chat, "5")), ..Intake::default() };
    opened.store.take_in(&bot(), None, vec![waits("lab"), waits("den")]).await.unwrap();
    assert_eq!(opened.seqs(a).await.len(), 2, "ids count within a chat");
    let change = |chat: &str| {
        let NewEntry { platform, bot, chat_id, message_id, instance, kind, .. } = received(a, chat, "5");
        let body = "changed".into();
        let revision = Revision { platform, bot, chat_id, message_id, instance, kind, body };
        Intake { revision: Some(revision), cursor: Some(cursor("s", chat)), ..Intake::default() }
    };
    let taken = opened.store.take_in(&bot(), None, vec![change("den"), change("hall")]).await.unwrap();
    let revised: Vec<_> = taken.iter().map(|taken| taken.revised.unwrap()).collect();
    assert_eq!(revised, [Revised::Replaced, Revised::NotWaiting]);
    let waiting = opened.store.load(a, Seq(0), &[], PageSize::of(10)).await.unwrap();
    let revisions: Vec<_> = waiting.iter().map(|entry| (&*entry.chat_id, entry.revision)).collect();
    assert_eq!(revisions, [("lab", 0), ("den", 1)]);
    assert_eq!(opened.witness.revised.lock().unwrap().len(), 1);
    assert_eq!(opened.store.cursors(&bot()).await.unwrap(), [cursor("s", "hall")]);
}

#[tokio::test]
async fn what_cannot_be_read_is_kept_sealed_for_its_bot() {
    let opened = Opened::new();
    opened.store.take_in(&bot(), None, vec![broken(1), broken(2)]).await.unwrap();
    opened.store.take_in(&BotKey::new("telegram", "7"), None, vec![broken(3)]).await.unwrap();
    let newest = opened.store.quarantine(None, 1).await.unwrap().remove(0);
    let (found, sealed) = opened.store.quarantined(newest.id).await.unwrap().unwrap();
    assert_eq!((found, sealed), (newest.clone(), vec![7, 3]));
    let bound = sealed_in(&*opened.store, 100).await;
    let bound: Vec<_> = bound.iter().map(|value| (value.kind, value.bound_to.as_str())).collect();
    let one = ("unreadable update", "quarantine/discord/main");
    assert_eq!(bound, [one, one, ("unreadable update", "quarantine/telegram/7")]);
    opened.store.reseal(anew(sealed_in(&*opened.store, 100).await)).await.unwrap();
    assert_eq!(opened.store.quarantined(newest.id).await.unwrap().unwrap().1, [7, 3, 9]);
}

#[tokio::test]
async fn quarantine_is_bounded_for_each_bot_and_by_age() {
    let opened = Opened::new();
    let second = BotKey::new("telegram", "7");
    opened.store.take_in(&second, None, vec![broken(0)]).await.unwrap();
    for _ in 0..3 {
        opened.store.take_in(&bot(), None, (0..350).map(broken).collect()).await.unwrap();
    }
    let kept = opened.store.quarantine(Some(&bot()), 5_000).await.unwrap();
    assert_eq!(kept.len(), 1_000, "the newest stay");
    assert_eq!((kept[0].what.as_str(), kept[999].what.as_str()), ("update 349", "update 50"));
    assert_eq!(opened.store.quarantine(Some(&second), 10).await.unwrap().len(), 1, "nobody else is touched");
    let long_ago = clock::wall().before(Duration::from_secs(31 * 24 * 3600)).0;
    opened.sql(&format!("UPDATE quarantine SET at = {long_ago} WHERE id < 1000"));
    opened.store.prune().await.unwrap();
    assert_eq!(opened.store.quarantine(None, 5_000).await.unwrap().len(), 52);
}

#[tokio::test]
async fn what_was_missed_is_shown_for_a_month() {
    let opened = Opened::new();
    let missed = |chat: Option<&str>, until: UnixMillis| Missed {
        chat_id: chat.map(str::to_owned),
        after: chat.map(|_| "m1".to_owned()),
        since: until.before(Duration::from_secs(60)),
        until,
        why: "the provider refused".into(),
    };
    let now = clock::wall();
    let old = missed(Some("lab"), now.before(Duration::from_secs(31 * 24 * 3600)));
    let (lab, unknown) = (missed(Some("lab"), now), missed(None, now));
    opened.store.note_missed(&bot(), vec![old.clone(), lab.clone(), unknown.clone()]).await.unwrap();
    let list = async |limit| opened.store.missed(&bot(), limit).await.unwrap();
    assert_eq!(list(10).await, [unknown.clone(), lab.clone(), old]);
    opened.store.prune().await.unwrap();
    assert_eq!(list(10).await, [unknown, lab]);
}

#[tokio::test]
async fn a_stream_goes_on_though_an_inbox_is_full_and_what_may_be_refused_leaves_no_trace() {
    let opened = Opened::with(Quota { entries: 2, ..Quota::default() });
    let a = opened.instance("a").await;
    opened.store.take_in(&bot(), None, vec![message(a, 1), message(a, 2)]).await.unwrap();
    let refusable = |n| {
        let Intake { entry, .. } = message(a, n);
        let entry = entry.map(|entry| NewEntry { when_full: WhenFull::Refuse, ..entry });
        Intake { entry, ..message(a, n) }
    };
    let taken = opened.store.take_in(&bot(), None, vec![refusable(3)]).await.unwrap();
    assert_eq!(taken, [Taken { full: true, ..Taken::default() }]);
    assert_eq!(opened.store.cursors(&bot()).await.unwrap(), [cursor("shard 0", "2")], "it has to come again");
    let taken = opened.store.take_in(&bot(), None, vec![message(a, 4)]).await.unwrap();
    assert!(matches!(taken[0].appended, Some(Appended::New(_))));
    assert_eq!(opened.store.cursors(&bot()).await.unwrap(), [cursor("shard 0", "4")]);
    assert_eq!(opened.store.inboxes().await.unwrap()[0].gaps[0].lost, 1);
}
