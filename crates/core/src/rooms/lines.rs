//! Lines of a room: who may write and change them, and what becomes of them.

use crate::admission::DropReason;
use crate::clock::{Old, UnixMillis};
use crate::egress::ActionState;
use crate::error::{Error, Kind, Result};
use crate::ports::ActionOutcome;
use crate::store::{CONNECTOR, Line, NewLine, Posted};

/// A line that a person posts, and what is known when it is to be written.
#[derive(Clone, Debug)]
pub struct Post {
    /// Whether somebody of its author's name has a key of the room.
    pub in_room: bool,
    /// The line that was posted before under the same id of its writer, and when.
    pub earlier: Option<(String, UnixMillis)>,
    /// Whether the instance it is for takes messages; `None` if it is for none.
    pub taken: Option<bool>,
}

/// What becomes of a line that a person posts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Posting {
    /// It is there already, under this id and since then: nothing is written.
    Repeats(String, UnixMillis),
    /// It is written, and its entry goes into the inbox.
    Enters,
    /// It is written, and nothing else. Why no agent gets it, if one should have.
    Stays(Option<DropReason>),
}

impl Post {
    /// Whether the inbox has to have room for it.
    pub fn needs_room(&self) -> bool {
        self.taken == Some(true) && self.earlier.is_none()
    }

    /// What becomes of it. Its author's keys may have been made void, or the instance may
    /// have gone, while the request was under way.
    pub fn decide(self) -> Result<Posting> {
        if !self.in_room {
            return Err(not_in_room());
        }
        Ok(match (self.earlier, self.taken) {
            (Some((first, at)), _) => Posting::Repeats(first, at),
            (None, Some(true)) => Posting::Enters,
            (None, Some(false)) => Posting::Stays(Some(DropReason::NoInstance)),
            (None, None) => Posting::Stays(None),
        })
    }
}

impl Posted {
    /// A line that is new.
    pub fn anew(message_id: String, posting: &Posting) -> Self {
        let no_instance = *posting == Posting::Stays(Some(DropReason::NoInstance));
        Self { message_id, new: true, no_instance, entered: *posting == Posting::Enters }
    }

    /// A repetition of a line that entered an inbox, or did not.
    pub fn again(message_id: String, entered: bool) -> Self {
        Self { message_id, new: false, no_instance: false, entered }
    }
}

/// Whether a line came into an inbox when it was posted. What is older than the journal
/// remembers is taken for delivered.
pub fn has_entered(in_journal: bool, posted_at: UnixMillis, forgotten: &Old) -> bool {
    in_journal || forgotten.is(posted_at.0)
}

fn not_in_room() -> Error {
    Error::new(
        Kind::Unauthorized,
        "this key does not open this room any more; ask the operator for an invitation",
    )
}

/// Whether a person may change a line: their own, as long as they have a key of the room.
pub fn may_revise(line: Option<&Line>, author: &str, in_room: bool) -> Result<()> {
    let line = line.ok_or_else(|| Error::not_found("there is no such message in this room"))?;
    if line.from_agent || line.author != author {
        return Err(Error::forbidden("somebody else wrote this; only they can change it"));
    }
    if in_room { Ok(()) } else { Err(not_in_room()) }
}

/// What the line of a question shows once it is answered.
pub fn answered_text(question: &str, shown: &str) -> String {
    format!("{question}\n\n{shown}")
}

/// Whether a person may answer a question: as long as they have a key of the room.
pub fn may_answer(in_room: bool) -> Result<()> {
    if in_room { Ok(()) } else { Err(not_in_room()) }
}

/// Whether an agent may still say something: `owed` says whether its action and its instance
/// are there.
pub fn can_say(owed: bool) -> Result<()> {
    if owed {
        return Ok(());
    }
    Err(Error::not_found("whoever wanted to say this is gone: nothing was written"))
}

/// How an action ends that said something, under the id of its first line.
pub fn said(first: Option<String>) -> ActionOutcome {
    ActionOutcome { state: ActionState::Sent, message_id: first, error: None }
}

/// How an action ends that changed a line; `None` if there is none it may change.
pub fn edited(line: Option<&Line>) -> ActionOutcome {
    match line {
        Some(line) => said(Some(line.message_id.clone())),
        None => ActionOutcome {
            state: ActionState::Failed,
            message_id: None,
            error: Some("there is no such line of an agent".to_owned()),
        },
    }
}

/// The id of one of the parts of a line that was too long.
pub fn part_id(first: &str, part: usize) -> String {
    match part {
        0 => first.to_owned(),
        _ => format!("{first}.{part}"),
    }
}

/// A further part of an agent's line.
pub fn continued(first: &Line, message_id: String, text: String, at: UnixMillis) -> NewLine {
    NewLine {
        room: first.room.clone(),
        message_id,
        author: first.author.clone(),
        from_agent: true,
        text,
        reply_to: None,
        client_id: None,
        files: Vec::new(),
        undelivered: None,
        buttons: None,
        thread: first.thread.clone(),
        thread_name: None,
        at,
    }
}

/// Whether a part of a line that is shorter now still says something. It is emptied, not
/// deleted: whoever saw it and was away has to hear of it too.
pub fn is_left_over(part: &Line) -> bool {
    part.from_agent && !part.text.is_empty()
}

/// Whether a reader is shown lines that are gone: one who may have seen them is, not
/// whoever begins.
pub fn shows_what_is_gone(after: i64) -> bool {
    after > 0
}

impl Line {
    /// Whether agents may change it: not what people or the connector itself wrote.
    pub fn is_agents(&self) -> bool {
        self.from_agent && self.author != CONNECTOR
    }

    /// The same line with nothing left to press.
    pub fn answered(self) -> Self {
        Self { buttons: None, ..self }
    }

    /// The same line, saying something else, under its next number. What is taken back goes with its
    /// files.
    pub fn reworded(self, id: i64, text: &str) -> Self {
        let files = if text.is_empty() { Vec::new() } else { self.files };
        Self { id, text: text.to_owned(), edited: true, files, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(author: &str, from_agent: bool, text: &str) -> Line {
        Line {
            id: 1,
            place: 1,
            room: "lab".into(),
            message_id: "m1".into(),
            author: author.into(),
            from_agent,
            text: text.into(),
            reply_to: None,
            client_id: None,
            files: Vec::new(),
            undelivered: None,
            buttons: None,
            marks: Vec::new(),
            thread: None,
            thread_name: None,
            at: UnixMillis(0),
            edited: false,
        }
    }

    #[test]
    fn a_post_is_written_once_by_who_is_in_the_room() {
        let post = |in_room, earlier: Option<&str>, taken| Post {
            in_room,
            earlier: earlier.map(|id| (id.to_owned(), UnixMillis(7))),
            taken,
        };
        let decide = |in_room, earlier, taken| post(in_room, earlier, taken).decide().map_err(|e| e.kind());
        for taken in [None, Some(true), Some(false)] {
            assert_eq!(decide(false, None, taken), Err(Kind::Unauthorized));
            assert_eq!(decide(false, Some("m1"), taken), Err(Kind::Unauthorized), "a repetition too");
            assert_eq!(decide(true, Some("m1"), taken), Ok(Posting::Repeats("m1".into(), UnixMillis(7))));
            assert!(!post(true, Some("m1"), taken).needs_room(), "nothing new comes in");
        }
        assert_eq!(decide(true, None, None), Ok(Posting::Stays(None)));
        assert_eq!(decide(true, None, Some(true)), Ok(Posting::Enters));
        let gone = Posting::Stays(Some(DropReason::NoInstance));
        assert_eq!(decide(true, None, Some(false)), Ok(gone.clone()));
        assert!(post(true, None, Some(true)).needs_room() && !post(true, None, Some(false)).needs_room());
        let posted = |posting| Posted::anew("m1".into(), &posting);
        assert!(posted(gone).no_instance && posted(Posting::Enters).entered);
        assert!(!posted(Posting::Stays(None)).no_instance);
    }

    #[test]
    fn people_change_their_own_lines_and_agents_those_of_agents() {
        let kind = |line: Option<&Line>, in_room| may_revise(line, "ann", in_room).map_err(|e| e.kind());
        let own = line("ann", false, "hi");
        assert_eq!(kind(Some(&own), true), Ok(()));
        assert_eq!(kind(Some(&own), false), Err(Kind::Unauthorized));
        assert_eq!(kind(None, true), Err(Kind::NotFound));
        for other in [line("bob", false, "hi"), line("ann", true, "an agent of her name")] {
            assert_eq!(kind(Some(&other), true), Err(Kind::Forbidden));
        }
        assert!(line("iris", true, "hi").is_agents());
        assert!(!own.is_agents() && !line(CONNECTOR, true, "/help").is_agents());
    }

    #[test]
    fn what_a_shorter_text_leaves_over_is_what_still_says_something() {
        assert!(is_left_over(&line("iris", true, "more")));
        assert!(!is_left_over(&line("iris", true, "")) && !is_left_over(&line("ann", false, "hi")));
        assert_eq!([part_id("wa1", 0), part_id("wa1", 2)], ["wa1", "wa1.2"]);
        let shorter = line("iris", true, "more").reworded(7, "");
        assert_eq!((shorter.id, shorter.place, shorter.edited), (7, 1, true), "it stays at its place");
        assert!(!shows_what_is_gone(0) && shows_what_is_gone(1));
    }

    #[test]
    fn what_the_journal_has_forgotten_is_taken_for_delivered() {
        let forgotten = Old { before: 100, except: Vec::new() };
        assert!(has_entered(true, UnixMillis(500), &forgotten));
        assert!(has_entered(false, UnixMillis(50), &forgotten));
        assert!(!has_entered(false, UnixMillis(500), &forgotten));
    }
}
