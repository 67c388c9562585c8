//! Topics of a forum: opening one, and renaming it.

use super::learn::topic_row;
use super::locate::Spot;
use super::{Telegram, api};
use crate::kit::{ApiError, refused};
use crate::platform::Outcome;
use angelia_core::directory::{Chat, ChatKind};
use angelia_core::egress::Target;
use angelia_core::error::Result;
use angelia_core::threads::{self, KnownThread, NOT_A_THREAD, Opened};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// The longest pause that the rest of a chat waits for behind a topic.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

const NO_NAME: &str = "a topic needs a name";

/// What Telegram answers to a topic that it opened.
#[derive(Deserialize)]
struct ForumTopic {
    message_thread_id: i64,
    name: String,
}

impl Telegram {
    /// Opens a topic. None is opened from a message: that stays where it was written.
    pub(super) async fn open_topic(
        &self,
        target: &Target,
        name: &str,
        may: impl Fn() -> bool,
    ) -> Result<Opened, Outcome> {
        let name = threads::clean(name).ok_or_else(|| refused(NO_NAME))?;
        let spot = self.spot_of_topics(target).await?;
        if spot.thread.is_some() {
            return Err(refused("a topic has no topics below it: open one in its group"));
        }
        let asked = json!({ "chat_id": spot.chat(), "name": name });
        let made = self.api.write::<ForumTopic>("createForumTopic", &asked, may).await;
        let topic = made.map_err(|error| self.not_done(error, &spot))?;
        // If that fails, it is learnt with the first message there.
        let _ = self.keep_topic(&spot, topic.message_thread_id, &topic.name).await;
        Ok(Opened { thread_id: topic.message_thread_id.to_string(), name: topic.name, own: true })
    }

    /// Renames a topic.
    pub(super) async fn rename_topic(
        &self,
        target: &Target,
        name: &str,
        may: impl Fn() -> bool,
    ) -> Result<(), Outcome> {
        let name = threads::clean(name).ok_or_else(|| refused(NO_NAME))?;
        let spot = self.spot_of_topics(target).await?;
        let topic = spot.thread.ok_or_else(|| refused(NOT_A_THREAD))?;
        let asked = json!({ "chat_id": spot.chat(), "message_thread_id": topic, "name": name });
        match self.api.write::<Value>("editForumTopic", &asked, may).await {
            Err(error) if !api::words(&error).is_some_and(is_named_so) => {
                return Err(self.not_done(error, &spot));
            }
            _ => {}
        }
        let _ = self.keep_topic(&spot, topic, &name).await;
        Ok(())
    }

    async fn spot_of_topics(&self, target: &Target) -> Result<Spot, Outcome> {
        match self.spot(target).await {
            Ok(Some(spot)) if spot.chat() < 0 => Ok(spot),
            Ok(Some(_)) => Err(refused("private chats have no topics that the bot opens")),
            Ok(None) => Err(refused("this is not a chat")),
            Err(error) => Err(ApiError::unavailable(error.to_string()).outcome()),
        }
    }

    async fn keep_topic(&self, spot: &Spot, topic: i64, name: &str) -> Result<()> {
        let row = topic_row(&spot.chat_id, topic);
        let (parent, name) = (Some(spot.chat_id.clone()), Some(name.to_owned()));
        let chat = Chat { parent, name, ..Chat::new(row, ChatKind::Topic) };
        self.account.directory.keep(chat, &self.ports).await.map(drop)
    }

    /// What a failed call means. Nothing else of the group waits for long.
    fn not_done(&self, error: ApiError, spot: &Spot) -> Outcome {
        match self.outcome(error, spot) {
            Outcome::Later { after, why, .. } if after > LONGEST_PAUSE => {
                refused(format!("{why}: try again in {} s", after.as_secs()))
            }
            outcome => outcome,
        }
    }

    /// What is known of the topic that a target is.
    pub(super) async fn known_topic(&self, target: &Target) -> Result<Option<KnownThread>> {
        let Some(spot) = self.spot(target).await? else { return Ok(None) };
        let Some(topic) = spot.thread else { return Ok(None) };
        let chat_id = topic_row(&spot.chat_id, topic);
        let known = self.account.directory.find(&chat_id).await?;
        let name = known.and_then(|known| known.chat.name.clone());
        Ok(Some(KnownThread { chat_id, name }))
    }
}

/// Whether a refusal says that a topic has that name.
fn is_named_so(why: &str) -> bool {
    why.to_ascii_uppercase().contains("TOPIC_NOT_MODIFIED")
}
