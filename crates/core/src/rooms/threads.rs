//! Threads of a room: a line opens one and has its name, and what is said in it names that line.

use crate::egress::ActionState;
use crate::ports::ActionOutcome;
use crate::store::Line;

angelia_contract::limits! {
    /// What gateways give one at most. Longer names are cut.
    const MAX_THREAD_NAME: usize = 100, count "characters of the name of a thread of the web chat";
}

/// What a thread is called that was given no name.
const NAMELESS: &str = "Thread";

/// The name of a thread as it is kept: on one row, and not longer than it may be.
pub fn thread_name(wanted: &str) -> String {
    let words: Vec<&str> = wanted.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    let name: String = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let name: String = name.chars().take(MAX_THREAD_NAME).collect();
    let name = name.trim_end();
    if name.is_empty() { NAMELESS.to_owned() } else { name.to_owned() }
}

/// Whether a line can open a thread: one that is there and is not said in a thread itself.
pub fn may_open(line: &Line) -> bool {
    line.thread.is_none() && line.is_there()
}

/// Whether a thread is to get another name: the line that opens it, and what it has to be called.
pub fn may_rename(line: &Line, only_if: Option<&str>) -> bool {
    line.thread_name.as_deref().is_some_and(|name| only_if.is_none_or(|wanted| wanted == name))
}

/// How an action ends that opened a thread, or could not.
pub fn threaded(thread: Option<&str>) -> ActionOutcome {
    match thread {
        Some(thread) => super::said(Some(thread.to_owned())),
        None => failed("there is no line that could open a thread"),
    }
}

/// How an action ends that gave a thread no other name.
pub fn not_renamed() -> ActionOutcome {
    failed("there is no such thread, or it is called otherwise")
}

fn failed(why: &str) -> ActionOutcome {
    ActionOutcome { state: ActionState::Failed, message_id: None, error: Some(why.to_owned()) }
}

impl Line {
    /// The same line, which opens a thread of this name, under its next number.
    pub fn with_thread(self, id: i64, name: String) -> Self {
        // A line that only stands for its thread says the new name.
        let stands_for_it = self.is_agents() && self.thread_name.as_deref() == Some(self.text.as_str());
        let text = if stands_for_it { name.clone() } else { self.text };
        Self { id, text, thread_name: Some(name), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_row_and_ends() {
        assert_eq!(thread_name(" Fix\nthe\t\u{7}build "), "Fix the build");
        assert_eq!(thread_name(" \n"), "Thread");
        assert_eq!(thread_name(&"🦀".repeat(500)).chars().count(), MAX_THREAD_NAME);
    }

    #[test]
    fn a_thread_is_renamed_while_it_is_called_as_expected() {
        let line = |author: &str, from_agent, text: &str, name: Option<&str>| Line {
            author: author.into(),
            from_agent,
            text: text.into(),
            thread_name: name.map(str::to_owned),
            ..Line::default()
        };
        let opens = line("agent", true, "Build", Some("Build"));
        assert!(may_rename(&opens, None) && may_rename(&opens, Some("Build")));
        assert!(!may_rename(&opens, Some("Other")) && !may_rename(&line("ann", false, "hi", None), None));
        let renamed = opens.with_thread(7, "Tests".into());
        assert_eq!((renamed.text.as_str(), renamed.thread_name.as_deref()), ("Tests", Some("Tests")));
        let asked = line("ann", false, "Build", Some("Build")).with_thread(8, "Tests".into());
        assert_eq!(asked.text, "Build", "a person's words stay theirs");
        assert!(!may_open(&Line { thread: Some("wa1".into()), ..renamed }) && may_open(&asked));
    }
}
