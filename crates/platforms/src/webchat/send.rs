//! An agent's actions, as lines.

use super::descriptor::MAX_LINE_CHARS;
use super::normalize::{BOT, NAME, room_of};
use super::{Hub, descriptor};
use crate::platform::{Delivery, Platform};
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::descriptor::Descriptor;
use angelia_contract::length::Unit;
use angelia_contract::split::split;
use angelia_core::egress::{ActionState, Dedupe};
use angelia_core::error::Result;
use angelia_core::store::{ActionId, ActionOutcome, Later, LineEdit, NewLine, Store};
use angelia_core::{clock, fail};
use std::sync::Arc;

/// The name under which agents write.
const AGENT: &str = "agent";

/// The web chat as a platform to write to.
pub struct Webchat {
    store: Arc<dyn Store>,
    hub: Arc<Hub>,
}

impl Webchat {
    /// The web chat over a store and its live readers.
    pub fn new(store: Arc<dyn Store>, hub: Arc<Hub>) -> Self {
        Self { store, hub }
    }

    async fn say(
        &self,
        id: ActionId,
        room: &str,
        content: &str,
        reply_to: Option<String>,
    ) -> Result<ActionResult> {
        let parts = match split(content, MAX_LINE_CHARS as usize, Unit::Chars) {
            Ok(parts) if !parts.is_empty() => parts,
            _ => return self.refuse(id, "there is no text to send").await,
        };
        let at = clock::wall();
        let lines: Vec<NewLine> = parts
            .into_iter()
            .enumerate()
            .map(|(index, part)| NewLine {
                room: room.to_owned(),
                message_id: line_id(id, index),
                author: AGENT.into(),
                from_agent: true,
                text: part.text,
                reply_to: reply_to.clone().filter(|_| index == 0),
                client_id: None,
                at,
            })
            .collect();
        fail::point("action_sending");
        self.store.say_lines(lines, id).await?;
        Ok(ActionResult::sent(line_id(id, 0)))
    }

    async fn edit(&self, id: ActionId, room: &str, message_id: String, text: &str) -> Result<ActionResult> {
        let parts = match split(text, MAX_LINE_CHARS as usize, Unit::Chars) {
            Ok(parts) if !parts.is_empty() => parts.into_iter().map(|part| part.text).collect(),
            _ => return self.refuse(id, "there is no text to show").await,
        };
        let edit = LineEdit { room: room.to_owned(), message_id: message_id.clone(), parts };
        fail::point("action_sending");
        let found = self.store.edit_line(edit, id).await?;
        Ok(if found {
            ActionResult::sent(message_id)
        } else {
            ActionResult::failed("there is no such message of yours in this chat")
        })
    }

    async fn refuse(&self, id: ActionId, why: &str) -> Result<ActionResult> {
        let outcome =
            ActionOutcome { state: ActionState::Failed, message_id: None, error: Some(why.to_owned()) };
        self.store.finish_action(id, outcome).await?;
        Ok(ActionResult::failed(why))
    }
}

/// The id of an action's line: the same action makes the same line.
fn line_id(id: ActionId, part: usize) -> String {
    match part {
        0 => format!("wa{}", id.0),
        _ => format!("wa{}.{part}", id.0),
    }
}

impl Platform for Webchat {
    fn name(&self) -> &str {
        NAME
    }

    fn bot(&self) -> &str {
        BOT
    }

    fn descriptor(&self) -> Descriptor {
        descriptor()
    }

    fn places(&self, chat_id: &str) -> Option<Vec<String>> {
        room_of(chat_id).map(|room| vec![room.to_owned(), "*".to_owned()])
    }

    fn dedupe(&self) -> Dedupe {
        Dedupe::Yes
    }

    fn deliver(&self, delivery: Delivery) -> Later<'_, ActionResult> {
        Box::pin(async move {
            let id = delivery.id;
            match delivery.action {
                Action::Send { chat_id, content, reply_to, .. } => match room_of(&chat_id) {
                    Some(room) => self.say(id, room, &content, reply_to).await,
                    None => self.refuse(id, "this is not a chat").await,
                },
                Action::Edit { chat_id, message_id, content, .. } => match room_of(&chat_id) {
                    Some(room) => self.edit(id, room, message_id, &content).await,
                    None => self.refuse(id, "this is not a chat").await,
                },
                other => self.refuse(id, &format!("the web chat has no {:?}", other.op())).await,
            }
        })
    }

    fn typing(&self, chat_id: &str) -> Later<'_, ActionResult> {
        if let Some(room) = room_of(chat_id) {
            self.hub.typing(room);
        }
        Box::pin(async { Ok(ActionResult::ok()) })
    }

    fn chat_info(&self, chat_id: &str) -> Later<'_, ActionResult> {
        let name = room_of(chat_id).unwrap_or(chat_id).to_owned();
        Box::pin(async { Ok(ActionResult::chat(name, "group")) })
    }
}
