//! `react`: a mark on a message, shown where the platform can. Gateways mark by it where a turn
//! begins and ends and wait for the answer, so it is given at once; the mark itself is an
//! ornament, the first thing to go when calls are short.

use super::action::OutboundAction;
use super::chat_info::is_refusal;
use super::{Egress, asked};
use angelia_contract::action::Action;
use angelia_core::clock::{self, Mono};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How long a provider gets.
const SHOWN_WITHIN: Duration = Duration::from_secs(5);
/// How long no mark is tried in a chat whose provider refused one: the bot may not, and refusals
/// are counted.
const SHUT_FOR: Duration = Duration::from_secs(600);
/// Messages that are being marked, and chats that are shut. Further marks are not shown.
const MAX_MESSAGES: usize = 1_024;
/// Marks that wait for the ones before them on the same message: a turn has three.
const MAX_MARKS: usize = 8;

/// A chat as its provider counts it: the position of its bot, and its id.
type Chat = (usize, String);
/// A message of a chat.
type Message = (Chat, String);

/// Marks on their way. Those of one message go one after the other: taking the eyes away must
/// not arrive before they were put there.
#[derive(Default)]
pub(super) struct Marks {
    /// The messages that are being marked, and what follows there.
    under_way: Mutex<HashMap<Message, VecDeque<Arc<OutboundAction>>>>,
    /// Where marks were refused, and until when none is tried.
    shut: Mutex<HashMap<Chat, Mono>>,
}

impl Marks {
    /// Puts a mark in line; `true` if nobody attends to its message yet.
    fn enter(&self, message: &Message, action: Arc<OutboundAction>) -> bool {
        let mut under_way = self.under_way.lock();
        if let Some(waiting) = under_way.get_mut(message) {
            if waiting.len() < MAX_MARKS {
                waiting.push_back(action);
            }
            return false;
        }
        let has_room = under_way.len() < MAX_MESSAGES;
        if has_room {
            under_way.insert(message.clone(), VecDeque::from([action]));
        }
        has_room
    }

    /// The next mark of a message; `None` if there is none and nobody attends to it any more.
    fn next(&self, message: &Message) -> Option<Arc<OutboundAction>> {
        let mut under_way = self.under_way.lock();
        let next = under_way.get_mut(message).and_then(VecDeque::pop_front);
        if next.is_none() {
            under_way.remove(message);
        }
        next
    }

    fn is_shut(&self, chat: &Chat) -> bool {
        self.shut.lock().get(chat).is_some_and(|until| *until > clock::mono())
    }

    fn shut(&self, chat: Chat) {
        let (mut shut, now) = (self.shut.lock(), clock::mono());
        shut.retain(|_, until| *until > now);
        if shut.len() < MAX_MESSAGES {
            shut.insert(chat, now + SHUT_FOR);
        }
    }
}

/// Shows a mark beside everything else, if there is a call to spare.
pub(super) fn show(egress: &Arc<Egress>, action: Arc<OutboundAction>) {
    let Action::React { message_id, .. } = &action.action else { return };
    if egress.is_elsewhere(action.bot) {
        return asked::tell(egress, &action);
    }
    let chat = (action.bot, action.platform(egress).chat_key(&action.target));
    let message = (chat, message_id.clone());
    if !egress.marks.enter(&message, action) {
        return;
    }
    let egress = egress.clone();
    tokio::spawn(async move {
        while let Some(action) = egress.marks.next(&message) {
            perform(&egress, &message.0, &action).await;
        }
    });
}

async fn perform(egress: &Egress, chat: &Chat, action: &OutboundAction) {
    let Action::React { message_id, emoji, remove, .. } = &action.action else { return };
    let (tenant, platform) = (&action.origin.tenant, action.platform(egress));
    if egress.marks.is_shut(chat) || action.recall(egress).await.is_err() || !action.may_call_now(egress) {
        return;
    }
    // The message may be elsewhere: there it is asked again.
    let target = platform.place_of(&action.target, message_id).await;
    if target != action.target {
        let known = platform.recall(&target).await.is_ok();
        if !known || !action.may_write_to(egress, &target) {
            return;
        }
    }
    let Some(call) = platform.react(&target, message_id, emoji, *remove) else { return };
    let Some(slot) = egress.refusals.slot_at_once(tenant) else { return };
    // Providers do not count marks among a chat's messages, and the last one comes right behind an answer.
    if !action.rate_limit(egress).spare(tenant, None) {
        return;
    }
    let done = tokio::time::timeout(SHOWN_WITHIN, call).await;
    let refused = done.as_ref().is_ok_and(is_refusal);
    slot.over(refused);
    if refused {
        egress.marks.shut(chat.clone());
    }
}
