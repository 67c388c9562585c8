//! `draft`: a text that grows while the agent writes it, shown where the platform can. Each one
//! says everything so far, so only the newest of a chat is shown; the agent's final `send` takes
//! its place, and nothing is written down before that (docs/decisions/0054).

use super::action::{OutboundAction, failed};
use super::chat_info::is_refusal;
use super::chats::ChatKey;
use super::{Egress, asked};
use angelia_contract::action::{Action, ActionResult};
use angelia_core::clock::{self, Mono};
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// How long a provider gets.
const SHOWN_WITHIN: Duration = Duration::from_secs(3);
/// Gateways write a draft about ten times a second; a reader sees no difference.
const PAUSE: Duration = Duration::from_millis(300);
/// How long no draft is tried in a chat whose provider refused one. Its gateway is told, and streams
/// by edits.
const SHUT_FOR: Duration = Duration::from_secs(600);
/// Chats with a draft on its way, and chats that are shut. Further drafts are not offered.
const MAX_CHATS: usize = 1_024;

const NOT_HERE: &str = "this chat has no drafts: send the text, and edit it";
const NOT_SEALED: &str = "a draft does not become a message here: send the text";

/// Drafts on their way.
#[derive(Default)]
pub(super) struct Drafts {
    /// The chats that somebody attends to, and the newest draft that waits there.
    under_way: Mutex<HashMap<ChatKey, Option<Arc<OutboundAction>>>>,
    /// Where drafts were refused, and until when none is tried.
    shut: Mutex<HashMap<ChatKey, Mono>>,
}

/// What becomes of a draft.
#[derive(Debug, PartialEq, Eq)]
enum Entered {
    /// Nobody attends to its chat yet.
    First,
    /// Whoever does shows it next.
    Follows,
    /// There are too many.
    NoRoom,
}

impl Drafts {
    fn enter(&self, chat: &ChatKey, action: Arc<OutboundAction>) -> Entered {
        let mut under_way = self.under_way.lock();
        if let Some(waiting) = under_way.get_mut(chat) {
            // This one says all that the other did.
            waiting.replace(action).iter().for_each(shown);
            return Entered::Follows;
        }
        if under_way.len() >= MAX_CHATS {
            return Entered::NoRoom;
        }
        under_way.insert(chat.clone(), Some(action));
        Entered::First
    }

    /// The draft to show now; `None` if there is none and nobody attends to the chat any more.
    fn next(&self, chat: &ChatKey) -> Option<Arc<OutboundAction>> {
        let mut under_way = self.under_way.lock();
        let next = under_way.get_mut(chat).and_then(Option::take);
        if next.is_none() {
            under_way.remove(chat);
        }
        next
    }

    /// What was written is sent: nothing older is shown behind it.
    pub(super) fn sent(&self, chat: &ChatKey) {
        let waiting = self.under_way.lock().get_mut(chat).and_then(Option::take);
        waiting.iter().for_each(shown);
    }

    fn is_shut(&self, chat: &ChatKey) -> bool {
        self.shut.lock().get(chat).is_some_and(|until| *until > clock::mono())
    }

    fn shut(&self, chat: ChatKey) {
        let (mut shut, now) = (self.shut.lock(), clock::mono());
        shut.retain(|_, until| *until > now);
        if shut.len() < MAX_CHATS {
            shut.insert(chat, now + SHUT_FOR);
        }
    }
}

fn shown(action: &Arc<OutboundAction>) {
    action.reply.give(ActionResult::ok());
}

/// Takes a draft. It is answered when it was shown: a gateway that waits for that sends its final
/// text behind it.
pub(super) fn show(egress: &Arc<Egress>, action: Arc<OutboundAction>) {
    let Action::Draft { draft_id, content, is_final, .. } = &action.action else { return };
    if *is_final {
        return action.reply.give(failed(NOT_SEALED));
    }
    let chat = action.chat(egress);
    let has_drafts = action.platform(egress).draft(&action.target, *draft_id, content).is_some();
    if !has_drafts || egress.drafts.is_shut(&chat) {
        return action.reply.give(failed(NOT_HERE));
    }
    match egress.drafts.enter(&chat, action.clone()) {
        Entered::First => {}
        Entered::Follows => return,
        Entered::NoRoom => return action.reply.give(failed(NOT_HERE)),
    }
    let egress = egress.clone();
    tokio::spawn(async move {
        while let Some(action) = egress.drafts.next(&chat) {
            // A panic must not leave the chat to nobody.
            let shown = AssertUnwindSafe(perform(&egress, &action)).catch_unwind().await;
            let refused = shown.unwrap_or(true);
            if refused {
                egress.drafts.shut(chat.clone());
            }
            action.reply.give(if refused { failed(NOT_HERE) } else { ActionResult::ok() });
            tokio::time::sleep(PAUSE).await;
        }
    });
}

/// Makes the call, if there is one to spare; `true` if the provider refused it.
async fn perform(egress: &Arc<Egress>, action: &Arc<OutboundAction>) -> bool {
    if egress.is_elsewhere(action.bot) {
        return asked::show_draft(egress, action).await;
    }
    let Action::Draft { draft_id, content, .. } = &action.action else { return false };
    let tenant = &action.origin.tenant;
    if action.recall(egress).await.is_err() || !action.may_call_now(egress) {
        return false;
    }
    let Some(call) = action.platform(egress).draft(&action.target, *draft_id, content) else { return true };
    let Some(slot) = egress.refusals.slot_at_once(tenant) else { return false };
    if !action.rate_limit(egress).spare(tenant, action.paced(egress)) {
        return false;
    }
    let done = tokio::time::timeout(SHOWN_WITHIN, call).await;
    let refused = done.as_ref().is_ok_and(is_refusal);
    slot.over(refused);
    refused
}
