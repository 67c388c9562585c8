//! A database that was moved elsewhere: its file stays, under another name.
//!
//! It is not left in its place: a server that still has the old configuration would go on with
//! it beside the new one, and deliver once more what waits in both.

use super::{DATABASE, DATABASE_FILES, DataLock};
use angelia_core::error::{Error, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What the file is called then.
pub const MOVED: &str = "angelia.db.migrated";

/// Puts the database aside, which nobody has open; answers where it is.
pub fn shelve(lock: &DataLock) -> Result<PathBuf> {
    let data_dir = lock.data_dir();
    // One from before is nobody's to overwrite.
    let names = std::iter::once(MOVED.to_owned()).chain((2..).map(|number| format!("{MOVED}.{number}")));
    let free = names.map(|name| data_dir.join(name)).find(|path| fs::symlink_metadata(path).is_err());
    let target = free.unwrap_or_else(|| data_dir.join(MOVED));
    let failed = |error: std::io::Error| {
        Error::unavailable(format!("cannot rename {DATABASE} to {}: {error}", target.display()))
            .caused_by(error)
    };
    // Its log first, where there still is one: with the file it belongs to the new name.
    for name in DATABASE_FILES.iter().rev() {
        let own = data_dir.join(name);
        if own.exists() {
            let suffix = name.strip_prefix(DATABASE).unwrap_or_default();
            let mut renamed = target.clone().into_os_string();
            renamed.push(suffix);
            fs::rename(&own, PathBuf::from(renamed)).map_err(failed)?;
        }
    }
    File::open(data_dir).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(target)
}

/// Whether a data directory had a database that was moved elsewhere, and has no other.
pub fn is_moved(data_dir: &Path) -> bool {
    data_dir.join(MOVED).exists() && !data_dir.join(DATABASE).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_put_aside_whole_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let lock = DataLock::try_take(folder.path()).unwrap().unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        for (text, name) in [("one", MOVED), ("two", "angelia.db.migrated.2")] {
            fs::write(folder.path().join(DATABASE), text).unwrap();
            fs::write(folder.path().join(DATABASE_FILES[1]), "log").unwrap();
            assert!(!is_moved(folder.path()));
            assert_eq!(shelve(&lock).unwrap(), folder.path().join(name));
            assert!(is_moved(folder.path()));
            assert_eq!((read(name), read(&format!("{name}-wal"))), (text.to_owned(), "log".to_owned()));
        }
    }
}
