//! Turns that nobody's line began: a gateway that comes back takes up what it was at by itself, and
//! marks it. Whose conversation that is, it does not say, so its whole chat waits.

use super::signs::{Act, Where};
use super::turn::Turn;
use super::{ConversationKey, Generation, Turns, shown};
use crate::clock::Mono;
use crate::inbox::Seq;
use crate::ports::log::OpenTurn;
use std::sync::Arc;

/// Chats that may wait for such a turn; a gateway names them as it likes.
const MAX_UNASKED: usize = 64;
/// No id of a chat or a message is longer.
const MAX_NAME: usize = 512;

impl Turns {
    /// The gateway took a message up that began no turn here. `platform` is what it says of it.
    pub(super) fn takes_up(&mut self, chat_id: &str, message: &str, platform: Option<&str>, now: Mono) {
        let is_it = |turn: &Turn| *turn.row.conversation.chat_id == *chat_id && turn.answers(message);
        let known = self.open.values().any(is_it);
        let reads = self.peer.generation != Generation::Other;
        let named = chat_id.len().max(message.len()) <= MAX_NAME;
        if known || !reads || !named || self.unasked.len() >= MAX_UNASKED {
            return;
        }
        // Most gateways have one.
        let only = || match &self.signs[..] {
            [(platform, _)] => Some(platform.clone()),
            _ => None,
        };
        // One of which nothing was seen yet is not learnt of here: it is only a word.
        let seen_on = |name: &str| self.signs.iter().find(|(on, _)| **on == *name).map(|(on, _)| on.clone());
        let platform = platform.and_then(seen_on).or_else(only);
        if let Some(platform) = &platform {
            shown(&mut self.signs, platform, |known| known.reacts = true);
        }
        let platform = platform.unwrap_or_default();
        let row = OpenTurn {
            conversation: ConversationKey { chat_id: chat_id.into(), session_key: None },
            platform,
            bot: Arc::default(),
            thread_id: None,
            seq: Seq::default(),
            message_id: message.to_owned(),
            author: None,
            asks: false,
        };
        let mut turn = Turn::left(row, now);
        turn.seen();
        self.unasked.insert(chat_id.into(), turn);
    }

    /// The gateway does something in a chat.
    pub(super) fn acts_unasked(&mut self, place: Where<'_>, act: &Act<'_>, ticket: u64, now: Mono) {
        let Where::Chat(chat_id) = place else { return };
        let Some(turn) = self.unasked.get_mut(chat_id) else { return };
        let own = act.message().is_none_or(|message| turn.answers(message));
        match act {
            Act::Typing => turn.types(now),
            Act::Says { asks, .. } if own => turn.says(now, *asks),
            Act::Done(_) if own => turn.ends(ticket),
            Act::LetGo(_) if own => turn.may_end(ticket),
            _ => {}
        }
    }

    /// Lets such turns end.
    pub(super) fn pass_unasked(&mut self, now: Mono) {
        let (since, limit) = (self.reading_since, self.limit);
        let signs = &self.signs;
        let is_over = |turn: &Turn| {
            let signs = super::shown_on(signs, &turn.row.platform);
            turn.over_at(signs, since, limit).is_some_and(|at| at <= now)
        };
        let over = self.unasked.iter().filter(|(_, turn)| is_over(turn)).map(|(chat, _)| chat.clone());
        let over: Vec<Arc<str>> = over.collect();
        self.unasked.retain(|chat, _| !over.contains(chat));
        over.iter().for_each(|chat| self.held.freed_in(chat, now));
    }

    /// The turn that a line of a conversation has to wait for.
    pub(super) fn turn_before(&self, conversation: &ConversationKey) -> Option<&Turn> {
        self.open.get(conversation).or_else(|| self.unasked.get(&conversation.chat_id))
    }
}
