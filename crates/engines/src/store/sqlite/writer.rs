//! Group commit: one thread, one transaction for everybody who waits.

use super::clock::Clock;
use super::failed;
use super::owners::Owners;
use super::queue::{Owner, Queue};
use super::space::Space;
use super::stored::Stored;
use super::txn::{News, Txn};
use super::webchat::{LineIds, RoomSizes};
use angelia_core::clock::Mono;
use angelia_core::error::{Error, Result};
use angelia_core::inbox::{Held, InstanceId, Mark, Quota};
use angelia_core::ports::{Bus, Hint, HintKind};
use angelia_core::space::Class;
use angelia_core::store::BoxFuture;
use angelia_core::{clock, fail};
use rusqlite::Connection;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// How often the write-ahead log is emptied: settled text lives on in it until then.
const EMPTY_LOG_EVERY: Duration = Duration::from_secs(60);
/// How often emptying the log at once is tried, and how long a reader in the
/// way is waited for: writes wait meanwhile, so not for long.
const EMPTY_LOG_TRIES: usize = 20;
const EMPTY_LOG_PAUSE: Duration = Duration::from_millis(10);

type Answer = Box<dyn FnOnce(Result<()>) + Send>;
type Change = Box<dyn FnOnce(&mut Txn<'_>) -> rusqlite::Result<Answer> + Send>;

/// One write that waits for its transaction.
struct Job {
    /// Whether it may be written when space is short.
    class: Class,
    change: Change,
}

/// What the writing thread begins with.
pub(super) struct Opening {
    pub(super) connection: Connection,
    pub(super) quota: Quota,
    /// What waits.
    pub(super) counted: HashMap<InstanceId, Held>,
    pub(super) clock: Arc<Clock>,
    pub(super) bus: Arc<dyn Bus>,
    pub(super) space: Arc<Space>,
    pub(super) owners: Arc<Owners>,
}

/// The way to the writing thread.
pub(super) struct Writer {
    jobs: Arc<Queue<Job>>,
    thread: Option<std::thread::JoinHandle<()>>,
    healthy: Arc<AtomicBool>,
    space: Arc<Space>,
}

impl Writer {
    pub(super) fn start(open: Opening) -> Result<Self> {
        let Opening { connection, quota, counted, clock, bus, space, owners } = open;
        let jobs = Arc::<Queue<Job>>::default();
        let healthy = Arc::new(AtomicBool::new(!space.is_short()));
        let stored =
            Stored::read(&connection, owners.clone()).map_err(|e| failed("count what is kept", e))?;
        let rooms = RoomSizes::read(&connection).map_err(|e| failed("look at the rooms", e))?;
        let state = Thread {
            connection,
            quota,
            clock,
            stale: false,
            counted,
            marks: HashMap::new(),
            stored,
            owners,
            rooms,
            line_ids: LineIds::default(),
            bus,
            healthy: healthy.clone(),
            space: space.clone(),
            emptied_at: clock::mono(),
        };
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

    /// Runs `change` in the next transaction; answers after its commit. For what
    /// is small and nobody's in particular.
    pub(super) fn write<T: Send + 'static>(
        &self,
        what: &'static str,
        change: impl FnOnce(&mut Txn<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        self.write_for(Owner::Server, 0, what, change)
    }

    /// Like [`Writer::write`], in the turn of `owner`, for a change of so many bytes.
    pub(super) fn write_for<T: Send + 'static>(
        &self,
        owner: Owner,
        bytes: usize,
        what: &'static str,
        change: impl FnOnce(&mut Txn<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        self.try_write_for(owner, bytes, what, |txn| change(txn).map(Ok))
    }

    /// Like [`Writer::write_for`], for changes that may refuse.
    pub(super) fn try_write_for<T: Send + 'static>(
        &self,
        owner: Owner,
        bytes: usize,
        what: &'static str,
        change: impl FnOnce(&mut Txn<'_>) -> rusqlite::Result<Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        self.submit(owner, bytes, Class::Ordinary, what, change)
    }

    /// Like [`Writer::write`], for what frees space.
    pub(super) fn upkeep<T: Send + 'static>(
        &self,
        what: &'static str,
        change: impl FnOnce(&mut Txn<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        self.write_as(Class::Upkeep, what, |txn| change(txn).map(Ok))
    }

    /// Like [`Writer::write`], for changes that may refuse and may be written when space is short.
    pub(super) fn write_as<T: Send + 'static>(
        &self,
        class: Class,
        what: &'static str,
        change: impl FnOnce(&mut Txn<'_>) -> rusqlite::Result<Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        let owner = if class == Class::Operator { Owner::Operator } else { Owner::Server };
        self.submit(owner, 0, class, what, change)
    }

    /// A change that refuses must do so before it writes anything: the
    /// transaction is shared. An SQL error fails the whole transaction.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        owner: Owner,
        bytes: usize,
        class: Class,
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
        let job = Job { class, change };
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

struct Unwell<'a>(Arc<AtomicBool>, &'a Queue<Job>);

impl Drop for Unwell<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
        self.1.abandon();
    }
}

struct Thread {
    connection: Connection,
    quota: Quota,
    clock: Arc<Clock>,
    /// Whether `counted` could not be read again after a failure.
    stale: bool,
    /// What waits for each instance, chat by chat.
    counted: HashMap<InstanceId, Held>,
    /// Where the logs are of those that were written to.
    marks: HashMap<InstanceId, Mark>,
    stored: Stored,
    owners: Arc<Owners>,
    rooms: RoomSizes,
    line_ids: LineIds,
    bus: Arc<dyn Bus>,
    healthy: Arc<AtomicBool>,
    space: Arc<Space>,
    emptied_at: Mono,
}

impl Thread {
    fn run(mut self, jobs: &Queue<Job>) {
        // Should this thread ever end by a panic, nobody may take the store for well.
        let _unwell = Unwell(self.healthy.clone(), jobs);
        while let Some(mut batch) = jobs.take() {
            self.commit_who_may(&mut batch);
            if jobs.is_empty() && clock::mono().since(self.emptied_at) >= EMPTY_LOG_EVERY {
                self.empty_log();
            }
        }
        if cfg!(debug_assertions) {
            self.check_counts();
        }
    }

    /// What was counted in memory has to be what the tables hold.
    fn check_counts(&mut self) {
        let removing = "SELECT EXISTS (SELECT 1 FROM removals)";
        // What a removed tenant left is counted when it is gone.
        if self.stale || self.connection.query_row(removing, [], |row| row.get(0)).unwrap_or(true) {
            return;
        }
        let (held, stored) = (self.counted.clone(), self.stored.clone());
        // A disk that cannot be read any more tells nothing.
        if self.count_anew().is_err() {
            return;
        }
        let waiting = |held: &HashMap<InstanceId, Held>| {
            let all = held.iter().map(|(id, held)| (*id, held.all()));
            let mut waiting: Vec<_> = all.filter(|(_, usage)| usage.entries > 0).collect();
            waiting.sort_by_key(|(id, _)| *id);
            waiting
        };
        assert_eq!(waiting(&held), waiting(&self.counted), "what is counted is not what waits");
        let rows = super::inbox::usages(&self.connection).unwrap_or_default();
        assert_eq!(rows, waiting(&self.counted), "what the rows of instances say is not what waits");
        assert_eq!(stored.counts(), self.stored.counts(), "what is counted is not what is kept");
    }

    /// Commits what may be written as long as space is as short as it is.
    fn commit_who_may(&mut self, batch: &mut Vec<Job>) {
        let operator = batch.iter().any(|job| job.class == Class::Operator);
        let space = self.space.clone();
        if operator && space.is_tight() {
            let (first, others) = batch.drain(..).partition(|job| job.class == Class::Operator);
            *batch = others;
            space.admit(&self.connection, true, || empty_log(&self.connection));
            self.commit(Vec::into_iter(first));
        }
        if !space.admit(&self.connection, false, || empty_log(&self.connection)) {
            self.healthy.store(false, Ordering::Relaxed);
            batch.retain(|job| job.class != Class::Ordinary);
        }
        if !batch.is_empty() {
            self.commit(batch.drain(..));
        }
    }

    /// Folds the log into the database and cuts it; readers in the way are no harm.
    fn empty_log(&mut self) -> bool {
        self.emptied_at = clock::mono();
        empty_log(&self.connection)
    }

    /// The same, with some patience for readers.
    fn empty_log_now(&mut self) -> bool {
        (0..EMPTY_LOG_TRIES).any(|_| {
            let emptied = self.empty_log();
            if !emptied {
                std::thread::sleep(EMPTY_LOG_PAUSE);
            }
            emptied
        })
    }

    fn commit(&mut self, jobs: impl Iterator<Item = Job>) {
        let mut answers = Vec::new();
        let outcome = self.transact(jobs, &mut answers);
        if let Err(error) = &outcome {
            self.space.note_failure(error);
        }
        let healthy = outcome.is_ok() && !self.space.is_short();
        let was_healthy = self.healthy.swap(healthy, Ordering::Relaxed);
        match outcome {
            Ok(news) => {
                if healthy && !was_healthy {
                    tracing::warn!("the store commits again");
                }
                if carries_message(&news) {
                    fail::point("after_commit");
                }
                if news.iter().any(|item| matches!(item, News::TakenIn)) {
                    fail::point("intake_committed");
                }
                self.tell(news);
                answers.into_iter().for_each(|answer| answer(Ok(())));
            }
            Err(error) => {
                let error = failed("commit", error);
                if was_healthy {
                    tracing::error!(%error, "nothing is acknowledged until the store commits again");
                }
                answers.into_iter().for_each(|answer| answer(Err(error.clone())));
            }
        }
    }

    /// One transaction; on any error it is rolled back and what is counted is counted anew.
    fn transact(
        &mut self,
        jobs: impl Iterator<Item = Job>,
        answers: &mut Vec<Answer>,
    ) -> rusqlite::Result<Vec<News>> {
        if self.stale {
            self.count_anew()?;
        }
        let transaction = self.connection.unchecked_transaction()?;
        let mut txn = Txn {
            connection: &self.connection,
            quota: &self.quota,
            clock: &self.clock,
            space: &self.space,
            held: &mut self.counted,
            marks: &mut self.marks,
            stored: &mut self.stored,
            rooms: &mut self.rooms,
            line_ids: &mut self.line_ids,
            recount: false,
            touched: Vec::new(),
            news: Vec::new(),
        };
        let ran =
            jobs.into_iter().try_for_each(|job| (job.change)(&mut txn).map(|answer| answers.push(answer)));
        let ran = ran.and_then(|()| txn.write_counters());
        let (news, recount) = (txn.news, txn.recount);
        if carries_message(&news) {
            fail::point("before_commit");
        }
        let ran = ran.and_then(|()| if fail::commit() { Ok(()) } else { Err(rusqlite::Error::InvalidQuery) });
        match ran.and_then(|()| transaction.commit()) {
            Ok(()) => {
                self.stale = recount;
                Ok(news)
            }
            Err(error) => {
                self.recover();
                Err(error)
            }
        }
    }

    fn recover(&mut self) {
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        self.stale = self.count_anew().is_err();
    }

    fn count_anew(&mut self) -> rusqlite::Result<()> {
        self.marks.clear();
        self.line_ids = LineIds::default();
        self.counted = super::read_held(&self.connection).map_err(|_| rusqlite::Error::InvalidQuery)?;
        self.stored = Stored::read(&self.connection, self.owners.clone())?;
        self.rooms = RoomSizes::read(&self.connection)?;
        self.stale = false;
        Ok(())
    }

    fn tell(&mut self, news: Vec<News>) {
        for item in news {
            match item {
                News::Hint(hint) => self.bus.publish(hint),
                // Nobody waits for it but whoever took it in.
                News::TakenIn => {}
                News::EmptyLog(erased) => erased.tell(self.empty_log_now()),
            }
        }
    }
}

/// Folds the log into the database and cuts it, unless a reader is in the way.
fn empty_log(connection: &Connection) -> bool {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)) == Ok(0)
}

/// Whether a commit is one that a fail point is about.
fn carries_message(news: &[News]) -> bool {
    news.iter()
        .any(|item| matches!(item, News::Hint(Hint::Log { kind: HintKind::Appended | HintKind::Ahead, .. })))
}
