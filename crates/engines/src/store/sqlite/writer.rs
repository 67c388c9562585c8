//! Group commit: one thread, and one transaction for everybody who waits. The open
//! transaction, as changes see it, is an [`OpenTxn`].

use super::connection::Plain;
use super::counted::Counted;
use super::line_ids::LineIds;
use super::queue::{Answer, Job, Queue};
use super::space::{self, Space};
use super::tenant_bytes::Owners;
use crate::sql;
use crate::store::budget::Budget;
use crate::store::clock::Clock;
use crate::store::db::{Ask, Db, EachRow, Param, Sql, values};
use crate::store::inbox;
use crate::store::txn::Txn;
use angelia_core::clock::Mono;
use angelia_core::error::Result;
use angelia_core::inbox::{Held, InstanceId, Mark, Quota, Usage};
use angelia_core::ports::{ActionId, Bus, Hint, HintKind};
use angelia_core::records::Erased;
use angelia_core::rooms::RoomSize;
use angelia_core::space::Class;
use angelia_core::{clock, fail};
use rusqlite::Connection;
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
        let counted = Counted::read(&connection, &owners).map_err(|(what, e)| e.told(what))?;
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
                let error = error.told("commit");
                if was_healthy {
                    tracing::error!(%error, "nothing is acknowledged until the store commits again");
                }
                answers.into_iter().for_each(|answer| answer(Err(error.clone())));
            }
        }
    }

    /// One transaction; on any error it is rolled back and what is counted is counted anew.
    fn transact(&mut self, jobs: impl Iterator<Item = Job>, answers: &mut Vec<Answer>) -> Sql<Vec<News>> {
        if self.stale {
            self.count_anew()?;
        }
        let transaction = self.connection.unchecked_transaction()?;
        let mut txn = OpenTxn {
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
        let ran = ran
            .and_then(|()| if fail::commit() { Ok(()) } else { Err(rusqlite::Error::InvalidQuery.into()) });
        match ran.and_then(|()| Ok(transaction.commit()?)) {
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

    fn count_anew(&mut self) -> Sql<()> {
        self.line_ids = LineIds::default();
        self.counted = Counted::read(&self.connection, &self.owners).map_err(|(_, error)| error)?;
        self.stale = false;
        Ok(())
    }

    fn tell(&mut self, news: Vec<News>) {
        for item in news {
            match item {
                News::Hint(hint) => self.bus.publish(*hint),
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
    news.iter().any(|item| matches!(item, News::Hint(hint) if is_new(hint)))
}

/// The open transaction: the database, what is counted beside it, and what is to be told
/// once it is durable.
pub(super) struct OpenTxn<'a> {
    pub(super) connection: &'a Connection,
    quota: &'a Quota,
    /// By which rows grow old.
    clock: &'a Arc<Clock>,
    /// The disk this is written to.
    pub(super) space: &'a Space,
    /// Beside it, this transaction included.
    counted: &'a mut Counted,
    line_ids: &'a mut LineIds,
    /// Whether so much was taken away at once that it is easier to count anew after it.
    recount: bool,
    touched: Vec<InstanceId>,
    news: Vec<News>,
}

/// Whether an entry came.
fn is_new(hint: &Hint) -> bool {
    matches!(hint, Hint::Log { kind: HintKind::Appended | HintKind::Ahead, .. })
}

/// What is told after a commit.
enum News {
    Hint(Box<Hint>),
    TakenIn,
    EmptyLog(Erased),
}

impl Db for OpenTxn<'_> {
    fn execute(&mut self, statement: &str, given: &[Param<'_>]) -> Sql<usize> {
        Plain(self.connection).execute(statement, given)
    }

    fn each(&mut self, statement: &str, given: &[Param<'_>], row: EachRow<'_>) -> Sql<()> {
        Plain(self.connection).each(statement, given, row)
    }

    fn insert(&mut self, statement: &str, given: &[Param<'_>]) -> Sql<Option<i64>> {
        Plain(self.connection).insert(statement, given)
    }

    fn next_number(&mut self, table: &str, key: &str, given: i64) -> Sql<i64> {
        Plain(self.connection).next_number(table, key, given)
    }
}

impl OpenTxn<'_> {
    fn held_mut(&mut self, instance: InstanceId) -> &mut Held {
        self.touched.push(instance);
        self.counted.held.entry(instance).or_default()
    }
}

/// There is one writer, so nothing has to be locked.
impl Txn for OpenTxn<'_> {
    fn now(&self) -> i64 {
        clock::wall().0
    }

    fn quota(&self) -> Quota {
        *self.quota
    }

    fn clock(&self) -> &Arc<Clock> {
        self.clock
    }

    fn by_index(&self, index: &str) -> String {
        format!(" INDEXED BY {index}")
    }

    fn lock(&mut self, _instance: InstanceId) -> Sql<()> {
        Ok(())
    }

    fn usage(&mut self, instance: InstanceId) -> Sql<Usage> {
        Ok(self.counted.held.get(&instance).map(Held::all).unwrap_or_default())
    }

    fn with_held(&mut self, instance: InstanceId, look: &mut dyn FnMut(&Held)) -> Sql<()> {
        match self.counted.held.get(&instance) {
            Some(held) => look(held),
            None => look(&Held::default()),
        }
        Ok(())
    }

    fn held_with(&mut self, instance: InstanceId, chat: &str) -> Sql<Held> {
        let held = self.counted.held.get(&instance);
        Ok(held.map(|held| Held::with(held.all(), chat, held.of(chat))).unwrap_or_default())
    }

    fn count_in(&mut self, instance: InstanceId, chat: &Arc<str>, bytes: usize) -> Sql<()> {
        self.held_mut(instance).add(chat, bytes);
        Ok(())
    }

    fn count_out(&mut self, instance: InstanceId, chat: &str, bytes: usize) -> Sql<()> {
        self.held_mut(instance).remove(chat, bytes);
        Ok(())
    }

    fn count_none(&mut self, instance: InstanceId) -> Sql<()> {
        *self.held_mut(instance) = Held::default();
        Ok(())
    }

    fn mark(&mut self, instance: InstanceId) -> Sql<Mark> {
        if let Some(mark) = self.counted.marks.get(&instance) {
            return Ok(*mark);
        }
        let mark = inbox::mark(self, instance)?.unwrap_or_default();
        self.counted.marks.insert(instance, mark);
        Ok(mark)
    }

    fn set_mark(&mut self, instance: InstanceId, mark: Mark) -> Sql<()> {
        self.counted.marks.insert(instance, mark);
        self.touched.push(instance);
        Ok(())
    }

    fn tenant_of(&mut self, instance: InstanceId) -> Sql<Option<Arc<str>>> {
        self.counted.stored.tenant_of(self.connection, instance)
    }

    fn stored(&mut self, tenant: &str) -> Sql<u64> {
        Ok(self.counted.stored.of(tenant))
    }

    fn store(&mut self, tenant: &str, more: u64, less: u64) {
        self.counted.stored.add(tenant, more);
        self.counted.stored.subtract(tenant, less);
    }

    fn accepted(&mut self, action: ActionId, tenant: &str) {
        self.counted.stored.accepted(action, tenant);
    }

    fn finished(&mut self, action: ActionId) {
        self.counted.stored.finished(action);
    }

    fn forgot_instance(&mut self, instance: InstanceId) {
        self.counted.stored.forgot_instance(instance);
    }

    fn serves(&mut self, instance: InstanceId, tenant: &str) {
        self.counted.stored.serves(instance, tenant);
    }

    /// Writes where the logs are that this transaction touched, and what waits there:
    /// once for each, however much of it there was. And the last id of a line.
    fn write_counters(&mut self) -> Sql<()> {
        self.line_ids.write(self.connection)?;
        self.touched.sort_unstable();
        self.touched.dedup();
        for instance in std::mem::take(&mut self.touched) {
            let (mark, usage) = (self.mark(instance)?, self.usage(instance)?);
            self.execute(
                "UPDATE instances SET tail = $1, redrives = $2, waiting = $3, bytes = $4 WHERE instance = $5",
                values![mark.tail, mark.redrives, usage.entries, usage.bytes, instance],
            )?;
        }
        Ok(())
    }

    fn recount(&mut self, _tenant: &str) -> Sql<()> {
        self.recount = true;
        Ok(())
    }

    fn room_grows(&mut self, room: &str, lines: u64, bytes: usize) -> Sql<RoomSize> {
        let size = self.counted.rooms.entry(room.to_owned()).or_default();
        size.grow(lines, bytes);
        Ok(*size)
    }

    fn set_room_size(&mut self, room: &str, size: RoomSize) -> Sql<()> {
        if size.lines == 0 {
            self.counted.rooms.remove(room);
        } else {
            self.counted.rooms.insert(room.to_owned(), size);
        }
        Ok(())
    }

    /// Each room counts for itself: its people see these numbers, and are to learn nothing of
    /// other rooms from them. The newest line of a room goes only with all of it, so no number
    /// is given twice.
    fn next_line_number(&mut self, room: &str) -> Sql<i64> {
        self.says("SELECT coalesce(max(seq), 0) + 1 FROM webchat_lines WHERE room = $1", values![room])
    }

    fn next_line_id(&mut self) -> Sql<i64> {
        Ok(self.line_ids.next(self.connection)?)
    }

    fn count_up(&mut self, counter: &str) -> Sql<i64> {
        self.says(
            "INSERT INTO notes VALUES ($1, 1)
             ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value",
            values![counter],
        )
    }

    fn raise(&mut self, counter: &str, to: i64) -> Sql<()> {
        self.execute(
            "INSERT INTO notes VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)",
            values![counter, to],
        )
        .map(drop)
    }

    fn counter(&mut self, counter: &str) -> Sql<i64> {
        self.says("SELECT coalesce((SELECT value FROM notes WHERE name = $1), 0)", values![counter])
    }

    fn feed(&mut self, records: &str, key: &str) -> Sql<()> {
        let now = self.now();
        self.execute(sql::FEED, values![records, key, now]).map(drop)
    }

    fn tell(&mut self, hint: Hint) {
        self.news.push(News::Hint(Box::new(hint)));
    }

    fn taken_in(&mut self) {
        self.news.push(News::TakenIn);
    }

    fn budget(&self) -> Budget {
        space::budget(self.space)
    }

    fn upkeep_budget(&self) -> Option<Budget> {
        self.space.is_tight().then(|| space::upkeep_budget(self.space))
    }

    /// Empties the log after the commit while space is short, so that the next step has room.
    fn then_make_room(&mut self) {
        if self.space.is_short() {
            self.then_erase(Erased::default());
        }
    }

    /// Empties the log after the commit, so that what this transaction replaced
    /// is gone from the disk; tells whether that went through.
    fn then_erase(&mut self, erased: Erased) {
        self.news.push(News::EmptyLog(erased));
    }
}
