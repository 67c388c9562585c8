//! Sending a file: uploaded to the connector first, then said with a message.

use std::path::{Path, PathBuf};
use std::time::Duration;

use angelia_contract::{Action, ActionResult};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::Method;
use hyper::body::Frame;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::time::sleep;

use crate::chat::Chat;
use crate::conversation::Conversation;
use crate::error::{FileError, SendFileError};
use crate::files::MAX_FILE_BYTES;
use crate::handle::GatewayHandle;
use crate::http::{self, Body};

/// What is read from a disk and sent at a time.
const PIECE: usize = 64 * 1024;
/// An upload that is slower than this many bytes a second is given up.
const SLOWEST: u64 = 64 * 1024;
/// The pauses before further attempts: nothing is shown to anybody before the upload has ended.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
/// Nobody waits longer for a busy connector.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Characters of a name that connectors read.
const MOST_OF_A_NAME: usize = 255;
/// As much of the answer to an upload as is read.
const ANSWER_BYTES: usize = 4096;

/// As what a file is shown to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A picture in the line.
    Image,
    /// A recording of somebody who speaks; Telegram wants OGG with Opus for it.
    Voice,
    /// Other sound.
    Audio,
    /// A film.
    Video,
    /// Something to save.
    Document,
}

impl FileKind {
    fn word(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Voice => "voice",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Document => "document",
        }
    }
}

#[derive(Clone, Debug)]
enum Content {
    Path(PathBuf),
    Bytes(Bytes),
}

/// A file to send; see [`Conversation::send_file`].
///
/// A path is one by itself: `conversation.send_file(Path::new("report.pdf"))`.
#[derive(Clone, Debug)]
pub struct OutgoingFile {
    content: Content,
    name: String,
    kind: Option<FileKind>,
    media_type: Option<String>,
    caption: String,
}

impl OutgoingFile {
    /// A file of this machine, called as it is there.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self { content: Content::Path(path), name, kind: None, media_type: None, caption: String::new() }
    }

    /// Bytes, and what to call them; the name's ending says what they are.
    pub fn bytes(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        let content = Content::Bytes(bytes.into());
        Self { content, name: name.into(), kind: None, media_type: None, caption: String::new() }
    }

    /// What to call it, instead of its own name.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// What is said with it.
    pub fn caption(self, caption: impl Into<String>) -> Self {
        Self { caption: caption.into(), ..self }
    }

    /// As what it is shown; by default as what its name says. Sound is a recording only if this says so.
    pub fn kind(self, kind: FileKind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    /// Its MIME type; by default what its name says. Connectors believe the bytes first.
    pub fn media_type(self, media_type: impl Into<String>) -> Self {
        Self { media_type: Some(media_type.into()), ..self }
    }

    fn what(&self) -> (FileKind, &str) {
        let (kind, media_type) = by_name(&self.name);
        (self.kind.unwrap_or(kind), self.media_type.as_deref().unwrap_or(media_type))
    }

    async fn size(&self) -> Result<u64, FileError> {
        let size = match &self.content {
            Content::Path(path) => tokio::fs::metadata(path).await?.len(),
            Content::Bytes(bytes) => bytes.len() as u64,
        };
        if size > MAX_FILE_BYTES { Err(FileError::TooLarge) } else { Ok(size) }
    }

    async fn body(&self, size: u64) -> Result<Body, FileError> {
        match &self.content {
            Content::Bytes(bytes) => {
                Ok(Full::new(bytes.clone()).map_err(|never| match never {}).boxed_unsync())
            }
            Content::Path(path) => {
                // A file that grows meanwhile is sent as it was announced.
                let file = tokio::fs::File::open(path).await?.take(size);
                let pieces = stream::try_unfold(file, |mut file| async move {
                    let mut piece = Vec::with_capacity(PIECE);
                    let read = file.read_buf(&mut piece).await?;
                    Ok::<_, FileError>((read > 0).then(|| (Frame::data(Bytes::from(piece)), file)))
                });
                Ok(StreamBody::new(pieces).boxed_unsync())
            }
        }
    }
}

impl From<&Path> for OutgoingFile {
    fn from(path: &Path) -> Self {
        Self::path(path)
    }
}

impl From<PathBuf> for OutgoingFile {
    fn from(path: PathBuf) -> Self {
        Self::path(path)
    }
}

#[derive(Deserialize)]
struct Uploaded {
    id: String,
}

impl Conversation {
    /// Answers the event with a file: a path, or an [`OutgoingFile`] with a caption, bytes or a kind.
    ///
    /// Where the platform or the connector takes no files, the error says so and nothing was shown.
    pub async fn send_file(&self, file: impl Into<OutgoingFile>) -> Result<ActionResult, SendFileError> {
        let reply_to = self.message_id.as_deref();
        self.gateway.send_file_reply(&self.chat, file.into(), reply_to).await
    }
}

impl GatewayHandle {
    /// Posts a file.
    pub async fn send_file(
        &self,
        chat: &Chat,
        file: impl Into<OutgoingFile>,
    ) -> Result<ActionResult, SendFileError> {
        self.send_file_reply(chat, file.into(), None).await
    }

    async fn send_file_reply(
        &self,
        chat: &Chat,
        file: OutgoingFile,
        reply_to: Option<&str>,
    ) -> Result<ActionResult, SendFileError> {
        let source_url = self.upload(&file).await?;
        let mut metadata = chat.metadata();
        metadata.insert("notify".to_owned(), true.into());
        let action = Action::SendMedia {
            chat_id: chat.chat_id.clone(),
            media_kind: file.what().0.word().to_owned(),
            source_url,
            content: file.caption,
            filename: Some(file.name).filter(|name| !name.is_empty()),
            reply_to: reply_to.map(str::to_owned),
            metadata,
        };
        Ok(self.perform(chat, action).await?)
    }

    /// Brings a file to the connector; answers the reference to it.
    async fn upload(&self, file: &OutgoingFile) -> Result<String, FileError> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let error = match self.upload_once(file).await {
                Ok(reference) => return Ok(reference),
                Err(error) => error,
            };
            let Some(pause) = pauses.next().filter(|_| error.is_passing()) else { return Err(error) };
            tracing::debug!(%error, "an upload is tried again");
            sleep(error.retry_after().unwrap_or(pause).min(LONGEST_PAUSE)).await;
        }
    }

    async fn upload_once(&self, file: &OutgoingFile) -> Result<String, FileError> {
        let settings = &self.shared.settings;
        let size = file.size().await?;
        let request = http::request(settings, "")?
            .method(Method::POST)
            .header(CONTENT_LENGTH, size)
            .header(CONTENT_TYPE, header(file.what().1))
            .header("x-media-filename", header(&file.name))
            .body(file.body(size).await?)
            .map_err(|_| FileError::Elsewhere)?;
        let within = Duration::from_secs(size / SLOWEST);
        let answer = http::send(settings, request, within).await?;
        let body = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await;
        let body = body.map_err(|_| FileError::NoReference)?.to_bytes();
        let Uploaded { id } = serde_json::from_slice(&body).map_err(|_| FileError::NoReference)?;
        Ok(format!("{}/{id}", settings.target.media()))
    }
}

/// A word as a header: nothing in it ends a line, and it is no longer than connectors read.
fn header(word: &str) -> HeaderValue {
    let plain: String = word.chars().filter(|c| !c.is_control()).take(MOST_OF_A_NAME).collect();
    HeaderValue::from_bytes(plain.as_bytes()).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// What a name says of a file.
fn by_name(name: &str) -> (FileKind, &'static str) {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    match &*ending {
        "jpg" | "jpeg" => (FileKind::Image, "image/jpeg"),
        "png" => (FileKind::Image, "image/png"),
        "gif" => (FileKind::Image, "image/gif"),
        "webp" => (FileKind::Image, "image/webp"),
        "ogg" | "opus" => (FileKind::Audio, "audio/ogg"),
        "mp3" => (FileKind::Audio, "audio/mpeg"),
        "m4a" => (FileKind::Audio, "audio/mp4"),
        "wav" => (FileKind::Audio, "audio/wav"),
        "flac" => (FileKind::Audio, "audio/flac"),
        "mp4" => (FileKind::Video, "video/mp4"),
        "webm" => (FileKind::Video, "video/webm"),
        "mov" => (FileKind::Video, "video/quicktime"),
        "pdf" => (FileKind::Document, "application/pdf"),
        "txt" | "md" | "log" => (FileKind::Document, "text/plain"),
        "csv" => (FileKind::Document, "text/csv"),
        "json" => (FileKind::Document, "application/json"),
        "zip" => (FileKind::Document, "application/zip"),
        _ => (FileKind::Document, "application/octet-stream"),
    }
}
