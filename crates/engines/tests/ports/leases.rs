//! What every keeper of leases must do: one holder at a time, each with a larger token.

use angelia_core::directory::BotKey;
use angelia_core::lease::{Fenced, lease_lost};
use angelia_core::ports::{LeaseToken, Leases, Term, Under};
use angelia_core::records::Records;
use angelia_core::store::{NoticeKind, NoticeStore};
use futures_util::future::join_all;
use std::time::Duration;

const HOUR: Term = Term::For(Duration::from_secs(3600));
/// Over when it begins.
const OVER: Term = Term::For(Duration::ZERO);

async fn there_is_one_holder_at_a_time(records: &(impl Records + ?Sized)) {
    let nodes: Vec<String> = (0..8).map(|number| format!("node {number}")).collect();
    let tries = join_all(nodes.iter().map(|node| records.acquire("bot", node, HOUR))).await;
    let held: Vec<_> = tries.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!(held.len(), 1);
    assert_eq!(records.holder("bot").await.unwrap().as_ref(), held.first());
    assert!(records.acquire("another bot", "node 9", HOUR).await.unwrap().is_some());
}

async fn what_is_given_back_is_free_at_once(records: &(impl Records + ?Sized)) {
    let first = records.acquire("bot", "a", HOUR).await.unwrap().unwrap();
    assert_eq!(records.acquire("bot", "b", HOUR).await.unwrap(), None);
    assert!(records.release(&first).await.unwrap());
    assert_eq!(records.holder("bot").await.unwrap(), None);
    assert_eq!(records.renew(&first, HOUR).await.unwrap(), None, "it is gone");
    let second = records.acquire("bot", "b", HOUR).await.unwrap().unwrap();
    assert!(second.token > first.token);
    assert!(!records.release(&first).await.unwrap(), "it is somebody else's now");
    assert_eq!(records.holder("bot").await.unwrap(), Some(second));
}

async fn one_that_is_over_is_whoevers_comes_first(records: &(impl Records + ?Sized)) {
    let late = records.acquire("bot", "a", OVER).await.unwrap().unwrap();
    assert_eq!(records.holder("bot").await.unwrap(), None);
    let renewed = records.renew(&late, OVER).await.unwrap().unwrap();
    assert_eq!(renewed.token, late.token, "nobody took it");
    let taken = records.acquire("bot", "b", HOUR).await.unwrap().unwrap();
    assert_eq!(records.renew(&renewed, HOUR).await.unwrap(), None);
    assert_eq!(records.renew(&taken, HOUR).await.unwrap().map(|lease| lease.token), Some(taken.token));
}

async fn who_is_alone_takes_what_a_process_before_it_held(records: &(impl Records + ?Sized)) {
    let before = records.acquire("bot", "a", Term::Alone).await.unwrap().unwrap();
    assert_eq!((before.token, before.until), (LeaseToken(1), None));
    assert_eq!(records.acquire("bot", "b", HOUR).await.unwrap(), None, "it has no end");
    let after = records.acquire("bot", "b", Term::Alone).await.unwrap().unwrap();
    assert_eq!(after.token, LeaseToken(2), "what the one before has on its way is told from it");
}

async fn what_is_written_under_a_lease_is_refused_once_another_has_it(records: &(impl Records + ?Sized)) {
    let bot = BotKey::new("telegram", "7");
    let first = records.acquire("notices", "a", OVER).await.unwrap().unwrap();
    let fenced = Fenced::new(records, Under { lease: first.name.clone(), token: first.token });
    assert!(fenced.notice(NoticeKind::Away, &bot, "1", None).await.unwrap());
    let second = records.acquire("notices", "b", HOUR).await.unwrap().unwrap();
    let refused = fenced.notice(NoticeKind::Away, &bot, "2", None).await.unwrap_err();
    assert_eq!(refused.to_string(), lease_lost().to_string());
    assert!(records.notice(NoticeKind::Away, &bot, "2", None).await.unwrap(), "nothing was written");
    let given_back = Fenced::new(records, Under { lease: second.name.clone(), token: second.token });
    assert!(records.release(&second).await.unwrap());
    assert!(given_back.notice(NoticeKind::Away, &bot, "3", None).await.is_err());
}

on_every_engine!(
    there_is_one_holder_at_a_time,
    what_is_given_back_is_free_at_once,
    one_that_is_over_is_whoevers_comes_first,
    who_is_alone_takes_what_a_process_before_it_held,
    what_is_written_under_a_lease_is_refused_once_another_has_it,
);
