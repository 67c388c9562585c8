//! What a platform needs of whoever keeps files if it is itself the provider: the web chat, whose people
//! upload files here and read them from here.

use angelia_core::error::Result;
use angelia_core::media::{FileId, Holder};
use angelia_core::store::BoxFuture;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::BoxStream;

/// A file that somebody sends, as it comes.
pub struct Uploaded {
    /// Whose it will be.
    pub tenant: String,
    /// Who may ask for it.
    pub holder: Holder,
    /// Whether nobody invited its sender: a tenant's room for files is not theirs to fill.
    pub visiting: bool,
    /// What its sender calls it.
    pub name: String,
    /// What its sender says it is.
    pub media_type: Option<String>,
    /// Its bytes.
    pub bytes: BoxStream<'static, Result<Bytes>>,
}

/// A file that is kept.
#[derive(Clone, Debug)]
pub struct Kept {
    /// How it is referred to.
    pub file: FileId,
    /// What it is called.
    pub name: String,
    /// What it is, by its bytes.
    pub media_type: String,
    /// How many there are.
    pub size: u64,
}

/// Keeps files, and gives them back.
pub trait FileKeeper: Send + Sync {
    /// Takes a file in to its end. What breaks off leaves nothing.
    fn keep(&self, uploaded: Uploaded) -> BoxFuture<'_, Result<Kept>>;

    /// The answer to whoever asks for a file of `holder`, or for the part that `headers` name. Not found
    /// of everybody else's.
    fn answer<'a>(
        &'a self,
        file: &'a FileId,
        holder: &'a Holder,
        headers: &'a HeaderMap,
    ) -> BoxFuture<'a, Result<Response>>;
}
