//! Blobs as files of a folder. One is written beside the others and moved to its place when it is
//! whole and on the disk, so that a name never leads to half of it.
//!
//! ```text
//! media/ab/abcdef…        a blob; folders by the first two characters of the name
//! media/unfinished/abcd…  one that is being written
//! ```

use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Result};
use angelia_core::media::FileId;
use angelia_core::ports::{BlobReader, BlobWriter, Blobs, BoxFuture, Listing};
use bytes::Bytes;
use std::io::{self, ErrorKind, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::fs::{self, File};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

/// Bytes read at a time.
const PIECE: usize = 64 * 1024;
/// Where blobs are that are being written. No blob's folder is called that.
const UNFINISHED: &str = "unfinished";

/// Who may look into the folder.
const OWNER_ONLY: u32 = 0o700;

/// Files leave so much of a disk to the database beside them, of a small one an eighth.
const LEFT_FREE: u64 = 1024 * 1024 * 1024;

/// Blobs in a folder, which one server has for itself.
#[derive(Clone, Debug)]
pub struct FolderBlobs {
    folder: PathBuf,
}

impl FolderBlobs {
    /// Blobs below `folder`, which is made if it is not there, for its owner only.
    pub async fn open(folder: PathBuf) -> Result<Self> {
        let mut maker = fs::DirBuilder::new();
        let made = maker.recursive(true).mode(OWNER_ONLY).create(folder.join(UNFINISHED)).await;
        made.map_err(|e| failed("make the folder of files", e))?;
        Ok(Self { folder })
    }

    fn path(&self, blob: &FileId) -> PathBuf {
        self.folder.join(&blob.as_str()[..2]).join(blob.as_str())
    }
}

/// Whether what is free of a disk is the database's.
fn is_short(free: u64, total: u64) -> bool {
    free < LEFT_FREE.min(total / 8)
}

/// Refuses when the disk has no more room for files. Asked for each piece: many come at once.
fn check_room(path: &Path) -> Result<()> {
    let disk = rustix::fs::statvfs(path).map_err(|e| failed("look at the disk", e.into()))?;
    let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
    if is_short(bytes(disk.f_bavail), bytes(disk.f_blocks)) {
        let why = "the disk has no room for files; what is left is for the database: free some space";
        return Err(Error::unavailable(why));
    }
    Ok(())
}

fn failed(what: &str, error: io::Error) -> Error {
    let next = match error.kind() {
        ErrorKind::StorageFull => "; the disk is full: free some space",
        ErrorKind::PermissionDenied => "; see who owns media/ in the data directory",
        _ => "",
    };
    Error::unavailable(format!("could not {what}: {error}{next}")).caused_by(error)
}

/// Nothing, where there was nothing.
fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Has a folder remember the names in it.
async fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder).await?.sync_all().await
}

fn millis(at: SystemTime) -> UnixMillis {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl Blobs for FolderBlobs {
    fn create(&self, blob: &FileId) -> BoxFuture<'_, Result<Box<dyn BlobWriter>>> {
        let (path, place) = (self.folder.join(UNFINISHED).join(blob.as_str()), self.path(blob));
        Box::pin(async move {
            check_room(&self.folder)?;
            let file = File::create_new(&path).await.map_err(|e| failed("begin a file", e))?;
            Ok(Box::new(Writer { file, unfinished: Unfinished(path), place }) as Box<dyn BlobWriter>)
        })
    }

    fn read(&self, blob: &FileId, from: u64, to: u64) -> BoxFuture<'_, Result<Option<Box<dyn BlobReader>>>> {
        let path = self.path(blob);
        Box::pin(async move {
            let failed = |error| failed("read a file", error);
            let Some(mut file) = if_there(File::open(&path).await).map_err(failed)? else { return Ok(None) };
            file.seek(SeekFrom::Start(from)).await.map_err(failed)?;
            let reader = Reader { file, left: to.saturating_sub(from) };
            Ok(Some(Box::new(reader) as Box<dyn BlobReader>))
        })
    }

    fn remove(&self, blob: &FileId) -> BoxFuture<'_, Result<()>> {
        let path = self.path(blob);
        Box::pin(async move {
            let removed = if_there(fs::remove_file(path).await);
            removed.map(drop).map_err(|e| failed("remove a file", e))
        })
    }

    fn list(&self, after: Option<&FileId>, limit: usize) -> BoxFuture<'_, Result<Vec<Listing>>> {
        let after = after.map(|blob| blob.as_str().to_owned()).unwrap_or_default();
        Box::pin(async move { self.list_after(&after, limit).await.map_err(|e| failed("list files", e)) })
    }

    fn sweep(&self, then: UnixMillis) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async move {
            let failed = |error| failed("throw unfinished files away", error);
            let mut swept = 0;
            for (path, at) in names(&self.folder.join(UNFINISHED)).await.map_err(failed)? {
                if at < then && if_there(fs::remove_file(path).await).map_err(failed)?.is_some() {
                    swept += 1;
                }
            }
            Ok(swept)
        })
    }
}

impl FolderBlobs {
    async fn list_after(&self, after: &str, limit: usize) -> io::Result<Vec<Listing>> {
        let mut folders = folders(&self.folder).await?;
        folders.retain(|name| name.as_str() >= after.get(..2).unwrap_or_default());
        let mut found = Vec::new();
        for folder in folders {
            let mut blobs: Vec<Listing> = names(&self.folder.join(folder))
                .await?
                .into_iter()
                .filter_map(|(path, at)| {
                    Some(Listing { blob: FileId::parse(path.file_name()?.to_str()?)?, at })
                })
                .filter(|listing| listing.blob.as_str() > after)
                .collect();
            blobs.sort_by(|one, other| one.blob.cmp(&other.blob));
            found.extend(blobs);
            if found.len() >= limit {
                found.truncate(limit);
                break;
            }
        }
        Ok(found)
    }
}

/// The folders of blobs, in order.
async fn folders(folder: &Path) -> io::Result<Vec<String>> {
    let mut entries = fs::read_dir(folder).await?;
    let mut names = Vec::new();
    while let Some(entry) = entries.next_entry().await? {
        names.extend(entry.file_name().into_string().ok().filter(|name| name.len() == 2));
    }
    names.sort_unstable();
    Ok(names)
}

/// What is in a folder, and since when; what goes meanwhile is passed over.
async fn names(folder: &Path) -> io::Result<Vec<(PathBuf, UnixMillis)>> {
    let mut entries = fs::read_dir(folder).await?;
    let mut found = Vec::new();
    while let Some(entry) = entries.next_entry().await? {
        if let Some(facts) = if_there(entry.metadata().await)?.filter(std::fs::Metadata::is_file) {
            found.push((entry.path(), millis(facts.modified()?)));
        }
    }
    Ok(found)
}

/// A path that is removed with this, unless it was moved to its place.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

struct Writer {
    file: File,
    unfinished: Unfinished,
    place: PathBuf,
}

impl Writer {
    async fn put_in_place(mut self) -> io::Result<()> {
        self.file.flush().await?;
        self.file.sync_all().await?;
        if let Some(folder) = self.place.parent() {
            let is_new = fs::DirBuilder::new().mode(OWNER_ONLY).create(folder).await.is_ok();
            fs::rename(&self.unfinished.0, &self.place).await?;
            sync_folder(folder).await?;
            if let Some(above) = folder.parent().filter(|_| is_new) {
                sync_folder(above).await?;
            }
        }
        Ok(())
    }
}

impl BlobWriter for Writer {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            check_room(&self.unfinished.0)?;
            self.file.write_all(&bytes).await.map_err(|e| failed("write a file", e))
        })
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move { self.put_in_place().await.map_err(|e| failed("keep a file", e)) })
    }
}

struct Reader {
    file: File,
    left: u64,
}

impl BlobReader for Reader {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>>> {
        Box::pin(async move {
            let wanted = usize::try_from(self.left).unwrap_or(PIECE).min(PIECE);
            if wanted == 0 {
                return Ok(None);
            }
            let mut piece = vec![0; wanted];
            let read = self.file.read(&mut piece).await.map_err(|e| failed("read a file", e))?;
            if read == 0 {
                return Err(Error::internal("a stored file is shorter than it was"));
            }
            piece.truncate(read);
            self.left -= read as u64;
            Ok(Some(piece.into()))
        })
    }
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
