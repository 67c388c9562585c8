//! An agent's actions, as messages.

use super::Wecom;
use super::address::user_of;
use super::api::Failure;
use super::descriptor::MAX_BYTES;
use crate::platform::{Delivery, Outcome, Progress, Reach};
use angelia_contract::action::Action;
use angelia_contract::length::Unit;
use angelia_contract::split::split;
use angelia_core::clock::{self, Mono};
use angelia_core::egress::Rate;
use angelia_core::fail;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// How soon something that was certainly not done is tried again.
const AGAIN: Duration = Duration::from_secs(2);
/// How long the rest of a text that has begun to appear is tried for: as long
/// as an action lives. Nobody else can finish it.
const REST_WITHIN: Duration = Duration::from_secs(600);

/// WeCom lets a company make 10,000 calls a minute and 150,000 an hour; in any
/// hour these are at most 144,040.
pub(super) const BOT: Rate = Rate { calls: 40, per: Duration::from_secs(1), burst: 40 };
/// A member gets 30 messages a minute and 1,000 an hour from an app; what is
/// more WeCom drops and says nothing. In any minute these are at most 23, in any hour
/// 908; the rest is left for the connector's own words.
pub(super) const PERSON: Rate = Rate { calls: 15, per: Duration::from_secs(60), burst: 8 };

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

/// One delivery under way.
struct Job<'a> {
    progress: &'a dyn Progress,
    user: &'a str,
    /// Whether the call that was granted with the delivery is made.
    called: bool,
}

impl Job<'_> {
    /// Waits for leave to call. The first call has it already.
    async fn turn(&mut self) -> Result<(), Outcome> {
        if self.called && !self.progress.next_call().await {
            return Err(refused("its sender may not write there any more"));
        }
        self.called = true;
        Ok(())
    }
}

impl Wecom {
    /// Performs a `send`; there is nothing else.
    pub(super) async fn perform(&self, delivery: Delivery) -> Outcome {
        let Delivery { id, target, action, progress, .. } = delivery;
        let Some(user) = user_of(&target) else { return refused("this is not a chat") };
        let content = match action {
            Action::Send { content, .. } => content,
            Action::Edit { .. } => return refused("WeCom's messages cannot be changed; send a new one"),
            other => return refused(format!("WeCom has no {:?}", other.op())),
        };
        let mut job = Job { progress: &*progress, user, called: false };
        let unnamed = format!("wecom-{}", id.0);
        let sent = self.say(&mut job, &content, unnamed).await;
        sent.map_or_else(|outcome| outcome, |message_id| Outcome::Sent { message_id, recorded: false })
    }

    async fn say(&self, job: &mut Job<'_>, text: &str, unnamed: String) -> Result<String, Outcome> {
        let parts = parts(text);
        let Some((first, rest)) = parts.split_first() else {
            return Err(refused("there is no text to send"));
        };
        let message_id = Some(self.write(job, first).await?).filter(|id| !id.is_empty()).unwrap_or(unnamed);
        if !rest.is_empty() {
            // From here on nobody else can finish it.
            job.progress.first_part(&message_id);
            let until = clock::mono() + REST_WITHIN;
            for part in rest {
                self.write_patiently(job, part, until).await?;
            }
        }
        Ok(message_id)
    }

    /// Writes a part of a text whose beginning is out already: waits where WeCom wants that.
    async fn write_patiently(&self, job: &mut Job<'_>, part: &str, until: Mono) -> Result<(), Outcome> {
        loop {
            match self.write(job, part).await {
                Err(Outcome::Later { after, reach, .. }) if clock::mono() + after < until => {
                    job.progress.pause(reach, after);
                    tokio::time::sleep(after).await;
                }
                written => return written.map(drop),
            }
        }
    }

    async fn write(&self, job: &mut Job<'_>, text: &str) -> Result<String, Outcome> {
        job.turn().await?;
        fail::point("action_sending");
        let written = self.write_once(job.user, text, || job.progress.still_allowed()).await;
        written.map_err(|failure| self.outcome(failure))
    }

    /// Sends one message. How that goes tells whether the app can speak.
    pub(super) async fn write_once(
        &self,
        user: &str,
        text: &str,
        may: impl Fn() -> bool,
    ) -> Result<String, Failure> {
        let sent = self.try_write(user, text, may).await;
        match &sent {
            Ok(_) => self.spoke(),
            Err(failure @ Failure::Setup(_)) => self.fell_silent(failure),
            Err(_) => {}
        }
        sent
    }

    /// The same; once more with a new token if WeCom does not take the old one any more,
    /// for then nothing was sent.
    async fn try_write(&self, user: &str, text: &str, may: impl Fn() -> bool) -> Result<String, Failure> {
        let token = self.token.get(&self.api).await?;
        if !may() {
            return Err(Failure::Refused("its sender may not write there any more".into()));
        }
        let message = json!({
            "touser": user,
            "msgtype": "text",
            "agentid": self.agent,
            "text": { "content": text },
            "safe": 0,
            // It would also swallow the second of two honest answers that say the same.
            "enable_duplicate_check": 0,
        });
        let send =
            async |token| self.api.post::<Sent>("message/send", &[("access_token", token)], &message).await;
        let sent = match send(&token).await {
            Err(Failure::Token) => {
                self.health.count("tokens_refused");
                send(&self.token.other_than(&self.api, &token).await?).await?
            }
            sent => sent?,
        };
        match sent {
            Sent { unlicenseduser, .. } if !unlicenseduser.is_empty() => Err(Failure::Refused(
                "WeCom did not deliver it: the company has no licence for this person's account; an administrator \
                 can assign one"
                    .into(),
            )),
            Sent { invaliduser, .. } if !invaliduser.is_empty() => Err(Failure::Refused(
                "WeCom did not deliver it: the person is not in the app's visible range any more, or has left the \
                 company; an administrator can add them"
                    .into(),
            )),
            Sent { msgid, .. } => Ok(msgid),
        }
    }

    /// What a failed call means for the delivery.
    fn outcome(&self, failure: Failure) -> Outcome {
        let later = |after, reach, why: String| Outcome::Later { after, reach, why };
        match failure {
            Failure::Limited(pause) => {
                self.health.count("floods");
                later(pause, Reach::Bot, failure.to_string())
            }
            // Both say that nothing was done; WeCom itself asks to be tried again.
            Failure::Busy | Failure::Token => later(AGAIN, Reach::Action, failure.to_string()),
            Failure::Unavailable(why) => later(AGAIN, Reach::Action, why),
            Failure::Unknown(why) => Outcome::Unknown { why },
            Failure::Setup(why) | Failure::Refused(why) => refused(why),
        }
    }
}

/// A text, cut into messages. WeCom counts bytes.
pub(super) fn parts(text: &str) -> Vec<String> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let parts = split(text, MAX_BYTES, Unit::Bytes).unwrap_or_default();
    parts.into_iter().map(|part| part.text).collect()
}

fn refused(why: impl Into<String>) -> Outcome {
    Outcome::Refused { why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_wecom_would_drop_is_not_sent() {
        for (span, most) in [(60, 30), (3600, 1000)] {
            let own = super::super::replies::OWN;
            let in_span =
                |rate: Rate| u64::from(rate.calls) * span / rate.per.as_secs() + u64::from(rate.burst);
            assert!(in_span(PERSON) + in_span(own) <= most, "{span} s");
        }
        assert!(u64::from(BOT.calls) * 3600 + u64::from(BOT.burst) <= 150_000);
    }
}
