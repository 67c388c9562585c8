//! By which clock rows grow old, and how the last server ended.

use super::db::{Ask, Db, Sql, values};
use super::engine::{Engine, Owner, Store};
use super::records::audit;
use super::txn::Txn;
use angelia_core::audit::{Actor, AuditEntry};
use angelia_core::clock::{self, Age, ClockState, Leap, Mono, Old, UnixMillis};
use angelia_core::error::Result;
use angelia_core::store::{BoxFuture, Checked, ClockStore};
use parking_lot::{Mutex, MutexGuard};
use std::fmt::Write;
use std::time::Duration;

/// The note with what is known of the clock.
const CLOCK: &str = "clock";
/// The note that is there while a server runs.
const RUNNING: &str = "running";

/// The clock of an open store: the machine's, or the one of the database that several share.
pub(crate) struct Clock {
    watched: Mutex<Watched>,
    /// What the database's clock showed, and when that was by ours.
    shared: Mutex<Option<(UnixMillis, Mono)>>,
}

struct Watched {
    state: ClockState,
    /// What clocks that do not leap showed at the last look.
    mono: Mono,
    uptime: Option<Duration>,
}

impl Clock {
    /// Takes the clock up where the last process left it; `shared` is what the database's
    /// clock shows, where several go by it.
    pub(crate) fn open(db: &mut dyn Db, shared: Option<UnixMillis>) -> Sql<Self> {
        let wall = shared.unwrap_or_else(clock::wall);
        let state = match note(db, CLOCK)?.and_then(|note| ClockState::from_json(&note)) {
            Some(mut state) => {
                state.start(wall);
                state
            }
            None => ClockState::first(wall, newest_stamp(db)?),
        };
        let mono = clock::mono();
        let watched = Mutex::new(Watched { state, mono, uptime: clock::uptime() });
        Ok(Self { watched, shared: Mutex::new(shared.map(|at| (at, mono))) })
    }

    /// What the clock shows.
    pub(crate) fn now(&self) -> UnixMillis {
        match *self.shared.lock() {
            Some((at, then)) => at.after(clock::mono().since(then)),
            None => clock::wall(),
        }
    }

    /// Notes what the database's clock showed after `asked` by ours.
    pub(crate) fn set(&self, shown: UnixMillis, asked: Mono) {
        *self.shared.lock() = Some((shown, asked));
    }

    /// Which stamps are older than that.
    pub(crate) fn older_than(&self, span: Duration) -> Old {
        let now = self.look();
        now.state.older_than(span, now.state.seen())
    }

    /// Whether the clock leapt and nobody confirmed it.
    pub(crate) fn has_leapt(&self) -> bool {
        self.look().state.leap().is_some()
    }

    /// What is known, the present moment included: nobody may judge by a clock
    /// that leapt since somebody looked.
    fn look(&self) -> MutexGuard<'_, Watched> {
        let wall = self.now();
        let mut watched = self.watched.lock();
        watched.look(wall);
        watched
    }
}

impl Watched {
    fn look(&mut self, wall: UnixMillis) {
        let (mono, uptime) = (clock::mono(), clock::uptime());
        let awake = mono.since(self.mono);
        // A machine that slept explains what the monotonic clock does not.
        let asleep = uptime.zip(self.uptime).map(|(now, then)| now.saturating_sub(then));
        let passed = [Some(awake), asleep].into_iter().flatten();
        let passed = passed.min_by_key(|passed| self.state.unexplained(wall, *passed)).unwrap_or(awake);
        (self.mono, self.uptime) = (mono, uptime);
        self.state.look(wall, passed);
    }
}

impl<E: Engine> ClockStore for Store<E> {
    fn leap(&self) -> Option<Leap> {
        self.0.clock().look().state.leap()
    }

    fn age(&self, stamp: UnixMillis) -> Age {
        let now = self.0.clock().look();
        now.state.age(stamp, now.state.seen())
    }

    fn keep_clock(&self) -> BoxFuture<'_, Result<()>> {
        // What is pruned is pruned by a time that is noted first, on a full disk too.
        self.0.write_all(Owner::Upkeep, 0, "note the time", keep)
    }

    fn accept_clock(&self, by: &Actor) -> BoxFuture<'_, Result<Option<Leap>>> {
        let by = by.clone();
        // Until it is accepted nothing grows old, and so nothing frees a full disk.
        let accept = self.0.write_all(Owner::Operator, 0, "accept the clock", move |txn| {
            let mut state = txn.clock().look().state.clone();
            let accepted = state.accept();
            if let Some(leap) = accepted {
                audit(txn, &AuditEntry::done(&by, "clock.accept", "", "").with(leap.words()))?;
            }
            set_note(txn, CLOCK, &state.to_json())?;
            Ok(accepted)
        });
        Box::pin(async move {
            let accepted = accept.await?;
            // It counts once it is durable; what leapt since is another matter.
            let mut now = self.0.clock().look();
            if now.state.leap() == accepted {
                now.state.accept();
            }
            Ok(accepted)
        })
    }

    fn begin_run(&self) -> BoxFuture<'_, Result<bool>> {
        self.0.write_all(Owner::Upkeep, 0, "note the start", |txn| {
            keep(txn)?;
            let unclean = note(txn, RUNNING)?.is_some();
            set_note(txn, RUNNING, &[1])?;
            // Where several run, one that was killed says nothing of the database.
            Ok(unclean && E::IS_OWN)
        })
    }

    fn end_run(&self) -> BoxFuture<'_, Result<()>> {
        self.0.write_all(Owner::Upkeep, 0, "note the end", |txn| {
            keep(txn)?;
            txn.execute("DELETE FROM notes WHERE name = $1", values![RUNNING])?;
            Ok(())
        })
    }

    fn quick_check(&self, within: Duration) -> BoxFuture<'_, Result<Checked>> {
        self.0.quick_check(within)
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

fn keep(txn: &mut dyn Txn) -> Sql<()> {
    let state = txn.clock().look().state.to_json();
    set_note(txn, CLOCK, &state)
}

/// What is noted under a name.
pub(super) fn note(db: &mut dyn Db, name: &str) -> Sql<Option<Vec<u8>>> {
    db.first("SELECT value FROM notes WHERE name = $1", values![name], |row| row.get(0))
}

fn set_note(db: &mut dyn Db, name: &str, value: &[u8]) -> Sql<()> {
    db.execute(
        "INSERT INTO notes (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        values![name, value],
    )?;
    Ok(())
}

/// When something was written last, by a release that did not remember the clock.
fn newest_stamp(db: &mut dyn Db) -> Sql<Option<UnixMillis>> {
    let newest: Option<i64> = db.says(
        "SELECT max(at) FROM (
             SELECT (SELECT appended_at FROM journal ORDER BY id DESC LIMIT 1) AS at
             UNION ALL SELECT (SELECT at FROM audit ORDER BY id DESC LIMIT 1)) AS stamps",
        &[],
    )?;
    Ok(newest.map(UnixMillis))
}
