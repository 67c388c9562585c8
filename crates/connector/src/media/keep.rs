//! Taking a file in: sealed chunk by chunk as it comes, then written down. What is broken off leaves
//! nothing: an object that is not finished is none.

use super::Media;
use super::turns::Who;
use super::work::Work;
use angelia_core::connections::time_for;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::fail;
use angelia_core::inbox::InstanceId;
use angelia_core::media::{
    BlobKey, CHUNK_BYTES, FILE_BYTES, FileId, Holder, KEPT_FOR, MediaStore, NewFile, SEALED_CHUNK_BYTES,
    SNIFF_BYTES, TENANT_FILES, media_type, safe_name,
};
use angelia_core::ports::BlobWriter;
use angelia_core::seal;
use angelia_core::secret::hex;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// A sender who sends nothing for so long has gone, or is no use.
const QUIET: Duration = Duration::from_secs(30);

/// What a sender says of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    /// How it is to be referred to, where that is known before.
    pub(super) file: Option<FileId>,
    pub(super) name: String,
    pub(super) media_type: Option<String>,
}

/// For whom a file is, and how much of it may be kept, for how long.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// Who sends it.
    pub(super) who: Who,
    pub(super) holder: Holder,
    /// The most that the tenant may have with it: so many files,
    pub(super) tenant_files: u64,
    /// and so many bytes.
    pub(super) tenant_bytes: u64,
    pub(super) kept_for: Duration,
}

/// A file that was taken in.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) file: FileId,
    pub(super) size: u64,
    pub(super) name: String,
    pub(super) media_type: String,
}

impl Media {
    /// The terms of what an instance's agent sends and gets.
    pub(super) fn for_instance(&self, instance: InstanceId) -> Terms {
        let holder = Holder::Instance(instance);
        Terms {
            who: Who::Gateway,
            holder,
            tenant_files: TENANT_FILES,
            tenant_bytes: self.tenant_bytes,
            kept_for: KEPT_FOR,
        }
    }

    /// Keeps what comes as a file of `tenant`.
    pub(super) async fn keep(
        &self,
        tenant: &str,
        terms: Terms,
        claims: Claims,
        body: impl Stream<Item = Result<Bytes>>,
    ) -> Result<Taken> {
        let _turn = self.turns.take_for(terms.who, tenant).await?;
        let blob = FileId::mint();
        let key = Arc::new(BlobKey::mint(blob.clone()));
        let writer = self.blobs.create(&blob).await?;
        let mut intake = Intake::new(tenant, key.clone(), writer, self.work.clone());
        let (mut body, began) = (pin!(body), Instant::now());
        while let Some(piece) = next(&mut body, began + time_for(intake.size)).await? {
            intake.take(piece).await?;
        }
        let Whole { size, hash, head } = intake.finish(claims.file.is_some()).await?;
        fail::point("file_written");
        let sealed = self.keys.seal(&key.to_secret(), &seal::blob_key(tenant, blob.as_str()))?;
        let media_type = media_type(claims.media_type.as_deref(), &claims.name, &head);
        let name = safe_name(&claims.name, &media_type);
        let new = NewFile {
            file: claims.file.unwrap_or_else(FileId::mint),
            tenant: tenant.to_owned(),
            holder: terms.holder,
            blob: blob.clone(),
            sealed: sealed.to_vec(),
            hash,
            size,
            name: name.clone(),
            media_type: media_type.clone(),
            tenant_files: terms.tenant_files,
            tenant_bytes: terms.tenant_bytes,
            kept_for: terms.kept_for,
        };
        let stored = self.ports.records.keep_file(new).await;
        if stored.as_ref().map_or(true, |stored| stored.known) {
            // If that fails, upkeep finds it.
            let _ = self.blobs.remove(&blob).await;
        }
        Ok(Taken { file: stored?.file, size, name, media_type })
    }
}

/// The next bytes, if they come soon, and all of it at a pace that lets others have their turn.
async fn next(
    body: &mut (impl Stream<Item = Result<Bytes>> + Unpin),
    until: Instant,
) -> Result<Option<Bytes>> {
    let piece = timeout_at(until.min(Instant::now() + QUIET), body.next()).await;
    piece.map_err(|_| Error::invalid("the file did not come to its end; send it again"))?.transpose()
}

/// A file on its way in: at the most one chunk of it is in memory, and the piece that just came.
struct Intake {
    key: Arc<BlobKey>,
    writer: Box<dyn BlobWriter>,
    work: Work,
    hash: Sha256,
    head: Vec<u8>,
    /// What is not sealed yet. A full chunk waits here until it is known whether it is the last.
    chunk: Vec<u8>,
    sealed: u64,
    size: u64,
}

/// What is known of a file once it is whole.
struct Whole {
    size: u64,
    hash: String,
    head: Vec<u8>,
}

impl Intake {
    /// The same bytes of two tenants have nothing in common, not even what they are found by.
    fn new(tenant: &str, key: Arc<BlobKey>, writer: Box<dyn BlobWriter>, work: Work) -> Self {
        let hash = Sha256::new_with_prefix(tenant).chain_update([0]);
        let (head, chunk) = (Vec::new(), Vec::with_capacity(SEALED_CHUNK_BYTES));
        Self { key, writer, work, hash, head, chunk, sealed: 0, size: 0 }
    }

    async fn take(&mut self, mut piece: Bytes) -> Result<()> {
        self.size += piece.len() as u64;
        if self.size > FILE_BYTES {
            return Err(too_large());
        }
        let wanted = SNIFF_BYTES.saturating_sub(self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..wanted]);
        while !piece.is_empty() {
            if self.chunk.len() == CHUNK_BYTES {
                self.seal(false).await?;
                self.chunk.reserve_exact(SEALED_CHUNK_BYTES);
            }
            let fits = (CHUNK_BYTES - self.chunk.len()).min(piece.len());
            self.chunk.extend_from_slice(&piece.split_to(fits));
        }
        Ok(())
    }

    async fn seal(&mut self, is_last: bool) -> Result<()> {
        let (key, number, mut chunk) = (self.key.clone(), self.sealed, std::mem::take(&mut self.chunk));
        let mut hash = self.hash.clone();
        let sealing = self.work.on(chunk.len(), move || {
            hash.update(&chunk);
            key.seal(number, is_last, &mut chunk).map(|()| (hash, chunk))
        });
        let (hash, chunk) = sealing.await??;
        self.hash = hash;
        self.sealed += 1;
        self.writer.write(chunk.into()).await
    }

    /// The end of the file; `brought` if it came from elsewhere, and nobody waits who could send it again.
    async fn finish(mut self, brought: bool) -> Result<Whole> {
        if self.size == 0 {
            let why =
                if brought { "the file is empty" } else { "the file is empty; send its bytes as the body" };
            return Err(Error::invalid(why));
        }
        self.seal(true).await?;
        self.writer.finish().await?;
        Ok(Whole { size: self.size, hash: hex(&self.hash.finalize()), head: self.head })
    }
}

/// What is said of a file that is too large.
pub(super) fn too_large() -> Error {
    let most = FILE_BYTES / (1024 * 1024);
    Error::new(Kind::TooLarge, format!("files have {most} MiB at the most"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::connections::{SLOW_START, SLOWEST};
    use futures_util::stream;
    use tokio::time::sleep;

    /// Takes what comes `size` bytes at a time, one piece in so long; how long that went on, and what came.
    async fn take(size: usize, pause: Duration) -> (Duration, u64) {
        let body = stream::unfold((), |()| async move {
            sleep(pause).await;
            Some((Ok(Bytes::from(vec![7; size])), ()))
        });
        let (mut body, began, mut come) = (pin!(body), Instant::now(), 0);
        while come < FILE_BYTES {
            match next(&mut body, began + time_for(come)).await {
                Ok(piece) => come += piece.map_or(0, |piece| piece.len() as u64),
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Invalid);
                    break;
                }
            }
        }
        (began.elapsed(), come)
    }

    #[tokio::test(start_paused = true)]
    async fn who_sends_too_slowly_or_not_at_all_keeps_nobody_waiting() {
        let second = Duration::from_secs(1);
        let (took, _) = take(1, QUIET - second).await;
        assert!(took < SLOW_START + second, "a byte now and then: {took:?}");
        let (took, come) = take(16 * 1024, second).await;
        assert!(took < SLOW_START * 2 + second, "at half the pace: {took:?}, {come} bytes");
        assert_eq!(take(1, QUIET * 2).await, (QUIET, 0));
        let (_, come) = take(usize::try_from(SLOWEST).unwrap(), second).await;
        assert_eq!(come, FILE_BYTES, "slow, and still in time");
    }
}
