//! The disk under the store: how much is free, and the reserve.
//!
//! What to do is decided in [`angelia_core::space`]; here it is measured and done.

use super::{DATABASE, private_file};
use crate::store::budget::Budget;
use crate::store::db::Failure;
use angelia_core::clock::{self, Mono};
use angelia_core::inbox::TENANT_DISK;
use angelia_core::space::{self, Class, Disk, SpaceState, SpaceVerdict};
use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, ffi};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file that keeps space back.
const RESERVE: &str = "reserve";

/// A step on a disk whose size is not known.
const UNKNOWN_STEP: u64 = 1 << 20;
/// How often a log in the way of a full disk is emptied.
const EMPTY_LOG_EVERY: Duration = Duration::from_secs(1);

/// The disk of one data directory.
pub(super) struct Space {
    data_dir: PathBuf,
    state: Mutex<SpaceState>,
    /// When emptying the log was last tried to find out how much space there is.
    emptied_at: Mutex<Option<Mono>>,
    /// Held while the reserve changes.
    reserve: Mutex<()>,
}

impl Space {
    /// Looks at the disk before the database is opened; takes what a start needs.
    pub(super) fn open(data_dir: &Path) -> Self {
        let space = Self {
            data_dir: data_dir.to_owned(),
            state: Mutex::new(SpaceState::Ample),
            emptied_at: Mutex::default(),
            reserve: Mutex::default(),
        };
        space.make_room();
        space
    }

    /// Gives up what a start needs of the reserve, if the disk is too full for it.
    pub(super) fn make_room(&self) {
        let disk = self.measure();
        let (short, takes) = space::at_start(disk, self.data_dir.join(RESERVE).exists());
        if !short {
            return;
        }
        self.set(SpaceState::Short);
        tracing::error!(
            free = disk.free,
            reserve = disk.reserve - takes,
            "the disk is full: nothing is taken in until there is space; see: angelia status"
        );
        if takes > 0 {
            self.cut_reserve(disk.reserve - takes);
        }
    }

    /// Whether space is short: ordinary writes are refused.
    pub(super) fn is_short(&self) -> bool {
        self.state() != SpaceState::Ample
    }

    fn state(&self) -> SpaceState {
        *self.state.lock()
    }

    fn set(&self, state: SpaceState) {
        *self.state.lock() = state;
    }

    /// What there is, without what is free inside the database.
    pub(super) fn measure(&self) -> Disk {
        let length = |name: &str| fs::metadata(self.data_dir.join(name)).map_or(0, |file| file.len());
        let mut disk =
            Disk { reserve: length(RESERVE), log: length(&format!("{DATABASE}-wal")), ..Disk::default() };
        if let Ok(found) = rustix::fs::statvfs(&self.data_dir) {
            disk.total = found.f_blocks.saturating_mul(found.f_frsize);
            disk.free = found.f_bavail.saturating_mul(found.f_frsize);
        }
        disk
    }

    /// Whether everybody may write now, or only who frees space. Gives the reserve up
    /// if an operator is among them and it is needed. `empty_log` folds the log into
    /// the database.
    pub(super) fn admit(
        &self,
        connection: &Connection,
        operator: bool,
        mut empty_log: impl FnMut() -> bool,
    ) -> bool {
        let mut disk = self.measure();
        let (was, class) = (self.state(), if operator { Class::Operator } else { Class::Ordinary });
        if was != SpaceState::Ample {
            disk.slack = slack(connection);
        }
        let (mut state, mut verdict) = space::judge(was, disk, class);
        // A log that was long once says little: look again when it is as short as it can be.
        let look_again = state == SpaceState::Short && verdict != SpaceVerdict::GiveUp && disk.log > 0;
        if look_again && self.may_empty_log() && empty_log() {
            disk = Disk { slack: slack(connection), ..self.measure() };
            (state, verdict) = space::judge(was, disk, class);
        }
        self.set(state);
        if verdict == SpaceVerdict::GiveUp {
            tracing::warn!(free = disk.free, "the disk is full: its reserve is given up for the operator");
            self.cut_reserve(0);
            empty_log();
        }
        if state != SpaceState::Ample && was == SpaceState::Ample {
            tracing::error!(
                free = disk.free,
                "the disk is full: only who frees space may write; see: angelia status"
            );
        }
        state == SpaceState::Ample
    }

    /// Now and then: those who are refused must not keep the disk busy.
    fn may_empty_log(&self) -> bool {
        let (now, mut last) = (clock::mono(), self.emptied_at.lock());
        let due = last.is_none_or(|at| now.since(at) >= EMPTY_LOG_EVERY);
        if due {
            *last = Some(now);
        }
        due
    }

    /// Whether there is so little that a write is better small, and an operator's not mixed
    /// with others.
    pub(super) fn is_tight(&self) -> bool {
        self.is_short() || space::goes_alone(self.measure())
    }

    /// Notes a failed commit; from one for want of space on, space is short.
    pub(super) fn note_failure(&self, failure: &Failure) {
        if matches!(failure, Failure::Sqlite(error) if is_for_want_of_space(error)) {
            self.set(SpaceState::Failed);
        }
    }

    /// Makes the reserve, or what a start took of it, where there is room.
    pub(super) fn renew(&self) {
        let _turn = self.reserve.lock();
        let disk = self.measure();
        if !space::renews(self.is_short(), disk) {
            return;
        }
        let path = self.data_dir.join(RESERVE);
        let kept = path.exists();
        match allocate(&path, disk.wanted()) {
            Ok(()) => {
                tracing::info!(bytes = disk.wanted(), "space is kept back on the disk for the operator")
            }
            Err(error) => {
                // Half of one would only look like one.
                let _ = if kept { cut(&path, 0) } else { fs::remove_file(&path) };
                tracing::warn!(%error, "no space could be kept back on the disk");
            }
        }
    }

    /// Cuts the reserve to `to` bytes. An empty one stays: a start that finds it knows
    /// that what is free is not for everybody.
    pub(super) fn cut_reserve(&self, to: u64) {
        let _turn = self.reserve.lock();
        let path = self.data_dir.join(RESERVE);
        let given_up = cut(&path, to);
        if let Err(error) =
            given_up.or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })
        {
            tracing::error!(%error, "the reserve could not be given up; empty {} by hand", path.display());
        }
    }
}

/// What one step of a long deletion may change.
pub(super) fn budget(space: &Space) -> Budget {
    let disk = space.measure();
    Budget::new(if disk.total > 0 { disk.step() } else { UNKNOWN_STEP })
}

/// The same for the server's own, which has what there is and nothing of the reserve.
pub(super) fn upkeep_budget(space: &Space) -> Budget {
    let (disk, budget) = (space.measure(), budget(space));
    // What is deleted is in the log first, and again in the database.
    Budget::new(if disk.total > 0 { budget.whole.min(disk.free / 2) } else { budget.whole })
}

/// What is free inside the database.
fn slack(connection: &Connection) -> u64 {
    sizes(connection).map_or(0, |(_, slack)| slack)
}

/// What one tenant may keep on the disk of a data directory, if nobody says otherwise:
/// so many can use up their share before it is full.
pub fn tenant_disk(data_dir: &Path) -> u64 {
    const SHARES: u64 = 8;
    // A directory that cannot be looked at will be complained about by whoever opens it.
    let total = rustix::fs::statvfs(data_dir).map(|found| found.f_blocks.saturating_mul(found.f_frsize));
    TENANT_DISK.min(total.unwrap_or(u64::MAX) / SHARES)
}

/// Takes the reserve for what a start still has to write into the directory.
pub fn make_room(data_dir: &Path) {
    Space::open(data_dir);
}

/// Quotas and limits on files are told as errors of input and output.
fn is_for_want_of_space(error: &rusqlite::Error) -> bool {
    let Some(error) = error.sqlite_error() else { return false };
    error.code == ErrorCode::DiskFull
        || matches!(error.extended_code, ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_SHMSIZE)
}

fn cut(path: &Path, to: u64) -> io::Result<()> {
    File::options().write(true).open(path)?.set_len(to)
}

/// A file that really takes `bytes` of the disk.
fn allocate(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = private_file().create(true).truncate(false).open(path)?;
    let promised = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes).is_ok();
    if !promised || !takes(&file, bytes)? {
        // Nothing that a file system could store in less space than it takes.
        let mut noise: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut block = Vec::with_capacity(1 << 16);
        let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
        while left > 0 {
            block.clear();
            while block.len() < 1 << 16 {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                block.extend_from_slice(&noise.to_le_bytes());
            }
            let part = left.min(block.len());
            file.write_all(&block[..part])?;
            left -= part;
        }
    }
    file.sync_all()
}

/// Whether a file is not only as long as it says.
fn takes(file: &File, bytes: u64) -> io::Result<bool> {
    let found = file.metadata()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Ok(found.blocks().saturating_mul(512) >= bytes)
    }
    #[cfg(not(unix))]
    Ok(found.len() >= bytes)
}

/// How large the database is, and what is free in it.
pub(super) fn sizes(connection: &Connection) -> rusqlite::Result<(u64, u64)> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let page = number("page_size")?;
    Ok((number("page_count")? * page, number("freelist_count")? * page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_made_of_real_space_and_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(RESERVE);
        allocate(&path, 1 << 20).unwrap();
        let file = File::open(&path).unwrap();
        assert!(takes(&file, 1 << 20).unwrap() && file.metadata().unwrap().len() == 1 << 20);
        let space = Space::open(folder.path());
        assert_eq!(space.measure().reserve, 1 << 20);
        space.cut_reserve(4096);
        assert_eq!(space.measure().reserve, 4096);
        space.cut_reserve(0);
        assert!(path.exists() && space.measure().reserve == 0, "it is remembered that there was one");
        fs::remove_file(&path).unwrap();
        space.cut_reserve(0);
        assert!(!path.exists());
    }

    #[test]
    fn only_a_lack_of_space_counts() {
        let error = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        assert!(is_for_want_of_space(&error(ffi::SQLITE_FULL)));
        assert!(is_for_want_of_space(&error(ffi::SQLITE_IOERR_WRITE)));
        assert!(!is_for_want_of_space(&error(ffi::SQLITE_BUSY)));
        assert!(!is_for_want_of_space(&error(ffi::SQLITE_IOERR_FSYNC)));
        assert!(!is_for_want_of_space(&rusqlite::Error::InvalidQuery));
    }
}
