//! A file on its way to a provider: as a part of a form, read while it is written; and how many of a
//! bot's are at a time.

use super::{ApiError, ErrorKind};
use crate::platform::{OutgoingFile, Reach};
use angelia_core::media::readable_size;
use parking_lot::Mutex;
use reqwest::Body;
use reqwest::multipart::Part;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

angelia_contract::limits! {
    /// Each takes minutes on a slow line, and all the while one of the calls that a provider can count in a second: the others are left for texts. Further ones wait.
    const UPLOADS: usize = 8, count "files on their way to Discord or Telegram from one bot at a time";
    /// One tenant leaves room for the others.
    const UPLOADS_OF_TENANT: usize = 4, count "of them, of one tenant";
}
/// How long a file waits for its turn. Then it is tried again a little later, as long as its action lives.
const PATIENCE: Duration = Duration::from_secs(20);
/// How soon that is.
const AGAIN: Duration = Duration::from_secs(5);

/// The slowest line that a file is sent over, in bytes a second.
const SLOWEST: u64 = 128 * 1024;

impl OutgoingFile {
    /// The part of a form that the file is.
    pub(crate) async fn part(&self) -> Result<Part, ApiError> {
        let failed = |error| ApiError::unavailable(format!("the file cannot be read: {error}"));
        let bytes = self.content.open().await.map_err(failed)?;
        let part = Part::stream_with_length(Body::wrap_stream(bytes), self.size).file_name(self.name.clone());
        part.mime_str(&self.media_type).map_err(|_| ApiError::refused(0, "nobody knows what the file is"))
    }

    /// How long sending it may take, beside what a call takes.
    pub(crate) fn takes(&self) -> Duration {
        Duration::from_secs(self.size / SLOWEST)
    }

    /// What stands in its place where it cannot be sent.
    pub(crate) fn in_words(&self) -> String {
        format!("{} ({}, {}): {}", self.name, self.media_type, readable_size(self.size), self.link)
    }
}

/// Whose turn it is to send a file as a bot.
#[derive(Debug)]
pub(crate) struct Uploads {
    all: Arc<Semaphore>,
    of_tenants: Mutex<HashMap<String, Weak<Semaphore>>>,
    patience: Duration,
}

/// A turn, to be held until the answer is there.
#[derive(Debug)]
pub(crate) struct UploadTurn {
    _of_tenant: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Default for Uploads {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(UPLOADS)), of_tenants: Mutex::default(), patience: PATIENCE }
    }
}

impl Uploads {
    fn of(&self, tenant: &str) -> Arc<Semaphore> {
        let mut of_tenants = self.of_tenants.lock();
        if let Some(known) = of_tenants.get(tenant).and_then(Weak::upgrade) {
            return known;
        }
        of_tenants.retain(|_, turns| turns.strong_count() > 0);
        let new = Arc::new(Semaphore::new(UPLOADS_OF_TENANT));
        of_tenants.insert(tenant.to_owned(), Arc::downgrade(&new));
        new
    }

    /// Waits until a file may be sent: within its tenant first, so that none of it stands in others'
    /// way. To be asked before anything else is held that texts need too.
    pub(crate) async fn turn(&self, file: &OutgoingFile) -> Result<UploadTurn, ApiError> {
        let (of_tenant, of_all) = (self.of(&file.owner.0), self.all.clone());
        let both = async {
            let of_tenant = of_tenant.acquire_owned().await.ok()?;
            let of_all = of_all.acquire_owned().await.ok()?;
            Some(UploadTurn { _of_tenant: of_tenant, _of_all: of_all })
        };
        timeout(self.patience, both).await.ok().flatten().ok_or_else(|| {
            let kind = ErrorKind::Limited { after: AGAIN, reach: Reach::Action };
            ApiError::new(kind, "other files are still on their way")
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::platform::FileContent;
    use angelia_core::error::Result;
    use angelia_core::inbox::InstanceId;
    use angelia_core::media::{FileId, Holder, MediaKind};
    use bytes::Bytes;
    use futures_util::future::BoxFuture;
    use futures_util::stream::{self, BoxStream, StreamExt};

    /// A file of these bytes, or one of which nothing ever comes.
    struct Fixed(Option<&'static [u8]>);

    impl FileContent for Fixed {
        fn open(&self) -> BoxFuture<'_, Result<BoxStream<'static, Result<Bytes>>>> {
            let bytes = self.0.map(|bytes| stream::once(async { Ok(Bytes::from_static(bytes)) }).boxed());
            Box::pin(async { Ok(bytes.unwrap_or_else(|| stream::pending().boxed())) })
        }
    }

    /// A picture of a tenant; without bytes, one that never gets to its end.
    pub(crate) fn picture(tenant: &str, bytes: Option<&'static [u8]>) -> OutgoingFile {
        OutgoingFile {
            name: "a.png".into(),
            media_type: "image/png".into(),
            kind: MediaKind::Image,
            size: bytes.map_or(25 * 1024 * 1024, |bytes| bytes.len() as u64),
            duration: None,
            link: "https://angelia.example/media/abc".into(),
            file: FileId::mint(),
            owner: (tenant.into(), Holder::Instance(InstanceId(1))),
            content: Arc::new(Fixed(bytes)),
        }
    }

    #[tokio::test]
    async fn files_take_turns_and_one_tenant_leaves_room_for_the_others() {
        let uploads = Uploads { patience: Duration::from_millis(20), ..Uploads::default() };
        let mut turns = Vec::new();
        for _ in 0..UPLOADS_OF_TENANT {
            turns.push(uploads.turn(&picture("acme", None)).await.unwrap());
        }
        let waits = uploads.turn(&picture("acme", None)).await.unwrap_err();
        assert_eq!(waits.kind, ErrorKind::Limited { after: AGAIN, reach: Reach::Action });
        for _ in UPLOADS_OF_TENANT..UPLOADS {
            turns.push(uploads.turn(&picture("globex", None)).await.unwrap());
        }
        assert!(uploads.turn(&picture("initech", None)).await.is_err());
        turns.remove(0);
        assert!(uploads.turn(&picture("initech", None)).await.is_ok());
        drop(turns);
        assert!(uploads.turn(&picture("acme", None)).await.is_ok());
        assert_eq!(uploads.of_tenants.lock().len(), 1, "nobody else has any");
    }
}
