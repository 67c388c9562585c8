//! Where the bytes of files rest, already sealed: a folder, or a bucket.

use super::BoxFuture;
use crate::clock::UnixMillis;
use crate::error::Result;
use crate::media::FileId;
use bytes::Bytes;

/// Objects by name. What they hold is sealed, and of no interest here.
pub trait Blobs: Send + Sync {
    /// Begins an object. Nobody sees it before it is finished.
    fn create(&self, blob: &FileId) -> BoxFuture<'_, Result<Box<dyn BlobWriter>>>;

    /// The bytes of an object from `from` up to `to`; `None` if there is no such object.
    fn read(&self, blob: &FileId, from: u64, to: u64) -> BoxFuture<'_, Result<Option<Box<dyn BlobReader>>>>;

    /// An object is gone; so is one that never was.
    fn remove(&self, blob: &FileId) -> BoxFuture<'_, Result<()>>;

    /// Objects after a name, in the order of names, at most `limit`.
    fn list(&self, after: Option<&FileId>, limit: usize) -> BoxFuture<'_, Result<Vec<Listing>>>;

    /// Throws away what is left of uploads that began before `then` and were never finished.
    fn sweep(&self, then: UnixMillis) -> BoxFuture<'_, Result<u64>>;
}

/// An object that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Its name.
    pub blob: FileId,
    /// When it was finished.
    pub at: UnixMillis,
}

/// An object in the making. Dropped before it is finished it was never there.
pub trait BlobWriter: Send {
    /// Adds bytes.
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>>;

    /// The object is whole: durable, and there for everybody, when this resolves.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
}

/// A part of an object, piece by piece.
pub trait BlobReader: Send {
    /// The next bytes, at most 128 KiB of them; `None` at the end. An object that is shorter than what
    /// was asked for is an error.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>>>;
}
