//! Transactions: begun, run on a thread that may wait, repeated when somebody else came first,
//! and committed, or found out about.

use super::connection::Waiting;
use super::pool::Pooled;
use super::txn::OpenTxn;
use super::{BEGUN, Isolation, Shared, carries_message, now};
use crate::store::db::{Db, Failure, Sql};
use crate::store::txn::Txn;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::error::{Error, Result};
use angelia_core::fail;
use angelia_core::ports::Hint;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::Type;

/// How often a transaction is repeated because somebody else came first, and the pause before
/// it, which grows.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// How often one is that finds a key taken: if nobody else wrote it, it is there for good.
const TRIES_FOR_A_KEY: u32 = 4;
/// How often it is asked what became of a commit whose answer was lost.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// What became of a transaction.
const BECAME: &str = "SELECT txid_status($1)";
/// However many statements it takes, they see one moment.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A change whose answer is kept elsewhere: what runs it is compiled once, and not for each.
type AnyChange = Box<dyn FnMut(&mut dyn Txn) -> Sql<Result<()>> + Send>;
/// The same for what only reads.
type AnyQuery = Box<dyn FnMut(&mut dyn Db) -> Sql<()> + Send>;

/// What a change or a query said when it last ran.
fn said<T>(slot: &Mutex<Option<T>>) -> Result<T> {
    slot.lock().take().ok_or_else(|| Error::internal("the store ran nothing"))
}

impl Shared {
    /// Runs a change, again if somebody else came first.
    pub(super) async fn write<T: Send + 'static>(
        self: Arc<Self>,
        isolation: Isolation,
        what: &'static str,
        mut change: impl FnMut(&mut dyn Txn) -> Sql<Result<T>> + Send + 'static,
    ) -> Result<T> {
        let slot = Arc::new(Mutex::new(None));
        let kept = slot.clone();
        let change = move |txn: &mut dyn Txn| Ok(change(txn)?.map(|said| *kept.lock() = Some(said)));
        self.write_any(isolation, what, Box::new(change)).await?;
        said(&slot)
    }

    /// Reads, at one moment.
    pub(super) async fn read<T: Send + 'static>(
        self: Arc<Self>,
        what: &'static str,
        mut query: impl FnMut(&mut dyn Db) -> Sql<T> + Send + 'static,
    ) -> Result<T> {
        let slot = Arc::new(Mutex::new(None));
        let kept = slot.clone();
        let query = move |db: &mut dyn Db| query(db).map(|said| *kept.lock() = Some(said));
        self.read_any(what, Box::new(query)).await?;
        said(&slot)
    }

    async fn write_any(
        self: Arc<Self>,
        isolation: Isolation,
        what: &'static str,
        mut change: AnyChange,
    ) -> Result<()> {
        let (mut pause, mut taken) = (PAUSE, 0);
        for _ in 1..TRIES {
            let (ran, again) = self.clone().try_once(isolation, what, change).await?;
            change = again;
            let failure = match ran {
                Ok(outcome) => return outcome,
                Err(failure) => failure,
            };
            taken += u32::from(is(&failure, &[SqlState::UNIQUE_VIOLATION]));
            if !is_repeated(&failure) || taken > TRIES_FOR_A_KEY {
                self.is_well(!is_of_the_server(&failure));
                return Err(failure.told(what));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Err(Error::unavailable(format!(
            "the store could not {what}: others came first every time; try again"
        )))
    }

    /// One transaction: what the change said, or why it failed, and the change.
    async fn try_once(
        self: Arc<Self>,
        isolation: Isolation,
        what: &'static str,
        mut change: AnyChange,
    ) -> Result<(Sql<Result<()>>, AnyChange)> {
        let client = self.pool.get().await.inspect_err(|_| self.is_well(false))?;
        let runtime = Handle::current();
        let running = tokio::task::spawn_blocking(move || {
            let ran = self.transact(client, &runtime, isolation, &mut change);
            (ran, change)
        });
        running.await.map_err(|_| Error::unavailable(format!("the store could not {what}: it broke off")))
    }

    /// Whichever way it ends early, the connection is closed, and the server undoes everything.
    fn transact(
        &self,
        client: Pooled,
        runtime: &Handle,
        isolation: Isolation,
        change: &mut AnyChange,
    ) -> Sql<Result<()>> {
        let asked = clock::mono();
        let begun = runtime.block_on(async {
            let begin = isolation.begin();
            let (begun, now) = tokio::join!(client.batch_execute(&begin), client.query_typed_one(BEGUN, &[]));
            begun.and(now)
        })?;
        let (now, number) = (now(&begun)?, begun.try_get::<_, i64>(1)?);
        self.clock.set(UnixMillis(now), asked);
        let mut txn = OpenTxn::new(Waiting { client: &client, runtime }, now, self.quota, &self.clock);
        let ran = change(&mut txn).and_then(|outcome| txn.write_counters().map(|()| outcome));
        let (hints, taken_in) = txn.told();
        match ran {
            Ok(outcome) => {
                if carries_message(&hints) {
                    fail::point("before_commit");
                }
                if !fail::commit() {
                    return Err(Failure::Damaged("a commit failed as it was told to".into()));
                }
                runtime.block_on(self.commit(client, number))?;
                self.tell(hints, taken_in);
                Ok(outcome)
            }
            Err(failure) => {
                if runtime.block_on(client.batch_execute("ROLLBACK")).is_ok() {
                    client.give_back();
                }
                Err(failure)
            }
        }
    }

    /// Commits; if the answer is lost, finds out what became of it.
    pub(super) async fn commit(&self, client: Pooled, number: i64) -> Sql<()> {
        let Err(error) = client.batch_execute("COMMIT").await else {
            client.give_back();
            self.is_well(true);
            return Ok(());
        };
        drop(client);
        if !is_certain(&error) && self.is_committed(number).await {
            return Ok(());
        }
        Err(error.into())
    }

    /// Whether a transaction was committed whose answer was lost. It is asked for as long as it
    /// takes: whoever takes it for undone does it twice.
    async fn is_committed(&self, number: i64) -> bool {
        loop {
            if let Ok(client) = self.pool.get().await {
                match client.query_typed(BECAME, &[(&number, Type::INT8)]).await {
                    Ok(rows) => {
                        let became = rows.first().and_then(|row| row.try_get::<_, Option<String>>(0).ok());
                        client.give_back();
                        match became.flatten().as_deref() {
                            Some("in progress") => {}
                            became => return became == Some("committed"),
                        }
                    }
                    // A server that never heard of it: another one took its place.
                    Err(error) if is_certain(&error) => return false,
                    Err(_) => {}
                }
            }
            self.is_well(false);
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    pub(super) fn tell(&self, hints: Vec<Hint>, taken_in: bool) {
        if carries_message(&hints) {
            fail::point("after_commit");
        }
        if taken_in {
            fail::point("intake_committed");
        }
        hints.into_iter().for_each(|hint| self.bus.publish(hint));
    }

    pub(super) fn is_well(&self, well: bool) {
        if self.healthy.swap(well, Ordering::Relaxed) != well {
            if well {
                tracing::warn!("the store commits again");
            } else {
                tracing::error!("nothing is acknowledged until the store commits again");
            }
        }
    }

    async fn read_any(self: Arc<Self>, what: &'static str, mut query: AnyQuery) -> Result<()> {
        let client = self.reads.get().await?;
        let runtime = Handle::current();
        let reading = tokio::task::spawn_blocking(move || {
            let mut db = Waiting { client: &client, runtime: &runtime };
            runtime.block_on(client.batch_execute(SNAPSHOT))?;
            let read = query(&mut db);
            if runtime.block_on(client.batch_execute("COMMIT")).is_ok() {
                client.give_back();
            }
            read
        });
        let read = reading
            .await
            .map_err(|_| Error::unavailable(format!("the store could not {what}: it broke off")))?;
        read.map_err(|failure: Failure| failure.told(what))
    }
}

/// Whether the server says itself that nothing came of it. One that breaks off, or a pooler that
/// lost its server, may have done it all the same.
pub(super) fn is_certain(error: &tokio_postgres::Error) -> bool {
    // A connection that failed (08), or a server that was interrupted (57), says nothing of it.
    let tells = |code: &SqlState| !["08", "57"].iter().any(|class| code.code().starts_with(class));
    let is_error = |severity| severity == Some(Severity::Error);
    error.as_db_error().is_some_and(|said| is_error(said.parsed_severity()) && tells(said.code()))
}

fn is(failure: &Failure, codes: &[SqlState]) -> bool {
    matches!(failure, Failure::Postgres(error) if error.code().is_some_and(|code| codes.contains(code)))
}

/// Whether somebody else came first, so that the same may go through the next time.
fn is_repeated(failure: &Failure) -> bool {
    is(
        failure,
        &[
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::UNIQUE_VIOLATION,
            SqlState::LOCK_NOT_AVAILABLE,
        ],
    )
}

/// Whether it says something of the server, and not only of what was asked of it.
fn is_of_the_server(failure: &Failure) -> bool {
    match failure {
        Failure::Postgres(error) => {
            let of_data = |code: &SqlState| code.code().starts_with("22") || code.code().starts_with("23");
            !error.code().is_some_and(of_data)
        }
        Failure::Sqlite(_) | Failure::Damaged(_) => true,
    }
}
