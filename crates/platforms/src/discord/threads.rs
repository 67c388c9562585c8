//! Threads: opening one below a channel, and renaming it.

use super::api::{Call, Method};
use super::api_error::{ApiError, code};
use super::chats;
use super::parse::Channel;
use super::{Discord, address};
use crate::kit::refused;
use crate::platform::{Outcome, Reach};
use angelia_core::directory::{Chat, ChatKind};
use angelia_core::egress::Target;
use angelia_core::error::Result;
use angelia_core::threads::{self, KnownThread, NOT_A_THREAD, Opened};
use serde_json::json;

/// After how many minutes without a word Discord puts a thread out of sight; whoever writes there
/// brings it back.
const ARCHIVED_AFTER: u32 = 1_440;
/// A thread that everybody in its channel sees.
const PUBLIC_THREAD: u32 = 11;

/// What the bot needs to open threads.
const MAY_OPEN: &str = "give the bot Create Public Threads and Send Messages in Threads there";
/// What it needs to rename one that it did not open.
const MAY_RENAME: &str = "give the bot Manage Threads there";
const NO_NAME: &str = "a thread needs a name";

impl Discord {
    /// Opens a thread below a channel, from a message of it if that is given: twice from the same
    /// message opens one.
    pub(super) async fn open_below(
        &self,
        channel: &str,
        name: &str,
        message_id: Option<&str>,
        may: impl Fn() -> bool,
    ) -> Result<Opened, Outcome> {
        let name = threads::clean(name).ok_or_else(|| refused(NO_NAME))?;
        let known = self.account.directory.find(channel).await.ok().flatten();
        if let Some(why) = known.as_ref().and_then(|known| without_threads(&known.chat)) {
            return Err(refused(why));
        }
        let body = json!({ "name": name, "auto_archive_duration": ARCHIVED_AFTER });
        let call = match message_id {
            None => Call::new(Method::Post, format!("channels/{channel}/threads"))
                .json(body)
                .with("type", PUBLIC_THREAD.into()),
            Some(message) if address::snowflake(message).is_some() => {
                Call::new(Method::Post, format!("channels/{channel}/messages/{message}/threads")).json(body)
            }
            Some(_) => return Err(refused("there is no such message in this chat")),
        };
        let scope = known.and_then(|known| known.chat.scope.clone());
        let thread = match (self.api.call_if(call, may).await, message_id) {
            (Ok(answer), _) => {
                serde_json::from_slice::<Channel>(&answer).map_err(|_| ApiError::Unreadable)?
            }
            // It has the message's id. Somebody was first: this bot before a restart, or a person.
            (Err(failure), Some(message)) if failure.is(code::HAS_THREAD) => {
                self.api.read(Call::get(format!("channels/{message}"))).await?
            }
            (Err(failure), _) => return Err(not_done(failure, "opened", MAY_OPEN)),
        };
        let opened = Opened {
            thread_id: thread.id.0.clone(),
            name: thread.name.0.clone().unwrap_or(name),
            own: thread.owner_id.as_deref() == Some(self.own_id()),
        };
        let chat = chats::chat(&thread, scope.as_deref(), self.own_id());
        // If that fails, it is asked for when somebody writes there.
        if let Some(chat) = chat.filter(|chat| chat.kind == ChatKind::Thread) {
            let _ = self.account.directory.keep(chat, &self.ports).await;
        }
        Ok(opened)
    }

    /// Renames a thread.
    pub(super) async fn rename(
        &self,
        thread: &str,
        name: &str,
        may: impl Fn() -> bool,
    ) -> Result<(), Outcome> {
        let name = threads::clean(name).ok_or_else(|| refused(NO_NAME))?;
        let known = self.account.directory.find(thread).await.ok().flatten();
        let known = known.filter(|known| known.chat.kind == ChatKind::Thread);
        let chat = known.map(|known| known.chat.clone()).ok_or_else(|| refused(NOT_A_THREAD))?;
        let call = Call::new(Method::Patch, format!("channels/{thread}")).json(json!({ "name": name }));
        let answer = self.api.call_if(call, may).await;
        let answer = answer.map_err(|failure| not_done(failure, "renamed", MAY_RENAME))?;
        let renamed: Option<Channel> = serde_json::from_slice(&answer).ok();
        let name = renamed.and_then(|thread| thread.name.0).or(Some(name));
        let _ = self.account.directory.keep(Chat { name, ..chat }, &self.ports).await;
        Ok(())
    }

    /// What is known of the thread that a target is.
    pub(super) async fn known_thread(&self, channel: &str) -> Result<Option<KnownThread>> {
        let known = self.account.directory.find(channel).await?;
        let known = known.filter(|known| known.chat.kind == ChatKind::Thread);
        Ok(known.map(|known| KnownThread { chat_id: channel.to_owned(), name: known.chat.name.clone() }))
    }

    /// The channel above a thread, if a message is there: what opened the thread has the thread's id.
    /// The first message of a post in a forum has it too, and is in the thread.
    pub(super) async fn opened_from(&self, target: &Target, message_id: &str) -> Option<String> {
        let directory = &self.account.directory;
        let channel = self.channel_of(target).filter(|channel| *channel == message_id)?;
        let parent = directory.find(channel).await.ok()??.chat.parent.clone()?;
        let known = directory.find(&parent).await.ok()??;
        (known.chat.kind != ChatKind::Forum).then_some(parent)
    }
}

/// Why there is nothing below a chat; `None` if there may be.
fn without_threads(chat: &Chat) -> Option<&'static str> {
    match chat.kind {
        ChatKind::Thread => Some("a thread has no threads below it: open one in its channel"),
        ChatKind::Dm => Some("direct messages have no threads"),
        ChatKind::Forum => Some("in a forum every post is a thread: people open them there"),
        _ if chat.scope.is_none() => Some("only channels of a server have threads"),
        _ => None,
    }
}

/// What a failed call means. Discord lets threads be opened and renamed a few times in many
/// minutes, for which nothing else of the chat may wait.
fn not_done(failure: ApiError, what: &str, leave: &str) -> Outcome {
    match failure {
        ApiError::Limited { after, reach: Reach::Chat | Reach::Action } => refused(format!(
            "Discord does not let threads be {what} so often: try again in {} s",
            after.as_secs().max(1)
        )),
        ApiError::Refused { code, words, .. }
            if [code::MISSING_PERMISSIONS, code::MISSING_ACCESS].contains(&code) =>
        {
            refused(format!("Discord refused: {words} ({code}); {leave}"))
        }
        failure => failure.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn nothing_waits_for_what_discord_wants_minutes_for() {
        let limited = |reach| ApiError::Limited { after: Duration::from_secs(570), reach };
        let outcome = not_done(limited(Reach::Chat), "renamed", MAY_RENAME);
        assert!(matches!(&outcome, Outcome::Refused { why } if why.contains("570 s")), "{outcome:?}");
        let outcome = not_done(limited(Reach::Bot), "renamed", MAY_RENAME);
        assert!(matches!(outcome, Outcome::Later { .. }), "all of the bot's calls wait for that");
    }

    #[test]
    fn whoever_runs_the_bot_hears_what_it_needs() {
        let missing = ApiError::Refused { status: 403, code: 50_013, words: "Missing Permissions".into() };
        let Outcome::Refused { why } = not_done(missing, "opened", MAY_OPEN) else { panic!() };
        assert!(why.contains("Create Public Threads"), "{why}");
    }
}
