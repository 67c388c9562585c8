//! The connector's own words in chats: few, and never waited for.

use super::Telegram;
use super::api::TELEGRAM;
use super::send::Written;
use crate::kit::{ApiError, ErrorKind};
use angelia_core::clock::{self, Mono};
use angelia_core::egress::Target;
use angelia_core::error::{Error, Result};
use angelia_core::limit::{GcraOf, Rate};
use hashlink::LruCache;
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

// Commands cost their sender nothing, and what they make the bot say counts
// against the chat's limits. So there is room for so many after a silence, and
// for one again after a while.

/// With one person: the greeting, a code that was mistyped, the right one.
const PRIVATE: Rate = Rate::a_minute(3, 3);
/// In company: what agents leave of Telegram's limit for a minute.
const GROUP: Rate = Rate::a_minute(1, 1);
/// Chats remembered; what is forgotten is answered anew.
const CHATS: usize = 10_000;
/// People in chats remembered for the codes they tried; some 100 bytes each.
const PEOPLE: usize = 10_000;
/// How long what somebody is in a chat is believed.
const MEMBER_FOR: Duration = Duration::from_secs(60);
/// People remembered so.
const MEMBERS: usize = 1_000;

/// Something of the connector's own to say.
#[derive(Clone)]
pub(super) struct Answer {
    pub(super) text: String,
    /// Whether it is worth waiting for the chat's next room.
    pub(super) patient: bool,
}

impl Answer {
    /// What is said at once or not at all.
    pub(super) fn now(text: impl Into<String>) -> Self {
        Self { text: text.into(), patient: false }
    }
}

fn pace_in(chat_id: &str) -> Rate {
    if chat_id.starts_with('-') { GROUP } else { PRIVATE }
}

/// What bounds the connector's own words.
pub(super) struct Words {
    /// The answers in each chat.
    answers: Mutex<GcraOf<String>>,
    /// The codes that somebody tried in a chat.
    tries: Mutex<GcraOf<(String, String)>>,
    /// Until when Telegram wants to hear nothing for a chat.
    hushed_until: Mutex<LruCache<String, Mono>>,
    /// Who administers a chat, and when that was found out.
    administers: Mutex<LruCache<(String, i64), (bool, Mono)>>,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            answers: Mutex::new(GcraOf::new(CHATS)),
            tries: Mutex::new(GcraOf::new(PEOPLE)),
            hushed_until: Mutex::new(LruCache::new(CHATS)),
            administers: Mutex::new(LruCache::new(MEMBERS)),
        }
    }
}

impl Words {
    /// In how long a chat may be answered; if it may, it counts as answered.
    /// The patient get the next room there is, if nobody else waits for it.
    fn room(&self, chat_id: &str, patient: bool, now: Mono) -> Option<Duration> {
        if self.hushed_for(chat_id, now).is_some() {
            return None;
        }
        let (mut answers, pace) = (self.answers.lock(), pace_in(chat_id));
        let wait = answers.wait(chat_id, pace, now);
        if wait > if patient { pace.cost(1) } else { Duration::ZERO } {
            return None;
        }
        answers.note(chat_id, pace, now);
        Some(wait)
    }

    /// Whether somebody may try a code in a chat now. What others do there does not count.
    pub(super) fn may_try(&self, chat_id: &str, author: &str, now: Mono) -> bool {
        let who = (chat_id.to_owned(), author.to_owned());
        self.tries.lock().wait(&who, pace_in(chat_id), now).is_zero()
    }

    /// Somebody tried a code in a chat.
    pub(super) fn tried(&self, chat_id: &str, author: &str, now: Mono) {
        let who = (chat_id.to_owned(), author.to_owned());
        self.tries.lock().note(&who, pace_in(chat_id), now);
    }

    /// How long Telegram still wants to hear nothing for a chat.
    fn hushed_for(&self, chat_id: &str, now: Mono) -> Option<Duration> {
        let until = *self.hushed_until.lock().get(chat_id)?;
        Some(until.since(now)).filter(|rest| !rest.is_zero())
    }

    /// Telegram wants to hear nothing for a chat for a while.
    fn hush(&self, chat_id: &str, pause: Duration, now: Mono) {
        self.hushed_until.lock().insert(chat_id.to_owned(), now + pause);
    }

    /// Whether somebody administers a chat, if that was found out not long ago.
    pub(super) fn administers(&self, chat_id: &str, person: i64, now: Mono) -> Option<bool> {
        let (found, at) = *self.administers.lock().get(&(chat_id.to_owned(), person))?;
        (now.since(at) < MEMBER_FOR).then_some(found)
    }

    /// Whether somebody administers a chat was found out.
    pub(super) fn found_out(&self, chat_id: &str, person: i64, administers: bool, now: Mono) {
        self.administers.lock().insert((chat_id.to_owned(), person), (administers, now));
    }
}

impl Telegram {
    /// Says something of the connector's own without waiting for it; where
    /// that fails, the chat was told enough for now, or too much is on its way
    /// already, it is not said.
    pub(super) fn answer(self: &Arc<Self>, target: Target, answer: Answer) {
        let Some(wait) = self.words.room(&target.chat_id, answer.patient, clock::mono()) else {
            self.account.health.count("unanswered");
            return;
        };
        let bot = self.clone();
        self.account.reply_after(wait, async move { bot.say_own(&target, &answer.text).await });
    }

    /// Says something of the connector's own, once, unless Telegram wants to
    /// hear nothing there for now.
    pub(super) async fn say_own(&self, target: &Target, text: &str) -> Result<()> {
        let spot = self.spot(target).await?.ok_or_else(|| Error::invalid("this is not a chat"))?;
        if let Some(rest) = self.words.hushed_for(&spot.chat_id, clock::mono()) {
            return Err(TELEGRAM.limited_for(rest).into());
        }
        let asked = spot.in_topic(json!({ "chat_id": spot.chat(), "text": text }));
        self.about_to_write(&spot.chat_id, text).await;
        let written: Result<Written, ApiError> = self.api.write("sendMessage", &asked, || true).await;
        if let Err(ApiError { kind: ErrorKind::Limited { after, .. }, .. }) = &written {
            self.account.health.count("floods");
            self.words.hush(&spot.chat_id, *after, clock::mono());
        }
        Ok(written.map(drop)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    fn may_answer(words: &Words, chat_id: &str, second: u64) -> bool {
        words.room(chat_id, false, at(second)).is_some()
    }

    #[test]
    fn a_chat_is_answered_a_few_times_and_then_from_time_to_time() {
        let words = Words::default();
        let answered: Vec<u64> = (0..100).filter(|second| may_answer(&words, "5", *second)).collect();
        assert_eq!(answered, [0, 1, 2, 20, 40, 60, 80]);
        assert!(may_answer(&words, "6", 3), "each chat for itself");
        assert!((200..203).all(|second| may_answer(&words, "5", second)), "after a silence");
    }

    #[test]
    fn company_is_answered_once_a_minute() {
        let words = Words::default();
        for chat_id in ["-5", "-1005"] {
            let answered: Vec<u64> = (0..200).filter(|second| may_answer(&words, chat_id, *second)).collect();
            assert_eq!(answered, [0, 60, 120, 180], "{chat_id}");
        }
    }

    #[test]
    fn one_patient_answer_waits_for_the_next_room_and_keeps_it() {
        let (words, seconds) = (Words::default(), |seconds| Some(Duration::from_secs(seconds)));
        assert_eq!(words.room("-5", true, at(0)), seconds(0));
        assert_eq!(words.room("-5", true, at(10)), seconds(50));
        assert_eq!(words.room("-5", true, at(20)), None, "somebody waits already");
        assert!(!may_answer(&words, "-5", 60) && !may_answer(&words, "-5", 119), "that room is taken");
        assert!(may_answer(&words, "-5", 120));
        let alone: Vec<_> = (0..5).map(|_| words.room("5", true, at(0))).collect();
        assert_eq!(alone, [seconds(0), seconds(0), seconds(0), seconds(20), None]);
    }

    #[test]
    fn everybody_has_tries_of_their_own() {
        let words = Words::default();
        let tries = |chat_id: &str, author: &str, from: u64| -> Vec<u64> {
            let may = |second: &u64| {
                let may = words.may_try(chat_id, author, at(*second));
                may.then(|| words.tried(chat_id, author, at(*second))).is_some()
            };
            (from..from + 70).filter(may).collect()
        };
        assert_eq!(tries("-5", "1001", 0), [0, 60]);
        assert_eq!(tries("-5", "1002", 1), [1, 61], "somebody else");
        assert_eq!(tries("-6", "1001", 1), [1, 61], "somewhere else");
        assert_eq!(tries("1001", "1001", 0), [0, 1, 2, 20, 40, 60]);
        assert!((0..9).all(|_| words.may_try("-7", "1001", at(0))), "asking costs nothing");
        for n in 0..2 * PEOPLE {
            words.tried("-5", &n.to_string(), at(100));
        }
        assert!(words.tries.lock().remembered() <= PEOPLE);
    }

    #[test]
    fn a_pause_that_telegram_wants_is_kept() {
        let words = Words::default();
        words.hush("5", Duration::from_secs(30), at(0));
        assert!(!may_answer(&words, "5", 29) && may_answer(&words, "6", 29));
        assert_eq!(words.room("5", true, at(29)), None);
        assert_eq!(words.hushed_for("5", at(10)), Some(Duration::from_secs(20)));
        assert!(may_answer(&words, "5", 30) && words.hushed_for("5", at(30)).is_none());
    }

    #[test]
    fn who_administers_is_believed_for_a_minute() {
        let words = Words::default();
        words.found_out("-5", 1001, true, at(0));
        words.found_out("-5", 1002, false, at(0));
        assert_eq!(words.administers("-5", 1001, at(59)), Some(true));
        assert_eq!(words.administers("-5", 1002, at(59)), Some(false));
        assert_eq!(words.administers("-6", 1001, at(59)), None);
        assert_eq!(words.administers("-5", 1001, at(60)), None);
    }
}
