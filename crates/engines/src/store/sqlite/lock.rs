//! The lock of a data directory: one process at a time has the store open.

use angelia_core::error::{Error, Result};
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";
/// What is in it where the directory was made together with it.
const MADE: &[u8] = b"angelia made this directory\n";
/// Somebody who looks whether the lock is held keeps others from it for a
/// moment: one refusal says nothing, so many in a row would.
const TRIES: usize = 5;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// A data directory that is ours until this is dropped, or the process ends.
#[derive(Debug)]
pub struct DataLock {
    data_dir: PathBuf,
    _file: File,
}

impl DataLock {
    /// Takes the lock, and makes the directory where there is none; `None` if
    /// another process has it now.
    pub fn try_take(data_dir: &Path) -> Result<Option<Self>> {
        let is_new = std::fs::symlink_metadata(data_dir).is_err();
        make_private_dir(data_dir).map_err(|e| {
            Error::unavailable(format!("cannot make the data directory {}: {e}", data_dir.display()))
                .caused_by(e)
        })?;
        let path = data_dir.join(LOCK);
        let failed = |e: std::io::Error| {
            Error::unavailable(format!("cannot lock {}: {e}", path.display())).caused_by(e)
        };
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {
                if is_new {
                    // If that fails, the directory is taken for one that somebody else made.
                    let _ = (&file).write_all(MADE);
                }
                Ok(Some(Self { data_dir: data_dir.to_owned(), _file: file }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(failed(e)),
        }
    }

    /// Takes the lock; a conflict if another process keeps it.
    pub(super) fn take(data_dir: &Path) -> Result<Self> {
        for _ in 0..TRIES {
            if let Some(lock) = Self::try_take(data_dir)? {
                return Ok(lock);
            }
            std::thread::sleep(PAUSE);
        }
        Err(taken(data_dir))
    }

    /// The directory it is for.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }
}

/// What to say when another process keeps the directory.
pub fn taken(data_dir: &Path) -> Error {
    Error::conflict(format!(
        "another angelia is using {}; stop it, or give this one its own data_dir",
        data_dir.display()
    ))
}

/// Whether the data directory was made by us, for its owner only; otherwise it
/// is as whoever made it wants it.
pub fn is_own_directory(data_dir: &Path) -> bool {
    std::fs::read(data_dir.join(LOCK)).is_ok_and(|text| text == MADE)
}

/// Whether a process has the data directory now.
pub fn is_locked(data_dir: &Path) -> bool {
    let file = File::open(data_dir.join(LOCK));
    // Shared: two who look at once must not take each other for a holder.
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Makes a directory that only its owner can enter.
fn make_private_dir(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)
}
