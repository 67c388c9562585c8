//! Commands that are for the connector itself: `/link CODE`, and `/stop`, which stops a running turn.

/// What follows `/link` in a text whose first word it is; empty if nothing does.
///
/// `/link@name` counts for every name: chats with several bots show commands so,
/// and a code that was meant for another bot must not reach an agent either.
pub fn link_command(text: &str) -> Option<&str> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let command = word.split_once('@').map_or(word, |(command, _bot)| command);
    command.eq_ignore_ascii_case("/link").then(|| rest.trim())
}

/// Whether a text may hold a code that opens a place: also one for another bot, behind a mention,
/// or told to somebody. Such a text is for no agent, not even quoted.
pub fn may_hold_code(text: &str) -> bool {
    text.split_whitespace().any(|word| {
        let Some((before, name)) = word.rsplit_once('/') else { return false };
        let name = name.split_once('@').map_or(name, |(name, _bot)| name);
        // A mention may stand right before it, or a quotation mark; not the rest of an address.
        let is_command = !before.ends_with(|c: char| c.is_alphanumeric() || c == '/');
        is_command && ["link", "start"].iter().any(|known| name.eq_ignore_ascii_case(known))
    })
}

/// Whether a person's text is the command that stops a turn.
///
/// Only the bare command counts: `/stop the presses` is for the agent to read
/// (docs/decisions/0040).
pub fn is_stop(text: &str) -> bool {
    let word = text.trim();
    let command = word.split_once('@').map_or(word, |(command, _bot)| command);
    command.eq_ignore_ascii_case("/stop") && !word.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_decides() {
        for (text, rest) in [
            ("/link abc", "abc"),
            (" /LINK\n abc ", "abc"),
            ("/link@angelia_bot abc", "abc"),
            ("/link", ""),
            ("/link a b", "a b"),
        ] {
            assert_eq!(link_command(text), Some(rest), "{text:?}");
        }
        for text in ["link abc", "/links abc", "please /link abc", "/linkabc", ""] {
            assert_eq!(link_command(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_code_is_suspected_wherever_the_command_stands() {
        for yes in [
            "/link abc",
            "<@78> /link abc",
            "<@78>/link abc",
            "type `/link abc` there",
            "@other_bot /LINK@other_bot abc",
            "/start abc",
            "first\n/link\tabc",
        ] {
            assert!(may_hold_code(yes), "{yes}");
        }
        for no in ["a link", "/links", "see https://example.org/link", "https://link", "and/or", ""] {
            assert!(!may_hold_code(no), "{no}");
        }
    }

    #[test]
    fn only_the_bare_command_stops() {
        for yes in ["/stop", " /stop\n", "/STOP", "/stop@angelia_bot"] {
            assert!(is_stop(yes), "{yes}");
        }
        for no in ["stop", "/stopp", "/stop now", "/sto", "please /stop", "", "/stop@bot now"] {
            assert!(!is_stop(no), "{no}");
        }
    }
}
