//! Blobs in memory, for tests of what uses them.

use angelia_core::clock::{self, UnixMillis};
use angelia_core::error::{Error, Result};
use angelia_core::media::FileId;
use angelia_core::ports::{BlobReader, BlobWriter, Blobs, BoxFuture, Listing};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

type Objects = Arc<Mutex<BTreeMap<FileId, (Bytes, UnixMillis)>>>;

/// Blobs that go with the process.
#[derive(Clone, Debug, Default)]
pub struct MemoryBlobs(Objects);

impl Blobs for MemoryBlobs {
    fn create(&self, blob: &FileId) -> BoxFuture<'_, Result<Box<dyn BlobWriter>>> {
        let writer = Writer { objects: self.0.clone(), blob: blob.clone(), bytes: Vec::new() };
        Box::pin(async move { Ok(Box::new(writer) as Box<dyn BlobWriter>) })
    }

    fn read(&self, blob: &FileId, from: u64, to: u64) -> BoxFuture<'_, Result<Option<Box<dyn BlobReader>>>> {
        let found = self.0.lock().get(blob).map(|(bytes, _)| bytes.clone());
        Box::pin(async move {
            let Some(bytes) = found else { return Ok(None) };
            let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
            if at(to) > bytes.len() {
                return Err(Error::internal("a stored file is shorter than it was"));
            }
            Ok(Some(Box::new(Reader(bytes.slice(at(from)..at(to)))) as Box<dyn BlobReader>))
        })
    }

    fn remove(&self, blob: &FileId) -> BoxFuture<'_, Result<()>> {
        self.0.lock().remove(blob);
        Box::pin(async { Ok(()) })
    }

    fn list(&self, after: Option<&FileId>, limit: usize) -> BoxFuture<'_, Result<Vec<Listing>>> {
        let objects = self.0.lock();
        let later = objects.iter().filter(|(blob, _)| after.is_none_or(|after| *blob > after));
        let some = later.take(limit).map(|(blob, (_, at))| Listing { blob: blob.clone(), at: *at }).collect();
        Box::pin(async move { Ok(some) })
    }

    fn sweep(&self, _then: UnixMillis) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async { Ok(0) })
    }
}

struct Writer {
    objects: Objects,
    blob: FileId,
    bytes: Vec<u8>,
}

impl BlobWriter for Writer {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        self.bytes.extend_from_slice(&bytes);
        Box::pin(async { Ok(()) })
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        let Self { objects, blob, bytes } = *self;
        objects.lock().insert(blob, (bytes.into(), clock::wall()));
        Box::pin(async { Ok(()) })
    }
}

/// Bytes given at a time.
const PIECE: usize = 64 * 1024;

struct Reader(Bytes);

impl BlobReader for Reader {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>>> {
        let piece = self.0.split_to(self.0.len().min(PIECE));
        Box::pin(async move { Ok((!piece.is_empty()).then_some(piece)) })
    }
}
