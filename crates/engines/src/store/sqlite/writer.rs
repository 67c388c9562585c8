//! Group commit: one thread, and one transaction for everybody who waits. The open
//! transaction, as changes see it, is a [`Txn`].

use super::clock::Clock;
use super::counted::Counted;
use super::queue::{Answer, Job, Queue};
use super::space::Space;
use super::tenant_bytes::Owners;
use super::webchat::LineIds;
use super::{failed, inbox};
use angelia_core::clock::Mono;
use angelia_core::error::Result;
use angelia_core::inbox::{Held, InstanceId, Mark, Quota, Seq};
use angelia_core::ports::{Bus, Hint, HintKind};
use angelia_core::records::Erased;
use angelia_core::space::Class;
use angelia_core::store::Line;
use angelia_core::{clock, fail};
use rusqlite::{Connection, params};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the write-ahead log is emptied: settled text lives on in it until then.
const EMPTY_LOG_EVERY: Duration = Duration::from_secs(60);
/// How often emptying the log at once is tried, and how long a reader in the
/// way is waited for: writes wait meanwhile, so not for long.
const EMPTY_LOG_TRIES: usize = 20;
const EMPTY_LOG_PAUSE: Duration = Duration::from_millis(10);

/// What the writing thread has.
pub(super) struct Thread {
    connection: Connection,
    quota: Quota,
    clock: Arc<Clock>,
    counted: Counted,
    /// Whether what is counted could not be read again after a failure.
    stale: bool,
    owners: Arc<Owners>,
    line_ids: LineIds,
    bus: Arc<dyn Bus>,
    pub(super) healthy: Arc<AtomicBool>,
    pub(super) space: Arc<Space>,
    emptied_at: Mono,
}

impl Thread {
    pub(super) fn new(
        connection: Connection,
        quota: Quota,
        bus: Arc<dyn Bus>,
        clock: Arc<Clock>,
        space: Arc<Space>,
        owners: Arc<Owners>,
    ) -> Result<Self> {
        let counted = Counted::read(&connection, &owners).map_err(|(what, e)| failed(what, e))?;
        if let Err(error) = counted.set_right(&connection) {
            tracing::warn!(%error, "what waits for instances could not be noted; the next write does");
        }
        Ok(Self {
            connection,
            quota,
            clock,
            counted,
            stale: false,
            owners,
            line_ids: LineIds::default(),
            bus,
            healthy: Arc::new(AtomicBool::new(!space.is_short())),
            space,
            emptied_at: clock::mono(),
        })
    }

    pub(super) fn run(mut self, jobs: &Queue<Job>) {
        // Should this thread ever end by a panic, nobody may take the store for well.
        let _unwell = Unwell(self.healthy.clone(), jobs);
        while let Some(mut batch) = jobs.take() {
            self.commit_who_may(&mut batch);
            if jobs.is_empty() && clock::mono().since(self.emptied_at) >= EMPTY_LOG_EVERY {
                self.empty_log();
            }
        }
        if cfg!(debug_assertions) && !self.stale {
            self.counted.check(&self.connection, &self.owners);
        }
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
            counted: &mut self.counted,
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
        self.line_ids = LineIds::default();
        self.counted = Counted::read(&self.connection, &self.owners).map_err(|(_, error)| error)?;
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

/// Says that the store is not well when it goes.
struct Unwell<'a>(Arc<AtomicBool>, &'a Queue<Job>);

impl Drop for Unwell<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
        self.1.abandon();
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

/// The open transaction: the database, what is counted beside it, and what is to be told
/// once it is durable.
pub(super) struct Txn<'a> {
    pub(super) connection: &'a Connection,
    pub(super) quota: &'a Quota,
    /// By which rows grow old.
    pub(super) clock: &'a Clock,
    /// The disk this is written to.
    pub(super) space: &'a Space,
    /// Beside it, this transaction included.
    pub(super) counted: &'a mut Counted,
    pub(super) line_ids: &'a mut LineIds,
    /// Whether so much was taken away at once that it is easier to count anew after it.
    pub(super) recount: bool,
    touched: Vec<InstanceId>,
    news: Vec<News>,
}

/// What is told after a commit.
enum News {
    Hint(Hint),
    TakenIn,
    EmptyLog(Erased),
}

impl Deref for Txn<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl Txn<'_> {
    /// What waits for an instance, this transaction included.
    pub(super) fn held(&mut self, instance: InstanceId) -> &Held {
        self.counted.held.entry(instance).or_default()
    }

    /// Counts an entry in or out of what waits for an instance.
    pub(super) fn count(&mut self, instance: InstanceId, change: impl FnOnce(&mut Held)) {
        change(self.counted.held.entry(instance).or_default());
        self.touched.push(instance);
    }

    /// Where the log of an instance is, this transaction included.
    pub(super) fn mark(&mut self, instance: InstanceId) -> rusqlite::Result<Mark> {
        if let Some(mark) = self.counted.marks.get(&instance) {
            return Ok(*mark);
        }
        let mark = inbox::mark(self.connection, instance)?.unwrap_or_default();
        self.counted.marks.insert(instance, mark);
        Ok(mark)
    }

    /// Moves the log of an instance on.
    pub(super) fn set_mark(&mut self, instance: InstanceId, mark: Mark) {
        self.counted.marks.insert(instance, mark);
        self.touched.push(instance);
    }

    /// Writes where the logs are that this transaction touched, and what waits there:
    /// once for each, however much of it there was. And the last id of a line.
    pub(super) fn write_counters(&mut self) -> rusqlite::Result<()> {
        self.line_ids.write(self.connection)?;
        self.touched.sort_unstable();
        self.touched.dedup();
        for instance in std::mem::take(&mut self.touched) {
            let (mark, usage) = (self.mark(instance)?, self.held(instance).all());
            self.connection
                .prepare_cached(
                    "UPDATE instances SET tail = ?, redrives = ?, waiting = ?, bytes = ? WHERE instance = ?",
                )?
                .execute(params![mark.tail.0, mark.redrives, usage.entries, usage.bytes, instance.0])?;
        }
        Ok(())
    }

    /// Tells of something once it is durable.
    pub(super) fn tell(&mut self, hint: Hint) {
        self.news.push(News::Hint(hint));
    }

    /// Tells of removed entries once that is durable.
    pub(super) fn removed(&mut self, instance: InstanceId, seqs: Vec<Seq>) {
        self.tell(Hint::Removed { instance, seqs });
    }

    /// Tells of a web-chat line once it is durable.
    pub(super) fn line(&mut self, line: Line) {
        self.tell(Hint::Line(line));
    }

    /// Marks the transaction as one that moves a bot's place in what it reads.
    pub(super) fn taken_in(&mut self) {
        self.news.push(News::TakenIn);
    }

    /// Empties the log after the commit while space is short, so that the next step has room.
    pub(super) fn then_make_room(&mut self) {
        if self.space.is_short() {
            self.then_empty_log(Erased::default());
        }
    }

    /// Empties the log after the commit, so that what this transaction replaced
    /// is gone from the disk; tells whether that went through.
    pub(super) fn then_empty_log(&mut self, erased: Erased) {
        self.news.push(News::EmptyLog(erased));
    }
}

/// The time written into rows of this transaction.
pub(super) fn now() -> i64 {
    clock::wall().0
}
