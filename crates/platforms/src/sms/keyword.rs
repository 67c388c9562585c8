//! Words that are for the network, not for an agent: they end and begin a
//! subscription, or ask who that is. Twilio answers them itself.
//!
//! The words are those that Twilio takes without any setting. With Advanced Opt-Out
//! an operator chooses more of them, in any language; what Twilio took for one it says
//! in what it posts. Its list does not say so: such a word that was read
//! back is a message like any other, and Twilio has heeded it all the same.

use super::Sms;
use angelia_core::error::Result;
use angelia_core::store::{NoticeKind, NoticeStore};

/// What ends a subscription: Twilio takes nothing for such a number any more.
const STOP: [&str; 8] = ["STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"];
/// What begins it again.
const START: [&str; 2] = ["START", "UNSTOP"];
/// The same, but only from somebody who stopped: everybody else answers a
/// question with it, and an agent waits for that. So who stopped is kept.
const YES: &str = "YES";
/// What asks who that is.
const HELP: [&str; 2] = ["HELP", "INFO"];

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

/// What a message tells the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// This.
    Says(Keyword),
    /// That they want messages again, if they had stopped.
    Yes,
}

/// What a word means that stands alone.
fn meaning(word: &str) -> Option<Word> {
    match word.trim().to_ascii_uppercase().as_str() {
        word if STOP.contains(&word) => Some(Word::Says(Keyword::Stop)),
        word if START.contains(&word) => Some(Word::Says(Keyword::Start)),
        YES => Some(Word::Yes),
        word if HELP.contains(&word) => Some(Word::Says(Keyword::Help)),
        _ => None,
    }
}

/// What a message means: Twilio says so, or it is the word alone. What Twilio says in a way that
/// is not known here hides no word.
fn word(body: &str, twilio_says: Option<&str>) -> Option<Word> {
    [twilio_says, Some(body)].into_iter().flatten().find_map(meaning)
}

impl Sms {
    /// What somebody tells the network with a message.
    pub(super) async fn keyword(
        &self,
        from: &str,
        body: &str,
        twilio_says: Option<&str>,
    ) -> Result<Option<Keyword>> {
        Ok(match word(body, twilio_says) {
            Some(Word::Says(keyword)) => Some(keyword),
            Some(Word::Yes) => self.has_stopped(from).await?.then_some(Keyword::Start),
            None => None,
        })
    }

    /// Somebody told the network something, now. It is in the store before their message counts
    /// as read: whoever reads the number next knows it, too.
    pub(super) async fn heed(&self, from: &str, keyword: Keyword) -> Result<()> {
        let (records, key) = (&self.ports.records, &self.account.key);
        match keyword {
            Keyword::Stop => records.notice(NoticeKind::Stopped, key, from, None).await.map(drop),
            Keyword::Start => records.clear_notice(NoticeKind::Stopped, key, from).await,
            Keyword::Help => Ok(()),
        }
    }

    /// Whether somebody wants no messages, as far as that was seen within a year. Twilio knows it for
    /// good and refuses what is sent to them, so forgetting one costs a refusal.
    async fn has_stopped(&self, person: &str) -> Result<bool> {
        self.ports.records.was_noticed(NoticeKind::Stopped, &self.account.key, person).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, twilio_says: Option<&str>) -> Option<Word> {
        word(text, twilio_says)
    }

    #[test]
    fn words_count_alone_however_they_are_written() {
        for stop in ["STOP", "stop", " Stop\n", "stopall", "unsubscribe", "cancel", "END", "quit"] {
            assert_eq!(said(stop, None), Some(Word::Says(Keyword::Stop)), "{stop:?}");
        }
        for start in ["start", "Unstop"] {
            assert_eq!(said(start, None), Some(Word::Says(Keyword::Start)), "{start:?}");
        }
        for help in ["help", "INFO"] {
            assert_eq!(said(help, None), Some(Word::Says(Keyword::Help)), "{help:?}");
        }
        assert_eq!(said("Yes ", None), Some(Word::Yes));
        for chat in ["please stop", "stop it", "/stop", "stop.", "help me", "the end", "", "no", "yes!"] {
            assert_eq!(said(chat, None), None, "{chat:?}");
        }
    }

    #[test]
    fn twilio_knows_better_than_the_text() {
        assert_eq!(said("arrêt", Some("STOP")), Some(Word::Says(Keyword::Stop)));
        assert_eq!(said("aide", Some("HELP")), Some(Word::Says(Keyword::Help)));
        assert_eq!(said("oui", None), None);
        assert_eq!(said("stop", Some("OPT-OUT")), Some(Word::Says(Keyword::Stop)), "a new word");
        assert_eq!(said("oui", Some("NONE")), None);
    }
}
