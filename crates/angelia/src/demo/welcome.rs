//! What the terminal shows: where to click, what is there, how to stop.

use super::cast::{HERMES, IRIS, METIS, Room};
use crate::files::absolute;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Everything there is to tell.
pub(super) struct Welcome {
    pub(super) url: String,
    pub(super) data_dir: PathBuf,
    pub(super) kept: bool,
    /// The port that was wanted and that somebody else uses.
    pub(super) port_taken: Option<u16>,
    /// The port of the run before, if it was another one.
    pub(super) moved_from: Option<u16>,
    pub(super) rooms: Vec<Room>,
    pub(super) guide: Vec<String>,
    /// What to type before a message's id.
    pub(super) explain: String,
}

impl Welcome {
    /// One link for all rooms. The keys stand behind the `#`, which browsers
    /// do not send anywhere.
    fn link(&self) -> String {
        let keys: Vec<&str> = self.rooms.iter().map(|room| room.key.expose()).collect();
        format!("{}/chat#{}", self.url, keys.join(","))
    }

    /// For scripts.
    pub(super) fn json(&self) -> String {
        let room = |room: &Room| {
            let api = format!("{}/chat/api/rooms/{}", self.url, room.name);
            json!({ "room": room.name, "gateway": room.gateway, "key": room.key.expose(), "url": api })
        };
        let rooms: Vec<Value> = self.rooms.iter().map(room).collect();
        let told = json!({
            "link": self.link(),
            "url": self.url,
            "data_dir": self.data_dir,
            "kept": self.kept,
            "rooms": rooms,
            "guide": self.guide,
            "explain": self.explain,
        });
        format!("{told}\n")
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let (bold, plain) = if is_colourful() { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        let mut text = format!(
            "\nAngelia is running. Open this in a browser:\n\n  {bold}{link}{plain}\n\n",
            link = self.link()
        );
        text.push_str(&self.about_the_port());
        let width = self.rooms.iter().map(|room| room.name.len()).max().unwrap_or_default();
        for room in &self.rooms {
            let _ = writeln!(text, "  {bold}{:<width$}{plain}  {}", room.name, about(room.gateway));
        }
        text.push_str(&self.for_terminals());
        let trace = if self.kept {
            format!("The data stays in {}; start it again with the same --keep.", self.data_dir.display())
        } else {
            "Nothing is left behind.".to_owned()
        };
        let _ = writeln!(text, "\nStop with {bold}Ctrl-C{plain}. {trace}");
        text
    }

    fn about_the_port(&self) -> String {
        match (self.moved_from, self.port_taken) {
            (Some(last), _) => format!(
                "  The port is not {last}, as it was last time: links and lines from then do not lead here.\n\n"
            ),
            (None, Some(taken)) => {
                format!("  Port {taken} is taken, so this is the next one that is free.\n\n")
            }
            (None, None) => String::new(),
        }
    }

    /// The same without a browser.
    fn for_terminals(&self) -> String {
        let Some(room) = self.rooms.first() else { return String::new() };
        let api = format!("{}/chat/api/rooms/{}", self.url, room.name);
        let key = room.key.expose();
        format!(
            "\nWithout a browser: listen in one terminal, and speak in another.\n  \
             curl -N -H 'Authorization: Bearer {key}' {api}/events\n  \
             curl -H 'Authorization: Bearer {key}' -d '{{\"text\": \"hello\"}}' {api}/messages\n\n\
             Which way a message took (its id is in the answer to the post):\n  \
             {explain} MESSAGE_ID\n",
            explain = self.explain
        )
    }
}

/// `angelia explain` for a demo with its data in `data_dir`, as it works in any
/// directory and without an `angelia` on the PATH.
pub(super) fn explain_command(data_dir: &Path) -> String {
    let angelia = std::env::current_exe().map_or_else(|_| "angelia".into(), PathBuf::into_os_string);
    let data_dir = shell_word(absolute(data_dir).into_os_string());
    format!("ANGELIA_SERVER__DATA_DIR={data_dir} {} explain", shell_word(angelia))
}

fn about(gateway: &str) -> &'static str {
    match gateway {
        IRIS => "Iris answers, word by word",
        METIS => "Metis thinks for half a minute: press Stop",
        HERMES => "an empty seat for your own hermes-agent; the page shows the lines to paste",
        _ => "",
    }
}

/// Whether the reader is a terminal that shows bold, and wants it.
fn is_colourful() -> bool {
    let unset = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    std::io::stdout().is_terminal() && unset("NO_COLOR") && !dumb
}

/// A word as a shell takes it.
fn shell_word(word: OsString) -> String {
    let word = word.to_string_lossy();
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !word.is_empty() && word.chars().all(is_safe) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_safe_in_a_shell() {
        assert_eq!(shell_word("target/release/angelia".into()), "target/release/angelia");
        assert_eq!(shell_word("my demo".into()), "'my demo'");
        assert_eq!(shell_word("it's".into()), r"'it'\''s'");
    }
}
