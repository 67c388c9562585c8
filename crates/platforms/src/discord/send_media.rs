//! An agent's `send_media`, as a message with an attachment.

use super::pieces::parts;
use super::send::Work;
use crate::platform::{Outcome, OutgoingFile};
use angelia_core::fail;
use angelia_core::media::MediaKind;
use serde_json::{Value, json};

/// What every server and every person may be sent.
const MOST: u64 = 10 * 1024 * 1024;
/// The flag of a message that is a recording.
const IS_VOICE: u64 = 1 << 13;
/// How loud a recording is, of which nothing is known: Discord draws a line.
const SILENT: &str = "AAAAAAAA";

impl Work<'_> {
    /// Posts a file, and behind it what does not fit beside it. What is too large for Discord is a link.
    pub(super) async fn show_file(
        &self,
        file: &OutgoingFile,
        caption: &str,
        reply_to: Option<&str>,
    ) -> Result<String, Outcome> {
        if file.size > MOST {
            let text = format!("{caption}\n{}", file.in_words());
            return self.send(text.trim_start(), reply_to).await;
        }
        let mut texts = parts(caption);
        let voice = voice(file);
        // A recording has no words beside it.
        let beside = if voice.is_none() && texts.len() == 1 { texts.pop() } else { None };
        fail::point("action_sending");
        let mut attachment = json!({ "id": 0, "filename": file.name });
        if let Some(described) = &voice {
            attachment["duration_secs"] = described.clone();
            attachment["waveform"] = SILENT.into();
        }
        let post = |reply_to: Option<&str>| {
            let post = self.post_with_own_nonce(beside.as_deref().unwrap_or_default(), reply_to);
            let post = if voice.is_some() { post.with("flags", IS_VOICE.into()) } else { post };
            post.with("attachments", json!([attachment])).with_file(file.clone())
        };
        let message_id = self.post_answering(reply_to, post).await?;
        if !texts.is_empty() {
            self.progress.first_part(&message_id);
            let mut pieces = self.pieces_so_far(&message_id, texts.len()).await;
            for (at, text) in texts.iter().enumerate().skip(pieces.len()) {
                pieces.show(at + 1, text).await?;
            }
        }
        Ok(message_id)
    }
}

/// How long a recording is that Discord shows as one; it takes Opus in Ogg, and wants to be told.
fn voice(file: &OutgoingFile) -> Option<Value> {
    let is_one = file.kind == MediaKind::Voice && file.media_type == "audio/ogg";
    file.duration.filter(|_| is_one).map(|duration| json!(duration.as_secs_f64()))
}
