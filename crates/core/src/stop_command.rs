//! `/stop`: which words of a person stop a running turn.

/// Whether a person's text is the command that stops a turn.
///
/// Only the bare command counts: `/stop the presses` is for the agent to read.
pub fn is_stop(text: &str) -> bool {
    let word = text.trim();
    let command = word.split_once('@').map_or(word, |(command, _bot)| command);
    command.eq_ignore_ascii_case("/stop") && !word.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

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
