//! `[notices]`: what people are told by the server itself.

use angelia_connector::Away;
use angelia_core::egress::Remark;
use angelia_platforms::settings::values::{one_of, text_within};
use angelia_platforms::settings::{BadValue, Given, Shown};

/// Longest notice, in characters: people get it in the middle of a conversation.
const MAX_NOTICE: usize = 500;

/// The word for who is told of an absence.
fn away_word(away: Away) -> &'static str {
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

pub(super) fn shown_away(away: &Away) -> Shown {
    Shown::quoted(away_word(*away))
}

/// What a chat hears of a message of which nobody knows whether it arrived.
pub(super) fn ambiguous(given: &Given<'_>) -> Result<Remark, BadValue> {
    one_of(given, &Remark::ALL, Remark::as_str)
}

pub(super) fn shown_ambiguous(remark: &Remark) -> Shown {
    Shown::quoted(remark.as_str())
}

/// What somebody is told.
pub(super) fn notice_text(given: &Given<'_>) -> Result<String, BadValue> {
    text_within(given, MAX_NOTICE)
}

/// A hint, or none.
pub(super) fn hint(given: &Given<'_>) -> Result<Option<String>, BadValue> {
    match given.text()?.trim() {
        "" => Ok(None),
        _ => text_within(given, MAX_NOTICE).map(Some),
    }
}

pub(super) fn shown_hint(hint: &Option<String>) -> Shown {
    Shown::quoted(hint.as_deref().unwrap_or_default())
}
