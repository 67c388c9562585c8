use super::*;
use crate::store::room::{EACH, QUEUED_BY_ONE};
use proptest::prelude::*;
use std::time::Duration;

fn tenant(name: &str) -> Owner {
    Owner::Tenant(name.into())
}

#[tokio::test]
async fn one_tenant_waits_for_room_and_another_does_not() {
    let queue = Arc::new(Queue::default());
    for n in 0..8 {
        assert!(queue.push(tenant("flood"), 1024 * 1024 - EACH, n).await);
    }
    let behind = queue.clone();
    let mut ninth = tokio::spawn(async move { behind.push(tenant("flood"), 10, 9).await });
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut ninth).await.is_err(), "it waits");
    let ann = tokio::time::timeout(Duration::from_secs(5), queue.push(tenant("ann"), 10, 100));
    assert_eq!(ann.await, Ok(true), "she does not");
    assert_eq!(queue.take(), Some(vec![0, 100, 1]), "one of each, up to a megabyte");
    assert!(ninth.await.unwrap(), "there is room again");
}

#[tokio::test]
async fn a_closed_queue_gives_what_it_has_and_takes_no_more() {
    let queue = Queue::default();
    assert!(queue.push(Owner::Server, 10, 1).await);
    queue.close();
    assert!(!queue.push(Owner::Server, 10, 2).await);
    assert_eq!((queue.take(), queue.take()), (Some(vec![1]), None));
}

#[tokio::test]
async fn an_operator_is_behind_nobody() {
    let queue = Arc::new(Queue::default());
    for n in 0..4 {
        for _ in 0..8 {
            assert!(queue.push(tenant(&n.to_string()), 1024 * 1024 - EACH, n).await);
        }
    }
    let behind = queue.clone();
    let mut other = tokio::spawn(async move { behind.push(tenant("ann"), 10, 100).await });
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut other).await.is_err(), "all is taken");
    let operator = queue.push(Owner::Operator, 10, 200);
    assert!(tokio::time::timeout(Duration::from_secs(5), operator).await.expect("no waiting"));
    assert_eq!(queue.take(), Some(vec![200, 0, 1]), "and taken first");
    assert!(other.await.unwrap());
}

#[tokio::test]
async fn nobody_waits_for_a_thread_that_is_gone() {
    let queue = Arc::new(Queue::default());
    let (answer, answered) = tokio::sync::oneshot::channel::<()>();
    assert!(queue.push(tenant("ann"), QUEUED_BY_ONE - EACH, Some(answer)).await);
    let behind = queue.clone();
    let waits = tokio::spawn(async move { behind.push(tenant("ann"), 10, None).await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    queue.abandon();
    assert!(answered.await.is_err(), "what was in line");
    assert!(!waits.await.unwrap(), "and what waited to get there");
    assert!(!queue.push(Owner::Operator, 10, None).await && !queue.push(tenant("bob"), 10, None).await);
    assert_eq!(queue.take().map(|batch| batch.len()), None);
}

#[tokio::test]
async fn owners_without_writes_are_forgotten() {
    let queue = Queue::default();
    for n in 0..1_000 {
        queue.push(tenant(&n.to_string()), 10, n).await;
        queue.take();
    }
    assert!(queue.room.owners() < 100);
}

#[test]
fn one_who_has_much_does_not_hold_up_another() {
    let mut queue = RoundRobin::default();
    (0..1_000).for_each(|n| queue.push(tenant("flood"), 10, ("flood", n)));
    queue.push(tenant("ann"), 10, ("ann", 0));
    queue.push(tenant("bob"), 10, ("bob", 0));
    assert_eq!(queue.take(4, 1_000), [("flood", 0), ("ann", 0), ("bob", 0), ("flood", 1)]);
    queue.push(tenant("ann"), 10, ("ann", 1));
    assert_eq!(queue.take(2, 1_000), [("flood", 2), ("ann", 1)]);
}

#[test]
fn a_batch_is_bounded_in_bytes_and_never_empty() {
    let mut queue = RoundRobin::default();
    queue.push(tenant("a"), 5_000, 1);
    queue.push(tenant("a"), 10, 2);
    queue.push(tenant("b"), 60, 3);
    queue.push(tenant("b"), 60, 4);
    assert_eq!(queue.take(10, 100), [1], "too large, and taken all the same");
    assert_eq!(queue.take(10, 100), [3, 2, 4]);
    assert!(queue.take(10, 100).is_empty() && queue.is_empty());
}

proptest! {
    #[test]
    fn nothing_is_lost_and_each_owner_keeps_its_order(
        pushes in prop::collection::vec((0..5u8, 0..300usize), 0..60), most in 1..8usize,
    ) {
        let mut queue = RoundRobin::default();
        for (n, (owner, bytes)) in pushes.iter().enumerate() {
            queue.push(tenant(&owner.to_string()), *bytes, (*owner, n));
        }
        let mut taken = Vec::new();
        while !queue.is_empty() {
            let batch = queue.take(most, 500);
            prop_assert!(!batch.is_empty() && batch.len() <= most);
            taken.extend(batch);
        }
        prop_assert_eq!(taken.len(), pushes.len());
        for owner in 0..5 {
            let numbers: Vec<_> = taken.iter().filter(|it| it.0 == owner).map(|it| it.1).collect();
            prop_assert!(numbers.is_sorted());
        }
        prop_assert!(queue.waiting.is_empty() && queue.turns.is_empty());
    }
}
