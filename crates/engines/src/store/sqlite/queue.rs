//! How a write waits for the writing thread: handed in by its [`Writer`], bounded for each
//! owner and in all, in number and in bytes, and taken from one owner after the other.

use super::space::Space;
use super::writer::{OpenTxn, Thread};
use crate::store::db::Sql;
use crate::store::engine::Owner;
use crate::store::room::{Place, Room};
use angelia_core::error::{Error, Result};
use angelia_core::space::Class;
use angelia_core::store::BoxFuture;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

angelia_contract::limits! {
    /// Enough to share the fsync, few enough to answer soon.
    const BATCH: usize = 512, count "writes in one commit";
    /// A commit of this size takes some milliseconds; whoever comes next waits for no more than one of them.
    const BATCH_BYTES: usize = 1024 * 1024, bytes "in one commit, but for a single write that is larger";
}

/// The way to the writing thread.
pub(super) struct Writer {
    jobs: Arc<Queue<Job>>,
    thread: Option<std::thread::JoinHandle<()>>,
    healthy: Arc<AtomicBool>,
    space: Arc<Space>,
}

/// One write that waits for its transaction.
pub(super) struct Job {
    /// Whether it may be written when space is short.
    pub(super) class: Class,
    pub(super) change: Change,
}

/// Changes what it has to, and says what to answer once that is committed, or is not.
type Change = Box<dyn FnOnce(&mut OpenTxn<'_>) -> Sql<Answer> + Send>;
pub(super) type Answer = Box<dyn FnOnce(Result<()>) + Send>;

impl Writer {
    pub(super) fn start(state: Thread) -> Result<Self> {
        let jobs = Arc::<Queue<Job>>::default();
        let (healthy, space) = (state.healthy.clone(), state.space.clone());
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn({
                let jobs = jobs.clone();
                move || state.run(&jobs)
            })
            .map_err(|e| Error::internal(format!("cannot start the store's thread: {e}")).caused_by(e))?;
        Ok(Self { jobs, thread: Some(thread), healthy, space })
    }

    pub(super) fn healthy(&self) -> bool {
        self.healthy.load(Ordering::Relaxed)
    }

    /// Runs `change`, of so many bytes, in the next transaction in which it is its owner's
    /// turn; answers after the commit. A failure fails the whole transaction. It must refuse
    /// before it writes anything: the transaction is shared.
    pub(super) fn write<T: Send + 'static>(
        &self,
        owner: Owner,
        bytes: usize,
        what: &'static str,
        mut change: impl FnMut(&mut OpenTxn<'_>) -> Sql<Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        let (answer, answered) = oneshot::channel();
        let change: Change = Box::new(move |txn| {
            let outcome = change(txn)?;
            Ok(Box::new(move |committed: Result<()>| {
                let _ = answer.send(committed.and(outcome));
            }))
        });
        let job = Job { class: owner.class(), change };
        Box::pin(async move {
            if !self.jobs.push(owner, bytes, job).await {
                return Err(Error::unavailable(format!("the store could not {what}: it is not running")));
            }
            // A dropped answer is a failed transaction of which this job was the cause, or a refusal.
            answered.await.unwrap_or_else(|_| {
                let why = if self.space.is_short() { "the disk is full; " } else { "" };
                Err(Error::unavailable(format!(
                    "the store could not {what}: {why}nothing was changed, try again"
                )))
            })
        })
    }
}

impl Drop for Writer {
    /// Lets the thread finish what was accepted, so that the lock outlives every write.
    fn drop(&mut self) {
        self.jobs.close();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            debug_assert!(ended.is_ok() || std::thread::panicking(), "the store's thread ended by a panic");
        }
    }
}

/// The queue.
pub(super) struct Queue<T> {
    line: Mutex<Line<T>>,
    arrived: Condvar,
    room: Room,
}

struct Line<T> {
    operators: VecDeque<Queued<T>>,
    waiting: RoundRobin<Queued<T>>,
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
    _place: Place,
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
            room: Room::default(),
        }
    }
}

impl<T> Queue<T> {
    /// Puts a write in line once there is room for it; `false` if nobody takes any more.
    pub(super) async fn push(&self, owner: Owner, bytes: usize, item: T) -> bool {
        let Some(place) = self.room.enter(&owner, bytes).await else { return false };
        let mut line = self.line.lock();
        if line.closed {
            return false;
        }
        let queued = Queued { item, _place: place };
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
        let mut line = self.line.lock();
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
        self.line.lock().is_empty()
    }

    /// Takes nothing more; what waits is still taken.
    pub(super) fn close(&self) {
        self.line.lock().closed = true;
        self.arrived.notify_all();
    }

    /// Lets nobody wait any more: whoever took things out is gone.
    pub(super) fn abandon(&self) {
        let mut line = self.line.lock();
        line.closed = true;
        let left = (std::mem::take(&mut line.operators), std::mem::take(&mut line.waiting));
        drop(line);
        self.room.close();
        // Whoever waits for one of these learns it now.
        drop(left);
    }
}

/// What waits, served owner by owner: whoever puts in much waits behind its own, and
/// nobody else does.
struct RoundRobin<T> {
    /// What each owner has waiting, oldest first, with its bytes.
    waiting: HashMap<Owner, VecDeque<(usize, T)>>,
    /// Owners with something waiting, in the order in which they are served.
    turns: VecDeque<Owner>,
}

impl<T> Default for RoundRobin<T> {
    fn default() -> Self {
        Self { waiting: HashMap::new(), turns: VecDeque::new() }
    }
}

impl<T> RoundRobin<T> {
    /// Puts something in line behind what its owner has waiting.
    fn push(&mut self, owner: Owner, bytes: usize, item: T) {
        let line = self.waiting.entry(owner.clone()).or_default();
        if line.is_empty() {
            self.turns.push_back(owner);
        }
        line.push_back((bytes, item));
    }

    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Takes one of each owner in turn, until there are `most` or they have
    /// `most_bytes`. At least one is taken, however large it is.
    fn take(&mut self, most: usize, most_bytes: usize) -> Vec<T> {
        let (mut taken, mut bytes) = (Vec::new(), 0_usize);
        while taken.len() < most && (taken.is_empty() || bytes < most_bytes) {
            let Some(owner) = self.turns.pop_front() else { break };
            let Some(line) = self.waiting.get_mut(&owner) else { continue };
            if let Some((size, item)) = line.pop_front() {
                bytes = bytes.saturating_add(size);
                taken.push(item);
            }
            if line.is_empty() {
                self.waiting.remove(&owner);
            } else {
                self.turns.push_back(owner);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests;
