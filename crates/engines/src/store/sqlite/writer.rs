//! Group commit: one thread, one transaction for everybody who waits.

use super::failed;
use angelia_core::clock::Mono;
use angelia_core::error::{Error, Result};
use angelia_core::inbox::{Entry, InstanceId, Quota, Seq, Usage};
use angelia_core::store::{Announce, Later, Line};
use angelia_core::{clock, fail};
use rusqlite::Connection;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Writes that may wait; beyond it callers wait to get in line.
const QUEUE: usize = 4096;
/// Writes in one transaction: enough to share the fsync, few enough to answer soon.
const BATCH: usize = 512;
/// How often the write-ahead log is emptied: settled text lives on in it until then.
const EMPTY_LOG_EVERY: Duration = Duration::from_secs(60);
/// How often emptying the log at once is tried, and how long a reader in the
/// way is waited for: writes wait meanwhile, so not for long.
const EMPTY_LOG_TRIES: usize = 20;
const EMPTY_LOG_PAUSE: Duration = Duration::from_millis(10);

type Answer = Box<dyn FnOnce(Result<()>) + Send>;
type Job = Box<dyn FnOnce(&mut Txn<'_>) -> rusqlite::Result<Answer> + Send>;

/// The open transaction, with what is to be told after its commit.
pub(super) struct Txn<'a> {
    connection: &'a Connection,
    pub(super) quota: &'a Quota,
    usage: &'a mut HashMap<InstanceId, Usage>,
    touched: Vec<InstanceId>,
    news: Vec<News>,
}

enum News {
    Appended(InstanceId, Entry, bool),
    Removed(InstanceId, Vec<Seq>),
    Revised(InstanceId, Entry),
    Line(Line),
    TakenIn,
    EmptyLog(Arc<AtomicBool>),
}

impl Deref for Txn<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl Txn<'_> {
    /// What waits for an instance, this transaction included.
    pub(super) fn usage(&self, instance: InstanceId) -> Usage {
        self.usage.get(&instance).copied().unwrap_or_default()
    }

    /// Counts an entry in or out of an instance's usage.
    pub(super) fn count(&mut self, instance: InstanceId, change: impl FnOnce(&mut Usage)) {
        change(self.usage.entry(instance).or_default());
        self.touched.push(instance);
    }

    /// Tells of an appended entry once it is durable.
    pub(super) fn appended(&mut self, instance: InstanceId, entry: Entry, ahead: bool) {
        self.news.push(News::Appended(instance, entry, ahead));
    }

    /// Tells of removed entries once that is durable.
    pub(super) fn removed(&mut self, instance: InstanceId, seqs: Vec<Seq>) {
        self.news.push(News::Removed(instance, seqs));
    }

    /// Tells of an entry that says something else, once that is durable.
    pub(super) fn revised(&mut self, instance: InstanceId, entry: Entry) {
        self.news.push(News::Revised(instance, entry));
    }

    /// Tells of a web-chat line once it is durable.
    pub(super) fn line(&mut self, line: Line) {
        self.news.push(News::Line(line));
    }

    /// Marks the transaction as one that moves a bot's place in what it reads.
    pub(super) fn taken_in(&mut self) {
        self.news.push(News::TakenIn);
    }

    /// Empties the log after the commit, so that what this transaction replaced
    /// is gone from the disk; sets `emptied` if that went through.
    pub(super) fn then_empty_log(&mut self, emptied: Arc<AtomicBool>) {
        self.news.push(News::EmptyLog(emptied));
    }
}

/// The way to the writing thread.
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<std::thread::JoinHandle<()>>,
    healthy: Arc<AtomicBool>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        quota: Quota,
        usage: Arc<Mutex<HashMap<InstanceId, Usage>>>,
        announce: Arc<dyn Announce>,
    ) -> Result<Self> {
        let (jobs, inbox) = mpsc::channel(QUEUE);
        let healthy = Arc::new(AtomicBool::new(true));
        let counted = usage.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let state = Thread {
            connection,
            quota,
            stale: false,
            counted,
            usage,
            announce,
            healthy: healthy.clone(),
            emptied_at: clock::mono(),
        };
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || state.run(inbox))
            .map_err(|e| Error::internal(format!("cannot start the store's thread: {e}")))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), healthy })
    }

    pub(super) fn healthy(&self) -> bool {
        self.healthy.load(Ordering::Relaxed)
    }

    /// Runs `change` in the next transaction; answers after its commit.
    ///
    /// A change that refuses must do so before it writes anything: the
    /// transaction is shared. An SQL error fails the whole transaction.
    pub(super) fn write<T: Send + 'static>(
        &self,
        what: &'static str,
        change: impl FnOnce(&mut Txn<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Later<'_, T> {
        self.try_write(what, |txn| change(txn).map(Ok))
    }

    /// Like [`Writer::write`], for changes that may refuse.
    pub(super) fn try_write<T: Send + 'static>(
        &self,
        what: &'static str,
        change: impl FnOnce(&mut Txn<'_>) -> rusqlite::Result<Result<T>> + Send + 'static,
    ) -> Later<'_, T> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |txn| {
            let outcome = change(txn)?;
            Ok(Box::new(move |committed: Result<()>| {
                let _ = answer.send(committed.and(outcome));
            }))
        });
        Box::pin(async move {
            let stopped = || Error::unavailable(format!("the store could not {what}: it is not running"));
            let jobs = self.jobs.as_ref().ok_or_else(stopped)?;
            jobs.send(job).await.map_err(|_| stopped())?;
            // A dropped answer is a failed transaction of which this job was the cause.
            answered.await.unwrap_or_else(|_| {
                Err(Error::unavailable(format!("the store could not {what}: nothing was changed, try again")))
            })
        })
    }
}

impl Drop for Writer {
    /// Lets the thread finish what was accepted, so that the lock outlives every write.
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Unwell(Arc<AtomicBool>);

impl Drop for Unwell {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

struct Thread {
    connection: Connection,
    quota: Quota,
    /// Whether `counted` could not be read again after a failure.
    stale: bool,
    /// The writer's own count, ahead of the shared one by the open transaction.
    counted: HashMap<InstanceId, Usage>,
    usage: Arc<Mutex<HashMap<InstanceId, Usage>>>,
    announce: Arc<dyn Announce>,
    healthy: Arc<AtomicBool>,
    emptied_at: Mono,
}

impl Thread {
    fn run(mut self, mut inbox: mpsc::Receiver<Job>) {
        // Should this thread ever end by a panic, nobody may take the store for well.
        let _unwell = Unwell(self.healthy.clone());
        let mut batch = Vec::with_capacity(BATCH);
        while inbox.blocking_recv_many(&mut batch, BATCH) > 0 {
            self.commit(batch.drain(..));
            if inbox.is_empty() && clock::mono().since(self.emptied_at) >= EMPTY_LOG_EVERY {
                self.empty_log();
            }
        }
    }

    /// Folds the log into the database and cuts it; readers in the way are no harm.
    fn empty_log(&mut self) -> bool {
        self.emptied_at = clock::mono();
        let busy = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        busy == Ok(0)
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
        let was_healthy = self.healthy.swap(outcome.is_ok(), Ordering::Relaxed);
        match outcome {
            Ok(news) => {
                if !was_healthy {
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
                let error = failed("commit", &error);
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
            self.counted = super::read_usage(&self.connection).map_err(|_| rusqlite::Error::InvalidQuery)?;
            self.stale = false;
        }
        let transaction = self.connection.unchecked_transaction()?;
        let mut txn = Txn {
            connection: &self.connection,
            quota: &self.quota,
            usage: &mut self.counted,
            touched: Vec::new(),
            news: Vec::new(),
        };
        let ran = jobs.into_iter().try_for_each(|job| job(&mut txn).map(|answer| answers.push(answer)));
        let (news, touched) = (txn.news, txn.touched);
        if carries_message(&news) {
            fail::point("before_commit");
        }
        fail::commit();
        match ran.and_then(|()| transaction.commit()) {
            Ok(()) => {
                self.publish(&touched);
                Ok(news)
            }
            Err(error) => {
                self.recover();
                Err(error)
            }
        }
    }

    /// Shows the new counts before anybody is told of the entries behind them.
    fn publish(&self, touched: &[InstanceId]) {
        if touched.is_empty() {
            return;
        }
        let mut shared = self.usage.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for instance in touched {
            shared.insert(*instance, self.counted.get(instance).copied().unwrap_or_default());
        }
    }

    fn recover(&mut self) {
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        match super::read_usage(&self.connection) {
            Ok(counted) => self.counted = counted,
            Err(_) => self.stale = true,
        }
    }

    fn tell(&mut self, news: Vec<News>) {
        for item in news {
            match item {
                News::Appended(instance, entry, ahead) => self.announce.appended(instance, entry, ahead),
                News::Removed(instance, seqs) => self.announce.removed(instance, &seqs),
                News::Revised(instance, entry) => self.announce.revised(instance, entry),
                News::Line(line) => self.announce.line(&line),
                // Nobody waits for it but whoever took it in.
                News::TakenIn => {}
                News::EmptyLog(emptied) => emptied.store(self.empty_log_now(), Ordering::Release),
            }
        }
    }
}

/// Whether a commit is one that a fail point is about.
fn carries_message(news: &[News]) -> bool {
    news.iter().any(|item| matches!(item, News::Appended(..)))
}

/// The time written into rows of this transaction.
pub(super) fn now() -> i64 {
    clock::wall().0
}
