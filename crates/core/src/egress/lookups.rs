//! How often a provider may be asked where a chat is.
//!
//! Whoever names chats at random makes a provider refuse again and again, and
//! that gets the shared bot banned for everybody.

use crate::clock::Mono;
use crate::limit::{SlidingWindow, SlidingWindowOf, WhenCrowded};
use std::collections::HashMap;
use std::time::Duration;

/// A chat is asked for once in this time, whoever names it: what the provider
/// did not tell it will not tell a moment later.
pub const ASK_AGAIN: Duration = Duration::from_secs(3_600);
/// A question that got no answer is asked again after this.
pub const UNANSWERED_AGAIN: Duration = Duration::from_secs(60);
/// Questions one gateway may cause within [`ASKED_IN`].
pub const MAX_ASKED: usize = 10;
/// The time in which [`MAX_ASKED`] counts.
pub const ASKED_IN: Duration = Duration::from_secs(60);
/// Chats remembered as asked for: an hour of sixteen gateways that ask as often
/// as they may. Beyond it nothing is asked.
const MAX_CHATS: usize = 10_000;

/// What was asked lately.
#[derive(Debug)]
pub struct Lookups {
    /// By the bot's position and the chat's id.
    chats: HashMap<(usize, String), Mono>,
    gateways: SlidingWindowOf<String>,
}

impl Default for Lookups {
    fn default() -> Self {
        // Each that is remembered asked for a chat that is.
        let gateways =
            SlidingWindowOf::new(MAX_CHATS, WhenCrowded::TurnAway, SlidingWindow::new(MAX_ASKED, ASKED_IN));
        Self { chats: HashMap::new(), gateways }
    }
}

impl Lookups {
    /// The provider could not be asked for a chat: it may be again in a minute.
    pub fn unanswered(&mut self, bot: usize, chat: &str, now: Mono) {
        if let Some(asked) = self.chats.get_mut(&(bot, chat.to_owned())) {
            *asked = (now + UNANSWERED_AGAIN).before(ASK_AGAIN);
        }
    }

    /// Whether `gateway` may have the bot at position `bot` ask for `chat`; if
    /// so, it counts as asked.
    pub fn ask(&mut self, bot: usize, chat: &str, gateway: &str, now: Mono) -> bool {
        let chat = (bot, chat.to_owned());
        if self.chats.get(&chat).is_some_and(|asked| now.since(*asked) < ASK_AGAIN) {
            return false;
        }
        if self.chats.len() >= MAX_CHATS {
            self.chats.retain(|_, asked| now.since(*asked) < ASK_AGAIN);
        }
        if self.chats.len() >= MAX_CHATS || self.gateways.take(gateway, now).is_err() {
            return false;
        }
        self.chats.insert(chat, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    #[test]
    fn a_chat_is_asked_for_once_an_hour_whoever_names_it() {
        let mut lookups = Lookups::default();
        assert!(lookups.ask(0, "1", "a", at(0)));
        assert!(!lookups.ask(0, "1", "a", at(3_599)));
        assert!(!lookups.ask(0, "1", "b", at(3_599)), "somebody else");
        assert!(lookups.ask(1, "1", "b", at(3_599)), "another bot");
        assert!(lookups.ask(0, "1", "b", at(3_600)));
    }

    #[test]
    fn what_got_no_answer_is_asked_again_in_a_minute() {
        let mut lookups = Lookups::default();
        assert!(lookups.ask(0, "1", "a", at(9_000)));
        lookups.unanswered(0, "1", at(9_010));
        assert!(!lookups.ask(0, "1", "a", at(9_069)));
        assert!(lookups.ask(0, "1", "a", at(9_070)));
    }

    #[test]
    fn a_gateway_asks_ten_times_a_minute() {
        let mut lookups = Lookups::default();
        let asked = |lookups: &mut Lookups, gateway: &str, now: u64, from: usize| {
            let ask = |n: &usize| lookups.ask(0, &n.to_string(), gateway, at(now));
            (from..from + 20).filter(ask).count()
        };
        assert_eq!(asked(&mut lookups, "a", 0, 0), 10);
        assert_eq!(asked(&mut lookups, "b", 59, 100), 10, "others are not in its way");
        assert_eq!(asked(&mut lookups, "a", 59, 200), 0);
        assert_eq!(asked(&mut lookups, "a", 60, 300), 10);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut lookups = Lookups::default();
        for n in 0..2 * MAX_CHATS {
            lookups.ask(0, &n.to_string(), &format!("g{n}"), at(n as u64 / 1_000));
        }
        assert!(lookups.chats.len() <= MAX_CHATS);
        assert!(lookups.ask(0, "new", "g", at(4_000)), "an hour later there is room");
    }
}
