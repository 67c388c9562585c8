//! PostgreSQL: one database that several nodes share.
//!
//! Changes run on threads that may wait, each in a transaction of its own that is repeated
//! when somebody else came first; the row of an instance is the lock of its log.

mod batch;
mod connect;
mod connection;
mod hot;
mod keys;
mod lines;
mod migrate;
mod pool;
mod server_check;
mod tls;
mod transact;
mod txn;
mod url;

pub use connect::Options;
pub use url::{DatabaseUrl, UrlError};

pub(in crate::store) use connect::Connector;
pub(in crate::store) use migrate::ensure;
pub(in crate::store) use server_check::check;

pub(super) use lines::LIMITS as COMMIT_LIMITS;

use super::clock::Clock;
use super::db::{Db, Failure, Sql};
use super::engine::{Engine, Owner, Store};
use super::txn::Txn;
use super::{intake, prune, removal, webchat};
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::egress;
use angelia_core::error::{Error, Result};
use angelia_core::inbox::{Epoch, InstanceId, Quota};
use angelia_core::ports::log::{Appended, NewEntry, Ownership, Settlement, TurnNote};
use angelia_core::ports::{
    Accepted, ActionId, ActionOutcome, BoxFuture, Bus, Checked, Guest, Hint, HintKind, Intake, NewAction,
    NewLine, Posted, Taken, Under,
};
use angelia_core::space::Report;
use angelia_core::store::{Pruned, Upkeep};
use connection::Waiting;
use hot::HotWrite;
use keys::Keys;
use lines::{Lines, Write};
use pool::Pool;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, oneshot};

/// Connections of one node that write, and that read: neither takes the other's.
const WRITING: usize = HOT_AT_ONCE + COLD_AT_ONCE;
const READING: usize = 8;
/// Batches of what is hot at the same time: while two are under way, the next one gathers.
const HOT_AT_ONCE: usize = 2;
/// Transactions of everything else at the same time.
const COLD_AT_ONCE: usize = 6;
/// Looks for keys at the same time, each for all who ask.
const KEYS_AT_ONCE: usize = 2;
/// Threads that talk to the database.
const THREADS: usize = 2;
/// A transaction in which nothing happens for so long is undone by the server: a node that
/// stands still must not hold up the others, whose signs of life are due within a term.
const STAND_STILL: &str = "2s";

/// The store that nodes share.
pub type Postgres = Store<PostgresEngine>;

/// PostgreSQL, as one node uses it.
pub struct PostgresEngine {
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

struct Shared {
    /// What is written with.
    pool: Arc<Pool>,
    /// What is read with, and whose turn it is.
    reads: Arc<Pool>,
    reading: Arc<Semaphore>,
    quota: Quota,
    clock: Arc<Clock>,
    bus: Arc<dyn Bus>,
    lines: Lines,
    keys: Keys,
    hot: HotCounts,
    healthy: AtomicBool,
}

#[derive(Default)]
struct HotCounts {
    batches: AtomicU64,
    together: AtomicU64,
    one_by_one: AtomicU64,
}

/// What became of hot writes since the store was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotWrites {
    /// Transactions that did several at once.
    pub batches: u64,
    /// How many they did.
    pub together: u64,
    /// How many were left, and done one by one.
    pub one_by_one: u64,
}

/// How a transaction sees what others do meanwhile.
#[derive(Clone, Copy)]
enum Isolation {
    /// Each statement sees what is committed; rows that matter are locked first.
    Locks,
    /// As if it ran alone, or it is repeated.
    Alone,
}

impl Isolation {
    fn begin(self) -> String {
        let level = match self {
            Self::Locks => "READ COMMITTED",
            Self::Alone => "SERIALIZABLE",
        };
        format!(
            "BEGIN ISOLATION LEVEL {level}; SET LOCAL idle_in_transaction_session_timeout = '{STAND_STILL}'; \
             SET LOCAL synchronous_commit = on"
        )
    }
}

impl Postgres {
    /// Connects, and makes or brings up to date what is kept there; tells of every commit on the bus.
    pub async fn open(url: &str, quota: Quota, bus: Arc<dyn Bus>) -> Result<Self> {
        let url = url.parse().map_err(|error: UrlError| Error::invalid(format!("store.url {error}")))?;
        Self::open_with(&Options::new(url), quota, bus).await
    }

    /// The same, as the configuration says.
    pub async fn open_with(options: &Options, quota: Quota, bus: Arc<dyn Bus>) -> Result<Self> {
        let connector = Connector::new(options)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(WRITING + READING)
            .thread_name("store")
            .enable_all()
            .build()
            .map_err(|error| Error::internal(format!("cannot start the store's threads: {error}")))?;
        let connector = Arc::new(connector);
        let pools = [WRITING, READING].map(|most| Pool::new(connector.clone(), most));
        let opening = runtime.spawn(Shared::open(pools, quota, bus));
        let opened = opening.await.map_err(|_| Error::internal("the store could not be opened"));
        match opened.and_then(|opened| opened) {
            Ok(shared) => {
                let shared = Arc::new(shared);
                (0..HOT_AT_ONCE).for_each(|_| drop(runtime.spawn(shared.clone().keep_batching())));
                (0..KEYS_AT_ONCE).for_each(|_| drop(runtime.spawn(shared.clone().keep_recognising())));
                (0..COLD_AT_ONCE).for_each(|_| drop(runtime.spawn(shared.clone().keep_writing())));
                Ok(Store(PostgresEngine { shared, runtime: Some(runtime) }))
            }
            Err(error) => {
                runtime.shutdown_background();
                Err(error)
            }
        }
    }
}

impl Postgres {
    /// What became of hot writes since it was opened.
    pub fn hot_writes(&self) -> HotWrites {
        let HotCounts { batches, together, one_by_one } = &self.0.shared.hot;
        let [batches, together, one_by_one] =
            [batches, together, one_by_one].map(|count| count.load(Ordering::Relaxed));
        HotWrites { batches, together, one_by_one }
    }
}

impl Drop for PostgresEngine {
    fn drop(&mut self) {
        // It may be dropped where nobody may wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    async fn open([pool, reads]: [Arc<Pool>; 2], quota: Quota, bus: Arc<dyn Bus>) -> Result<Self> {
        let client = pool.get().await?;
        server_check::check(&client, pool.options()).await?;
        migrate::migrate(&client).await?;
        let runtime = tokio::runtime::Handle::current();
        let opened = tokio::task::spawn_blocking(move || {
            let now = now(&runtime.block_on(client.query_typed_one(NOW, &[]))?)?;
            let clock =
                Clock::open(&mut Waiting { client: &client, runtime: &runtime }, Some(UnixMillis(now)))?;
            client.give_back();
            Ok(clock)
        });
        let clock = opened.await.map_err(|_| Error::internal("the store could not be opened"))?;
        let clock = Arc::new(clock.map_err(|failure: Failure| failure.told("read the clock"))?);
        Ok(Self {
            pool,
            reads,
            reading: Arc::new(Semaphore::new(READING - KEYS_AT_ONCE)),
            quota,
            clock,
            bus,
            lines: Lines::default(),
            keys: Keys::default(),
            hot: HotCounts::default(),
            healthy: AtomicBool::new(true),
        })
    }
}

/// What the clock shows, in milliseconds.
const NOW: &str = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
/// The same, and the number of this transaction.
const BEGUN: &str =
    "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT), CAST(txid_current() AS BIGINT)";
fn now(row: &tokio_postgres::Row) -> Sql<i64> {
    Ok(row.try_get(0)?)
}

/// Whether a commit is one that a fail point is about.
fn carries_message(hints: &[Hint]) -> bool {
    hints.iter().any(|hint| matches!(hint, Hint::Log { kind: HintKind::Appended | HintKind::Ahead, .. }))
}

impl PostgresEngine {
    /// Puts a write in its owner's line, and waits for its answer. It is done whoever waits.
    fn in_line<T: Send + 'static>(
        &self,
        owner: Owner,
        bytes: usize,
        write: impl FnOnce(oneshot::Sender<Result<T>>) -> Write,
    ) -> BoxFuture<'_, Result<T>> {
        let (answer, answered) = oneshot::channel();
        let write = write(answer);
        Box::pin(async move {
            self.shared.lines.push(owner, bytes, write).await;
            answered.await.unwrap_or_else(|_| Err(Error::unavailable("the store is shutting down")))
        })
    }

    /// A write that takes a transaction of its own.
    fn alone<T: Send + 'static>(
        &self,
        (owner, bytes, what): (Owner, usize, &'static str),
        isolation: Isolation,
        change: impl FnMut(&mut dyn Txn) -> Sql<Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        let shared = self.shared.clone();
        self.in_line(owner, bytes, move |answer| {
            Write::Cold(Box::pin(async move {
                let _ = answer.send(shared.write(isolation, what, change).await);
            }))
        })
    }
}

impl Engine for PostgresEngine {
    const IS_OWN: bool = false;

    fn write<T: Send + 'static>(
        &self,
        owner: Owner,
        bytes: usize,
        what: &'static str,
        change: impl FnMut(&mut dyn Txn) -> Sql<Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        self.alone((owner, bytes, what), Isolation::Locks, change)
    }

    fn read<T: Send + 'static>(
        &self,
        what: &'static str,
        query: impl FnMut(&mut dyn Db) -> Sql<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        let (shared, runtime) = (self.shared.clone(), self.runtime.as_ref());
        let closed = || Error::unavailable("the store is shutting down");
        let Some(runtime) = runtime.map(|runtime| runtime.handle().clone()) else {
            return Box::pin(std::future::ready(Err(closed())));
        };
        Box::pin(async move {
            // Whoever gives up while it waits takes nobody's turn.
            let turn = shared.reading.clone().acquire_owned().await.map_err(|_| closed())?;
            let reading = runtime.spawn(async move {
                let _turn = turn;
                shared.read(what, query).await
            });
            reading.await.unwrap_or_else(|_| Err(closed()))
        })
    }

    fn change(
        &self,
        owner: Owner,
        what: &'static str,
        rule: impl FnMut(&mut dyn Txn) -> Sql<Result<()>> + Send + 'static,
    ) -> BoxFuture<'_, Result<()>> {
        self.alone((owner, 0, what), Isolation::Alone, rule)
    }

    fn append(&self, entry: NewEntry) -> BoxFuture<'_, Result<Appended>> {
        let (owner, bytes) = (Owner::Tenant(entry.tenant.as_str().into()), entry.body.len());
        self.in_line(owner, bytes, |answer| Write::Hot(HotWrite::Append(entry, answer)))
    }

    fn take_in(
        &self,
        bot: &BotKey,
        under: Option<Under>,
        intakes: Vec<Intake>,
    ) -> BoxFuture<'_, Result<Vec<Taken>>> {
        let (owner, bytes, bot) = (Owner::bot(bot), intake::bytes(&intakes), bot.clone());
        self.in_line(owner, bytes, |answer| Write::Hot(HotWrite::TakeIn(bot, under, intakes, answer)))
    }

    fn post(&self, line: NewLine, entry: Option<NewEntry>) -> BoxFuture<'_, Result<Posted>> {
        let (owner, bytes) = webchat::line_of_post(&line, entry.as_ref());
        self.in_line(owner, bytes, |answer| {
            Write::Hot(HotWrite::Post(Box::new(line), entry.map(Box::new), answer))
        })
    }

    fn recognise(&self, key_fingerprint: [u8; 32]) -> BoxFuture<'_, Result<Option<Guest>>> {
        Box::pin(self.shared.keys.holder(key_fingerprint))
    }

    fn settle(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        settled: Vec<Settlement>,
    ) -> BoxFuture<'_, Result<Ownership>> {
        let hot = |answer| Write::Hot(HotWrite::Settle(instance, epoch, settled, answer));
        self.in_line(self.line_of(instance), 0, hot)
    }

    fn note_turns(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        notes: Vec<TurnNote>,
    ) -> BoxFuture<'_, Result<Ownership>> {
        let hot = |answer| Write::Hot(HotWrite::NoteTurns(instance, epoch, notes, answer));
        self.in_line(self.line_of(instance), 0, hot)
    }

    fn accept(&self, by: egress::Owner, actions: Vec<NewAction>) -> BoxFuture<'_, Result<Vec<Accepted>>> {
        let owner = actions.first().map_or(Owner::Server, |it| Owner::Tenant(it.tenant.as_str().into()));
        let bytes = actions.iter().map(|action| action.body.len()).sum();
        self.in_line(owner, bytes, |answer| Write::Hot(HotWrite::Accept(by, actions, answer)))
    }

    fn begin(&self, by: egress::Owner, id: ActionId) -> BoxFuture<'_, Result<bool>> {
        self.in_line(of_action(id), 0, |answer| Write::Hot(HotWrite::Begin(by, id, answer)))
    }

    fn finish(
        &self,
        by: egress::Owner,
        ends: Vec<(ActionId, ActionOutcome)>,
    ) -> BoxFuture<'_, Result<Vec<ActionId>>> {
        let owner = ends.first().map_or(Owner::Server, |(id, _)| of_action(*id));
        self.in_line(owner, 0, |answer| Write::Hot(HotWrite::Finish(by, ends, answer)))
    }

    fn clock(&self) -> &Arc<Clock> {
        &self.shared.clock
    }

    /// It looks after itself.
    fn quick_check(&self, _within: Duration) -> BoxFuture<'_, Result<Checked>> {
        Box::pin(std::future::ready(Ok(Checked::Sound)))
    }
}

/// Whose an action is is not known here: each waits in a line of its own.
fn of_action(id: ActionId) -> Owner {
    Owner::Bot(format!("action {}", id.0).into())
}

impl Upkeep for Postgres {
    fn healthy(&self) -> bool {
        self.0.shared.healthy.load(Ordering::Relaxed)
    }

    fn probe(&self) -> BoxFuture<'_, Result<()>> {
        self.0.write_all(Owner::Server, 0, "probe", |txn| txn.raise("probe", 1))
    }

    fn disk(&self) -> BoxFuture<'_, Result<Report>> {
        self.0.read("look at the disk", |db| {
            let mut database = 0;
            db.each("SELECT pg_database_size(current_database())", &[], &mut |row| {
                database = row.get(0)?;
                Ok(false)
            })?;
            Ok(Report { database, ..Report::default() })
        })
    }

    fn tend(&self) -> BoxFuture<'_, Result<()>> {
        self.finish_removals()
    }

    fn finish_removals(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(removal::finish(self))
    }

    fn prune(&self) -> BoxFuture<'_, Result<Pruned>> {
        Box::pin(prune::prune(self))
    }
}
