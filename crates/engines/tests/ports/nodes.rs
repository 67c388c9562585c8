//! What every keeper of records must do for nodes: who is there, and how leases are shared out.

use angelia_core::clock::UnixMillis;
use angelia_core::cluster::{Beat, Nodes as _, Sign, TERM};
use angelia_core::ports::{Leases as _, Term};
use angelia_core::records::Records;
use angelia_engines::memory::MemoryRecords;
use std::cell::Cell;
use std::time::Duration;

const WANTED: [&str; 6] = ["bot 1", "bot 2", "bot 3", "bot 4", "notices", "wake"];
/// Longer than anybody waits for a lease that others may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// A node, as it remembers itself.
struct Node {
    name: &'static str,
    wanted: Vec<String>,
    unwanted: Vec<String>,
    last: Beat,
}

impl Node {
    fn new(name: &'static str) -> Self {
        Self::wanting(name, &WANTED)
    }

    fn wanting(name: &'static str, wanted: &[&str]) -> Self {
        let wanted = wanted.iter().map(|it| (*it).to_owned()).collect();
        Self { name, wanted, unwanted: Vec::new(), last: Beat::default() }
    }

    async fn beat(&mut self, records: &(impl Records + ?Sized)) -> Vec<&str> {
        let sign = Sign {
            node: self.name.to_owned(),
            owner: 7,
            facts: "{}".into(),
            held: self.last.held.clone(),
            wanted: self.wanted.clone(),
            offered: Vec::new(),
            unwanted: self.unwanted.clone(),
        };
        self.last = records.beat(sign).await.unwrap();
        self.held()
    }

    fn held(&self) -> Vec<&str> {
        let mut held: Vec<&str> = self.last.held.iter().map(|lease| lease.name.as_str()).collect();
        held.sort_unstable();
        held
    }

    fn sees(&self) -> Vec<&str> {
        self.last.nodes.iter().map(|node| node.node.as_str()).collect()
    }
}

async fn who_is_first_has_everything_until_it_leaves(records: &(impl Records + ?Sized)) {
    let (mut a, mut b) = (Node::new("a"), Node::new("b"));
    assert_eq!(a.beat(records).await, WANTED);
    assert!(b.beat(records).await.is_empty());
    assert_eq!((a.beat(records).await.len(), a.sees()), (6, vec!["a", "b"]));
    records.leave("a").await.unwrap();
    assert_eq!(b.beat(records).await, WANTED, "nobody waits for who has left");
    assert!(b.sees() == ["b"] && b.last.gone.is_empty());
    assert!(b.last.held.iter().all(|lease| lease.token.0 == 2), "of another holder another token");
}

async fn what_somebody_took_is_lost(records: &(impl Records + ?Sized)) {
    let mut a = Node::new("a");
    a.beat(records).await;
    // It stood still, and another one came.
    records.acquire("bot 1", "b", Term::Alone).await.unwrap().unwrap();
    assert_eq!(a.beat(records).await, WANTED[1..], "and is not taken back: it is held");
}

async fn all_beat_at_once_and_each_lease_has_one_holder(records: &(impl Records + ?Sized)) {
    let mut nodes: Vec<Node> = ["a", "b", "c"].into_iter().map(Node::new).collect();
    for _ in 0..3 {
        futures_util::future::join_all(nodes.iter_mut().map(|node| node.beat(records))).await;
    }
    let mut held: Vec<&str> = nodes.iter().flat_map(Node::held).collect();
    held.sort_unstable();
    assert_eq!(held, WANTED);
}

on_every_engine!(
    who_is_first_has_everything_until_it_leaves,
    what_somebody_took_is_lost,
    all_beat_at_once_and_each_lease_has_one_holder,
);

thread_local! {
    /// The time of the tests below.
    static NOW: Cell<i64> = const { Cell::new(1_000_000) };
}

fn pass(time: Duration) {
    NOW.with(|now| now.set(now.get() + i64::try_from(time.as_millis()).unwrap()));
}

fn in_memory() -> MemoryRecords {
    MemoryRecords::new(|| UnixMillis(NOW.with(Cell::get)))
}

#[tokio::test]
async fn what_a_dead_node_held_is_free_after_its_term() {
    let records = in_memory();
    let (mut a, mut b) = (Node::new("a"), Node::new("b"));
    a.beat(&records).await;
    b.beat(&records).await;
    pass(TERM - Duration::from_millis(1));
    assert!(b.beat(&records).await.is_empty(), "it may still be there");
    pass(Duration::from_millis(1));
    assert_eq!(b.beat(&records).await, WANTED);
    assert_eq!(b.last.gone.iter().map(|node| node.node.as_str()).collect::<Vec<_>>(), ["a"]);
    assert!(a.beat(&records).await.is_empty(), "it wakes up and has nothing");
    pass(Duration::from_secs(700));
    b.beat(&records).await;
    assert!(b.last.gone.is_empty(), "nobody remembers it");
}

#[tokio::test]
async fn what_is_free_is_shared_out_and_nothing_is_left() {
    let records = in_memory();
    let (mut a, mut b) = (Node::new("a"), Node::new("b"));
    let mut dead = Node::new("dead");
    dead.beat(&records).await;
    pass(TERM / 2);
    a.beat(&records).await;
    b.beat(&records).await;
    pass(TERM / 2);
    let first = a.beat(&records).await.len();
    assert_eq!(first, 3, "its share, as long as others may take the rest");
    assert_eq!(b.beat(&records).await.len(), 3);

    // One that takes nothing, or leaves, does not keep others from it.
    let records = in_memory();
    let (mut a, mut idle) = (Node::new("a"), Node::wanting("idle", &[]));
    idle.beat(&records).await;
    assert_eq!(a.beat(&records).await, WANTED);

    // Neither does one that has other things to do.
    let records = in_memory();
    let (mut a, mut other) = (Node::new("a"), Node::wanting("other", &["shard"]));
    other.beat(&records).await;
    assert_eq!(a.beat(&records).await.len(), 3);
    pass(PATIENCE);
    other.beat(&records).await;
    assert_eq!(a.beat(&records).await, WANTED);
}

#[tokio::test]
async fn who_has_most_gives_to_who_has_least_but_not_to_a_newcomer() {
    let records = in_memory();
    let (mut a, mut b) = (Node::new("a"), Node::new("b"));
    a.beat(&records).await;
    b.beat(&records).await;
    a.beat(&records).await;
    assert_eq!(a.last.give_up, None, "it has just come");
    let mut moved = 0;
    for _ in 0..60 {
        pass(Duration::from_millis(500));
        a.beat(&records).await;
        b.beat(&records).await;
        if let Some(name) = a.last.give_up.clone() {
            let lease = a.last.held.iter().find(|lease| lease.name == name).unwrap();
            assert!(records.release(lease).await.unwrap());
            a.last.held.retain(|lease| lease.name != name);
            moved += 1;
        }
    }
    assert_eq!((moved, a.held().len(), b.held().len()), (3, 3, 3));
}

#[tokio::test]
async fn what_the_others_do_not_want_is_kept() {
    let records = in_memory();
    let (mut a, mut b) = (Node::new("a"), Node::wanting("b", &["wake"]));
    a.beat(&records).await;
    for _ in 0..30 {
        pass(Duration::from_millis(500));
        a.beat(&records).await;
        b.beat(&records).await;
    }
    assert_eq!(a.last.give_up.as_deref(), Some("wake"), "the last by name");
    a.unwanted = vec!["wake".into()];
    a.beat(&records).await;
    assert_eq!(a.last.give_up.as_deref(), Some("notices"), "the next one");
    a.unwanted = a.wanted.clone();
    a.beat(&records).await;
    assert_eq!(a.last.give_up, None);
}
