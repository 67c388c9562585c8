//! The `Platform` trait for Discord: where targets are, `typing`, limits, and who does the rest.

use super::api::{Call, Method};
use super::api_error::ApiError;
use super::chats::IngestError;
use super::descriptor::descriptor;
use super::normalize::type_of;
use super::pieces;
use super::{Discord, NAME, address, react, webhook};
use crate::commands::BotCommands;
use crate::health::{Checkup, Health};
use crate::ingress::Ingress;
use crate::kit::{Account, refused};
use crate::platform::{Answer, Delivery, FetchedFile, Outcome, Platform};
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::descriptor::Descriptor;
use angelia_core::commands::{Plan, Shown};
use angelia_core::directory::ChatKind;
use angelia_core::egress::{Bot, Dedupe, Rate, Target, Whereabouts};
use angelia_core::error::{Error, Result};
use angelia_core::inbox::Rendering;
use angelia_core::threads::{KnownThread, Moved, Opened};
use angelia_core::vault::Way;
use axum::Router;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// For how long Discord surely knows a nonce. It says "a few minutes".
pub(super) const NONCE_LIFE: Duration = Duration::from_secs(120);

/// All of a bot's calls: with the burst, less than Discord's fifty in any second,
/// and a few are left for what the connector itself asks.
const BUDGET: Rate = Rate { calls: 36, per: Duration::from_secs(1), burst: 8 };

/// Calls in one channel. Discord lets five messages and five edits through in
/// five seconds each. A burst may run into that: then the calls wait for what
/// Discord itself says of its buckets, and none is refused.
const CHAT_BUDGET: Rate = Rate { calls: 5, per: Duration::from_secs(5), burst: 4 };

impl Discord {
    /// The channel that a target means; `None` if its ids are none.
    pub(super) fn channel_of<'a>(&self, target: &'a Target) -> Option<&'a str> {
        let written = target.thread_id.as_deref().unwrap_or(&target.chat_id);
        let are_ids = [&target.chat_id, written].into_iter().all(|id| address::snowflake(id).is_some());
        are_ids.then_some(written)
    }
}

impl Bot for Discord {
    fn platform(&self) -> &str {
        NAME
    }

    fn id(&self) -> &str {
        self.own_id()
    }

    fn places(&self, target: &Target) -> Whereabouts {
        let Some(channel) = self.channel_of(target) else { return Whereabouts::Nowhere };
        let Some(known) = self.account.directory.at_hand(channel) else { return Whereabouts::Unknown };
        let chat = &known.chat;
        // A thread is where its channel is, not where a frame says.
        let is_below = chat.kind == ChatKind::Thread && chat.parent.as_ref() == Some(&target.chat_id);
        if channel != target.chat_id && !is_below {
            return Whereabouts::Nowhere;
        }
        address::places(chat).map_or(Whereabouts::Unknown, Whereabouts::Places)
    }
}

impl Platform for Discord {
    fn descriptor(&self) -> Descriptor {
        descriptor()
    }

    fn dedupe(&self, action: &Action, way: Option<Way>) -> Dedupe {
        match (action, way) {
            (Action::Delete { .. } | Action::ThreadRename { .. }, _) => Dedupe::Yes,
            // A message has one thread.
            (Action::ThreadCreate { message_id: Some(_), .. }, _) => Dedupe::Yes,
            (Action::ThreadCreate { message_id: None, .. }, _) => Dedupe::No,
            // One that may post further pieces leans on their nonces.
            (Action::Edit { content, .. }, _) if pieces::parts(content).len() <= 1 => Dedupe::Yes,
            // The same in the same place, for as long as that is there. What is said behind
            // it and not known to be there is not given to it again.
            (Action::Send { .. }, Some(Way::Original)) => Dedupe::Yes,
            // This takes no nonce.
            (Action::Send { .. }, Some(Way::Further)) => Dedupe::No,
            _ => Dedupe::For(NONCE_LIFE),
        }
    }

    fn rendering(&self) -> Rendering {
        self.config.interactions
    }

    fn budget(&self) -> Option<Rate> {
        Some(BUDGET)
    }

    fn chat_budget(&self, _target: &Target) -> Option<Rate> {
        Some(CHAT_BUDGET)
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            match self.channel_of(&delivery.target).map(str::to_owned) {
                Some(channel) => self.perform(delivery, &channel).await,
                None => Outcome::Refused { why: "this is not a chat".into() },
            }
        })
    }

    fn fetch_file<'a>(&'a self, at: &'a str) -> BoxFuture<'a, Result<FetchedFile>> {
        Box::pin(self.fetch(at))
    }

    fn typing<'a>(
        &'a self,
        target: &'a Target,
        words: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ActionResult>> {
        Box::pin(async move {
            // It ends by itself.
            if words == Some("") {
                return Ok(ActionResult::ok());
            }
            let Some(channel) = self.channel_of(target) else {
                return Ok(ActionResult::failed("this is not a chat"));
            };
            match self.api.call(Call::new(Method::Post, format!("channels/{channel}/typing"))).await {
                Ok(_) => Ok(ActionResult::ok()),
                Err(failure @ (ApiError::Refused { .. } | ApiError::Withdrawn)) => {
                    Ok(ActionResult::failed(failure.why()))
                }
                Err(failure) => Err(Error::unavailable(failure.why())),
            }
        })
    }

    fn place_of<'a>(&'a self, target: &'a Target, message_id: &'a str) -> BoxFuture<'a, Target> {
        Box::pin(async move {
            let above = self.opened_from(target, message_id).await;
            above.map_or_else(|| target.clone(), Target::chat)
        })
    }

    fn react<'a>(
        &'a self,
        target: &'a Target,
        message_id: &'a str,
        emoji: &'a str,
        remove: bool,
    ) -> Option<BoxFuture<'a, Result<ActionResult>>> {
        let channel = self.channel_of(target)?;
        let call = react::call(channel, message_id, emoji, remove)?;
        Some(Box::pin(self.mark(call)))
    }

    fn open_thread<'a>(
        &'a self,
        target: &'a Target,
        name: &'a str,
        message_id: Option<&'a str>,
        may: &'a (dyn Fn() -> bool + Sync),
    ) -> BoxFuture<'a, Result<Opened, Outcome>> {
        Box::pin(async move {
            let channel = self.channel_of(target).ok_or_else(|| refused("this is not a chat"))?;
            self.open_below(channel, name, message_id, may).await
        })
    }

    fn reopens(&self) -> bool {
        true
    }

    fn thread<'a>(&'a self, target: &'a Target) -> Option<BoxFuture<'a, Result<Option<KnownThread>>>> {
        let channel = self.channel_of(target)?;
        Some(Box::pin(self.known_thread(channel)))
    }

    fn moved(&self, chat_id: &str, opened: &Opened) -> Option<Moved> {
        let thread = || opened.thread_id.clone();
        Some(Moved {
            chat_id: thread(),
            chat_type: type_of(ChatKind::Thread),
            thread_id: thread(),
            parent_chat_id: Some(chat_id.to_owned()),
            is_topic: false,
            name: opened.name.clone(),
            own: opened.own,
        })
    }

    fn chat_info<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<ActionResult>> {
        Box::pin(async move {
            let channel = self.channel_of(target).unwrap_or_default();
            let known = self.account.directory.find(channel).await?;
            let known = known.ok_or_else(|| Error::not_found("nothing is known of this chat"))?;
            let name = known.chat.name.clone().unwrap_or_else(|| channel.to_owned());
            Ok(ActionResult::chat(name, type_of(known.chat.kind)))
        })
    }

    fn recall<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if let Some(channel) = self.channel_of(target) {
                self.account.directory.find(channel).await?;
            }
            Ok(())
        })
    }

    fn look_up<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let Some(channel) = self.channel_of(target) else { return Ok(false) };
            match self.fetch_channel(channel).await {
                Ok(_) => Ok(true),
                Err(IngestError::Unreadable(_)) => Ok(false),
                Err(IngestError::NotNow { why, .. }) => Err(Error::unavailable(why)),
            }
        })
    }

    fn chat_key(&self, target: &Target) -> String {
        self.channel_of(target).unwrap_or(&target.chat_id).to_owned()
    }

    fn tell<'a>(&'a self, target: &'a Target, text: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let channel = self.channel_of(target).ok_or_else(|| Error::invalid("this is not a chat"))?;
            Ok(self.say(channel, text, None).await?)
        })
    }

    fn tell_waiting<'a>(&'a self, answer: &'a Answer, text: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.tell_one_who_waits(answer, text))
    }

    fn webhooks(self: Arc<Self>, ingress: Ingress) -> Router {
        webhook::routes(self, ingress)
    }

    fn commands(&self) -> Option<&BotCommands> {
        Some(&self.commands)
    }

    fn shown_commands(&self) -> BoxFuture<'_, Result<Vec<Shown>>> {
        Box::pin(self.registered_commands())
    }

    fn register_commands<'a>(&'a self, plan: &'a Plan) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.put_commands(plan))
    }

    fn listens_everywhere(&self) -> bool {
        true
    }

    fn changed_hands(&self) {
        self.sent.clear();
    }

    fn listen(self: Arc<Self>, ingress: Ingress) -> BoxFuture<'static, ()> {
        Box::pin(self.run(ingress))
    }

    fn account(&self) -> Option<&Account> {
        Some(&self.account)
    }

    fn health(&self) -> Option<Health> {
        Some(self.shards.of(self.account.health.health()))
    }

    fn check<'a>(&'a self, public_url: &'a str) -> BoxFuture<'a, Result<Checkup>> {
        Box::pin(async move { Ok(self.checkup(public_url).await) })
    }
}
