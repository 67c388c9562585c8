//! Blobs as files of a folder. One is written beside the others and moved to its place when it is
//! whole and on the disk, so that a name never leads to half of it.
//!
//! ```text
//! media/ab/abcdef…        a blob; folders by the first two characters of the name
//! media/unfinished/abcd…  one that is being written
//! ```

use super::disk::Disk;
use super::unfinished::{OWNER_ONLY, Unfinished, failed, if_there, names};
use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Result};
use angelia_core::media::{FileId, SEALED_CHUNK_BYTES};
use angelia_core::ports::{BlobReader, BlobWriter, Blobs, BoxFuture, Listing};
use bytes::Bytes;
use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::fs;

/// Bytes read at a time: as many as are opened together, so that nobody has to put pieces together.
const PIECE: usize = SEALED_CHUNK_BYTES;

/// Blobs in a folder, which one server has for itself.
#[derive(Clone, Debug)]
pub struct FolderBlobs {
    folder: PathBuf,
    unfinished: Unfinished,
}

impl FolderBlobs {
    /// Blobs below `folder`, which is made if it is not there, for its owner only.
    pub async fn open(folder: PathBuf) -> Result<Self> {
        let unfinished = Unfinished::open(&folder).await?;
        Ok(Self { folder, unfinished })
    }

    fn path(&self, blob: &FileId) -> PathBuf {
        self.folder.join(&blob.as_str()[..2]).join(blob.as_str())
    }
}

/// Has a folder remember the names in it.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

impl Blobs for FolderBlobs {
    fn create(&self, blob: &FileId) -> BoxFuture<'_, Result<Box<dyn BlobWriter>>> {
        let (blob, place) = (blob.clone(), self.path(blob));
        Box::pin(async move {
            let (file, path) = self.unfinished.begin(&blob).await?;
            let writer = Writer { file, folder: self.unfinished.clone(), path: NotInPlace(path), place };
            Ok(Box::new(writer) as Box<dyn BlobWriter>)
        })
    }

    fn read(&self, blob: &FileId, from: u64, to: u64) -> BoxFuture<'_, Result<Option<Box<dyn BlobReader>>>> {
        let path = self.path(blob);
        Box::pin(async move {
            let disk = self.unfinished.disk.clone();
            let file = disk.work(move || if_there(File::open(&path))).await;
            let Some(file) = file.map_err(|e| failed("read a file", e))? else { return Ok(None) };
            let reader = Reader { file: Arc::new(file), disk, at: from, to };
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
        Box::pin(self.unfinished.sweep(then))
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

/// A path that is removed with this, unless it was moved to its place.
struct NotInPlace(PathBuf);

impl Drop for NotInPlace {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

struct Writer {
    file: Arc<File>,
    folder: Unfinished,
    path: NotInPlace,
    place: PathBuf,
}

impl Writer {
    /// In two steps: whoever gives up during the first, the long one, leaves nothing.
    async fn put_in_place(self) -> io::Result<()> {
        let Self { file, folder, path, place } = self;
        folder.disk.sync(move || file.sync_all()).await?;
        let from = path.0.clone();
        folder.disk.sync(move || move_to(&from, &place)).await
    }
}

/// Gives a file its name, for good.
fn move_to(from: &Path, place: &Path) -> io::Result<()> {
    let Some(folder) = place.parent() else { return Err(ErrorKind::InvalidInput.into()) };
    let is_new = DirBuilder::new().mode(OWNER_ONLY).create(folder).is_ok();
    std::fs::rename(from, place)?;
    sync_folder(folder)?;
    if let Some(above) = folder.parent().filter(|_| is_new) {
        sync_folder(above)?;
    }
    Ok(())
}

impl BlobWriter for Writer {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.folder.add(&self.file, bytes))
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move { self.put_in_place().await.map_err(|e| failed("keep a file", e)) })
    }
}

struct Reader {
    file: Arc<File>,
    disk: Disk,
    at: u64,
    to: u64,
}

impl BlobReader for Reader {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>>> {
        Box::pin(async move {
            let (file, at) = (self.file.clone(), self.at);
            let wanted = usize::try_from(self.to.saturating_sub(at)).unwrap_or(PIECE).min(PIECE);
            if wanted == 0 {
                return Ok(None);
            }
            let read = self.disk.work(move || {
                let mut piece = vec![0; wanted];
                file.read_exact_at(&mut piece, at).map(|()| piece)
            });
            let piece = read.await.map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => Error::internal("a stored file is shorter than it was"),
                _ => failed("read a file", error),
            })?;
            self.at += piece.len() as u64;
            Ok(Some(piece.into()))
        })
    }
}
