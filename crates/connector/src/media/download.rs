//! `GET /relay/media/{id}`: a gateway fetches a file that was meant for it, or a part of one.

use super::turns::{Turn, Who};
use super::work::Work;
use super::{Media, no_such_file};
use crate::admin::answer;
use angelia_core::error::{Error, Result};
use angelia_core::media::{
    Asked, BlobKey, FileId, Holder, KeptFile, MediaKind, MediaStore, SEALED_CHUNK_BYTES, Span, asked,
    content_range, disposition, shown_as, span,
};
use angelia_core::ports::BlobReader;
use angelia_core::seal;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, RANGE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::response::Builder;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use std::sync::Arc;

/// Nothing in a file runs or loads anything; a browser's own view of a picture or a film has a style.
const POLICY: &str =
    "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox";

pub(super) async fn download(
    State(media): State<Arc<Media>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    match give(&media, &id, &headers).await {
        Ok(response) => response,
        Err(error) => answer::<()>(StatusCode::OK, Err(error)),
    }
}

async fn give(media: &Media, id: &str, headers: &HeaderMap) -> Result<Response> {
    let record = media.gateway(headers)?;
    let id = FileId::parse(id).ok_or_else(no_such_file)?;
    let holder = Holder::Instance(record.instance);
    let file = media.ports.records.use_file(&id, &holder).await?.ok_or_else(no_such_file)?;
    serve(media, Who::Gateway, &file, headers).await
}

/// The answer with a file, or the part of it that was asked for.
pub(super) async fn serve(media: &Media, who: Who, file: &KeptFile, headers: &HeaderMap) -> Result<Response> {
    let range = headers.get(RANGE).and_then(|value| value.to_str().ok());
    let (status, first, last) = match asked(range, file.size) {
        Asked::Whole => (StatusCode::OK, 0, file.size.saturating_sub(1)),
        Asked::Part { first, last } => (StatusCode::PARTIAL_CONTENT, first, last),
        Asked::Unsatisfiable => return nothing_there(file.size),
    };
    let part = span(first, last, file.size).ok_or_else(no_such_file)?;
    let turn = media.turns.take_for(who, &file.tenant).await?;
    let opening = media.open(file, part, turn).await?;
    let mut answer = head(file).status(status).header(CONTENT_LENGTH, part.length);
    if status == StatusCode::PARTIAL_CONTENT {
        answer = answer.header(CONTENT_RANGE, content_range(first, last, file.size));
    }
    answer.body(opening.body()).map_err(Error::defect)
}

/// What is said with every file: that nobody runs it or keeps it for others. What is only decoded may be
/// looked at where it is, everything else is saved.
fn head(file: &KeptFile) -> Builder {
    let inline = shown_as(&file.media_type, false) != MediaKind::Document;
    Response::builder()
        .header(CONTENT_TYPE, &file.media_type)
        .header(CONTENT_DISPOSITION, disposition(&file.name, inline))
        .header(ACCEPT_RANGES, "bytes")
        .header(CACHE_CONTROL, "private, no-store")
        .header(X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(CONTENT_SECURITY_POLICY, POLICY)
}

fn nothing_there(size: u64) -> Result<Response> {
    let answer = Response::builder().status(StatusCode::RANGE_NOT_SATISFIABLE);
    answer.header(CONTENT_RANGE, format!("bytes */{size}")).body(Body::empty()).map_err(Error::defect)
}

impl Media {
    /// Begins to read a part of a file.
    pub(super) async fn open(&self, file: &KeptFile, part: Span, turn: Turn) -> Result<Opening> {
        let secret = self.keys.open(&file.sealed, &seal::blob_key(&file.tenant, file.blob.as_str()))?;
        let key = Arc::new(BlobKey::from_secret(file.blob.clone(), &secret)?);
        let reader = self.blobs.read(&file.blob, part.from, part.to).await?;
        let Some(reader) = reader else {
            tracing::error!(
                blob = %file.blob, tenant = %file.tenant,
                "the bytes of a file are gone; was media/ in the data directory, or the bucket of media.url, changed?"
            );
            return Err(no_such_file());
        };
        let Span { first_chunk: number, last_chunk, skip, length: left, .. } = part;
        let (work, ahead) = (self.work.clone(), Bytes::new());
        Ok(Opening { key, reader, work, number, last_chunk, skip, left, ahead, _turn: turn })
    }
}

/// A part of a file that is being read: at the most one chunk and the piece behind it are in memory.
pub(super) struct Opening {
    key: Arc<BlobKey>,
    reader: Box<dyn BlobReader>,
    work: Work,
    number: u64,
    last_chunk: u64,
    skip: usize,
    left: u64,
    /// Sealed bytes that were read and not opened yet.
    ahead: Bytes,
    _turn: Turn,
}

impl Opening {
    fn body(self) -> Body {
        Body::from_stream(stream::try_unfold(self, |mut opening| async move {
            let next =
                opening.next().await.inspect_err(|error| tracing::error!(%error, "a file broke off"))?;
            Ok::<_, Error>(next.map(|bytes| (bytes, opening)))
        }))
    }

    /// The next bytes that were asked for.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut chunk = self.sealed_chunk().await?;
        let (key, number, is_last) = (self.key.clone(), self.number, self.number == self.last_chunk);
        let opening =
            self.work.on(chunk.len(), move || key.open(number, is_last, &mut chunk).map(|()| chunk));
        let chunk = opening.await??;
        self.number += 1;
        let mut bytes = Bytes::from(chunk).split_off(std::mem::take(&mut self.skip));
        bytes.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= bytes.len() as u64;
        Ok(Some(bytes))
    }

    /// The next chunk as it rests; shorter only at the end. A piece that is one is not copied, and none
    /// takes more than it has bytes.
    async fn sealed_chunk(&mut self) -> Result<Vec<u8>> {
        let mut chunk = Vec::new();
        loop {
            if chunk.is_empty() && self.ahead.len() == SEALED_CHUNK_BYTES {
                return Ok(std::mem::take(&mut self.ahead).into());
            }
            let some = self.ahead.len().min(SEALED_CHUNK_BYTES - chunk.len());
            if chunk.is_empty() && some > 0 {
                chunk.reserve_exact(SEALED_CHUNK_BYTES);
            }
            chunk.extend_from_slice(&self.ahead.split_to(some));
            if chunk.len() == SEALED_CHUNK_BYTES {
                return Ok(chunk);
            }
            match self.reader.next().await? {
                Some(piece) => self.ahead = piece,
                None => return Ok(chunk),
            }
        }
    }
}
