//! `GET /media/{link}`: a file by a link, for agents whose gateway fetches nothing. Whoever has the
//! link can read the file, for an hour.
//!
//! A link is the file's name, whose it is and until when, sealed by the master key: nobody else can
//! make one or change it, every node can read it, and nothing has to be kept for it.

use super::download::serve;
use super::turns::Who;
use super::{Media, no_such_file};
use crate::admin::answer;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::error::Result;
use angelia_core::inbox::InstanceId;
use angelia_core::media::{FileId, Holder, KEPT_FOR, MediaStore};
use angelia_core::seal;
use angelia_core::secret::Secret;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::sync::Arc;
use std::time::Duration;

angelia_contract::limits! {
    /// Long enough for an agent with a shell to fetch it, and soon of no use to whoever finds it in a history.
    const LINK_LASTS: Duration = Duration::from_secs(3_600), time "for which an agent's link to a file works";
}
/// The longest that is looked at; real ones are a third of it.
const MAX_LINK: usize = 512;

impl Media {
    /// What stands behind `/media/` in a link to a file of an instance.
    pub(crate) fn link(&self, instance: InstanceId, file: &FileId) -> Option<String> {
        self.link_until(instance, file, clock::wall().after(LINK_LASTS))
    }

    /// A link for people, for as long as the file is kept.
    pub(super) fn link_for_people(&self, instance: InstanceId, file: &FileId) -> Option<String> {
        let link = self.link_until(instance, file, clock::wall().after(KEPT_FOR))?;
        Some(format!("{}/media/{link}", self.public_url))
    }

    fn link_until(&self, instance: InstanceId, file: &FileId, until: UnixMillis) -> Option<String> {
        let says = Secret::new(format!("{file} {} {}", instance.0, until.0));
        let sealed = self.keys.seal(&says, seal::FILE_LINK).ok()?;
        Some(URL_SAFE_NO_PAD.encode(sealed.to_vec()))
    }

    /// What a link says, if it is one of ours and has not ended.
    fn read_link(&self, link: &str) -> Option<(FileId, Holder)> {
        let sealed = URL_SAFE_NO_PAD.decode(Some(link).filter(|link| link.len() <= MAX_LINK)?).ok()?;
        let says = self.keys.open(&sealed, seal::FILE_LINK).ok()?;
        let mut words = says.expose().split(' ');
        let file = FileId::parse(words.next()?)?;
        let instance = InstanceId(words.next()?.parse().ok()?);
        let until = UnixMillis(words.next()?.parse().ok()?);
        (clock::wall() < until).then_some((file, Holder::Instance(instance)))
    }
}

pub(super) async fn follow(
    State(media): State<Arc<Media>>,
    Path(link): Path<String>,
    headers: HeaderMap,
) -> Response {
    match give(&media, &link, &headers).await {
        Ok(response) => response,
        Err(error) => answer::<()>(StatusCode::OK, Err(error)),
    }
}

async fn give(media: &Media, link: &str, headers: &HeaderMap) -> Result<Response> {
    let (file, holder) = media.read_link(link).ok_or_else(no_such_file)?;
    let file = media.ports.records.use_file(&file, &holder).await?.ok_or_else(no_such_file)?;
    serve(media, Who::Link, &file, headers).await
}
