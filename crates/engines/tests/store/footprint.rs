//! That what is counted of rows is what they take in SQLite.

use super::open::{ME, Opened, entry};
use super::tenant_disk::{QUOTA, sent};
use super::vault::{notify, send};
use angelia_core::inbox::{Quota, WhenFull};
use angelia_core::store::{ActionOutcome, NewAction, NewEntry};
use futures_util::future::join_all;

/// What a tenant's rows may take.
const SHARE: u64 = 4 << 20;

impl Opened {
    /// What the database holds, without what is free in it.
    fn held_on_disk(&self) -> u64 {
        let pragma =
            |name: &str| self.raw().pragma_query_value(None, name, |row| row.get::<_, u64>(0)).unwrap();
        (pragma("page_count") - pragma("freelist_count")) * pragma("page_size")
    }

    /// That the share of a tenant that has used it up is what it really takes, more or less.
    fn assert_share(&self, empty: u64, what: &str) {
        let really = self.held_on_disk() - empty;
        println!("{what}: {really} bytes on the disk for a share of {SHARE}");
        let bounds = SHARE * 2 / 3..=SHARE * 3 / 2;
        assert!(bounds.contains(&really), "{what}: {really} bytes on the disk for a share of {SHARE}");
    }
}

fn long(number: usize) -> String {
    format!("{number:0>512}")
}

/// One case: how a row of the ledger is made longer, how its message is named, how many are written.
type Case = (&'static str, fn(NewAction, usize) -> NewAction, fn(usize) -> String, usize);

#[tokio::test]
async fn what_is_counted_of_the_ledger_is_what_it_takes() {
    let cases: [Case; 4] = [
        ("small", |action, _| action, |n| n.to_string(), 40_000),
        (
            "long replies",
            |action, n| NewAction { reply_to: Some(long(n)), ..action },
            |n| n.to_string(),
            5_000,
        ),
        (
            "long edits",
            |action, n| NewAction { edits: Some(long(n)), thread_id: Some(long(n)), ..action },
            long,
            2_000,
        ),
        ("long ids", |action, _| action, long, 5_000),
    ];
    for (what, change, message_id, rows) in cases {
        let opened = Opened::with(Quota { tenant_bytes: SHARE, ..QUOTA });
        let instance = opened.instance("a").await;
        let empty = opened.held_on_disk();
        for first in (0..rows).step_by(250) {
            let actions = (first..first + 250).map(|n| {
                let action = NewAction { answering: None, ..send(instance, notify()) };
                change(action, n)
            });
            let accepted = opened.store.accept(ME, actions.collect()).await.unwrap();
            let ends = accepted.iter().enumerate().map(|(n, action)| {
                let outcome = ActionOutcome { message_id: Some(message_id(first + n)), ..sent() };
                (action.id, outcome)
            });
            opened.store.finish(ME, ends.collect()).await.unwrap();
        }
        opened.assert_share(empty, what);
    }
}

#[tokio::test]
async fn what_is_counted_of_inboxes_is_what_they_take() {
    for (what, body, id) in [
        ("small", 100, (|n| n.to_string()) as fn(usize) -> String),
        ("middling", 1_200, |n| n.to_string()),
        ("long ids", 100, long),
    ] {
        let opened = Opened::with(Quota { tenant_bytes: SHARE, ..QUOTA });
        let instance = opened.instance("a").await;
        let empty = opened.held_on_disk();
        let message = |n: usize| NewEntry {
            body: vec![b'x'; body].into(),
            when_full: WhenFull::Refuse,
            ..entry(instance, &id(n))
        };
        let mut full = false;
        for first in (0..).step_by(200).take_while(|first| *first < 20_000) {
            let written = join_all((first..first + 200).map(|n| opened.store.append(message(n)))).await;
            full = written.iter().any(Result::is_err);
            if full {
                break;
            }
        }
        assert!(full, "{what}");
        opened.assert_share(empty, what);
    }
}

#[tokio::test]
async fn a_stream_that_cannot_be_refused_does_not_creep_past_the_share() {
    let opened = Opened::with(QUOTA);
    let instance = opened.instance("a").await;
    let empty = opened.held_on_disk();
    let message =
        |n: usize| NewEntry { body: vec![b'x'; 500].into(), ..entry(instance, &format!("m{n:05}")) };
    for first in (0..4_000).step_by(200) {
        let written = join_all((first..first + 200).map(|n| opened.store.append(message(n)))).await;
        assert!(written.iter().all(Result::is_ok));
    }
    let (waiting, really) = (opened.store.usage(instance).await.unwrap(), opened.held_on_disk() - empty);
    assert!(waiting.entries > 80, "the newest wait: {waiting:?}");
    assert!(really < 200_000, "{really} bytes on the disk for a share of 100,000");
}
