//! Taking a file in: sealed chunk by chunk as it comes, then written down. What is broken off leaves
//! nothing: an object that is not finished is none.

use super::Media;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::fail;
use angelia_core::inbox::InstanceId;
use angelia_core::media::{
    BlobKey, CHUNK_BYTES, FILE_BYTES, FileId, Holder, KEPT_FOR, MediaStore, NewFile, SNIFF_BYTES,
    TENANT_FILES, media_type, safe_name,
};
use angelia_core::ports::BlobWriter;
use angelia_core::seal;
use angelia_core::secret::hex;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use sha2::{Digest, Sha256};
use std::pin::pin;
use std::time::Duration;

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
        Terms { holder, tenant_files: TENANT_FILES, tenant_bytes: self.tenant_bytes, kept_for: KEPT_FOR }
    }

    /// Keeps what comes as a file of `tenant`.
    pub(super) async fn keep(
        &self,
        tenant: &str,
        terms: Terms,
        claims: Claims,
        body: impl Stream<Item = Result<Bytes>>,
    ) -> Result<Taken> {
        let _turn = self.turns.take(tenant).await?;
        let blob = FileId::mint();
        let key = BlobKey::mint(blob.clone());
        let mut intake = Intake::new(tenant, &key, self.blobs.create(&blob).await?);
        let mut body = pin!(body);
        while let Some(piece) = next(&mut body).await? {
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

async fn next(body: &mut (impl Stream<Item = Result<Bytes>> + Unpin)) -> Result<Option<Bytes>> {
    let piece = tokio::time::timeout(QUIET, body.next()).await;
    piece.map_err(|_| Error::invalid("the file did not come to its end; send it again"))?.transpose()
}

/// A file on its way in: at the most one chunk of it is in memory, and the piece that just came.
struct Intake<'a> {
    key: &'a BlobKey,
    writer: Box<dyn BlobWriter>,
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

impl<'a> Intake<'a> {
    /// The same bytes of two tenants have nothing in common, not even what they are found by.
    fn new(tenant: &str, key: &'a BlobKey, writer: Box<dyn BlobWriter>) -> Self {
        let hash = Sha256::new_with_prefix(tenant).chain_update([0]);
        Self { key, writer, hash, head: Vec::new(), chunk: Vec::new(), sealed: 0, size: 0 }
    }

    async fn take(&mut self, mut piece: Bytes) -> Result<()> {
        self.size += piece.len() as u64;
        if self.size > FILE_BYTES {
            return Err(too_large());
        }
        self.hash.update(&piece);
        let wanted = SNIFF_BYTES.saturating_sub(self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..wanted]);
        while !piece.is_empty() {
            if self.chunk.len() == CHUNK_BYTES {
                self.seal(false).await?;
            }
            let fits = (CHUNK_BYTES - self.chunk.len()).min(piece.len());
            self.chunk.extend_from_slice(&piece.split_to(fits));
        }
        Ok(())
    }

    async fn seal(&mut self, is_last: bool) -> Result<()> {
        let mut chunk = std::mem::take(&mut self.chunk);
        self.key.seal(self.sealed, is_last, &mut chunk)?;
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
