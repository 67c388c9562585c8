//! Files that came with an event, as streams.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use angelia_contract::EventFile;
use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http_body_util::{BodyExt as _, Empty};
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE};
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::conversation::Conversation;
use crate::error::FileError;
use crate::handle::GatewayHandle;
use crate::http;

/// The largest file that connectors take or give.
pub const MAX_FILE_BYTES: u64 = 25 * 1024 * 1024;
/// How long nothing may come of a file that is on its way.
const STALL: Duration = Duration::from_secs(30);
/// What stands in a reference before the file's id.
const REFERENCE: &str = "/relay/media/";

/// A file that is being read: its pieces, as they come.
pub struct FileStream {
    media_type: Option<String>,
    size: Option<u64>,
    pieces: BoxStream<'static, Result<Bytes, FileError>>,
}

impl std::fmt::Debug for FileStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("FileStream");
        shown.field("media_type", &self.media_type).field("size", &self.size).finish_non_exhaustive()
    }
}

impl Conversation {
    /// Opens a file of an event.
    ///
    /// ```no_run
    /// # use angelia_gateway::{Conversation, Event, FileError};
    /// # async fn read(event: Event, conversation: Conversation) -> Result<(), FileError> {
    /// for file in event.files() {
    ///     let mut stream = conversation.open_file(&file).await?;
    ///     while let Some(piece) = stream.piece().await? {
    ///         println!("{} bytes of {:?}", piece.len(), file.name);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open_file(&self, file: &EventFile<'_>) -> Result<FileStream, FileError> {
        self.gateway.open_file(file).await
    }
}

impl GatewayHandle {
    /// Opens a file of an event. It is asked for at the connector this gateway dials, whatever host its
    /// reference names; what is elsewhere is [`FileError::Elsewhere`].
    pub async fn open_file(&self, file: &EventFile<'_>) -> Result<FileStream, FileError> {
        let id = file.url.split_once(REFERENCE).map(|(_, id)| id).ok_or(FileError::Elsewhere)?;
        // It is written into a path: nothing in it may lead out of there.
        let is_plain =
            |id: &str| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if id.is_empty() || id.starts_with('.') || !is_plain(id) {
            return Err(FileError::Elsewhere);
        }
        let settings = &self.shared.settings;
        let nothing = Empty::new().map_err(|never| match never {}).boxed_unsync();
        let request = http::request(settings, &format!("/{id}"))?.body(nothing);
        let request = request.map_err(|_| FileError::Elsewhere)?;
        let answer = http::send(settings, request, Duration::ZERO).await?;
        FileStream::of(answer)
    }
}

impl FileStream {
    fn of(answer: Response<Incoming>) -> Result<Self, FileError> {
        let text = |name| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (media_type, size) =
            (text(CONTENT_TYPE), text(CONTENT_LENGTH).and_then(|size| size.parse().ok()));
        if size.is_some_and(|size| size > MAX_FILE_BYTES) {
            return Err(FileError::TooLarge);
        }
        let pieces = stream::try_unfold((answer.into_body(), 0), |(mut body, mut came)| async move {
            loop {
                let frame = timeout(STALL, body.frame()).await.map_err(|_| FileError::TimedOut)?;
                let Some(frame) = frame else { return Ok(None) };
                let frame = frame.map_err(|error| FileError::BrokeOff(Arc::new(error)))?;
                let Ok(piece) = frame.into_data() else { continue };
                came += piece.len() as u64;
                if came > MAX_FILE_BYTES {
                    return Err(FileError::TooLarge);
                }
                return Ok(Some((piece, (body, came))));
            }
        });
        Ok(Self { media_type, size, pieces: pieces.boxed() })
    }

    /// What it is, as the connector says.
    pub fn media_type(&self) -> Option<&str> {
        self.media_type.as_deref()
    }

    /// Its bytes, if the connector said how many.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// The next piece of it; `None` at its end.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, FileError> {
        self.pieces.next().await.transpose()
    }

    /// All of it, in memory: 25 MiB at the most.
    pub async fn bytes(mut self) -> Result<Bytes, FileError> {
        let mut whole = BytesMut::new();
        while let Some(piece) = self.piece().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    /// Writes it to a file, which appears when it is whole.
    ///
    /// Choose the path yourself: what people call their files is no path, and the same name comes twice.
    pub async fn save(mut self, path: impl AsRef<Path>) -> Result<(), FileError> {
        let path = path.as_ref();
        let mut partial = path.as_os_str().to_owned();
        partial.push(".part");
        let partial = Path::new(&partial);
        let written = async {
            let mut file = tokio::fs::File::create(partial).await?;
            while let Some(piece) = self.piece().await? {
                file.write_all(&piece).await?;
            }
            file.sync_all().await?;
            tokio::fs::rename(partial, path).await?;
            Ok(())
        };
        let written: Result<(), FileError> = written.await;
        if written.is_err() {
            let _ = tokio::fs::remove_file(partial).await;
        }
        written
    }
}

impl Stream for FileStream {
    type Item = Result<Bytes, FileError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.pieces.poll_next_unpin(cx)
    }
}
