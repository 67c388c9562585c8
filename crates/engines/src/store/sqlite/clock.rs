//! By which clock rows grow old, and how the last server ended.

use super::queue::Owner;
use super::records::audit;
use super::writer::Txn;
use super::{Sqlite, failed, open_for_reading};
use angelia_core::audit::{Actor, AuditEntry};
use angelia_core::clock::{self, Age, ClockState, Leap, Mono, Old, UnixMillis};
use angelia_core::error::{Error, Result};
use angelia_core::store::{BoxFuture, Checked, ClockStore};
use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, ErrorCode, InterruptHandle, OptionalExtension, params};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The note with what is known of the clock.
const CLOCK: &str = "clock";
/// The note that is there while a server runs.
const RUNNING: &str = "running";

/// The clock of an open store.
pub(super) struct Clock(Mutex<Watched>);

struct Watched {
    state: ClockState,
    /// What clocks that do not leap showed at the last look.
    mono: Mono,
    uptime: Option<Duration>,
}

impl Clock {
    /// Takes the clock up where the last process left it.
    pub(super) fn open(db: &Connection) -> Result<Self> {
        let read = || -> rusqlite::Result<ClockState> {
            let note = note(db, CLOCK)?.and_then(|note| ClockState::from_json(&note));
            let wall = clock::wall();
            Ok(match note {
                Some(mut state) => {
                    state.start(wall);
                    state
                }
                None => ClockState::first(wall, newest_stamp(db)?),
            })
        };
        let state = read().map_err(|e| failed("read the clock", e))?;
        Ok(Self(Mutex::new(Watched { state, mono: clock::mono(), uptime: clock::uptime() })))
    }

    /// Which stamps are older than that.
    pub(super) fn older_than(&self, span: Duration) -> Old {
        let now = self.look();
        now.state.older_than(span, now.state.seen())
    }

    /// Whether the clock leapt and nobody confirmed it.
    pub(super) fn has_leapt(&self) -> bool {
        self.look().state.leap().is_some()
    }

    /// What is known, the present moment included: nobody may judge by a clock
    /// that leapt since somebody looked.
    fn look(&self) -> MutexGuard<'_, Watched> {
        let mut watched = self.0.lock();
        watched.look();
        watched
    }
}

impl Watched {
    fn look(&mut self) {
        let (mono, uptime, wall) = (clock::mono(), clock::uptime(), clock::wall());
        let awake = mono.since(self.mono);
        // A machine that slept explains what the monotonic clock does not.
        let asleep = uptime.zip(self.uptime).map(|(now, then)| now.saturating_sub(then));
        let passed = [Some(awake), asleep].into_iter().flatten();
        let passed = passed.min_by_key(|passed| self.state.unexplained(wall, *passed)).unwrap_or(awake);
        (self.mono, self.uptime) = (mono, uptime);
        self.state.look(wall, passed);
    }
}

impl ClockStore for Sqlite {
    fn leap(&self) -> Option<Leap> {
        self.clock.look().state.leap()
    }

    fn age(&self, stamp: UnixMillis) -> Age {
        let now = self.clock.look();
        now.state.age(stamp, now.state.seen())
    }

    fn keep_clock(&self) -> BoxFuture<'_, Result<()>> {
        // What is pruned is pruned by a time that is noted first, on a full disk too.
        self.writer.write_for(Owner::Upkeep, 0, "note the time", keep)
    }

    fn accept_clock(&self, by: &Actor) -> BoxFuture<'_, Result<Option<Leap>>> {
        let by = by.clone();
        // Until it is accepted nothing grows old, and so nothing frees a full disk.
        let accept = self.writer.try_write_for(Owner::Operator, 0, "accept the clock", move |txn| {
            let mut state = txn.clock.look().state.clone();
            let accepted = state.accept();
            if let Some(leap) = accepted {
                audit(txn, &AuditEntry::done(&by, "clock.accept", "", "").with(leap.words()))?;
            }
            set_note(txn, CLOCK, &state.to_json())?;
            Ok(Ok(accepted))
        });
        Box::pin(async move {
            let accepted = accept.await?;
            // It counts once it is durable; what leapt since is another matter.
            let mut now = self.clock.look();
            if now.state.leap() == accepted {
                now.state.accept();
            }
            Ok(accepted)
        })
    }

    fn begin_run(&self) -> BoxFuture<'_, Result<bool>> {
        self.writer.write_for(Owner::Upkeep, 0, "note the start", |txn| {
            keep(txn)?;
            let unclean = note(txn, RUNNING)?.is_some();
            set_note(txn, RUNNING, &[1])?;
            Ok(unclean)
        })
    }

    fn end_run(&self) -> BoxFuture<'_, Result<()>> {
        self.writer.write_for(Owner::Upkeep, 0, "note the end", |txn| {
            keep(txn)?;
            txn.execute("DELETE FROM notes WHERE name = ?", [RUNNING])?;
            Ok(())
        })
    }

    fn quick_check(&self, within: Duration) -> BoxFuture<'_, Result<Checked>> {
        Box::pin(quick_check(self.readers.path().to_owned(), within))
    }
}

/// `column` is older than that, as SQL. The numbers are ours.
pub(super) fn is_old(column: &str, old: &Old) -> String {
    let mut sql = format!("({column} < {}", old.before);
    for (from, until) in &old.except {
        let _ = write!(sql, " AND {column} NOT BETWEEN {from} AND {until}");
    }
    sql.push(')');
    sql
}

fn keep(txn: &mut Txn<'_>) -> rusqlite::Result<()> {
    let state = txn.clock.look().state.to_json();
    set_note(txn, CLOCK, &state)
}

/// What is noted under a name.
pub(super) fn note(db: &Connection, name: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    db.query_row("SELECT value FROM notes WHERE name = ?", [name], |row| row.get(0)).optional()
}

fn set_note(db: &Connection, name: &str, value: &[u8]) -> rusqlite::Result<()> {
    db.execute(
        "INSERT INTO notes VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        params![name, value],
    )?;
    Ok(())
}

/// When something was written last, by a release that did not remember the clock.
fn newest_stamp(db: &Connection) -> rusqlite::Result<Option<UnixMillis>> {
    let newest: Option<i64> = db.query_row(
        "SELECT max(at) FROM (
             SELECT (SELECT appended_at FROM journal ORDER BY id DESC LIMIT 1) AS at
             UNION ALL SELECT (SELECT at FROM audit ORDER BY id DESC LIMIT 1))",
        [],
        |row| row.get(0),
    )?;
    Ok(newest.map(UnixMillis))
}

/// Ends a query when nobody waits for it any more, also before it began.
struct Interrupt {
    handle: InterruptHandle,
    given_up: Arc<AtomicBool>,
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Release);
        self.handle.interrupt();
    }
}

async fn quick_check(path: PathBuf, within: Duration) -> Result<Checked> {
    let broke = |_| Error::internal("the check of the database broke off");
    let opened = tokio::task::spawn_blocking(move || open_for_reading(&path)).await.map_err(broke)?;
    let connection = match opened {
        Ok(connection) => connection,
        Err(error) => return Ok(Checked::Damaged(error.to_string())),
    };
    let given_up = Arc::new(AtomicBool::new(false));
    let interrupt = Interrupt { handle: connection.get_interrupt_handle(), given_up: given_up.clone() };
    let mut check = tokio::task::spawn_blocking(move || {
        if given_up.load(Ordering::Acquire) {
            Ok(None)
        } else {
            connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)).map(Some)
        }
    });
    let found = match tokio::time::timeout(within, &mut check).await {
        Ok(found) => found,
        Err(_) => {
            drop(interrupt);
            check.await
        }
    };
    Ok(match found.map_err(broke)? {
        Ok(None) => Checked::Unfinished,
        Ok(Some(word)) if word == "ok" => Checked::Sound,
        Ok(Some(fault)) => Checked::Damaged(fault),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Checked::Unfinished
        }
        Err(error) => Checked::Damaged(error.to_string()),
    })
}
