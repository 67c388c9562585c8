//! The embedded store: SQLite in WAL mode, `synchronous=FULL`, one writer.
//!
//! Writes are closures sent to one thread. It takes whatever waits, runs it in
//! one transaction and answers everybody after the commit: an fsync is shared
//! by all who arrived meanwhile, and nobody waits for a timer.

mod backup;
mod check;
mod connection;
mod counted;
#[cfg(any(test, feature = "inspect"))]
pub mod inspect;
mod line_ids;
mod lock;
mod migrate;
mod moved;
mod queue;
mod reader;
#[cfg(test)]
mod schema_tests;
mod shrink;
mod space;
mod tenant_bytes;
mod writer;

#[cfg(test)]
pub(super) use connection::Bound;

pub use backup::{Backup, DatabaseIdentity, backup, identity, key_id};
pub use lock::{DataLock, is_locked, is_own_directory, taken};
pub use moved::{MOVED, is_moved, shelve};
pub use shrink::compact;
pub use space::{make_room, tenant_disk};

pub(super) use migrate::SCHEMA_VERSION;
pub(super) use queue::LIMITS as COMMIT_LIMITS;
pub(super) use reader::LIMITS as READ_LIMITS;

use super::clock::Clock;
use super::db::{Db, Sql};
use super::engine::{Engine, Owner, Store};
use super::txn::Txn;
use super::{prune, removal};
use angelia_core::error::{Error, Result};
use angelia_core::inbox::{InstanceId, Quota};
use angelia_core::ports::{ActionId, Bus, Checked};
use angelia_core::space::{Disk, Report};
use angelia_core::store::{BoxFuture, Pruned, Upkeep};
use connection::Plain;
use queue::Writer;
use reader::Readers;
use rusqlite::{Connection, OpenFlags};
use space::Space;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenant_bytes::Owners;
use writer::Thread;

/// The database file in a data directory.
pub const DATABASE: &str = "angelia.db";
/// All the files it consists of; the last two are there only while it is open, or after a crash.
pub const DATABASE_FILES: [&str; 3] = [DATABASE, "angelia.db-wal", "angelia.db-shm"];

/// The embedded store.
pub type Sqlite = Store<SqliteEngine>;

/// SQLite, as one server uses it.
pub struct SqliteEngine {
    // Dropped in this order: the last connection to close folds the log into
    // the database, and a reader's cannot.
    readers: Readers,
    writer: Writer,
    clock: Arc<Clock>,
    space: Arc<Space>,
    owners: Arc<Owners>,
    /// Held while what removed tenants left is deleted.
    removing: tokio::sync::Mutex<()>,
    /// Held for as long as the store is open: one server per data directory.
    _lock: DataLock,
}

impl Sqlite {
    /// Opens or makes the store in `data_dir`; tells of every commit on the bus.
    pub fn open(data_dir: &Path, quota: Quota, bus: Arc<dyn Bus>) -> Result<Self> {
        Self::open_locked(DataLock::take(data_dir)?, quota, bus)
    }

    /// The same in a directory that is ours already; keeps it for as long as it is open.
    pub fn open_locked(lock: DataLock, quota: Quota, bus: Arc<dyn Bus>) -> Result<Self> {
        let path = lock.data_dir().join(DATABASE);
        let space = Arc::new(Space::open(lock.data_dir()));
        shrink::rewrite_if_small(&lock, &space);
        let connection = open_for_writing(&path)?;
        let clock = Clock::open(&mut Plain(&connection), None).map_err(|e| e.told("read the clock"))?;
        let clock = Arc::new(clock);
        let owners = Arc::new(Owners::read(&connection).map_err(|e| e.told("read whose what is"))?);
        let thread = Thread::new(connection, quota, bus, clock.clone(), space.clone(), owners.clone())?;
        let writer = Writer::start(thread)?;
        Ok(Store(SqliteEngine {
            readers: Readers::new(path),
            writer,
            clock,
            space,
            owners,
            removing: tokio::sync::Mutex::default(),
            _lock: lock,
        }))
    }
}

impl Engine for SqliteEngine {
    const IS_OWN: bool = true;

    fn write<T: Send + 'static>(
        &self,
        owner: Owner,
        bytes: usize,
        what: &'static str,
        mut change: impl FnMut(&mut dyn Txn) -> Sql<Result<T>> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        self.writer.write(owner, bytes, what, move |txn| change(txn))
    }

    fn read<T: Send + 'static>(
        &self,
        what: &'static str,
        query: impl FnMut(&mut dyn Db) -> Sql<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T>> {
        self.readers.read(what, query)
    }

    fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    fn line_of(&self, instance: InstanceId) -> Owner {
        self.owners.of_instance(instance)
    }

    fn line_of_actions(&self, actions: &[ActionId]) -> Owner {
        self.owners.of_actions(actions)
    }

    fn quick_check(&self, within: Duration) -> BoxFuture<'_, Result<Checked>> {
        Box::pin(check::quick_check(self.readers.path().to_owned(), within))
    }
}

impl Upkeep for Sqlite {
    fn healthy(&self) -> bool {
        self.0.writer.healthy()
    }

    fn probe(&self) -> BoxFuture<'_, Result<()>> {
        self.0.write_all(Owner::Server, 0, "probe", |txn| {
            let probe = "INSERT INTO notes VALUES ('probe', randomblob(64))
                         ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            txn.execute(probe, &[]).map(drop)
        })
    }

    fn disk(&self) -> BoxFuture<'_, Result<Report>> {
        let space = self.0.space.clone();
        self.0.readers.look("look at the disk", move |db| {
            let (database, slack) = space::sizes(db)?;
            let disk = Disk { slack, ..space.measure() };
            let (short, shrinks) = (space.is_short(), shrink::can_shrink(db)?);
            Ok(Report { disk, reserve_wanted: disk.wanted(), database, short, shrinks })
        })
    }

    fn tend(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.finish_removals().await?;
            shrink::shrink(&self.0).await?;
            let space = self.0.space.clone();
            let renewed = tokio::task::spawn_blocking(move || space.renew()).await;
            renewed.map_err(|_| Error::unavailable("the store is shutting down"))
        })
    }

    fn finish_removals(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            // Two at once would only look at the same rows.
            let _turn = self.0.removing.lock().await;
            removal::finish(self).await
        })
    }

    fn prune(&self) -> BoxFuture<'_, Result<Pruned>> {
        Box::pin(prune::prune(self))
    }
}

fn open_for_writing(path: &PathBuf) -> Result<Connection> {
    make_private(path);
    let connection = Connection::open(path).map_err(|e| failed("open the database", e))?;
    connection
        .execute_batch(
            // First: it counts only as long as there is no page.
            "PRAGMA auto_vacuum = INCREMENTAL;
             PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA foreign_keys = ON;
             PRAGMA secure_delete = ON;
             PRAGMA temp_store = MEMORY;
             PRAGMA cache_size = -8192;",
        )
        .map_err(|e| failed("prepare the database", e))?;
    connection.set_prepared_statement_cache_capacity(256);
    migrate::migrate(&connection, path)?;
    // The one writer waits for nobody: only emptying the log could, and that can be done later.
    connection.busy_timeout(std::time::Duration::ZERO).map_err(|e| failed("prepare the database", e))?;
    Ok(connection)
}

/// Only the owner reads the database: it holds message text that waits. Made so
/// from the first moment, or a process that is killed would leave it open to
/// others; what goes wrong is told when it is opened.
fn make_private(path: &Path) {
    let _ = private_file().create(true).truncate(false).open(path);
}

/// How a file is written that only its owner reads, if it is made.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn open_for_reading(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|e| failed("open the database", e))?;
    connection.execute_batch("PRAGMA cache_size = -2048;").map_err(|e| failed("prepare a reader", e))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Every SQLite failure is one thing to the outside: not committed, try later.
fn failed(what: &str, error: rusqlite::Error) -> Error {
    Error::unavailable(format!("the store could not {what}: {error}")).caused_by(error)
}
