//! An agent's `send`, as messages.

use super::Wecom;
use super::address::user_of;
use super::api::WECOM;
use super::descriptor::MAX_BYTES;
use crate::kit::{ApiError, ErrorKind, NO_FILE, TextInParts, cut, in_words, refused};
use crate::platform::{Delivery, Outcome, OutgoingFile, Progress};
use angelia_contract::action::Action;
use angelia_contract::length::Unit;
use angelia_core::clock;
use angelia_core::egress::Rate;
use angelia_core::media::MediaKind;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// WeCom lets a company make 10,000 calls a minute and 150,000 an hour; in any
/// hour these are at most 144,040.
pub(super) const BOT: Rate = Rate { calls: 40, per: Duration::from_secs(1), burst: 40 };
/// A member gets 30 messages a minute and 1,000 an hour from an app; what is
/// more WeCom drops and says nothing. In any minute these are at most 23, in any hour
/// 908; the rest is left for the connector's own words.
pub(super) const PERSON: Rate = Rate { calls: 15, per: Duration::from_secs(60), burst: 8 };
/// Commands cost their sender nothing, and what they make the app say counts
/// against that person's limits. So there is room for three at once, and for one again
/// after a minute: a code that was mistyped, and the right one.
const OWN: Rate = Rate::a_minute(1, 3);

const UNLICENSED: &str = "WeCom did not deliver it: the company has no licence for this person's account; an \
                          administrator can assign one";
const INVISIBLE: &str = "WeCom did not deliver it: the person is not in the app's visible range any more, or has \
                         left the company; an administrator can add them";

/// What WeCom answers to a message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Sent {
    msgid: String,
    /// Whom it did not go to.
    invaliduser: String,
    /// Whom it did not go to because the company has not paid for them.
    unlicenseduser: String,
}

impl Wecom {
    /// Performs a `send` or a `send_media`, or a `prompt` as a text; there is nothing else.
    pub(super) async fn perform(&self, delivery: Delivery) -> Outcome {
        let Delivery { id, target, action, progress, file, .. } = delivery;
        let Some(user) = user_of(&target) else { return refused("this is not a chat") };
        let pieces = match (in_words(&action), action, file) {
            (Some(content), ..) => texts(&content),
            (None, Action::SendMedia { content, .. }, Some(file)) => with_caption(file, &content),
            (None, Action::SendMedia { .. }, None) => return refused(NO_FILE),
            (None, Action::Edit { .. }, _) => {
                return refused("WeCom's messages cannot be changed; send a new one");
            }
            (None, other, _) => return refused(format!("WeCom has no {:?}", other.op())),
        };
        let unnamed = format!("wecom-{}", id.0);
        let mut said = TextInParts::new(pieces, &*progress);
        while let Some(piece) = said.next().await {
            let written = self.write_piece(user, &piece, &*progress).await;
            // What a message is called that WeCom gives no id.
            let named = |id: String| if id.is_empty() { unnamed.clone() } else { id };
            said.wrote(written.map(named).map_err(|error| self.account.outcome(error))).await;
        }
        said.outcome()
    }

    async fn write_piece(
        &self,
        user: &str,
        piece: &Piece,
        progress: &dyn Progress,
    ) -> Result<String, ApiError> {
        let may = || progress.still_allowed();
        match piece {
            Piece::Text(text) => self.write(user, ("text", json!({ "content": text })), may).await,
            Piece::File(kind, file) => {
                let id = self.upload(kind, file, may).await?;
                // The upload took the call that was granted.
                if !progress.next_call().await {
                    return Err(ApiError::withdrawn());
                }
                self.write(user, (kind, json!({ "media_id": id })), may).await
            }
        }
    }

    /// Says something of the connector's own, once, unless that person was told enough for now.
    pub(super) async fn say_own(&self, user: &str, text: &str) -> Result<(), ApiError> {
        if self.told.lock().take(user, OWN, clock::mono()).is_err() {
            self.account.health.count("unanswered");
            return Err(WECOM.limited_for(OWN.per));
        }
        for part in parts(text) {
            self.write(user, ("text", json!({ "content": part })), || true).await?;
        }
        Ok(())
    }

    /// Sends one message. How that goes tells whether the app can speak.
    async fn write(
        &self,
        user: &str,
        (kind, content): (&str, Value),
        may: impl Fn() -> bool,
    ) -> Result<String, ApiError> {
        let message = json!({
            "touser": user,
            "msgtype": kind,
            "agentid": self.agent,
            kind: content,
            "safe": 0,
            // It would also swallow the second of two honest answers that say the same.
            "enable_duplicate_check": 0,
        });
        match self.call("message/send", None, Some(&message), may).await {
            Ok(Sent { unlicenseduser, .. }) if !unlicenseduser.is_empty() => {
                Err(ApiError::refused(0, UNLICENSED))
            }
            Ok(Sent { invaliduser, .. }) if !invaliduser.is_empty() => Err(ApiError::refused(0, INVISIBLE)),
            Ok(Sent { msgid, .. }) => {
                self.account.health.spoke();
                Ok(msgid)
            }
            Err(error) => {
                if error.kind == ErrorKind::Setup {
                    self.fell_silent(&error);
                }
                Err(error)
            }
        }
    }
}

/// One message: a text, or a file as WeCom calls its sort.
#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    File(&'static str, OutgoingFile),
}

fn texts(text: &str) -> Vec<Piece> {
    parts(text).into_iter().map(Piece::Text).collect()
}

/// A file and what is said with it. What WeCom does not take is a link.
fn with_caption(file: OutgoingFile, caption: &str) -> Vec<Piece> {
    match sort_of(file.kind, &file.media_type, file.size) {
        Some(sort) => [Piece::File(sort, file)].into_iter().chain(texts(caption)).collect(),
        None => texts(format!("{caption}\n{}", file.in_words()).trim_start()),
    }
}

/// As what WeCom takes a file.
fn sort_of(kind: MediaKind, media_type: &str, size: u64) -> Option<&'static str> {
    const MB: u64 = 1024 * 1024;
    match (kind, media_type) {
        (MediaKind::Image, "image/jpeg" | "image/png") if size <= 10 * MB => Some("image"),
        (MediaKind::Voice, "audio/amr") if size <= 2 * MB => Some("voice"),
        (MediaKind::Video, "video/mp4") if size <= 10 * MB => Some("video"),
        // It takes nothing smaller than this for a file.
        _ => (5 < size && size <= 20 * MB).then_some("file"),
    }
}

/// A text, cut into messages; none if there is nothing to read in it. WeCom counts bytes.
fn parts(text: &str) -> Vec<String> {
    if text.trim().is_empty() { Vec::new() } else { cut(text, MAX_BYTES, Unit::Bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::clock::Mono;
    use angelia_core::limit::GcraOf;

    #[test]
    fn a_file_is_sent_as_what_it_is_or_not_at_all() {
        const MB: u64 = 1024 * 1024;
        for (kind, media_type, size, sort) in [
            (MediaKind::Image, "image/png", 9, Some("image")),
            (MediaKind::Image, "image/webp", 9, Some("file")),
            (MediaKind::Image, "image/png", 11 * MB, Some("file")),
            (MediaKind::Voice, "audio/amr", 9, Some("voice")),
            (MediaKind::Voice, "audio/ogg", 9, Some("file")),
            (MediaKind::Video, "video/mp4", 9, Some("video")),
            (MediaKind::Document, "text/plain", 5, None),
            (MediaKind::Document, "text/plain", 21 * MB, None),
        ] {
            assert_eq!(sort_of(kind, media_type, size), sort, "{kind:?} {media_type} {size}");
        }
    }

    #[test]
    fn texts_are_cut_by_bytes() {
        let text = "你好，世界。".repeat(500);
        let cut = parts(&text);
        assert!(cut.len() > 3 && cut.iter().all(|part| part.len() <= MAX_BYTES));
        assert_eq!(cut.concat(), text);
        assert_eq!(parts(&"x".repeat(2048)).len(), 1);
        assert!(parts(" \n").is_empty());
    }

    #[test]
    fn a_person_is_told_a_few_things_and_then_one_a_minute() {
        let mut people = GcraOf::new(10);
        let mut room = |user: &str, second| people.take(user, OWN, Mono(Duration::from_secs(second))).is_ok();
        let told: Vec<u64> = (0..200).filter(|second| room("ann", *second)).collect();
        assert_eq!(told, [0, 1, 2, 60, 120, 180]);
        assert!(room("bob", 3));
    }

    #[test]
    fn what_wecom_would_drop_is_not_sent() {
        for (span, most) in [(60, 30), (3600, 1000)] {
            let in_span =
                |rate: Rate| u64::from(rate.calls) * span / rate.per.as_secs() + u64::from(rate.burst);
            assert!(in_span(PERSON) + in_span(OWN) <= most, "{span} s");
        }
        assert!(u64::from(BOT.calls) * 3600 + u64::from(BOT.burst) <= 150_000);
    }
}
