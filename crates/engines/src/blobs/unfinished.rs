//! Uploads that are not finished, on this machine's disk: where they are, what they leave free,
//! and how what is left of them goes.

use super::disk::Disk;
use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Result};
use angelia_core::media::FileId;
use bytes::Bytes;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::fs;

/// Where they are, below the folder of files. No blob's folder is called that.
const UNFINISHED: &str = "unfinished";
/// Who may look into a folder of files.
pub(super) const OWNER_ONLY: u32 = 0o700;
/// Files leave so much of a disk to the database beside them, of a small one an eighth.
const LEFT_FREE: u64 = 1024 * 1024 * 1024;

/// The folder of uploads that are not finished.
#[derive(Clone, Debug)]
pub(super) struct Unfinished {
    path: PathBuf,
    pub(super) disk: Disk,
}

impl Unfinished {
    /// The one below `folder`. Both are made if they are not there, for their owner only.
    pub(super) async fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(UNFINISHED);
        let mut maker = fs::DirBuilder::new();
        let made = maker.recursive(true).mode(OWNER_ONLY).create(&path).await;
        made.map_err(|e| failed("make the folder of files", e))?;
        Ok(Self { path, disk: Disk::default() })
    }

    /// Begins one: its file, and where that is.
    pub(super) async fn begin(&self, blob: &FileId) -> Result<(Arc<File>, PathBuf)> {
        self.check_room()?;
        let path = self.path.join(blob.as_str());
        let place = path.clone();
        let begun =
            self.disk.work(move || File::options().read(true).write(true).create_new(true).open(place)).await;
        Ok((Arc::new(begun.map_err(|e| failed("begin a file", e))?), path))
    }

    /// Adds bytes to one, if the disk has room for them. Asked for each piece: many come at once.
    pub(super) async fn add(&self, file: &Arc<File>, bytes: Bytes) -> Result<()> {
        let (folder, file) = (self.clone(), file.clone());
        let added = self.disk.work(move || {
            Ok(match folder.check_room() {
                Ok(()) => (&*file).write_all(&bytes).map_err(|e| failed("write a file", e)),
                refused => refused,
            })
        });
        added.await.map_err(|e| failed("write a file", e))?
    }

    /// Refuses when the disk has no more room for files.
    fn check_room(&self) -> Result<()> {
        let disk = rustix::fs::statvfs(&self.path).map_err(|e| failed("look at the disk", e.into()))?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        if is_short(bytes(disk.f_bavail), bytes(disk.f_blocks)) {
            let why = "the disk has no room for files; what is left is for the database: free some space";
            return Err(Error::unavailable(why));
        }
        Ok(())
    }

    /// Throws away what began before `then`; answers how many that were.
    pub(super) async fn sweep(&self, then: UnixMillis) -> Result<u64> {
        let failed = |error| failed("throw unfinished files away", error);
        let mut swept = 0;
        for (path, at) in names(&self.path).await.map_err(failed)? {
            if at < then && if_there(fs::remove_file(path).await).map_err(failed)?.is_some() {
                swept += 1;
            }
        }
        Ok(swept)
    }
}

/// Whether what is free of a disk is the database's.
fn is_short(free: u64, total: u64) -> bool {
    free < LEFT_FREE.min(total / 8)
}

/// What is told of a disk.
pub(super) fn failed(what: &str, error: io::Error) -> Error {
    let next = match error.kind() {
        ErrorKind::StorageFull => "; the disk is full: free some space",
        ErrorKind::PermissionDenied => "; see who owns media/ in the data directory",
        _ => "",
    };
    Error::unavailable(format!("could not {what}: {error}{next}")).caused_by(error)
}

/// Nothing, where there was nothing.
pub(super) fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is in a folder, and since when; what goes meanwhile is passed over.
pub(super) async fn names(folder: &Path) -> io::Result<Vec<(PathBuf, UnixMillis)>> {
    let mut entries = fs::read_dir(folder).await?;
    let mut found = Vec::new();
    while let Some(entry) = entries.next_entry().await? {
        if let Some(facts) = if_there(entry.metadata().await)?.filter(std::fs::Metadata::is_file) {
            found.push((entry.path(), millis(facts.modified()?)));
        }
    }
    Ok(found)
}

fn millis(at: SystemTime) -> UnixMillis {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_leave_room_for_the_database() {
        const MIB: u64 = 1024 * 1024;
        assert!(is_short(LEFT_FREE - 1, 500 * LEFT_FREE) && !is_short(LEFT_FREE, 500 * LEFT_FREE));
        assert!(is_short(7 * MIB, 64 * MIB) && !is_short(8 * MIB, 64 * MIB), "a small disk");
    }
}
