//! A file on its way to a provider: as a part of a form, read while it is written.

use super::ApiError;
use crate::platform::OutgoingFile;
use angelia_core::media::readable_size;
use reqwest::Body;
use reqwest::multipart::Part;
use std::time::Duration;

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
