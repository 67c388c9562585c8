//! Blobs as files of a folder. One is written beside the others and moved to its place when it is
//! whole and on the disk, so that a name never leads to half of it.
//!
//! ```text
//! media/ab/abcdef…        a blob; folders by the first two characters of the name
//! media/unfinished/abcd…  one that is being written
//! ```

use super::unfinished::{OWNER_ONLY, Unfinished, failed, if_there, names};
use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Result};
use angelia_core::media::FileId;
use angelia_core::ports::{BlobReader, BlobWriter, Blobs, BoxFuture, Listing};
use bytes::Bytes;
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use tokio::fs::{self, File};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

/// Bytes read at a time.
const PIECE: usize = 64 * 1024;

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
async fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder).await?.sync_all().await
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
    file: File,
    folder: Unfinished,
    path: NotInPlace,
    place: PathBuf,
}

impl Writer {
    async fn put_in_place(mut self) -> io::Result<()> {
        self.file.flush().await?;
        self.file.sync_all().await?;
        if let Some(folder) = self.place.parent() {
            let is_new = fs::DirBuilder::new().mode(OWNER_ONLY).create(folder).await.is_ok();
            fs::rename(&self.path.0, &self.place).await?;
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
            self.folder.check_room()?;
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
