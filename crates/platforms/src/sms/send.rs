//! An agent's texts, as messages.

use super::keyword::Keyword;
use super::{Sms, refusal, segments, webhook};
use crate::kit::{ApiError, ErrorKind, NO_FILE, TextInParts, in_words, refused};
use crate::platform::{Delivery, Outcome, OutgoingFile, Progress};
use angelia_contract::action::Action;
use angelia_core::fail;
use std::sync::atomic::Ordering;

impl Sms {
    /// Performs a `send` or a `send_media`, or a `prompt` as a text.
    pub(super) async fn perform(&self, delivery: Delivery) -> Outcome {
        let Delivery { target, action, progress, file, .. } = delivery;
        match (in_words(&action), action, file) {
            (Some(content), ..) => self.say(&target.chat_id, &content, &*progress).await,
            (None, Action::SendMedia { content, .. }, Some(file)) => {
                // A longer text takes several messages: then the link stands at its end.
                if is_picture(&file) && segments::parts(&content).len() <= 1 {
                    fail::point("action_sending");
                    match self.write(&target.chat_id, &content, Some(&file.link)).await {
                        // Many numbers send no pictures, and many countries have none.
                        Err(Outcome::Refused { why }) => {
                            tracing::debug!(%why, "a picture goes out as a link");
                            if !progress.next_call().await {
                                return ApiError::withdrawn().outcome();
                            }
                        }
                        Ok(message_id) => return Outcome::Sent { message_id, recorded: false },
                        Err(outcome) => return outcome,
                    }
                }
                let text = format!("{content}\n{}", file.in_words());
                self.say(&target.chat_id, text.trim_start(), &*progress).await
            }
            (None, Action::SendMedia { .. }, None) => refused(NO_FILE),
            (None, Action::Edit { .. }, _) => refused("a text message cannot be changed; send a new one"),
            (None, other, _) => refused(format!("SMS has no {:?}", other.op())),
        }
    }

    async fn say(&self, to: &str, content: &str, progress: &dyn Progress) -> Outcome {
        let mut text = TextInParts::new(segments::parts(content), progress);
        while let Some(part) = text.next().await {
            let written = self.write(to, &part, None).await;
            if let (Ok(further), Some(first)) = (&written, text.first()) {
                self.keep_part(further, first).await;
            }
            text.wrote(written).await;
        }
        text.outcome()
    }

    /// Sends one message, with a picture that Twilio fetches by a link.
    async fn write(&self, to: &str, text: &str, picture: Option<&str>) -> Result<String, Outcome> {
        let callback = self.callback();
        let numbers = [&*self.config.id, to];
        let mut sent = self.api.send(numbers, text, picture, callback.as_deref()).await;
        let is_bad = |error: &ApiError| error.kind == ErrorKind::Refused(refusal::BAD_CALLBACK);
        if callback.is_some() && sent.as_ref().is_err_and(is_bad) {
            tracing::warn!(
                bot = %self.config.name,
                "Twilio does not take server.public_url for receipts: none will come; it has to be an address \
                 that Twilio reaches"
            );
            self.no_receipts.store(true, Ordering::Relaxed);
            sent = self.api.send(numbers, text, picture, None).await;
        }
        if let Err(error) = &sent
            && error.kind == ErrorKind::Refused(refusal::STOPPED)
            && let Err(error) = self.heed(to, Keyword::Stop).await
        {
            tracing::warn!(bot = %self.config.name, %error, "that somebody stopped could not be written down");
        }
        sent.map_err(|error| self.outcome(error))
    }

    /// Where receipts go, if Twilio can reach that.
    fn callback(&self) -> Option<String> {
        let public_url = self.public_url.get().filter(|_| !self.no_receipts.load(Ordering::Relaxed))?;
        Some(format!("{public_url}{}", webhook::status_path(&self.config.name)))
    }

    /// Says something of the connector's own, once.
    pub(super) async fn say_own(&self, to: &str, text: &str) -> Result<(), ApiError> {
        let text: String = text.chars().take(segments::MAX_CHARS).collect();
        self.api.send([&self.config.id, to], &text, None, None).await.map(drop)
    }

    /// What a failed call means for the delivery.
    fn outcome(&self, mut error: ApiError) -> Outcome {
        match error.kind {
            ErrorKind::Limited { .. } => error.why = "Twilio wants a pause".into(),
            ErrorKind::Setup => self.account.health.down(error.why.as_str()),
            _ => {}
        }
        self.account.outcome(error)
    }
}

/// Pictures that Twilio sends: of these sorts, and no larger.
fn is_picture(file: &OutgoingFile) -> bool {
    const MOST: u64 = 5_000_000;
    let is_one = matches!(&*file.media_type, "image/jpeg" | "image/png" | "image/gif");
    is_one && file.size <= MOST && file.link.starts_with("https://")
}
