use super::identity::by;
use super::open::{Opened, entry};
use angelia_core::Kind;
use angelia_core::clock;
use angelia_core::inbox::{
    AckHabit, Entry, EntryKind, Epoch, InstanceId, Quota, Seq, SettledBy, Usage, WhenFull, outcome,
};
use angelia_core::store::{
    Appended, IdentityStore, JournalStore, NewEntry, NoticeStore, Page, PageSize, Returned, Revised,
    Revision, Settlement, Withdrawal,
};
use std::time::Duration;

pub(crate) fn settled(seq: Seq) -> Settlement {
    Settlement { seq, by: SettledBy::Ack, pushed_at: Some(clock::wall()) }
}

#[tokio::test]
async fn what_is_appended_survives_and_what_is_settled_is_gone() {
    let opened = Opened::new();
    let (a, b) = (opened.instance("a").await, opened.instance("b").await);
    for n in 0..5 {
        opened.store.append(entry(a, &format!("a{n}"))).await.unwrap();
        opened.store.append(entry(b, &format!("b{n}"))).await.unwrap();
    }
    let seqs = opened.seqs(a).await;
    opened
        .store
        .settle(a, Epoch(0), vec![settled(seqs[0]), settled(seqs[1]), settled(seqs[0])])
        .await
        .unwrap();
    opened.store.settle(b, Epoch(0), vec![settled(seqs[2])]).await.unwrap();
    let opened = opened.reopen();
    assert_eq!(opened.seqs(a).await, seqs[2..], "another instance settles nothing of mine");
    assert_eq!(opened.seqs(b).await, [1, 2, 4, 5].map(Seq), "each counts for itself");
    assert_eq!(opened.store.usage(a).await.unwrap().entries, 3);
    assert_eq!(
        opened.store.load(a, seqs[2], &[], PageSize::of(1)).await.unwrap()[0].seq,
        seqs[3],
        "a page goes on where it ended"
    );
    let body = &opened.store.load(a, Seq(0), &[], PageSize::of(1)).await.unwrap()[0].body;
    assert_eq!(&body[..], b"{\"text\":\"a2\"}", "the bytes are those that were given");
}

#[tokio::test]
async fn commits_are_announced_in_the_order_of_the_log() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..500 {
        let store = opened.store.clone();
        tasks.spawn(async move { store.append(entry(a, &format!("m{n}"))).await.unwrap() });
    }
    tasks.join_all().await;
    let announced: Vec<Seq> = opened.witness.appended.lock().unwrap().iter().map(|(_, seq)| *seq).collect();
    assert_eq!(announced.len(), 500);
    assert!(announced.is_sorted());
    assert_eq!(announced, opened.seqs(a).await);
}

#[tokio::test]
async fn three_strikes_in_a_row_make_a_dead_letter() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    for id in ["poison", "fine"] {
        opened.store.append(entry(a, id)).await.unwrap();
    }
    let seqs = opened.seqs(a).await;
    let strike = |seq: Option<Seq>| Returned {
        entries: seqs.iter().map(|seq| (*seq, clock::wall())).collect(),
        strike: seq,
    };
    for _ in 0..2 {
        assert_eq!(opened.store.returned(a, Epoch(0), strike(Some(seqs[0]))).await.unwrap(), None);
    }
    opened.store.returned(a, Epoch(0), strike(None)).await.unwrap();
    for _ in 0..2 {
        assert_eq!(
            opened.store.returned(a, Epoch(0), strike(Some(seqs[0]))).await.unwrap(),
            None,
            "it starts anew"
        );
    }
    assert_eq!(opened.store.returned(a, Epoch(0), strike(Some(seqs[0]))).await.unwrap(), Some(seqs[0]));
    assert_eq!(opened.seqs(a).await, [seqs[1]]);
    assert_eq!(*opened.witness.removed.lock().unwrap(), [seqs[0]]);
    assert_eq!(opened.store.entries(Some(a), true, 10).await.unwrap()[0].seq, seqs[0]);
    let opened = opened.reopen();
    assert_eq!(opened.store.usage(a).await.unwrap().entries, 1, "dead letters do not count");
    assert_eq!(opened.store.redrive(Some(a), None, &by()).await.unwrap(), 1);
    assert_eq!(
        opened.store.load_ahead(a, PageSize::of(10)).await.unwrap()[0].seq,
        seqs[0],
        "its place in line is long past"
    );
    assert_eq!(opened.seqs(a).await, [seqs[1]]);
    let found = opened.store.numbered(seqs[0]).await.unwrap().remove(0);
    assert_eq!((found.seq, found.instance), (seqs[0], a));
    assert_eq!(opened.store.purge(Some(a), Some(seqs[0]), &by()).await.unwrap(), 1);
    assert!(opened.store.numbered(seqs[0]).await.unwrap().is_empty());
    assert_eq!(
        opened.store.purge(None, None, &by()).await.unwrap(),
        0,
        "without a name only dead letters go"
    );
    assert_eq!(opened.store.usage(a).await.unwrap().entries, 1);
}

#[tokio::test]
async fn beyond_a_quota_the_largest_chat_loses_its_oldest_and_nobody_else_is_touched() {
    let opened = Opened::with(Quota { entries: 10, bytes: 10_000, ..Quota::default() });
    let (a, b) = (opened.instance("a").await, opened.instance("b").await);
    let in_chat = |chat: &str, id: String| NewEntry { chat_id: chat.into(), ..entry(a, &id) };
    for n in 0..3 {
        opened.store.append(in_chat("quiet", format!("q{n}"))).await.unwrap();
    }
    for n in 0..25 {
        opened.store.append(in_chat("flood", format!("f{n}"))).await.unwrap();
        opened.store.append(entry(b, "b")).await.unwrap();
    }
    let waiting = opened.store.load(a, Seq(0), &[], PageSize::of(100)).await.unwrap();
    let chats: Vec<&str> = waiting.iter().map(|entry| &*entry.chat_id).collect();
    assert_eq!(chats, [vec!["quiet"; 3], vec!["flood"; 7]].concat());
    assert_eq!(&waiting[3].body[..], b"{\"text\":\"f18\"}", "the oldest went");
    // What is counted survives a restart, and so does who has to be told.
    let opened = opened.reopen();
    let untold = opened.store.untold(10).await.unwrap();
    assert_eq!(
        untold.iter().map(|it| (&*it.chat_id, &*it.message_id)).collect::<Vec<_>>(),
        [("flood", "f0")]
    );
    opened.store.told(&untold[0]).await.unwrap();
    assert!(opened.store.untold(10).await.unwrap().is_empty());
    opened.store.append(in_chat("quiet", "q3".into())).await.unwrap();
    assert_eq!(opened.store.usage(a).await.unwrap().entries, 10);
    let inboxes = opened.store.inboxes().await.unwrap();
    assert_eq!((inboxes[0].gaps.len(), inboxes[0].gaps[0].lost), (1, 19), "a smaller chat still has room");
}

#[tokio::test]
async fn one_large_entry_beyond_a_quota_of_bytes_costs_the_chat_that_holds_most_bytes() {
    let opened = Opened::with(Quota { entries: 100, bytes: 10_000, ..Quota::default() });
    let (a, b) = (opened.instance("a").await, opened.instance("b").await);
    for n in 0..25 {
        let chat = if n % 2 == 0 { "web-even" } else { "web-odd" };
        let body = vec![b'x'; 400].into();
        opened
            .store
            .append(NewEntry { chat_id: chat.into(), body, ..entry(a, &format!("a{n}")) })
            .await
            .unwrap();
        opened.store.append(entry(b, "b")).await.unwrap();
    }
    let big = NewEntry { body: vec![b'x'; 9_990].into(), ..entry(a, "big") };
    opened.store.append(big).await.unwrap();
    // It is the largest itself, and holds nothing else that could go.
    assert_eq!(opened.store.usage(a).await.unwrap(), Usage { entries: 25, bytes: 10_000 });
    let story = opened.store.explain("big").await.unwrap();
    assert!(story[0].outcome.as_ref().unwrap().contains("quota"));
    let large = NewEntry { body: vec![b'x'; 3_000].into(), ..entry(a, "large") };
    opened.store.append(large).await.unwrap();
    assert_eq!(
        opened.store.usage(a).await.unwrap().bytes,
        3_600 + 3_200 + 3_000,
        "the two that had more gave way in turn"
    );
    assert_eq!(opened.store.usage(b).await.unwrap().entries, 1);
}

#[tokio::test]
async fn what_may_be_refused_is_and_displaces_nobody() {
    let opened = Opened::with(Quota { entries: 3, ..Quota::default() });
    let a = opened.instance("a").await;
    let refusable = |id: &str| NewEntry { when_full: WhenFull::Refuse, ..entry(a, id) };
    for id in ["m0", "m1", "m2"] {
        opened.store.append(refusable(id)).await.unwrap();
    }
    let refused = opened.store.append(refusable("m3")).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Unavailable);
    assert!(refused.retry_after().is_some());
    assert!(matches!(opened.store.append(refusable("m1")).await.unwrap(), Appended::Seen(_)), "it is there");
    assert!(opened.store.explain("m3").await.unwrap().is_empty(), "nothing was written");
    let seqs = opened.seqs(a).await;
    assert_eq!(seqs.len(), 3);
    opened.store.settle(a, Epoch(0), vec![settled(seqs[0])]).await.unwrap();
    assert!(
        matches!(opened.store.append(refusable("m3")).await.unwrap(), Appended::New(_)),
        "it may come again"
    );
    assert!(opened.store.inboxes().await.unwrap()[0].gaps.is_empty());
}

#[tokio::test]
async fn a_late_acknowledgement_settles_what_was_pushed_and_nothing_else() {
    let opened = Opened::new();
    let (a, b) = (opened.instance("a").await, opened.instance("b").await);
    for id in ["m0", "m1", "m2"] {
        opened.store.append(entry(a, id)).await.unwrap();
    }
    opened.store.append(NewEntry { chat_id: "other".into(), ..entry(b, "b0") }).await.unwrap();
    let (seqs, theirs) = (opened.seqs(a).await, opened.seqs(b).await);
    let now = clock::wall();
    opened
        .store
        .returned(a, Epoch(0), Returned { entries: vec![(seqs[0], now)], strike: None })
        .await
        .unwrap();
    opened.store.note_pushed(a, vec![(seqs[1], now)]).await.unwrap();
    let all = [seqs.clone(), theirs.clone(), vec![Seq(99)]].concat();
    assert_eq!(opened.store.settle_late(a, all).await.unwrap(), seqs[..2]);
    assert_eq!((opened.seqs(a).await, opened.seqs(b).await), (vec![seqs[2]], theirs));
    assert_eq!(opened.store.explain("m0").await.unwrap()[0].outcome.as_deref(), Some("acknowledged late"));
}

#[tokio::test]
async fn what_was_in_flight_when_it_was_deleted_was_received_after_all() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    for id in ["m0", "m1"] {
        opened.store.append(entry(a, id)).await.unwrap();
        let NewEntry { platform, bot, chat_id, message_id, .. } = entry(a, id);
        assert!(opened.store.withdraw(Withdrawal { platform, bot, chat_id, message_id }).await.unwrap());
    }
    opened.store.settle(a, Epoch(0), vec![settled(Seq(1))]).await.unwrap();
    let told = async |id| opened.store.explain(id).await.unwrap().remove(0);
    let (received, withdrawn) = (told("m0").await, told("m1").await);
    assert_eq!((received.outcome.as_deref(), received.pushes), (Some(SettledBy::Ack.as_str()), 1));
    assert!(received.pushed_at.is_some());
    assert_eq!((withdrawn.outcome.as_deref(), withdrawn.pushes), (Some(outcome::WITHDRAWN), 0));
}

#[tokio::test]
async fn pages_are_bounded_in_bytes_and_say_that_there_is_more() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    for (n, bytes) in [10, 100, 10, 200, 10].into_iter().enumerate() {
        let body = vec![b'x'; bytes].into();
        opened.store.append(NewEntry { body, ahead: n > 2, ..entry(a, &format!("m{n}")) }).await.unwrap();
    }
    let size = PageSize { count: 2, bytes: 105 };
    let lengths = |page: &Page<Entry>| page.iter().map(|entry| entry.body.len()).collect::<Vec<_>>();
    let first = opened.store.load(a, Seq(0), &[], size).await.unwrap();
    assert_eq!((lengths(&first.page), first.page.more), (vec![10], true), "the second does not fit");
    let second = opened.store.load(a, first[0].seq, &[], size).await.unwrap();
    assert_eq!((lengths(&second.page), second.page.more), (vec![100], true));
    let last = opened.store.load(a, second[0].seq, &[], size).await.unwrap();
    assert_eq!((lengths(&last.page), last.page.more), (vec![10], false), "and no further page");
    let ahead = opened.store.load_ahead(a, size).await.unwrap();
    assert_eq!((lengths(&ahead.page), ahead.page.more), (vec![200], true), "one is read whatever its size");
    let all = opened.store.load(a, Seq(0), &[], PageSize::of(3)).await.unwrap();
    assert_eq!((all.len(), all.page.more), (3, false));
}

#[tokio::test]
async fn what_waited_too_long_goes_and_old_keys_are_forgotten() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    let days = |n: u64| clock::wall().before(Duration::from_secs(n * 24 * 3600));
    opened.store.append(NewEntry { received_at: days(8), ..entry(a, "overaged") }).await.unwrap();
    opened.store.append(NewEntry { received_at: days(4), ..entry(a, "old") }).await.unwrap();
    opened.store.append(entry(a, "new")).await.unwrap();
    let seqs = opened.seqs(a).await;
    opened.store.settle(a, Epoch(0), vec![settled(seqs[2])]).await.unwrap();
    opened.store.prune().await.unwrap();
    assert_eq!(opened.seqs(a).await, [seqs[1]]);
    assert!(
        matches!(opened.store.append(entry(a, "new")).await.unwrap(), Appended::Seen(_)),
        "72 h are not over"
    );
    assert!(
        matches!(opened.store.append(entry(a, "old")).await.unwrap(), Appended::Seen(_)),
        "it still waits"
    );
    opened.store.settle(a, Epoch(0), vec![settled(seqs[1])]).await.unwrap();
    opened.store.prune().await.unwrap();
    assert!(matches!(opened.store.append(entry(a, "old")).await.unwrap(), Appended::New(_)));
}

fn revision(instance: InstanceId, message_id: &str, body: String) -> Revision {
    Revision {
        platform: "webchat".into(),
        bot: "webchat".into(),
        chat_id: "web-lab".into(),
        message_id: message_id.into(),
        instance,
        kind: EntryKind::Message,
        body: body.into(),
    }
}

#[tokio::test]
async fn what_waits_is_revised_in_its_place_and_what_settled_is_not() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    for id in ["m1", "m2", "m3"] {
        opened.store.append(entry(a, id)).await.unwrap();
    }
    let seqs = opened.seqs(a).await;
    assert_eq!(opened.store.revise(revision(a, "m2", "first".into())).await.unwrap(), Revised::Replaced);
    assert_eq!(opened.store.revise(revision(a, "m2", "second".into())).await.unwrap(), Revised::Replaced);
    let waiting = opened.store.load(a, Seq(0), &[], PageSize::of(10)).await.unwrap();
    assert_eq!(waiting.iter().map(|entry| entry.seq).collect::<Vec<_>>(), seqs);
    assert_eq!((&waiting[1].body[..], waiting[1].revision), (&b"second"[..], 2));
    assert_eq!(waiting[0].revision, 0);
    let told: Vec<_> =
        opened.witness.revised.lock().unwrap().iter().map(|entry| (entry.seq, entry.revision)).collect();
    assert_eq!(told, [(seqs[1], 1), (seqs[1], 2)]);
    opened.store.settle(a, Epoch(0), vec![settled(seqs[0])]).await.unwrap();
    assert_eq!(opened.store.revise(revision(a, "m1", "late".into())).await.unwrap(), Revised::NotWaiting);
    let elsewhere = Revision { bot: "other".into(), ..revision(a, "m2", "evil".into()) };
    assert_eq!(opened.store.revise(elsewhere).await.unwrap(), Revised::NotWaiting);
    let elsewhere = Revision { chat_id: "web-den".into(), ..revision(a, "m2", "evil".into()) };
    assert_eq!(opened.store.revise(elsewhere).await.unwrap(), Revised::NotWaiting);
    let b = opened.instance("b").await;
    assert_eq!(opened.store.revise(revision(b, "m2", "evil".into())).await.unwrap(), Revised::Elsewhere);
    assert_eq!(&opened.store.load(a, Seq(0), &[], PageSize::of(10)).await.unwrap()[0].body[..], b"second");
    assert_eq!(opened.witness.revised.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_revision_is_counted_and_a_longer_one_may_cost_the_oldest() {
    let opened = Opened::with(Quota { bytes: 1_000, ..Quota::default() });
    let a = opened.instance("a").await;
    for id in ["m1", "m2"] {
        opened.store.append(NewEntry { body: "x".repeat(100).into(), ..entry(a, id) }).await.unwrap();
    }
    let seqs = opened.seqs(a).await;
    opened.store.revise(revision(a, "m2", "y".repeat(300))).await.unwrap();
    assert_eq!(opened.store.usage(a).await.unwrap(), Usage { entries: 2, bytes: 400 });
    opened.store.revise(revision(a, "m2", "y".repeat(950))).await.unwrap();
    assert_eq!(opened.store.usage(a).await.unwrap(), Usage { entries: 1, bytes: 950 });
    assert_eq!(opened.seqs(a).await, [seqs[1]]);
    let opened = opened.reopen();
    assert_eq!(
        opened.store.usage(a).await.unwrap(),
        Usage { entries: 1, bytes: 950 },
        "counted the same from the disk"
    );
}

#[tokio::test]
async fn a_dead_letter_comes_back_with_its_newest_words() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    opened.store.append(entry(a, "m1")).await.unwrap();
    let seq = opened.seqs(a).await[0];
    for _ in 0..3 {
        let returned = Returned { entries: vec![(seq, clock::wall())], strike: Some(seq) };
        opened.store.returned(a, Epoch(0), returned).await.unwrap();
    }
    assert_eq!(opened.store.revise(revision(a, "m1", "harmless".into())).await.unwrap(), Revised::Replaced);
    assert_eq!(opened.store.usage(a).await.unwrap(), Usage::default(), "dead letters do not count");
    assert!(opened.witness.revised.lock().unwrap().is_empty(), "no socket has it");
    opened.store.redrive(Some(a), None, &by()).await.unwrap();
    assert_eq!(&opened.store.load_ahead(a, PageSize::of(1)).await.unwrap()[0].body[..], b"harmless");
    assert_eq!(opened.store.usage(a).await.unwrap(), Usage { entries: 1, bytes: 8 });
}

#[tokio::test]
async fn habits_and_flips_are_remembered() {
    let opened = Opened::new();
    let a = opened.instance("a").await;
    opened.store.set_habit(a, Epoch(0), AckHabit::Silent).await.unwrap();
    opened.store.set_idle(a, Epoch(0), true).await.unwrap();
    let opened = opened.reopen();
    let instance = opened.store.instances().await.unwrap().remove(0);
    assert_eq!((instance.habit, instance.idle, instance.is_default), (AckHabit::Silent, true, true));
}
