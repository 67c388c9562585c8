//! What a gateway does, and what it makes of the turns of its chat.

use super::signs::{self, Act, Where, shown};
use super::{Turn, Turns};
use crate::clock::Mono;
use crate::inbox::Seq;
use crate::ports::log::TurnNote;
use angelia_contract::action::Action;

impl Turns {
    /// The gateway does something, under the ticket of its request.
    /// On the platform that it names, if it does.
    pub fn acts(&mut self, action: &Action, platform: Option<&str>, ticket: u64, now: Mono) {
        let Some((place, act)) = signs::act(action) else { return };
        match (place, &act) {
            (Where::Chat(chat_id), Act::Seen(message)) => {
                self.reopen(place, message);
                self.takes_up(chat_id, message, platform, now);
            }
            (_, Act::Says { .. }) => self.bring_owed(place),
            _ => {}
        }
        self.acts_unasked(place, &act, ticket, now);
        self.acts_in(place, &act, ticket, now);
        self.note_asks();
    }

    fn acts_in(&mut self, place: Where<'_>, act: &Act<'_>, ticket: u64, now: Mono) {
        let mut here: Vec<&mut Turn> = self.open.values_mut().filter(|turn| is_in(turn, place)).collect();
        let Some(platform) = here.first().map(|turn| turn.row.platform.clone()) else { return };
        here.sort_by_key(|turn| turn.row.seq);
        let signs = shown(&mut self.signs, &platform, |known| match *act {
            Act::Seen(_) | Act::LetGo(_) | Act::Done(_) => known.reacts = true,
            Act::Says { notifies, .. } => known.notifies |= notifies,
            Act::Typing => known.types = true,
            Act::Asks(_) | Act::Lives => {}
        });
        let count = here.len();
        // What names the message of one turn says nothing of the others in its chat.
        let named = act.message().filter(|message| here.iter().any(|turn| turn.answers(message)));
        for turn in here.iter_mut().filter(|turn| named.is_none_or(|message| turn.answers(message))) {
            match *act {
                Act::Typing => turn.types(now),
                Act::Says { asks, .. } if count == 1 || named.is_some() => turn.says(now, asks),
                _ => turn.lives(now),
            }
        }
        let mut mark = |message: &str, how: &dyn Fn(&mut Turn)| {
            here.iter_mut().filter(|turn| turn.row.message_id == message).for_each(|turn| how(turn));
        };
        match *act {
            Act::Seen(message) => mark(message, &Turn::seen),
            Act::Done(message) => mark(message, &|turn| turn.ends(ticket)),
            Act::LetGo(message) => mark(message, &|turn| turn.may_end(ticket)),
            Act::Says { reply_to, last, asks, .. } => {
                let any = signs.only_says && !signs.notifies;
                // What is known of a gateway may have been lost with the socket that knew it.
                let ends = |turn: &Turn| last || any && !asks && !turn.is_left();
                let mine = |turn: &Turn| match reply_to {
                    Some(message) => turn.answers(message) || any && count == 1,
                    None => count == 1 || any,
                };
                // Of a gateway that reacts only its reactions count, unless it took nothing up.
                let turn = here.iter_mut().find(|turn| mine(turn));
                let turn = turn.filter(|turn| ends(turn) && !(signs.reacts && turn.is_seen()));
                turn.into_iter().for_each(|turn| turn.says_last(reply_to, ticket));
            }
            Act::Asks(asked) => {
                let asks = here.last().map(|turn| (ticket, turn.row.conversation.clone(), asked));
                self.asking.extend(asks);
            }
            Act::Typing | Act::Lives => {}
        }
    }

    /// Words came where an answer was owed.
    fn bring_owed(&mut self, place: Where<'_>) {
        let brought = self.owed.extract_if(.., |(turn, _)| is_in(turn, place));
        let brought: Vec<Turn> = brought.map(|(turn, _)| turn).collect();
        self.note_ends(&brought);
    }

    /// A gateway that just started may mark a turn as over before it has begun.
    fn reopen(&mut self, place: Where<'_>, message: &str) {
        let again = |(turn, _): &(Turn, Mono)| is_in(turn, place) && turn.row.message_id == message;
        let Some((turn, _)) = self.ended.iter().position(again).and_then(|at| self.ended.remove(at)) else {
            return;
        };
        if !self.open.contains_key(&turn.row.conversation) {
            self.notes.push(TurnNote::Opened(turn.row.clone()));
            self.open.insert(turn.row.conversation.clone(), turn);
        }
    }

    /// The answer to a request was written; `ok` if what it asked for was done.
    pub fn answered(&mut self, ticket: u64, ok: bool, now: Mono) {
        let turns = self.open.values_mut().chain(self.unasked.values_mut());
        turns.for_each(|turn| turn.answered(ticket, now));
        if let Some(at) = self.asking.iter().position(|(asked, ..)| *asked == ticket) {
            let (_, conversation, asked) = self.asking.remove(at);
            if let Some(turn) = self.open.get_mut(&conversation).filter(|_| ok) {
                turn.asks(asked);
            }
            self.note_asks();
        }
    }

    /// Whether a gateway does not read what began a turn, since another one was open in that
    /// chat: it has one conversation for everybody there. What waits for its acknowledgement
    /// behind `oldest` was not looked at yet.
    pub fn is_stalled_by_others(&self, oldest: Option<Seq>, now: Mono) -> bool {
        let chat = |turn: &Turn| turn.row.conversation.chat_id.clone();
        let earlier = |it: &Turn, turn: &Turn| it.row.seq < turn.row.seq && chat(it) == chat(turn);
        let unread = |turn: &&Turn| turn.is_unread(now) && Some(turn.row.seq) == oldest;
        let mut unread = self.open.values().filter(unread);
        unread.any(|turn| self.open.values().any(|it| earlier(it, turn)))
    }
}

fn is_in(turn: &Turn, place: Where<'_>) -> bool {
    match place {
        Where::Chat(chat) => *turn.row.conversation.chat_id == *chat,
        Where::Session(key) => turn.row.conversation.session_key.as_deref() == Some(key),
    }
}
