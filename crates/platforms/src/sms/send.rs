//! An agent's texts, as messages.

use super::api::Failure;
use super::{Sms, refusal, segments, webhook};
use crate::platform::{Delivery, Outcome, Progress, Reach};
use angelia_contract::action::Action;
use angelia_core::clock::{self, Mono};
use angelia_core::fail;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How soon something that was certainly not done is tried again.
const AGAIN: Duration = Duration::from_secs(2);
/// How long the rest of a text that has begun to arrive is tried for: as long
/// as an action lives. Nobody else can finish it.
const REST_WITHIN: Duration = Duration::from_secs(600);

impl Sms {
    /// Performs a `send`.
    pub(super) async fn perform(&self, delivery: Delivery) -> Outcome {
        let Delivery { target, action, progress, .. } = delivery;
        let text = match action {
            Action::Send { content, .. } => content,
            Action::Edit { .. } => return refused("a text message cannot be changed; send a new one"),
            other => return refused(format!("SMS has no {:?}", other.op())),
        };
        let sent = self.say(&*progress, &target.chat_id, &text).await;
        sent.map_or_else(|outcome| outcome, |message_id| Outcome::Sent { message_id, recorded: false })
    }

    async fn say(&self, progress: &dyn Progress, to: &str, text: &str) -> Result<String, Outcome> {
        let parts = segments::parts(text);
        let Some((first, rest)) = parts.split_first() else {
            return Err(refused("there is no text to send"));
        };
        let message_id = self.write(to, first).await?;
        if !rest.is_empty() {
            // From here on nobody else can finish it.
            progress.first_part(&message_id);
        }
        let until = clock::mono() + REST_WITHIN;
        for part in rest {
            let further = self.write_patiently(progress, to, part, until).await?;
            self.parts.add(further, &message_id);
        }
        Ok(message_id)
    }

    /// Writes a part of a text whose beginning is out already: waits where
    /// Twilio wants that.
    async fn write_patiently(
        &self,
        progress: &dyn Progress,
        to: &str,
        part: &str,
        until: Mono,
    ) -> Result<String, Outcome> {
        loop {
            if !progress.next_call().await {
                return Err(refused("its sender may not write there any more"));
            }
            match self.write(to, part).await {
                Err(Outcome::Later { after, reach, .. }) if clock::mono() + after < until => {
                    progress.pause(reach, after);
                    tokio::time::sleep(after).await;
                }
                written => return written,
            }
        }
    }

    async fn write(&self, to: &str, text: &str) -> Result<String, Outcome> {
        fail::point("action_sending");
        let callback = self.callback();
        let mut sent = self.api.send([&self.config.id, to], text, callback.as_deref()).await;
        if matches!(sent, Err(Failure::Refused(refusal::BAD_CALLBACK, _))) && callback.is_some() {
            tracing::warn!(
                bot = %self.config.name,
                "Twilio does not take server.public_url for receipts: none will come; it has to be an address \
                 that Twilio reaches"
            );
            self.no_receipts.store(true, Ordering::Relaxed);
            sent = self.api.send([&self.config.id, to], text, None).await;
        }
        sent.map_err(|failure| self.outcome(failure, to))
    }

    /// Where receipts go, if Twilio can reach that.
    fn callback(&self) -> Option<String> {
        let public_url = self.public_url.get().filter(|_| !self.no_receipts.load(Ordering::Relaxed))?;
        Some(format!("{public_url}{}", webhook::status_path(&self.config.name)))
    }

    /// Says something of the connector's own, once.
    pub(super) async fn say_own(&self, to: &str, text: &str) -> Result<(), Failure> {
        let text: String = text.chars().take(segments::MAX_CHARS).collect();
        self.api.send([&self.config.id, to], &text, None).await.map(drop)
    }

    /// What a failed call means for the delivery.
    fn outcome(&self, failure: Failure, to: &str) -> Outcome {
        match failure {
            Failure::RetryAfter(after) => {
                self.health.count("floods");
                Outcome::Later { after, reach: Reach::Bot, why: "Twilio wants a pause".into() }
            }
            Failure::Unavailable(why) => Outcome::Later { after: AGAIN, reach: Reach::Action, why },
            Failure::Unknown(why) => Outcome::Unknown { why },
            Failure::Refused(code, why) => {
                if code == refusal::STOPPED {
                    self.stopped.stop(to);
                }
                refused(why)
            }
            Failure::Unauthorized => {
                self.health.down(failure.to_string());
                refused(failure.to_string())
            }
        }
    }
}

fn refused(why: impl Into<String>) -> Outcome {
    Outcome::Refused { why: why.into() }
}
