//! A file that an agent sends: one that its gateway uploaded, or what is behind a URL of the open
//! internet, brought here first so that it can be sent as often as it takes.

use super::keep::{Claims, too_large};
use super::{Media, no_such_file};
use crate::ssrf_guard::GuardError;
use angelia_core::egress::Sender;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::media::{
    FILE_BYTES, FileId, Holder, KeptFile, MediaKind, MediaStore, kind_of, opus_duration, safe_name, span,
};
use angelia_core::ports::ActionId;
use angelia_platforms::{FileContent, OutgoingFile};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use reqwest::header::CONTENT_TYPE;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What the path of a reference begins with.
const REFERENCE: &str = "/relay/media/";
angelia_contract::limits! {
    /// Its chat waits for it, and what its agent says next. Then the agent hears that it took too long.
    const FETCH_WITHIN: Duration = Duration::from_secs(45), time "for which a file behind an agent's source_url is fetched";
}
/// When nobody answered at a URL, it is tried once more.
const AGAIN_AFTER: Duration = Duration::from_secs(2);
const BROKE_OFF: &str = "the file behind source_url broke off";
/// The end of a recording, in which its last page begins.
const END: u64 = 65 * 1024;

/// What an agent says of a file.
pub(crate) struct Wanted<'a> {
    pub(crate) source_url: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) kind: &'a str,
}

impl Media {
    /// The file that an action sends.
    pub(crate) async fn outgoing(
        self: &Arc<Self>,
        sender: Sender<'_>,
        action: ActionId,
        wanted: &Wanted<'_>,
    ) -> Result<OutgoingFile> {
        let holder = Holder::Instance(sender.instance);
        let id = match reference(wanted.source_url) {
            Some(id) => FileId::parse(id).ok_or_else(no_such_file)?,
            None => self.bring_from_url(sender, action, wanted).await?,
        };
        let file = self.ports.records.use_file(&id, &holder).await?.ok_or_else(no_such_file)?;
        let kind = MediaKind::parse(wanted.kind).unwrap_or_else(|| kind_of(&file.media_type, false));
        let duration = match kind {
            MediaKind::Voice | MediaKind::Audio if file.media_type == "audio/ogg" => {
                opus_duration(&self.end_of(&file).await?)
            }
            _ => None,
        };
        let link = self.link_for_people(sender.instance, &id).ok_or_else(no_such_file)?;
        Ok(OutgoingFile {
            name: wanted.name.map_or_else(|| file.name.clone(), |name| safe_name(name, &file.media_type)),
            media_type: file.media_type.clone(),
            kind,
            size: file.size,
            duration,
            link,
            file: id,
            owner: (sender.tenant.to_owned(), holder),
            content: Arc::new(Content { media: self.clone(), file }),
        })
    }

    /// Brings what is behind a URL, within the time for that. Brought again for the same action, it is
    /// found.
    async fn bring_from_url(
        &self,
        sender: Sender<'_>,
        action: ActionId,
        wanted: &Wanted<'_>,
    ) -> Result<FileId> {
        let instance = sender.instance.0.to_string();
        let id = FileId::named(&["sent", &instance, &action.0.to_string(), wanted.source_url]);
        if self.ports.records.use_file(&id, &Holder::Instance(sender.instance)).await?.is_some() {
            return Ok(id);
        }
        let fetched = tokio::time::timeout(FETCH_WITHIN, async {
            match self.fetch_url(sender, &id, wanted).await {
                Err(NotFetched::Passing(_)) => {
                    tokio::time::sleep(AGAIN_AFTER).await;
                    self.fetch_url(sender, &id, wanted).await
                }
                fetched => fetched,
            }
        });
        match fetched.await {
            Ok(Ok(())) => Ok(id),
            Ok(Err(NotFetched::Passing(why))) => Err(Error::not_found(why)),
            Ok(Err(NotFetched::For(error))) => Err(error),
            Err(_) => Err(Error::not_found("what is behind source_url takes too long")),
        }
    }

    async fn fetch_url(
        &self,
        sender: Sender<'_>,
        id: &FileId,
        wanted: &Wanted<'_>,
    ) -> Result<(), NotFetched> {
        let answer = self.guard.open(wanted.source_url, FETCH_WITHIN).await.map_err(|error| match error {
            GuardError::Refused(why) => {
                NotFetched::For(Error::invalid(format!("source_url is refused: {why}")))
            }
            GuardError::Unreachable => NotFetched::Passing("nobody answers at source_url"),
        })?;
        if !answer.status().is_success() {
            let status = answer.status().as_u16();
            let why = format!("source_url answers with HTTP status {status}");
            return Err(NotFetched::For(Error::not_found(why)));
        }
        if answer.content_length().is_some_and(|length| length > FILE_BYTES) {
            return Err(NotFetched::For(too_large()));
        }
        let media_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let in_path = wanted.source_url.split(['?', '#']).next().and_then(|url| url.rsplit('/').next());
        let claims = Claims {
            file: Some(id.clone()),
            name: wanted.name.or(in_path).unwrap_or_default().to_owned(),
            media_type: media_type.map(str::to_owned),
        };
        let broke_off = AtomicBool::new(false);
        let bytes = answer.bytes_stream().map_err(|_| {
            broke_off.store(true, Ordering::Relaxed);
            Error::not_found(BROKE_OFF)
        });
        let kept = self.keep(sender.tenant, self.for_instance(sender.instance), claims, bytes).await;
        kept.map(drop).map_err(|error| {
            let theirs = broke_off.load(Ordering::Relaxed);
            if theirs { NotFetched::Passing(BROKE_OFF) } else { NotFetched::For(error) }
        })
    }

    /// The last bytes of a file.
    async fn end_of(&self, file: &KeptFile) -> Result<Vec<u8>> {
        let first = file.size.saturating_sub(END);
        let part = span(first, file.size.saturating_sub(1), file.size).ok_or_else(no_such_file)?;
        let turn = self.turns.take(&file.tenant).await?;
        let mut opening = self.open(file, part, turn).await?;
        let mut end = Vec::new();
        while let Some(piece) = opening.next().await? {
            end.extend_from_slice(&piece);
        }
        Ok(end)
    }
}

/// Why there is nothing of what is behind a URL.
enum NotFetched {
    /// Its server may do better in a moment.
    Passing(&'static str),
    /// For this reason.
    For(Error),
}

/// The id in a reference to one of our files, whatever stands behind it; `None` of any other URL.
fn reference(url: &str) -> Option<&str> {
    let (_, id) = url.split_once(REFERENCE)?;
    Some(id)
}

struct Content {
    media: Arc<Media>,
    file: KeptFile,
}

impl FileContent for Content {
    fn open(&self) -> BoxFuture<'_, Result<BoxStream<'static, Result<Bytes>>>> {
        Box::pin(async move {
            let Self { media, file } = self;
            let whole = span(0, file.size.saturating_sub(1), file.size).ok_or_else(no_such_file)?;
            let turn = media.turns.take(&file.tenant).await?;
            let opening = media.open(file, whole, turn).await?;
            let pieces = stream::try_unfold(opening, |mut opening| async move {
                Ok(opening.next().await?.map(|bytes| (bytes, opening)))
            });
            Ok(pieces.boxed())
        })
    }
}

/// Why an action cannot have its file, in words for its gateway; whether another attempt may help.
pub(crate) fn why(error: &Error) -> (String, bool) {
    (error.to_string(), error.kind() == Kind::Unavailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_told_by_its_path() {
        assert_eq!(reference("https://relay.example/relay/media/abc"), Some("abc"));
        assert_eq!(reference("http://10.0.0.1:8765/relay/media/abc?x"), Some("abc?x"), "which is no id");
        assert_eq!(reference("https://example.org/a.png"), None);
    }
}
