//! An agent's `send_media`: pictures as pictures, recordings as recordings, and what Telegram does not
//! take for one as a document, with its caption or in front of it.

use super::Telegram;
use super::api;
use super::locate::Spot;
use super::render::{self, Part};
use super::send::{Job, Written};
use crate::kit::{ApiError, ErrorKind};
use crate::platform::{Outcome, OutgoingFile};
use angelia_contract::length::Unit;
use angelia_core::fail;
use angelia_core::media::MediaKind;
use reqwest::multipart::Form;
use serde_json::{Value, json};

/// The longest caption, in the units that Telegram counts.
const CAPTION: usize = 1024;
/// Larger pictures are not taken for one.
const PHOTO_BYTES: u64 = 10_000_000;

/// How Telegram is given a file: the method, and what the file is called there.
type Way = (&'static str, &'static str);
const DOCUMENT: Way = ("sendDocument", "document");

/// As what a file is sent, by what it is. No file is made another.
fn way(file: &OutgoingFile) -> Way {
    match (file.kind, file.media_type.as_str()) {
        (MediaKind::Image, "image/gif") => ("sendAnimation", "animation"),
        (MediaKind::Image, "image/jpeg" | "image/png" | "image/webp") if file.size <= PHOTO_BYTES => {
            ("sendPhoto", "photo")
        }
        (MediaKind::Voice, "audio/ogg") => ("sendVoice", "voice"),
        (MediaKind::Voice | MediaKind::Audio, "audio/mpeg" | "audio/mp4") => ("sendAudio", "audio"),
        (MediaKind::Video, "video/mp4") => ("sendVideo", "video"),
        _ => DOCUMENT,
    }
}

impl Telegram {
    /// Sends a file, and behind it what does not fit its caption.
    pub(super) async fn show_file(&self, job: &mut Job<'_>, file: &OutgoingFile, caption: &str) -> Outcome {
        let parts = if caption.trim().is_empty() { Vec::new() } else { render::render(caption) };
        let (caption, rest) = match parts.as_slice() {
            [one] if Unit::Utf16.measure(&one.text) <= CAPTION => (Some(one), &[][..]),
            parts => (None, parts),
        };
        fail::point("action_sending");
        let message_id = match self.write_file(job, file, caption).await {
            Ok(message_id) => message_id,
            Err(outcome) => return outcome,
        };
        if rest.is_empty() {
            return Outcome::Sent { message_id, recorded: false };
        }
        // The file is out: what follows can only be tried here.
        job.progress.first_part(&message_id);
        job.reply_to = None;
        match self.say_parts(job, rest.to_vec()).await {
            Outcome::Sent { .. } => Outcome::Sent { message_id, recorded: false },
            failed => failed,
        }
    }

    async fn write_file(
        &self,
        job: &mut Job<'_>,
        file: &OutgoingFile,
        caption: Option<&Part>,
    ) -> Result<String, Outcome> {
        let (mut way, mut moved, mut plain) = (way(file), false, false);
        loop {
            job.turn().await?;
            let error = match self.write_file_once(job, file, way, caption, plain).await {
                Ok(written) => return Ok(written.message_id.to_string()),
                Err(error) => error,
            };
            match (error.kind, api::words(&error)) {
                (_, Some(why)) if !plain && caption.is_some() && api::is_about_text(why) => plain = true,
                // Odd dimensions, a codec it does not know: it is a file in any case.
                (ErrorKind::Refused(_), Some(why)) if way != DOCUMENT && is_about_file(why) => way = DOCUMENT,
                (ErrorKind::Moved(to), _) if !moved => {
                    moved = true;
                    self.follow(job, &to.to_string()).await?;
                }
                _ => return Err(self.outcome(error, &job.spot)),
            }
        }
    }

    async fn write_file_once(
        &self,
        job: &Job<'_>,
        file: &OutgoingFile,
        (method, field): Way,
        caption: Option<&Part>,
        plain: bool,
    ) -> Result<Written, ApiError> {
        let mut fields = json!({ "chat_id": job.spot.chat() });
        if let Some(caption) = caption {
            let text = if plain { &caption.source } else { &caption.text };
            self.about_to_write(&job.spot.chat_id, text).await;
            fields["caption"] = text.as_str().into();
            if !plain && !caption.entities.is_empty() {
                fields["caption_entities"] = json!(caption.entities);
            }
        }
        if let Some(message_id) = job.reply_to.filter(|_| !job.spot.moved) {
            fields["reply_parameters"] =
                json!({ "message_id": message_id, "allow_sending_without_reply": true });
        }
        if let Some(duration) = file.duration.filter(|_| matches!(field, "voice" | "audio")) {
            fields["duration"] = duration.as_secs().into();
        }
        self.api.upload(method, form(&job.spot, fields), (field, file), || self.may_still(job)).await
    }
}

/// The fields of a call as those of a form: what is no text is written as JSON.
fn form(spot: &Spot, fields: Value) -> Form {
    let Value::Object(fields) = spot.in_topic(fields) else { return Form::new() };
    fields.into_iter().fold(Form::new(), |form, (name, value)| match value {
        Value::String(text) => form.text(name, text),
        other => form.text(name, other.to_string()),
    })
}

/// Whether a refusal is about what the file is, and not about the chat.
fn is_about_file(why: &str) -> bool {
    let why = why.to_lowercase();
    [
        "photo_",
        "image_process",
        "wrong type of",
        "wrong file",
        "voice_messages",
        "video_",
        "audio_",
        "webpage_media",
    ]
    .iter()
    .any(|word| why.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::upload::tests::picture;

    #[test]
    fn a_file_is_sent_as_what_it_is() {
        let sent = |kind, media_type: &str, size| {
            way(&OutgoingFile { media_type: media_type.into(), kind, size, ..picture("acme", None) }).0
        };
        for (kind, media_type, size, method) in [
            (MediaKind::Image, "image/png", 1, "sendPhoto"),
            (MediaKind::Image, "image/png", PHOTO_BYTES + 1, "sendDocument"),
            (MediaKind::Image, "image/gif", 1, "sendAnimation"),
            (MediaKind::Image, "image/svg+xml", 1, "sendDocument"),
            (MediaKind::Voice, "audio/ogg", 1, "sendVoice"),
            (MediaKind::Voice, "audio/wav", 1, "sendDocument"),
            (MediaKind::Voice, "audio/mpeg", 1, "sendAudio"),
            (MediaKind::Audio, "audio/mpeg", 1, "sendAudio"),
            (MediaKind::Video, "video/mp4", 1, "sendVideo"),
            (MediaKind::Video, "video/webm", 1, "sendDocument"),
            (MediaKind::Document, "image/png", 1, "sendDocument"),
        ] {
            assert_eq!(sent(kind, media_type, size), method, "{kind:?} {media_type} {size}");
        }
        assert!(is_about_file("Bad Request: PHOTO_INVALID_DIMENSIONS"));
        assert!(!is_about_file("Bad Request: chat not found"));
    }
}
