//! How fast one chat is written to, whoever writes there.

use crate::clock::Mono;
use crate::limit::{Gcra, Rate};
use std::collections::HashMap;

/// Chats whose pace is remembered. Those that have rested are forgotten first,
/// and it takes a bot weeks of its budget to write to so many within a minute.
const MAX_CHATS: usize = 20_000;

/// What a call is worth waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// A text that a newer one follows: it leaves a call over for that one.
    Interim,
    /// Anything else.
    Whole,
}

/// The calls of one bot, chat by chat.
#[derive(Debug, Default)]
pub struct Paces {
    chats: HashMap<String, Pace>,
    /// When calls were taken over from another node, if they were: until then it may have made as
    /// many to any chat as there may be.
    taken_over_at: Option<Mono>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    calls: Gcra,
    /// The provider said not before.
    paused_until: Mono,
}

impl Paces {
    /// When there may be a call to a chat; not later than `now` if there may be one now.
    pub fn next_at(&self, chat: &str, rate: Rate, urgency: Urgency, now: Mono) -> Mono {
        let pace = match self.chats.get(chat) {
            Some(pace) => *pace,
            None => self.unknown(rate),
        };
        let spare = u32::from(urgency == Urgency::Interim && rate.burst > 1);
        let rate = Rate { burst: rate.burst - spare, ..rate };
        pace.calls.ready_at(rate, 1, now).max(pace.paused_until)
    }

    /// Takes a call to a chat, or tells when there may be one.
    pub fn take(&mut self, chat: &str, rate: Rate, urgency: Urgency, now: Mono) -> Result<(), Mono> {
        let next = self.next_at(chat, rate, urgency, now);
        if next > now {
            return Err(next);
        }
        let unknown = self.unknown(rate);
        self.pace(chat, unknown, now).calls.note(rate, 1, now);
        Ok(())
    }

    /// The provider wants no call to a chat before `until`.
    pub fn pause(&mut self, chat: &str, until: Mono, now: Mono) {
        let pace = self.pace(chat, Pace::default(), now);
        pace.paused_until = pace.paused_until.max(until);
    }

    /// Another node made the calls until now: nothing is known of them, so they are taken for as
    /// many as there may have been.
    pub fn take_over(&mut self, now: Mono) {
        *self = Self { chats: HashMap::new(), taken_over_at: Some(now) };
    }

    /// The pace of a chat to which no call was made here.
    fn unknown(&self, rate: Rate) -> Pace {
        let mut pace = Pace::default();
        if let Some(at) = self.taken_over_at {
            pace.calls.note(rate, rate.burst, at);
        }
        pace
    }

    fn pace(&mut self, chat: &str, unknown: Pace, now: Mono) -> &mut Pace {
        if self.chats.len() >= MAX_CHATS && !self.chats.contains_key(chat) {
            self.chats.retain(|_, pace| !pace.calls.is_rested(now) || pace.paused_until > now);
        }
        self.chats.entry(chat.to_owned()).or_insert(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const RATE: Rate = Rate { calls: 1, per: Duration::from_secs(3), burst: 3 };

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    #[test]
    fn a_burst_and_then_one_by_one() {
        let mut paces = Paces::default();
        let mut take = |now| paces.take("c", RATE, Urgency::Whole, at(now));
        assert_eq!([take(100), take(100), take(100)], [Ok(()); 3]);
        assert_eq!(take(100), Err(at(103)));
        assert_eq!(take(103), Ok(()));
        assert_eq!(take(105), Err(at(106)));
        assert_eq!([take(200), take(200), take(200)], [Ok(()); 3], "it has rested");
        assert_eq!(take(200), Err(at(203)));
    }

    #[test]
    fn an_interim_text_leaves_a_call_for_the_final_one() {
        let mut paces = Paces::default();
        let mut interim = 0;
        for now in 0..600 {
            interim += u32::from(paces.take("c", RATE, Urgency::Interim, at(now)).is_ok());
            // Whenever the final text comes, it goes at once.
            let mut now_final = Paces { chats: paces.chats.clone(), taken_over_at: None };
            assert_eq!(now_final.take("c", RATE, Urgency::Whole, at(now)), Ok(()), "at {now}");
        }
        assert_eq!(interim, 201, "one every three seconds, and one more at first");
        let alone = Rate { burst: 1, ..RATE };
        assert_eq!(
            paces.take("d", alone, Urgency::Interim, at(0)),
            Ok(()),
            "without a burst nothing is left over"
        );
    }

    #[test]
    fn what_another_node_may_have_called_counts() {
        let mut paces = Paces::default();
        assert_eq!(paces.take("old", RATE, Urgency::Whole, at(0)), Ok(()));
        paces.take_over(at(100));
        for chat in ["c", "old"] {
            assert_eq!(
                paces.take(chat, RATE, Urgency::Whole, at(100)),
                Err(at(103)),
                "it may have been a burst"
            );
            assert_eq!(paces.take(chat, RATE, Urgency::Whole, at(103)), Ok(()));
            assert_eq!(paces.take(chat, RATE, Urgency::Whole, at(103)), Err(at(106)));
        }
        assert_eq!(paces.take("later", RATE, Urgency::Whole, at(200)), Ok(()), "by then it has rested");
    }

    #[test]
    fn chats_do_not_wait_for_each_other_and_pauses_are_kept() {
        let mut paces = Paces::default();
        paces.pause("a", at(60), at(0));
        assert_eq!(paces.take("a", RATE, Urgency::Whole, at(59)), Err(at(60)));
        assert_eq!(paces.take("b", RATE, Urgency::Whole, at(59)), Ok(()));
        assert_eq!(paces.take("a", RATE, Urgency::Whole, at(60)), Ok(()));
    }
}
