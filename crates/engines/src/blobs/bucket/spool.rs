//! An upload on its way to a bucket. Nobody knows how long it will be, and a bucket wants to know:
//! it takes an object of a known length, or parts of 5 MiB each. So the bytes, sealed already, go
//! into a file of this machine first and from there in one request. Neither needs memory, and what
//! is broken off was never in the bucket.
//!
//! The file has no name from the moment it is there: whatever becomes of the server, it leaves nothing.

use super::Bucket;
use crate::blobs::disk::Disk;
use crate::blobs::unfinished::{Unfinished, failed, if_there};
use angelia_core::error::Result;
use angelia_core::media::FileId;
use angelia_core::ports::{BlobWriter, BoxFuture};
use angelia_core::secret::hex;
use bytes::Bytes;
use futures_util::stream;
use reqwest::Body;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use tokio::fs;

/// Bytes sent at a time. The HTTP client holds up to sixteen such pieces for a slow server.
const PIECE: u64 = 8 * 1024;

/// An upload that is being written.
pub(super) struct Writer {
    bucket: Arc<Bucket>,
    blob: FileId,
    folder: Unfinished,
    file: Arc<File>,
    size: u64,
    hash: Sha256,
}

impl Writer {
    pub(super) async fn begin(bucket: Arc<Bucket>, folder: Unfinished, blob: FileId) -> Result<Self> {
        let (file, path) = folder.begin(&blob).await?;
        if_there(fs::remove_file(path).await).map_err(|e| failed("begin a file", e))?;
        Ok(Self { bucket, blob, folder, file, size: 0, hash: Sha256::new() })
    }
}

impl BlobWriter for Writer {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.size += bytes.len() as u64;
            let (mut hash, hashed) = (std::mem::take(&mut self.hash), bytes.clone());
            let hashing = self.folder.disk.work(move || {
                hash.update(&hashed);
                Ok(hash)
            });
            self.hash = hashing.await.map_err(|e| failed("write a file", e))?;
            self.folder.add(&self.file, bytes).await
        })
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let Self { bucket, blob, folder, file, size, hash } = *self;
            let body = Spooled { file, disk: folder.disk, size, hash: hex(&hash.finalize()) };
            bucket.put(&blob, &body).await
        })
    }
}

/// An upload that is whole, and can be sent as often as it takes.
#[derive(Debug)]
pub(super) struct Spooled {
    file: Arc<File>,
    disk: Disk,
    size: u64,
    hash: String,
}

impl Spooled {
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The SHA-256 of it.
    pub(super) fn hash(&self) -> &str {
        &self.hash
    }

    /// Its bytes, piece by piece, from the beginning.
    pub(super) fn stream(&self) -> Body {
        let (file, disk, size) = (self.file.clone(), self.disk.clone(), self.size);
        Body::wrap_stream(stream::try_unfold(0, move |at| {
            let (file, disk) = (file.clone(), disk.clone());
            async move {
                let wanted = PIECE.min(size - at);
                if wanted == 0 {
                    return Ok::<_, io::Error>(None);
                }
                let piece = disk.work(move || read(&file, at, wanted)).await?;
                Ok(Some((Bytes::from(piece), at + wanted)))
            }
        }))
    }
}

/// Reads a part of a file, wherever others read it meanwhile.
fn read(file: &File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut piece, at)?;
    Ok(piece)
}
