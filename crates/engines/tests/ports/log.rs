//! What every log must do: each entry once and in order, a number for each, and
//! nobody past a fence.

use crate::store::identity::{by, gateway};
use crate::store::open::{Opened, Witness, entry};
use angelia_core::Kind;
use angelia_core::clock;
use angelia_core::inbox::{
    AckHabit, EntryKind, Epoch, InstanceId, Mark, Quota, Seq, SettledBy, Usage, WhenFull,
};
use angelia_core::ports::log::{
    Appended, Joined, Log, NewEntry, OpenTurn, Ownership, Returned, Revised, Revision, Settlement, TurnNote,
    Withdrawal,
};
use angelia_core::store::{IdentityStore, PageSize};
use angelia_core::turns::{ConversationKey, WhileBusy};
use angelia_engines::memory::MemoryLog;
use std::sync::Arc;

/// An engine, with what a test has to do and see beside the port.
trait Engine {
    fn log(&self) -> &dyn Log;

    /// An instance that somebody serves.
    async fn instance(&self, name: &str) -> InstanceId;

    /// An instance that waits for its tenant's first gateway.
    async fn awaiting_first(&self) -> InstanceId;

    /// That gateway comes; answers the instance it serves.
    async fn first_gateway(&self) -> InstanceId;

    /// The same gateway is revoked.
    async fn revoke_first(&self);

    /// What was announced as gone.
    fn removed(&self) -> Vec<Seq>;

    /// What the routes of entries said that were announced as appended.
    fn hinted(&self) -> Vec<Option<WhileBusy>>;
}

struct OnDisk(Opened);

impl Engine for OnDisk {
    fn log(&self) -> &dyn Log {
        &*self.0.store
    }

    async fn instance(&self, name: &str) -> InstanceId {
        self.0.instance(name).await
    }

    async fn awaiting_first(&self) -> InstanceId {
        self.0.store.create_tenant("acme", None, &by()).await.unwrap()
    }

    async fn first_gateway(&self) -> InstanceId {
        self.0.store.create_gateway(gateway("acme", "first"), &by()).await.unwrap().instance
    }

    async fn revoke_first(&self) {
        self.0.store.revoke_gateway("acme", "first", &by()).await.unwrap();
    }

    fn removed(&self) -> Vec<Seq> {
        self.0.witness.removed.lock().unwrap().clone()
    }

    fn hinted(&self) -> Vec<Option<WhileBusy>> {
        self.0.witness.while_busy.lock().unwrap().clone()
    }
}

/// The one that waits for a first gateway in memory, where nobody else's number is so low.
const FIRST: InstanceId = InstanceId(1);

struct InMemory(MemoryLog, Arc<Witness>);

impl Engine for InMemory {
    fn log(&self) -> &dyn Log {
        &self.0
    }

    async fn instance(&self, name: &str) -> InstanceId {
        let instance = InstanceId(name.bytes().map(i64::from).sum());
        self.0.add(instance);
        instance
    }

    async fn awaiting_first(&self) -> InstanceId {
        self.0.add(FIRST);
        FIRST
    }

    async fn first_gateway(&self) -> InstanceId {
        FIRST
    }

    async fn revoke_first(&self) {
        self.0.revoke(FIRST);
    }

    fn removed(&self) -> Vec<Seq> {
        self.1.removed.lock().unwrap().clone()
    }

    fn hinted(&self) -> Vec<Option<WhileBusy>> {
        self.1.while_busy.lock().unwrap().clone()
    }
}

/// Each test on each engine.
macro_rules! on_every_engine {
    ($($test:ident $(($quota:expr))?;)*) => {
        $(mod $test {
            use super::*;

            #[allow(unused_mut, unused_assignments, reason = "most keep the usual quota")]
            fn quota() -> Quota {
                let mut quota = Quota::default();
                $(quota = $quota;)?
                quota
            }

            #[tokio::test]
            async fn on_disk() {
                super::$test(OnDisk(Opened::with(quota()))).await;
            }

            #[tokio::test]
            async fn in_memory() {
                let witness = Arc::<Witness>::default();
                super::$test(InMemory(MemoryLog::new(quota(), witness.bus()), witness)).await;
            }
        })*
    };
}

on_every_engine! {
    an_event_is_seen_once_per_chat_bot_and_kind;
    numbers_are_dense_and_say_nothing_of_others;
    whoever_claims_last_drains_and_the_one_before_learns_it;
    it_is_known_who_drains_until_they_leave;
    conversations_can_be_passed_over;
    a_conversation_is_read_by_itself;
    lines_go_together_in_the_last_of_them;
    open_turns_outlive_a_socket;
    pages_have_an_end_by_number_and_by_bytes;
    what_goes_ahead_is_read_by_itself;
    what_a_route_says_goes_with_its_entry;
    what_was_never_pushed_is_not_settled_late;
    three_sockets_in_a_row_make_a_dead_letter;
    what_waits_is_revised_in_its_place_and_what_settled_is_not;
    what_nobody_was_given_can_be_withdrawn;
    whoever_is_refused_by_a_full_inbox_left_no_trace(Quota { entries: 2, ..Quota::default() });
    the_largest_chat_makes_room(Quota { entries: 4, ..Quota::default() });
    what_was_appended_before_the_first_gateway_is_its_own_in_order_and_once;
    what_waits_for_a_first_gateway_is_within_the_quota(Quota { entries: 2, ..Quota::default() });
    for_a_revoked_gateway_nothing_is_taken;
}

fn settled(seq: i64) -> Settlement {
    Settlement { seq: Seq(seq), by: SettledBy::Ack, pushed_at: Some(clock::wall()) }
}

async fn append(engine: &impl Engine, new: NewEntry) -> Seq {
    match engine.log().append(new).await.unwrap() {
        Appended::New(seq) | Appended::Seen(seq) => seq,
    }
}

async fn seqs(engine: &impl Engine, instance: InstanceId) -> Vec<i64> {
    let read = engine.log().load(instance, Seq(0), &[], PageSize::of(1_000)).await.unwrap();
    read.iter().map(|entry| entry.seq.0).collect()
}

async fn an_event_is_seen_once_per_chat_bot_and_kind(engine: impl Engine) {
    let a = engine.instance("a").await;
    let first = append(&engine, entry(a, "m1")).await;
    assert_eq!(engine.log().append(entry(a, "m1")).await.unwrap(), Appended::Seen(first));
    let others = [
        NewEntry { bot: "other".into(), ..entry(a, "m1") },
        NewEntry { chat_id: "web-den".into(), ..entry(a, "m1") },
        NewEntry { platform: "sms".into(), ..entry(a, "m1") },
        NewEntry { kind: EntryKind::Stop, ..entry(a, "m1") },
    ];
    for other in others {
        assert!(matches!(engine.log().append(other).await.unwrap(), Appended::New(_)));
    }
    engine.log().settle(a, Epoch(0), vec![settled(first.0)]).await.unwrap();
    assert_eq!(engine.log().append(entry(a, "m1")).await.unwrap(), Appended::Seen(first), "it was here");
    assert_eq!(engine.log().append(entry(InstanceId(999), "m2")).await.unwrap_err().kind(), Kind::NotFound);
}

async fn numbers_are_dense_and_say_nothing_of_others(engine: impl Engine) {
    let (a, b) = (engine.instance("a").await, engine.instance("b").await);
    for n in 0..4 {
        append(&engine, entry(a, &format!("a{n}"))).await;
        // Seen before: it takes no number.
        append(&engine, entry(a, &format!("a{n}"))).await;
    }
    append(&engine, entry(b, "b0")).await;
    assert_eq!((seqs(&engine, a).await, seqs(&engine, b).await), (vec![1, 2, 3, 4], vec![1]));
    engine.log().settle(a, Epoch(0), vec![settled(4), settled(4)]).await.unwrap();
    engine.log().settle(b, Epoch(0), vec![settled(2)]).await.unwrap();
    append(&engine, entry(a, "a4")).await;
    assert_eq!(seqs(&engine, a).await, [1, 2, 3, 5], "what settled leaves its number behind");
    let stretch = engine.log().load(a, Seq(3), &[], PageSize::of(9)).await.unwrap();
    assert_eq!((stretch[0].seq, stretch.mark), (Seq(5), Mark { tail: Seq(5), redrives: 0 }));
    let at = |tail| Mark { tail: Seq(tail), redrives: 0 };
    let states = engine.log().states(vec![a, InstanceId(999), b]).await.unwrap();
    let marks: Vec<_> = states.iter().map(|of| (of.instance, of.mark)).collect();
    assert_eq!(marks, [(a, at(5)), (b, at(1))]);
    assert_eq!(engine.log().waiting().await.unwrap(), [a, b]);
    let bytes = 4 * entry(a, "a0").body.len() as u64;
    assert_eq!(engine.log().usage(a).await.unwrap(), Usage { entries: 4, bytes });
}

async fn whoever_claims_last_drains_and_the_one_before_learns_it(engine: impl Engine) {
    let (a, log) = (engine.instance("a").await, engine.log());
    for id in ["m1", "m2", "m3"] {
        append(&engine, entry(a, id)).await;
    }
    let first = log.claim(a, "one").await.unwrap();
    assert_eq!((first.mark.tail, first.usage.entries), (Seq(3), 3));
    assert_eq!(log.settle(a, first.epoch, vec![settled(1)]).await.unwrap(), Ownership::Ours);
    assert_eq!(log.set_idle(a, first.epoch, true).await.unwrap(), Ownership::Ours);

    let second = log.claim(a, "two").await.unwrap();
    assert!(second.epoch > first.epoch && second.usage.entries == 2);
    assert_eq!(log.set_idle(a, first.epoch, true).await.unwrap(), Ownership::Lost);
    assert_eq!(log.set_habit(a, first.epoch, AckHabit::Silent).await.unwrap(), Ownership::Lost);
    let strike = || Returned { entries: vec![(Seq(2), clock::wall())], strike: Some(Seq(2)) };
    for _ in 0..5 {
        assert_eq!(log.returned(a, first.epoch, strike()).await.unwrap(), None, "no dead letter");
    }
    assert_eq!(log.settle_late(a, vec![Seq(2), Seq(3)]).await.unwrap(), [Seq(2)], "it was pushed");
    let late = log.settle(a, first.epoch, vec![settled(3)]).await.unwrap();
    assert_eq!((late, seqs(&engine, a).await.len()), (Ownership::Lost, 0), "what was acknowledged is done");
    assert_eq!(log.settle(a, second.epoch, Vec::new()).await.unwrap(), Ownership::Ours);
    assert!(log.claim(InstanceId(999), "two").await.is_err());
}

async fn it_is_known_who_drains_until_they_leave(engine: impl Engine) {
    let (a, log) = (engine.instance("a").await, engine.log());
    let drains = async || {
        let state = log.states(vec![a]).await.unwrap().remove(0);
        (state.node, state.epoch)
    };
    assert_eq!(drains().await, (None, Epoch(0)));
    let first = log.claim(a, "one").await.unwrap();
    assert_eq!((first.former, drains().await), (None, (Some("one".into()), first.epoch)));
    let second = log.claim(a, "two").await.unwrap();
    assert_eq!(second.former.as_deref(), Some("one"));
    assert_eq!(log.leave(a, first.epoch).await.unwrap(), Ownership::Lost, "another one drains it");
    assert_eq!(drains().await.0.as_deref(), Some("two"));
    assert_eq!(log.leave(a, second.epoch).await.unwrap(), Ownership::Ours);
    assert_eq!(drains().await, (None, second.epoch));
    assert_eq!(log.claim(a, "one").await.unwrap().former, None, "nobody has to be waited for");
}

async fn conversations_can_be_passed_over(engine: impl Engine) {
    let a = engine.instance("a").await;
    for (n, key) in ["k1", "k2", "k1", "k3", "k2"].into_iter().enumerate() {
        append(&engine, NewEntry { session_key: key.into(), ..entry(a, &format!("m{n}")) }).await;
    }
    let without = async |held: &[&str]| -> Vec<i64> {
        let held: Vec<_> = held.iter().map(|key| conversation(key)).collect();
        let read = engine.log().load(a, Seq(0), &held, PageSize::of(9)).await.unwrap();
        read.iter().map(|entry| entry.seq.0).collect()
    };
    assert_eq!(without(&[]).await, [1, 2, 3, 4, 5]);
    assert_eq!(without(&["k1"]).await, [2, 4, 5]);
    assert_eq!(without(&["k1", "k3"]).await, [2, 5]);
    let whole_chat = ConversationKey { session_key: None, ..conversation("k1") };
    assert!(engine.log().load(a, Seq(0), &[whole_chat], PageSize::of(9)).await.unwrap().is_empty());
}

async fn a_conversation_is_read_by_itself(engine: impl Engine) {
    let a = engine.instance("a").await;
    for (n, key) in ["k1", "k2", "k1", "k1"].into_iter().enumerate() {
        append(&engine, NewEntry { session_key: key.into(), ..entry(a, &format!("m{n}")) }).await;
    }
    let ahead = NewEntry { session_key: "k1".into(), ahead: true, ..entry(a, "m9") };
    append(&engine, ahead).await;
    let of = async |key: ConversationKey, count: usize| -> Vec<i64> {
        let read = engine.log().load_conversation(a, &key, PageSize::of(count)).await.unwrap();
        read.iter().map(|entry| entry.seq.0).collect()
    };
    assert_eq!(of(conversation("k1"), 9).await, [1, 3, 4, 5]);
    assert_eq!(of(conversation("k1"), 2).await, [1, 3]);
    let whole_chat = ConversationKey { session_key: None, ..conversation("k1") };
    assert_eq!(of(whole_chat, 9).await, [1, 2, 3, 4, 5]);
}

async fn lines_go_together_in_the_last_of_them(engine: impl Engine) {
    let a = engine.instance("a").await;
    let log = engine.log();
    for name in ["m1", "m2", "m3"] {
        append(&engine, entry(a, name)).await;
    }
    let claimed = log.claim(a, "one").await.unwrap();
    let joined = |lines: &[(i64, u32)]| Joined {
        lines: lines.iter().map(|(seq, revision)| (Seq(*seq), *revision)).collect(),
        body: "all".into(),
    };
    let changed = log.join(a, claimed.epoch, joined(&[(1, 0), (2, 7)])).await.unwrap();
    assert!(changed.is_none(), "one was changed since it was read");
    let gone = log.join(a, claimed.epoch, joined(&[(1, 0), (9, 0)])).await.unwrap();
    assert!(gone.is_none(), "one does not wait");
    assert_eq!(seqs(&engine, a).await, [1, 2, 3], "nothing was written");
    let taker = log.join(a, claimed.epoch, joined(&[(1, 0), (2, 0)])).await.unwrap().expect("joined");
    assert_eq!((taker.seq, &*taker.body, taker.is_final()), (Seq(2), &b"all"[..], true));
    assert_eq!(seqs(&engine, a).await, [2, 3]);
    let usage = log.usage(a).await.unwrap();
    let third = entry(a, "m3").body.len() as u64;
    assert_eq!(usage, Usage { entries: 2, bytes: 3 + third });

    let NewEntry { platform, bot, chat_id, message_id, kind, .. } = entry(a, "m2");
    let edit = Revision { platform, bot, chat_id, message_id, instance: a, kind, body: "edited".into() };
    assert_eq!(log.revise(edit).await.unwrap(), Revised::NotWaiting, "it goes as it is");
    let read = log.load(a, Seq(0), &[], PageSize::of(9)).await.unwrap();
    assert_eq!(&*read[0].body, b"all");

    log.claim(a, "two").await.unwrap();
    let late = log.join(a, claimed.epoch, joined(&[(2, u32::MAX), (3, 0)])).await.unwrap();
    assert!(late.is_none(), "another socket drains it by now");
}

async fn open_turns_outlive_a_socket(engine: impl Engine) {
    let a = engine.instance("a").await;
    let log = engine.log();
    let first = log.claim(a, "one").await.unwrap();
    let turn = |key: &str, seq: i64| OpenTurn {
        conversation: conversation(key),
        platform: "telegram".into(),
        bot: "1".into(),
        thread_id: Some("7".into()),
        seq: Seq(seq),
        message_id: format!("m{seq}"),
        author: None,
        asks: seq == 2,
    };
    let shared = OpenTurn {
        conversation: ConversationKey { session_key: None, ..conversation("k") },
        author: Some("ann".into()),
        ..turn("k", 3)
    };
    let notes = vec![
        TurnNote::Opened(turn("k2", 4)),
        TurnNote::Opened(turn("k1", 1)),
        TurnNote::Opened(shared.clone()),
        TurnNote::Opened(turn("k1", 2)),
        TurnNote::Closed(conversation("k2")),
    ];
    assert_eq!(log.note_turns(a, first.epoch, notes).await.unwrap(), Ownership::Ours);
    assert_eq!(log.open_turns(a).await.unwrap(), [turn("k1", 2), shared.clone()]);
    assert!(log.open_turns(InstanceId(999)).await.unwrap().is_empty());

    let second = log.claim(a, "two").await.unwrap();
    let late = log.note_turns(a, first.epoch, vec![TurnNote::Closed(conversation("k1"))]).await.unwrap();
    assert_eq!((late, log.open_turns(a).await.unwrap().len()), (Ownership::Lost, 2));
    let closed = vec![TurnNote::Closed(conversation("k1")), TurnNote::Closed(shared.conversation)];
    log.note_turns(a, second.epoch, closed).await.unwrap();
    assert!(log.open_turns(a).await.unwrap().is_empty());
}

/// A conversation in the chat of [`entry`].
fn conversation(session_key: &str) -> ConversationKey {
    let chat_id = entry(InstanceId(1), "m").chat_id;
    ConversationKey { chat_id, session_key: Some(session_key.into()) }
}

async fn pages_have_an_end_by_number_and_by_bytes(engine: impl Engine) {
    let a = engine.instance("a").await;
    for (n, length) in [10, 100, 10, 10].into_iter().enumerate() {
        append(&engine, NewEntry { body: vec![b'x'; length].into(), ..entry(a, &format!("m{n}")) }).await;
    }
    let read = async |after, size| {
        let read = engine.log().load(a, Seq(after), &[], size).await.unwrap();
        (read.iter().map(|entry| entry.seq.0).collect::<Vec<_>>(), read.page.more)
    };
    let size = PageSize { count: 3, bytes: 60 };
    assert_eq!(read(0, size).await, (vec![1], true), "the second does not fit");
    assert_eq!(read(1, size).await, (vec![2], true), "one is read whatever its size");
    assert_eq!(read(2, size).await, (vec![3, 4], false));
    assert_eq!(read(0, PageSize::of(3)).await, (vec![1, 2, 3], true));
    assert_eq!(read(0, PageSize::of(4)).await, (vec![1, 2, 3, 4], false));
}

async fn what_goes_ahead_is_read_by_itself(engine: impl Engine) {
    let a = engine.instance("a").await;
    for (id, ahead) in [("m1", false), ("m2", true), ("m3", false), ("m4", true)] {
        append(&engine, NewEntry { ahead, ..entry(a, id) }).await;
    }
    assert_eq!(seqs(&engine, a).await, [1, 3]);
    let ahead = engine.log().load_ahead(a, PageSize::of(1)).await.unwrap();
    assert_eq!((ahead[0].seq, ahead.page.more, ahead.mark.tail), (Seq(2), true, Seq(4)));
    engine.log().settle(a, Epoch(0), vec![settled(2)]).await.unwrap();
    assert_eq!(engine.log().load_ahead(a, PageSize::of(9)).await.unwrap()[0].seq, Seq(4));
}

async fn what_a_route_says_goes_with_its_entry(engine: impl Engine) {
    let (a, log) = (engine.instance("a").await, engine.log());
    let said = [None].into_iter().chain(WhileBusy::ALL.map(Some));
    for (n, while_busy) in said.clone().enumerate() {
        append(&engine, NewEntry { while_busy, ..entry(a, &format!("m{n}")) }).await;
    }
    append(&engine, NewEntry { while_busy: Some(WhileBusy::Pass), ahead: true, ..entry(a, "stop") }).await;
    let NewEntry { platform, bot, chat_id, message_id, kind, .. } = entry(a, "m1");
    let revision = Revision { platform, bot, chat_id, message_id, instance: a, kind, body: "new".into() };
    assert_eq!(log.revise(revision).await.unwrap(), Revised::Replaced);
    let waiting = log.load(a, Seq(0), &[], PageSize::of(9)).await.unwrap();
    assert!(waiting.iter().map(|entry| entry.while_busy).eq(said.clone()), "{waiting:?}");
    let ahead = log.load_ahead(a, PageSize::of(9)).await.unwrap();
    assert_eq!(ahead[0].while_busy, Some(WhileBusy::Pass));
    let hinted = said.chain([Some(WhileBusy::Pass)]).collect::<Vec<_>>();
    assert_eq!(engine.hinted(), hinted);
}

async fn what_was_never_pushed_is_not_settled_late(engine: impl Engine) {
    let (a, b, log) = (engine.instance("a").await, engine.instance("b").await, engine.log());
    for n in 0..3 {
        append(&engine, entry(a, &format!("a{n}"))).await;
    }
    append(&engine, NewEntry { chat_id: "other".into(), ..entry(b, "b0") }).await;
    let now = clock::wall();
    log.returned(a, Epoch(0), Returned { entries: vec![(Seq(1), now)], strike: None }).await.unwrap();
    log.note_pushed(a, vec![(Seq(2), now)]).await.unwrap();
    let all = vec![Seq(1), Seq(2), Seq(3), Seq(77)];
    assert_eq!(log.settle_late(a, all).await.unwrap(), [Seq(1), Seq(2)]);
    assert_eq!((seqs(&engine, a).await, seqs(&engine, b).await), (vec![3], vec![1]));
}

async fn three_sockets_in_a_row_make_a_dead_letter(engine: impl Engine) {
    let (a, log) = (engine.instance("a").await, engine.log());
    for id in ["m1", "m2"] {
        append(&engine, entry(a, id)).await;
    }
    let strike = |seq: Option<i64>| Returned { entries: Vec::new(), strike: seq.map(Seq) };
    for _ in 0..2 {
        assert_eq!(log.returned(a, Epoch(0), strike(Some(1))).await.unwrap(), None);
    }
    log.returned(a, Epoch(0), strike(None)).await.unwrap();
    for _ in 0..2 {
        assert_eq!(log.returned(a, Epoch(0), strike(Some(1))).await.unwrap(), None, "it starts anew");
    }
    assert_eq!(log.returned(a, Epoch(0), strike(Some(1))).await.unwrap(), Some(Seq(1)));
    assert_eq!((seqs(&engine, a).await, engine.removed()), (vec![2], vec![Seq(1)]));
    assert_eq!(log.usage(a).await.unwrap().entries, 1, "dead letters do not count");
}

async fn what_waits_is_revised_in_its_place_and_what_settled_is_not(engine: impl Engine) {
    let (a, b, log) = (engine.instance("a").await, engine.instance("b").await, engine.log());
    for id in ["m1", "m2"] {
        append(&engine, entry(a, id)).await;
    }
    let revision = |id: &str, instance| {
        let NewEntry { platform, bot, chat_id, message_id, kind, .. } = entry(instance, id);
        Revision { platform, bot, chat_id, message_id, instance, kind, body: "new".into() }
    };
    assert_eq!(log.revise(revision("m1", b)).await.unwrap(), Revised::Elsewhere);
    assert_eq!(log.revise(revision("m1", a)).await.unwrap(), Revised::Replaced);
    let waiting = log.load(a, Seq(0), &[], PageSize::of(9)).await.unwrap();
    assert_eq!((&waiting[0].body[..], waiting[0].revision, waiting.len()), (&b"new"[..], 1, 2));
    log.settle(a, Epoch(0), vec![settled(1)]).await.unwrap();
    assert_eq!(log.revise(revision("m1", a)).await.unwrap(), Revised::NotWaiting);
    assert_eq!(log.revise(revision("m9", a)).await.unwrap(), Revised::NotWaiting);
}

async fn what_nobody_was_given_can_be_withdrawn(engine: impl Engine) {
    let (a, log) = (engine.instance("a").await, engine.log());
    for id in ["m1", "m2", "m3", "m4", "m5", "m6"] {
        append(&engine, entry(a, id)).await;
    }
    let claimed = log.claim(a, "one").await.unwrap();
    let withdraw = |id: &str| {
        let NewEntry { platform, bot, chat_id, message_id, .. } = entry(a, id);
        log.withdraw(Withdrawal { platform, bot, chat_id, message_id })
    };
    let before = log.usage(a).await.unwrap();
    assert!(withdraw("m1").await.unwrap());
    assert_eq!((seqs(&engine, a).await, engine.removed()), (vec![2, 3, 4, 5, 6], vec![Seq(1)]));
    let size = entry(a, "m1").body.len() as u64;
    let left = Usage { entries: before.entries - 1, bytes: before.bytes - size };
    assert_eq!(log.usage(a).await.unwrap(), left);
    assert!(!withdraw("m1").await.unwrap(), "it is gone");
    assert!(!withdraw("m9").await.unwrap(), "nobody knows it");
    assert_eq!(log.append(entry(a, "m1")).await.unwrap(), Appended::Seen(Seq(1)), "nor does it come again");

    log.note_pushed(a, vec![(Seq(2), clock::wall())]).await.unwrap();
    assert!(!withdraw("m2").await.unwrap(), "a socket pushed it");
    let row = OpenTurn {
        conversation: conversation("k"),
        platform: "p".into(),
        bot: "b".into(),
        thread_id: None,
        seq: Seq(3),
        message_id: "m3".into(),
        author: None,
        asks: false,
    };
    log.note_turns(a, claimed.epoch, vec![TurnNote::Opened(row)]).await.unwrap();
    assert!(!withdraw("m3").await.unwrap(), "an agent works on it");
    let joined = Joined { lines: vec![(Seq(4), 0), (Seq(5), 0)], body: "both".into() };
    log.join(a, claimed.epoch, joined).await.unwrap().expect("joined");
    assert!(!withdraw("m4").await.unwrap() && !withdraw("m5").await.unwrap(), "they went together");
    assert!(withdraw("m6").await.unwrap());
    log.settle(a, claimed.epoch, vec![settled(6)]).await.unwrap();
    assert_eq!(seqs(&engine, a).await, [2, 3, 5]);
}

async fn whoever_is_refused_by_a_full_inbox_left_no_trace(engine: impl Engine) {
    let (a, log) = (engine.instance("a").await, engine.log());
    let refusable = |id: &str| NewEntry { when_full: WhenFull::Refuse, ..entry(a, id) };
    for id in ["m1", "m2"] {
        append(&engine, refusable(id)).await;
    }
    assert_eq!(log.append(refusable("m3")).await.unwrap_err().kind(), Kind::Unavailable);
    assert!(matches!(log.append(refusable("m1")).await.unwrap(), Appended::Seen(_)), "it is there");
    log.settle(a, Epoch(0), vec![settled(1)]).await.unwrap();
    assert_eq!(
        log.append(refusable("m3")).await.unwrap(),
        Appended::New(Seq(3)),
        "and takes the next number"
    );
}

async fn the_largest_chat_makes_room(engine: impl Engine) {
    let a = engine.instance("a").await;
    let in_chat = |chat: &str, id: &str| NewEntry { chat_id: chat.into(), ..entry(a, id) };
    for (chat, id) in [("quiet", "q1"), ("flood", "f1"), ("flood", "f2"), ("flood", "f3"), ("quiet", "q2")] {
        append(&engine, in_chat(chat, id)).await;
    }
    assert_eq!((seqs(&engine, a).await, engine.removed()), (vec![1, 3, 4, 5], vec![Seq(2)]));
    append(&engine, in_chat("new", "n1")).await;
    assert_eq!(seqs(&engine, a).await.len(), 4);
}

async fn what_was_appended_before_the_first_gateway_is_its_own_in_order_and_once(engine: impl Engine) {
    let (awaiting_first, log) = (engine.awaiting_first().await, engine.log());
    for id in ["m1", "m2"] {
        append(&engine, entry(awaiting_first, id)).await;
    }
    assert!(matches!(log.append(entry(awaiting_first, "m1")).await.unwrap(), Appended::Seen(Seq(1))));
    assert_eq!(log.waiting().await.unwrap(), [awaiting_first]);
    let first = engine.first_gateway().await;
    assert_eq!(first, awaiting_first, "it takes over what waits for it");
    assert!(matches!(log.append(entry(first, "m2")).await.unwrap(), Appended::Seen(Seq(2))), "once");
    append(&engine, entry(first, "m3")).await;
    let claimed = log.claim(first, "node").await.unwrap();
    assert_eq!((claimed.mark.tail, claimed.usage.entries), (Seq(3), 3));
    let waiting = log.load(first, Seq(0), &[], PageSize::of(9)).await.unwrap();
    let texts: Vec<&[u8]> = waiting.iter().map(|entry| &entry.body[..]).collect();
    assert_eq!(texts, [&b"{\"text\":\"m1\"}"[..], b"{\"text\":\"m2\"}", b"{\"text\":\"m3\"}"]);
    log.settle(first, claimed.epoch, (1..=3).map(settled).collect()).await.unwrap();
    assert_eq!(seqs(&engine, first).await, [] as [i64; 0]);
}

async fn what_waits_for_a_first_gateway_is_within_the_quota(engine: impl Engine) {
    let (awaiting_first, log) = (engine.awaiting_first().await, engine.log());
    for id in ["m1", "m2", "m3"] {
        append(&engine, entry(awaiting_first, id)).await;
    }
    assert_eq!((seqs(&engine, awaiting_first).await, engine.removed()), (vec![2, 3], vec![Seq(1)]));
    let refusable = NewEntry { when_full: WhenFull::Refuse, ..entry(awaiting_first, "m4") };
    assert_eq!(log.append(refusable).await.unwrap_err().kind(), Kind::Unavailable);
}

async fn for_a_revoked_gateway_nothing_is_taken(engine: impl Engine) {
    engine.awaiting_first().await;
    let (first, log) = (engine.first_gateway().await, engine.log());
    append(&engine, entry(first, "m1")).await;
    engine.revoke_first().await;
    assert_eq!(log.append(entry(first, "m2")).await.unwrap_err().kind(), Kind::NotFound);
    assert_eq!(seqs(&engine, first).await, [1], "and nothing was written");
}
