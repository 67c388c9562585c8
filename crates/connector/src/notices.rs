//! What the connector says of its own, as operators want it: whom, when, and in which words.

use angelia_core::egress::Remark;
use angelia_core::own_words::{Language, OwnWords};
use std::borrow::Cow;
use std::time::Duration;

/// How long a message waits before its writer is told that the agent is away.
const AWAY_AFTER: Duration = Duration::from_secs(60);

/// Whom to tell that their agent is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Away {
    /// Nobody.
    Never,
    /// People in private chats.
    #[default]
    Dms,
    /// Everybody.
    All,
}

/// What the connector says of its own. Texts that are not given are said in the language of
/// whoever reads them, as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notices {
    /// Whom to tell that their agent is away.
    pub away: Away,
    /// How long a message waits before its writer is told. Tests have less time.
    pub away_after: Duration,
    /// How, where there is an agent.
    pub away_text: Option<String>,
    /// How, where there is none yet.
    pub no_agent_text: Option<String>,
    /// What somebody is told whose command or press nobody has answered, shortly
    /// before it can be answered in its place no more.
    pub unanswered_text: Option<String>,
    /// What a chat is told, once, of which messages were dropped because too much waited.
    pub lost_text: Option<String>,
    /// What a chat hears of a message of which nobody knows whether it arrived.
    pub ambiguous: Remark,
    /// What it is told then.
    pub ambiguous_text: Option<String>,
    /// What stands before the message then, where it is repeated.
    pub repeat_mark: Option<String>,
    /// What a place is told once where the bot answers nobody; `None`: nothing.
    pub hint: Option<String>,
}

impl Default for Notices {
    fn default() -> Self {
        Self {
            away: Away::default(),
            away_after: AWAY_AFTER,
            away_text: None,
            no_agent_text: None,
            unanswered_text: None,
            lost_text: None,
            ambiguous: Remark::default(),
            ambiguous_text: None,
            repeat_mark: None,
            hint: None,
        }
    }
}

impl Notices {
    /// How something is said: as the operator wants it, else in a language, and of the agent by its
    /// name if it has one.
    pub(crate) fn text(&self, words: OwnWords, language: Language, agent: Option<&str>) -> Cow<'_, str> {
        let given = match words {
            OwnWords::Away => self.away_text.as_deref(),
            OwnWords::NoAgentYet => self.no_agent_text.as_deref(),
            OwnWords::Unanswered => self.unanswered_text.as_deref(),
            OwnWords::Lost => self.lost_text.as_deref(),
            OwnWords::InDoubt => self.ambiguous_text.as_deref(),
            OwnWords::RepeatMark => self.repeat_mark.as_deref(),
            _ => None,
        };
        given.map_or_else(|| words.of_agent(language, agent), Cow::Borrowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_operator_wrote_is_said_in_every_language() {
        let away_text = Some("Back on Monday.".to_owned());
        let notices = Notices { away_text, ..Notices::default() };
        for language in Language::ALL {
            assert_eq!(notices.text(OwnWords::Away, language, Some("Iris")), "Back on Monday.");
            assert_eq!(notices.text(OwnWords::Lost, language, None), OwnWords::Lost.text(language));
        }
    }
}
