//! Writes that wait for the writing thread: bounded for each owner and in all,
//! in number and in bytes, and taken from one owner after the other.

use angelia_core::inbox::InstanceId;
use angelia_core::round_robin::RoundRobin;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

angelia_contract::limits! {
    /// Enough to share the fsync, few enough to answer soon.
    const BATCH: usize = 512, count "writes in one commit";
    /// A commit of this size takes some milliseconds; whoever comes next waits for no more than one of them.
    const BATCH_BYTES: usize = 1024 * 1024, bytes "in one commit, but for a single write that is larger";
    /// What waits for the disk in memory; callers beyond it wait to get in line.
    const QUEUED: usize = 32 * 1024 * 1024, bytes "in writes that wait for the disk";
    /// A quarter of it: one tenant's writes wait behind its own.
    const QUEUED_BY_ONE: usize = 8 * 1024 * 1024, bytes "in writes of one tenant or instance that wait for the disk";
}

/// What a write takes besides its bytes: so small ones are bounded in number too.
const EACH: usize = 4 * 1024;
/// Semaphores count in these.
const UNIT: usize = 1024;

/// Whose write it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// An operator's: taken before everybody else's, and never behind what they wait for.
    Operator,
    /// The server's own, or nobody's in particular.
    Server,
    /// A tenant's.
    Tenant(Arc<str>),
    /// An instance's.
    Instance(InstanceId),
    /// What a bot received for all its tenants, or a room of the web chat.
    Bot(Arc<str>),
}

/// The queue.
pub(super) struct Queue<T> {
    line: Mutex<Line<T>>,
    arrived: Condvar,
    all: Arc<Semaphore>,
    each: Mutex<HashMap<Owner, Weak<Semaphore>>>,
}

struct Line<T> {
    operators: VecDeque<Queued<T>>,
    waiting: RoundRobin<Owner, Queued<T>>,
    closed: bool,
}

impl<T> Line<T> {
    fn is_empty(&self) -> bool {
        self.operators.is_empty() && self.waiting.is_empty()
    }
}

/// Something in line; its room is free again when it is taken.
struct Queued<T> {
    item: T,
    _own: OwnedSemaphorePermit,
    /// What it takes of what all have; an operator has nothing of it.
    _all: Option<OwnedSemaphorePermit>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            line: Mutex::new(Line {
                operators: VecDeque::new(),
                waiting: RoundRobin::default(),
                closed: false,
            }),
            arrived: Condvar::new(),
            all: Arc::new(Semaphore::new(QUEUED / UNIT)),
            each: Mutex::default(),
        }
    }
}

impl<T> Queue<T> {
    /// Puts a write in line once there is room for it; `false` if nobody takes any more.
    pub(super) async fn push(&self, owner: Owner, bytes: usize, item: T) -> bool {
        let units = u32::try_from((bytes + EACH).min(QUEUED_BY_ONE) / UNIT).unwrap_or(u32::MAX);
        let Ok(own) = self.room_of(&owner).acquire_many_owned(units).await else { return false };
        let all = match owner {
            Owner::Operator => None,
            _ => match self.all.clone().acquire_many_owned(units).await {
                Ok(all) => Some(all),
                Err(_) => return false,
            },
        };
        let mut line = self.line();
        if line.closed {
            return false;
        }
        let queued = Queued { item, _own: own, _all: all };
        match owner {
            Owner::Operator => line.operators.push_back(queued),
            _ => line.waiting.push(owner, bytes, queued),
        }
        drop(line);
        self.arrived.notify_one();
        true
    }

    /// Waits for the next batch; `None` once the queue is closed and empty.
    pub(super) fn take(&self) -> Option<Vec<T>> {
        let mut line = self.line();
        while line.is_empty() {
            if line.closed {
                return None;
            }
            self.arrived.wait(&mut line);
        }
        let first = line.operators.len().min(BATCH);
        let mut batch: Vec<_> = line.operators.drain(..first).collect();
        batch.extend(line.waiting.take(BATCH - first, BATCH_BYTES));
        drop(line);
        Some(batch.into_iter().map(|queued| queued.item).collect())
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.line().is_empty()
    }

    /// Takes nothing more; what waits is still taken.
    pub(super) fn close(&self) {
        self.line().closed = true;
        self.arrived.notify_all();
    }

    /// Lets nobody wait any more: whoever took things out is gone.
    pub(super) fn abandon(&self) {
        let mut line = self.line();
        line.closed = true;
        let left = (std::mem::take(&mut line.operators), std::mem::take(&mut line.waiting));
        drop(line);
        self.all.close();
        let each = self.each.lock();
        each.values().filter_map(Weak::upgrade).for_each(|room| room.close());
        drop(each);
        // Whoever waits for one of these learns it now.
        drop(left);
    }

    fn room_of(&self, owner: &Owner) -> Arc<Semaphore> {
        let mut each = self.each.lock();
        if let Some(known) = each.get(owner).and_then(Weak::upgrade) {
            return known;
        }
        if each.len() == each.capacity() {
            each.retain(|_, room| room.strong_count() > 0);
        }
        let room = Arc::new(Semaphore::new(QUEUED_BY_ONE / UNIT));
        each.insert(owner.clone(), Arc::downgrade(&room));
        room
    }

    fn line(&self) -> MutexGuard<'_, Line<T>> {
        self.line.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert!(queue.each.lock().len() < 100);
    }
}
