//! Words that are for the network, not for an agent: they end and begin a
//! subscription, or ask who that is. Twilio answers them itself.
//!
//! The words are those that Twilio takes without any setting. With Advanced Opt-Out
//! an operator chooses more of them, in any language; what Twilio took for one it says
//! in what it posts. Its list does not say so: such a word that was read
//! back is a message like any other, and Twilio has heeded it all the same.

use crate::kit::Recent;
use parking_lot::Mutex;

/// What ends a subscription: Twilio takes nothing for such a number any more.
const STOP: [&str; 8] = ["STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"];
/// What begins it again.
const START: [&str; 2] = ["START", "UNSTOP"];
/// The same, but only from somebody who stopped: everybody else answers a
/// question with it, and an agent waits for that.
const YES: &str = "YES";
/// What asks who that is.
const HELP: [&str; 2] = ["HELP", "INFO"];

/// People remembered to have stopped, and up to as many older ones; some 50 bytes each. Twilio knows them for
/// good and refuses what is sent to them, so forgetting one costs a refusal.
const REMEMBERED: usize = 5_000;

/// What somebody tells the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    /// They want no messages.
    Stop,
    /// They want messages again.
    Start,
    /// They want to know who that is.
    Help,
}

/// Who stopped, as far as that was seen.
#[derive(Debug)]
pub(super) struct Stopped(Mutex<Recent<String, ()>>);

impl Default for Stopped {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(REMEMBERED)))
    }
}

impl Stopped {
    /// What somebody tells the network with a message: Twilio says so, or it
    /// is the word alone. What Twilio says in a way that is not known here hides no word.
    pub(super) fn keyword(&self, from: &str, body: &str, twilio_says: Option<&str>) -> Option<Keyword> {
        [twilio_says, Some(body)].into_iter().flatten().find_map(|word| self.meaning(from, word))
    }

    fn meaning(&self, from: &str, word: &str) -> Option<Keyword> {
        match word.trim().to_ascii_uppercase().as_str() {
            word if STOP.contains(&word) => Some(Keyword::Stop),
            word if START.contains(&word) => Some(Keyword::Start),
            YES if self.has(from) => Some(Keyword::Start),
            word if HELP.contains(&word) => Some(Keyword::Help),
            _ => None,
        }
    }

    /// Somebody told the network something, now.
    pub(super) fn heed(&self, from: &str, keyword: Keyword) {
        match keyword {
            Keyword::Stop => self.stop(from),
            Keyword::Start => self.0.lock().forget(from),
            Keyword::Help => {}
        }
    }

    /// Somebody wants no messages.
    pub(super) fn stop(&self, person: &str) {
        self.0.lock().put(person.to_owned(), ());
    }

    /// Whether somebody wants no messages, as far as that was seen.
    fn has(&self, person: &str) -> bool {
        self.0.lock().get(person).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_count_alone_however_they_are_written() {
        let said = |text: &str| Stopped::default().keyword("+1555", text, None);
        for stop in ["STOP", "stop", " Stop\n", "stopall", "unsubscribe", "cancel", "END", "quit"] {
            assert_eq!(said(stop), Some(Keyword::Stop), "{stop:?}");
        }
        assert_eq!((said("start"), said("Unstop")), (Some(Keyword::Start), Some(Keyword::Start)));
        assert_eq!((said("help"), said("INFO")), (Some(Keyword::Help), Some(Keyword::Help)));
        for chat in ["please stop", "stop it", "/stop", "stop.", "help me", "the end", "", "no"] {
            assert_eq!(said(chat), None, "{chat:?}");
        }
    }

    #[test]
    fn twilio_knows_better_than_the_text() {
        let stopped = Stopped::default();
        assert_eq!(stopped.keyword("+1555", "arrêt", Some("STOP")), Some(Keyword::Stop));
        assert_eq!(stopped.keyword("+1555", "aide", Some("HELP")), Some(Keyword::Help));
        assert_eq!(stopped.keyword("+1555", "oui", None), None);
        assert_eq!(stopped.keyword("+1555", "stop", Some("OPT-OUT")), Some(Keyword::Stop), "a new word");
        assert_eq!(stopped.keyword("+1555", "oui", Some("NONE")), None);
    }

    #[test]
    fn yes_is_an_answer_unless_somebody_stopped() {
        let stopped = Stopped::default();
        assert_eq!(stopped.keyword("+1555", "yes", None), None);
        stopped.heed("+1555", Keyword::Stop);
        assert_eq!(stopped.keyword("+1666", "yes", None), None, "somebody else");
        assert_eq!(stopped.keyword("+1555", "Yes ", None), Some(Keyword::Start));
        stopped.heed("+1555", Keyword::Start);
        assert_eq!(stopped.keyword("+1555", "yes", None), None, "they started again");
    }

    #[test]
    fn memory_is_bounded() {
        let stopped = Stopped::default();
        (0..2 * REMEMBERED + 1).for_each(|n| stopped.stop(&n.to_string()));
        assert!(!stopped.has("0") && stopped.has(&(2 * REMEMBERED).to_string()));
    }
}
