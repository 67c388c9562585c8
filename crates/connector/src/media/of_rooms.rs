//! Files that people in the web chat send and get.

use super::Media;
use super::download::serve;
use super::keep::{Claims, Taken, Terms};
use super::no_such_file;
use super::turns::Who;
use angelia_core::error::Result;
use angelia_core::media::{FileId, Holder, KEPT_FOR, MediaStore, TENANT_FILES};
use angelia_core::ports::BoxFuture;
use angelia_platforms::{FileKeeper, Kept, Uploaded};
use axum::http::HeaderMap;
use axum::response::Response;

/// Those whom nobody invited send files only while less than this part of a tenant's room for files is
/// taken, in number and in bytes: the rest is for everybody else.
const VISITORS_SHARE: u64 = 4;

impl FileKeeper for Media {
    fn keep(&self, uploaded: Uploaded) -> BoxFuture<'_, Result<Kept>> {
        Box::pin(async move {
            let Uploaded { tenant, holder, visiting, name, media_type, bytes } = uploaded;
            let share = if visiting { VISITORS_SHARE } else { 1 };
            // What nobody says anything with goes soon.
            let terms = Terms {
                who: Who::Room,
                holder,
                tenant_files: TENANT_FILES / share,
                tenant_bytes: self.tenant_bytes / share,
                kept_for: KEPT_FOR,
            };
            let claims = Claims { file: None, name, media_type };
            let Taken { file, size, name, media_type } =
                Self::keep(self, &tenant, terms, claims, bytes).await?;
            Ok(Kept { file, name, media_type, size })
        })
    }

    fn answer<'a>(
        &'a self,
        file: &'a FileId,
        holder: &'a Holder,
        headers: &'a HeaderMap,
    ) -> BoxFuture<'a, Result<Response>> {
        Box::pin(async move {
            let file = self.ports.records.use_file(file, holder).await?.ok_or_else(no_such_file)?;
            serve(self, Who::Room, &file, headers).await
        })
    }
}
