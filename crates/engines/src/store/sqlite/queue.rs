//! How a write waits for the writing thread: handed in by its [`Writer`], bounded for each
//! owner and in all, in number and in bytes, and taken from one owner after the other.

use super::space::Space;
use super::writer::{Thread, Txn};
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Result};
use angelia_core::inbox::InstanceId;
use angelia_core::space::Class;
use angelia_core::store::BoxFuture;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

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

/// Whose write it is, and with that whether it is written when space is short.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// An operator's: taken before everybody else's, and never behind what they wait for.
    Operator,
    /// The server's own that frees space.
    Upkeep,
    /// The server's own, or nobody's in particular.
    Server,
    /// A tenant's.
    Tenant(Arc<str>),
    /// An instance's.
    Instance(InstanceId),
    /// What a bot received for all its tenants, or a room of the web chat.
    Bot(Arc<str>),
}

impl Owner {
    /// A bot, for what is everybody's who has it.
    pub(super) fn bot(bot: &BotKey) -> Self {
        Self::Bot(format!("{}/{}", bot.platform, bot.bot).into())
    }

    fn class(&self) -> Class {
        match self {
            Self::Operator => Class::Operator,
            Self::Upkeep => Class::Upkeep,
            Self::Server | Self::Tenant(_) | Self::Instance(_) | Self::Bot(_) => Class::Ordinary,
        }
    }
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
type Change = Box<dyn FnOnce(&mut Txn<'_>) -> rusqlite::Result<Answer> + Send>;
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
    /// turn; answers after the commit. An SQL error fails the whole transaction.
    pub(super) fn write_for<T: Send + 'static>(
        &self,
        owner: Owner,
        bytes: usize,
        what: &'static str,
        change: impl FnOnce(&mut Txn<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        self.try_write_for(owner, bytes, what, |txn| change(txn).map(Ok))
    }

    /// The same for changes that may refuse. They must do so before they write anything:
    /// the transaction is shared.
    pub(super) fn try_write_for<T: Send + 'static>(
        &self,
        owner: Owner,
        bytes: usize,
        what: &'static str,
        change: impl FnOnce(&mut Txn<'_>) -> rusqlite::Result<Result<T>> + Send + 'static,
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
    all: Arc<Semaphore>,
    each: Mutex<HashMap<Owner, Weak<Semaphore>>>,
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
        let mut line = self.line.lock();
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
