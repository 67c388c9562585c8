//! An agent's texts, as messages.

use super::keyword::Keyword;
use super::{Sms, refusal, segments, webhook};
use crate::kit::{ApiError, ErrorKind, TextInParts, in_words, refused};
use crate::platform::{Delivery, Outcome};
use angelia_contract::action::Action;
use std::sync::atomic::Ordering;

impl Sms {
    /// Performs a `send`, or a `prompt` as a text.
    pub(super) async fn perform(&self, delivery: Delivery) -> Outcome {
        let Delivery { target, action, progress, .. } = delivery;
        match (in_words(&action), action) {
            (Some(content), _) => {
                let mut text = TextInParts::new(segments::parts(&content), &*progress);
                while let Some(part) = text.next().await {
                    let written = self.write(&target.chat_id, &part).await;
                    if let (Ok(further), Some(first)) = (&written, text.first()) {
                        self.keep_part(further, first).await;
                    }
                    text.wrote(written).await;
                }
                text.outcome()
            }
            (None, Action::Edit { .. }) => refused("a text message cannot be changed; send a new one"),
            (None, other) => refused(format!("SMS has no {:?}", other.op())),
        }
    }

    async fn write(&self, to: &str, text: &str) -> Result<String, Outcome> {
        let callback = self.callback();
        let mut sent = self.api.send([&self.config.id, to], text, callback.as_deref()).await;
        let is_bad = |error: &ApiError| error.kind == ErrorKind::Refused(refusal::BAD_CALLBACK);
        if callback.is_some() && sent.as_ref().is_err_and(is_bad) {
            tracing::warn!(
                bot = %self.config.name,
                "Twilio does not take server.public_url for receipts: none will come; it has to be an address \
                 that Twilio reaches"
            );
            self.no_receipts.store(true, Ordering::Relaxed);
            sent = self.api.send([&self.config.id, to], text, None).await;
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
        self.api.send([&self.config.id, to], &text, None).await.map(drop)
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
