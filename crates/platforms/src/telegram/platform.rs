//! The `Platform` trait for Telegram: `typing`, chat info, limits, and who does the rest.

use super::ingest::Listener;
use super::locate::{BOT_RATE, chat_rate};
use super::{Telegram, descriptor, draft, learn, parse, react, render, webhook};
use crate::commands::BotCommands;
use crate::health::Checkup;
use crate::ingress::Ingress;
use crate::kit::{Account, ApiError, ErrorKind};
use crate::platform::{Delivery, FetchedFile, Outcome, Platform};
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::descriptor::Descriptor;
use angelia_contract::length::Unit;
use angelia_contract::source::chat_type;
use angelia_core::commands::{Plan, Shown};
use angelia_core::egress::{Dedupe, Rate, Target};
use angelia_core::error::Result;
use angelia_core::threads::{KnownThread, Moved, Opened};
use angelia_core::vault::Way;
use axum::Router;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;

impl Platform for Telegram {
    fn descriptor(&self) -> Descriptor {
        descriptor()
    }

    /// A message may be sent twice. Changing it to the same text twice changes
    /// nothing, as long as no further message has to be sent for it.
    fn dedupe(&self, action: &Action, _way: Option<Way>) -> Dedupe {
        match action {
            Action::Edit { content, .. } if fits_one(content) => Dedupe::Yes,
            Action::Delete { .. } | Action::ThreadRename { .. } => Dedupe::Yes,
            _ => Dedupe::No,
        }
    }

    fn budget(&self) -> Option<Rate> {
        Some(BOT_RATE)
    }

    fn chat_budget(&self, target: &Target) -> Option<Rate> {
        Some(chat_rate(target))
    }

    fn chat_key(&self, target: &Target) -> String {
        self.written_to(target)
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Outcome> {
        Box::pin(self.perform(delivery))
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
            let Some(spot) = self.spot(target).await? else {
                return Ok(ActionResult::failed("this is not a chat"));
            };
            let asked = spot.in_topic(json!({ "chat_id": spot.chat(), "action": "typing" }));
            match self.api.call::<Value>("sendChatAction", &asked).await {
                // An ornament is not worth a word about a pause.
                Ok(_) | Err(ApiError { kind: ErrorKind::Limited { .. } | ErrorKind::Unknown, .. }) => {
                    Ok(ActionResult::ok())
                }
                Err(error) => Err(error.into()),
            }
        })
    }

    fn fetch_file<'a>(&'a self, at: &'a str) -> BoxFuture<'a, Result<FetchedFile>> {
        Box::pin(self.fetch(at))
    }

    fn react<'a>(
        &'a self,
        target: &'a Target,
        message_id: &'a str,
        emoji: &'a str,
        remove: bool,
    ) -> Option<BoxFuture<'a, Result<ActionResult>>> {
        let asked = react::asked(message_id, emoji, remove)?;
        Some(Box::pin(self.mark(target, asked)))
    }

    fn draft<'a>(
        &'a self,
        target: &'a Target,
        draft_id: i64,
        text: &'a str,
    ) -> Option<BoxFuture<'a, Result<ActionResult>>> {
        Some(Box::pin(self.show_draft(draft::place(target)?, draft_id, text)))
    }

    fn open_thread<'a>(
        &'a self,
        target: &'a Target,
        name: &'a str,
        _message_id: Option<&'a str>,
        may: &'a (dyn Fn() -> bool + Sync),
    ) -> BoxFuture<'a, Result<Opened, Outcome>> {
        Box::pin(self.open_topic(target, name, may))
    }

    fn thread<'a>(&'a self, target: &'a Target) -> Option<BoxFuture<'a, Result<Option<KnownThread>>>> {
        Some(Box::pin(self.known_topic(target)))
    }

    fn moved(&self, chat_id: &str, opened: &Opened) -> Option<Moved> {
        Some(Moved {
            chat_id: chat_id.to_owned(),
            chat_type: chat_type::FORUM,
            thread_id: opened.thread_id.clone(),
            parent_chat_id: None,
            is_topic: true,
            name: opened.name.clone(),
            own: opened.own,
        })
    }

    fn chat_info<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<ActionResult>> {
        Box::pin(self.info(target))
    }

    fn look_up<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<bool>> {
        Box::pin(self.ask_for(target))
    }

    fn tell<'a>(&'a self, target: &'a Target, text: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.say_own(target, text))
    }

    fn changed_hands(&self) {
        self.sent.clear();
    }

    fn listen(self: Arc<Self>, ingress: Ingress) -> BoxFuture<'static, ()> {
        Box::pin(async move { Listener { bot: self, ingress }.run().await })
    }

    fn webhooks(self: Arc<Self>, ingress: Ingress) -> Router {
        webhook::routes(Listener { bot: self, ingress })
    }

    fn commands(&self) -> Option<&BotCommands> {
        Some(&self.commands)
    }

    fn shown_commands(&self) -> BoxFuture<'_, Result<Vec<Shown>>> {
        Box::pin(self.listed_commands())
    }

    fn register_commands<'a>(&'a self, plan: &'a Plan) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.list_commands(plan))
    }

    fn account(&self) -> Option<&Account> {
        Some(&self.account)
    }

    fn check<'a>(&'a self, _public_url: &'a str) -> BoxFuture<'a, Result<Checkup>> {
        Box::pin(self.look_over())
    }
}

impl Telegram {
    /// Asks Telegram for a chat and keeps what it says. One that it does not
    /// know stays unknown.
    async fn ask_for(&self, target: &Target) -> Result<bool> {
        let Some(spot) = self.spot(target).await? else { return Ok(false) };
        let asked = self.api.call::<parse::Chat>("getChat", &json!({ "chat_id": spot.chat() })).await;
        let chat = match asked.map_err(|error| (error.kind, error)) {
            Ok(chat) => chat,
            Err((ErrorKind::Moved(to), _)) => {
                self.move_chat(&spot.chat_id, &to.to_string()).await?;
                // The old id leads to the new one now, for whoever goes on using it.
                return Ok(self.account.directory.find(&spot.chat_id).await?.is_some());
            }
            Err((ErrorKind::Refused(_), _)) => return Ok(false),
            Err((_, error)) => return Err(error.into()),
        };
        // Telegram answers to other names for a chat too; only the one that was asked counts.
        if chat.id != spot.chat() {
            return Ok(false);
        }
        self.account.directory.keep(learn::described(&chat), &self.ports).await.map(|_| true)
    }
}

/// Whether a text needs one message at most.
fn fits_one(text: &str) -> bool {
    // What is longer as it was typed may still fit; it is not worth the reading.
    Unit::Utf16.measure(text) <= render::MAX_UNITS && render::render(text).len() <= 1
}
