//! `[notices]`: what people are told by the server itself.

use angelia_connector::Away;
use angelia_platforms::settings::values::{one_of, text_within};
use angelia_platforms::settings::{BadValue, Given};
use std::time::Duration;

/// Longest notice, in characters: people get it in the middle of a conversation.
const MAX_NOTICE: usize = 500;

/// What people are told by the server itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notices {
    /// Who is told that their agent is away.
    pub away: Away,
    /// How long a message waits before that.
    pub away_after: Duration,
    /// What they are told.
    pub away_text: String,
    /// What somebody is told whose command or press nobody has answered.
    pub unanswered_text: String,
    /// What a chat is told of which messages were dropped because too much waited.
    pub lost_text: String,
    /// What a place is told where the bot answers nobody; empty: nothing.
    pub hint: String,
}

impl Default for Notices {
    fn default() -> Self {
        let angelia_connector::Notices { away, away_after, away_text, unanswered_text, lost_text, hint } =
            Default::default();
        Self { away, away_after, away_text, unanswered_text, lost_text, hint: hint.unwrap_or_default() }
    }
}

/// The word for who is told of an absence.
pub(super) fn away_word(away: Away) -> &'static str {
    match away {
        Away::Dms => "dm",
        Away::All => "all",
        Away::Never => "never",
    }
}

/// Who is told of an absence.
pub(super) fn away(given: &Given<'_>) -> Result<Away, BadValue> {
    one_of(given, &[Away::Dms, Away::All, Away::Never], away_word)
}

/// What somebody is told.
pub(super) fn notice_text(given: &Given<'_>) -> Result<String, BadValue> {
    text_within(given, MAX_NOTICE)
}

/// A hint, or none.
pub(super) fn hint(given: &Given<'_>) -> Result<String, BadValue> {
    match given.text()?.trim() {
        "" => Ok(String::new()),
        _ => text_within(given, MAX_NOTICE),
    }
}
