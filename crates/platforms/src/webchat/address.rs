//! Whether a line is meant for the agent, and what of it the agent gets
//! (docs/decisions/0009).

use angelia_core::admission::DropReason;
use angelia_core::own_words::{Language, OwnWords};

/// How a line names the agent.
const MENTION: &str = "@agent";

/// Whether the text itself addresses the agent, by a mention or as a command.
pub(super) fn addresses(text: &str) -> bool {
    text.trim_start().starts_with('/') || mentions(text)
}

/// What the agent gets of a text: without the mention it begins with, so that
/// `@agent /new` is a command.
pub(super) fn said(text: &str) -> &str {
    let start = text.trim_start();
    if !mention_at(start, 0) {
        return text;
    }
    let rest = start[MENTION.len()..].trim_start();
    let rest = rest.strip_prefix([',', ':']).unwrap_or(rest).trim_start();
    // A mention alone is all that was said.
    if rest.is_empty() { text } else { rest }
}

/// What the writer of a line can do about it.
pub(super) fn hint(reason: DropReason, language: Language) -> &'static str {
    let words = match reason {
        DropReason::NoRoute => OwnWords::RoomOfNobody,
        DropReason::AuthorNotAllowed => OwnWords::RoomNotForYou,
        DropReason::NoInstance => OwnWords::RoomWithoutAgent,
        DropReason::BotNotAllowed => OwnWords::RoomNotForBots,
        DropReason::NotAddressed => OwnWords::RoomNotAddressed,
        DropReason::Consumed => OwnWords::RoomConsumed,
        DropReason::Keyword => OwnWords::RoomKeyword,
        DropReason::InboxFull => OwnWords::RoomFull,
    };
    words.text(language)
}

fn mentions(text: &str) -> bool {
    text.match_indices('@').any(|(at, _)| mention_at(text, at))
}

/// Whether a mention stands at `at`, as a word of its own: neither part of an
/// address nor the beginning of a longer name.
fn mention_at(text: &str, at: usize) -> bool {
    let end = at + MENTION.len();
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let named = text.get(at..end).is_some_and(|word| word.eq_ignore_ascii_case(MENTION));
    let open = !text[..at].chars().next_back().is_some_and(|c| is_word(c) || matches!(c, '.' | '@'));
    let mut after = text.get(end..).unwrap_or_default().chars();
    let closed = match after.next() {
        Some('.' | '@') => !after.next().is_some_and(is_word),
        next => !next.is_some_and(is_word),
    };
    named && open && closed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_is_a_word_of_its_own() {
        for yes in [
            "@agent",
            "@Agent hello",
            "hello @AGENT",
            "(@agent)",
            "what now, @agent?",
            "ask @agent.",
            "@agent: hi",
            "a@agent @agent",
            "é@agent é @agent",
            "/new",
            "  /stop",
        ] {
            assert!(addresses(yes), "{yes:?}");
        }
        for no in [
            "agent",
            "me@agent",
            "@agents",
            "@agent-smith",
            "@agent_2",
            "@agent.smith",
            "@agent@example.org",
            "@@agent",
            "and/or",
            "@agenté",
            "@",
            "@agen",
            "é",
        ] {
            assert!(!addresses(no), "{no:?}");
        }
    }

    #[test]
    fn a_leading_mention_is_not_part_of_what_was_said() {
        for (text, expected) in [
            ("@agent /new", "/new"),
            ("  @Agent: what now?", "what now?"),
            ("@agent, hi\nthere ", "hi\nthere "),
            ("@agent", "@agent"),
            ("@agent ,", "@agent ,"),
            ("hi @agent /new", "hi @agent /new"),
            ("@agents go", "@agents go"),
            (" as it was ", " as it was "),
        ] {
            assert_eq!(said(text), expected, "{text:?}");
        }
    }
}
