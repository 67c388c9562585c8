//! An agent's actions, as lines.

use super::descriptor::MAX_LINE_CHARS;
use super::room::{AGENT, conversation, file_at, is_line_id, person_of, room_of};
use super::{BOT, Hub, NAME, descriptor};
use crate::ingress::STORE_AGAIN;
use crate::kit::{IdSeed, cut, refused};
use crate::platform::{Delivery, Outcome, Platform, Reach};
use angelia_contract::action::{Action, ActionResult};
use angelia_contract::descriptor::Descriptor;
use angelia_contract::length::Unit;
use angelia_contract::source::chat_type;
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::egress::{Bot, Dedupe, Target, Whereabouts};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::identity::check_name;
use angelia_core::limit::{GcraOf, Rate};
use angelia_core::media::{FileId, Holder};
use angelia_core::ports::Ports;
use angelia_core::prompts;
use angelia_core::rooms::{self, part_id};
use angelia_core::secret::{fingerprint, hex, random_hex};
use angelia_core::store::{ActionId, Buttons, LineEdit, LineMark, NewLine, NewThread, ThreadName};
use angelia_core::vault::Way;
use angelia_core::{clock, fail};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Under which name the store keeps what the ids of agents' lines are made with.
const LINE_KEY: &str = "line key";

/// Marks of a room: each is a commit, and a turn has three. Those beyond it wait, and are left if
/// that takes longer than a mark may.
const MARKS: Rate = Rate { calls: 5, per: Duration::from_secs(1), burst: 20 };

angelia_contract::limits! {
    /// More than have agents that mark within a second. Beyond it whoever has rested most begins anew.
    const MAX_MARKED: usize = 1_024, count "rooms of the web chat whose pace of marks is remembered";
    /// A few words. Longer ones are cut.
    const MAX_WORDS: usize = 120, count "characters in which an agent says what it is at";
}

const NO_THREAD: &str = "there is no such thread in this chat";
const TOO_LONG_TO_ASK: &str = "the question is too long for one message with buttons";

/// The web chat as a platform to write to.
pub struct Webchat {
    pub(super) ports: Ports,
    hub: Arc<Hub>,
    key: BotKey,
    /// What the ids of agents' lines are made with.
    line_key: IdSeed,
    /// How fast rooms are marked.
    marks: Mutex<GcraOf<String>>,
}

impl Webchat {
    /// The web chat over a store and its live readers.
    pub fn new(ports: Ports, hub: Arc<Hub>) -> Self {
        let marks = Mutex::new(GcraOf::new(MAX_MARKED));
        Self { ports, hub, key: BotKey::new(NAME, BOT), line_key: IdSeed::default(), marks }
    }

    async fn line_id(&self, id: ActionId, received_at: UnixMillis) -> Result<String> {
        let key = self.line_key.get(&*self.ports.records, &self.key, LINE_KEY, random_hex::<16>).await?;
        Ok(line_id(key, id, received_at))
    }

    /// Whether something can be said in a thread of a room, or in the room itself.
    async fn has_thread(&self, room: &str, thread: Option<&str>) -> Result<bool> {
        let Some(thread) = thread else { return Ok(true) };
        let opens = self.ports.lines.line(room, thread).await?;
        Ok(opens.is_some_and(|line| line.thread_name.is_some()))
    }

    /// Opens a thread, or gives one another name.
    async fn thread(&self, room: String, delivery: Delivery) -> Result<Outcome> {
        let Delivery { id, received_at, target, action, .. } = delivery;
        match action {
            Action::ThreadCreate { .. } if thread(&target).is_some() => {
                Ok(refused("a thread has no threads of its own"))
            }
            Action::ThreadCreate { thread_name, message_id, .. } => {
                let name = rooms::thread_name(&thread_name);
                let line = NewLine {
                    room,
                    message_id: self.line_id(id, received_at).await?,
                    author: AGENT.into(),
                    from_agent: true,
                    text: name.clone(),
                    thread_name: Some(name),
                    at: clock::wall(),
                    ..NewLine::default()
                };
                fail::point("action_sending");
                match self.ports.lines.open_thread(NewThread { line, on: message_id }, id).await? {
                    Some(message_id) => Ok(Outcome::Sent { message_id, recorded: true }),
                    None => Ok(refused("there is no such message in this chat that could open a thread")),
                }
            }
            Action::ThreadRename { message_id, thread_name, only_if_current_name, .. } => {
                let name = ThreadName {
                    room,
                    thread: message_id.clone(),
                    name: rooms::thread_name(&thread_name),
                    // As it was kept, whatever it was given as.
                    only_if: only_if_current_name.map(|name| rooms::thread_name(&name)),
                };
                fail::point("action_sending");
                if self.ports.lines.name_thread(name, id).await? {
                    return Ok(Outcome::Sent { message_id, recorded: true });
                }
                Ok(refused("there is no such thread in this chat, or it is called otherwise by now"))
            }
            other => Ok(refused(format!("the web chat has no {:?}", other.op()))),
        }
    }

    /// Marks a line. What cannot be marked is left: the next mark may be for another line.
    async fn mark(&self, room: &str, message_id: &str, emoji: &str, remove: bool) -> Result<()> {
        let Some(emoji) = rooms::check_mark(emoji).map(str::to_owned) else { return Ok(()) };
        loop {
            let taken = self.marks.lock().take(room, MARKS, clock::mono());
            let Err(wait) = taken else { break };
            tokio::time::sleep(wait).await;
        }
        let (room, message_id) = (room.to_owned(), message_id.to_owned());
        self.ports.lines.mark_line(LineMark { room, message_id, emoji, remove }).await.map(drop)
    }

    /// Says something: a text, a question with buttons, a file.
    async fn say(&self, room: String, delivery: Delivery) -> Result<Outcome> {
        let Delivery { id, received_at, target, action, file, .. } = delivery;
        let content = action.content().to_owned();
        let parts = parts(&content).len();
        if parts == 0 && file.is_none() {
            return Ok(refused("there is no text to send"));
        }
        if !self.has_thread(&room, thread(&target)).await? {
            return Ok(refused(NO_THREAD));
        }
        let (reply_to, buttons) = match action {
            Action::Prompt { .. } if parts > 1 => return Ok(refused(TOO_LONG_TO_ASK)),
            Action::Prompt { reply_to, options, .. } => {
                let choices = prompts::choices(&options);
                (reply_to, Some(Box::new(Buttons { prompt: id, choices })))
            }
            Action::Send { reply_to, .. } | Action::SendMedia { reply_to, .. } => (reply_to, None),
            _ => (None, None),
        };
        let first = NewLine {
            room,
            message_id: self.line_id(id, received_at).await?,
            author: AGENT.into(),
            from_agent: true,
            reply_to,
            buttons,
            thread: thread(&target).map(str::to_owned),
            at: clock::wall(),
            ..NewLine::default()
        };
        if let Some(file) = file {
            return self.show_file(id, first, &content, &file).await;
        }
        let message_id = first.message_id.clone();
        fail::point("action_sending");
        self.ports.lines.say_lines(lines_of(first, &content), id).await?;
        Ok(Outcome::Sent { message_id, recorded: true })
    }

    async fn perform(&self, delivery: Delivery) -> Result<Outcome> {
        let Some(room) = room(&delivery.target).map(str::to_owned) else {
            return Ok(refused("this is not a chat"));
        };
        if matches!(delivery.action, Action::ThreadCreate { .. } | Action::ThreadRename { .. }) {
            return self.thread(room, delivery).await;
        }
        if matches!(delivery.action, Action::Send { .. } | Action::Prompt { .. } | Action::SendMedia { .. }) {
            return self.say(room, delivery).await;
        }
        let Delivery { id, action, .. } = delivery;
        match action {
            Action::Edit { .. } | Action::Delete { .. } => {
                // A line without a text is gone.
                let (message_id, parts) = match action {
                    Action::Edit { message_id, content, .. } => (message_id, parts(&content)),
                    Action::Delete { message_id, .. } => (message_id, vec![String::new()]),
                    _ => return Ok(refused("this is not a change")),
                };
                if parts.is_empty() {
                    return Ok(refused("there is no text to show"));
                }
                fail::point("action_sending");
                let edit = LineEdit { room, message_id: message_id.clone(), parts };
                if !self.ports.lines.edit_line(edit, id).await? {
                    return Ok(refused("there is no such message of yours in this chat"));
                }
                Ok(Outcome::Sent { message_id, recorded: true })
            }
            other => Ok(refused(format!("the web chat has no {:?}", other.op()))),
        }
    }
}

/// The lines of a text, of which the first answers. There is one even if there is no text.
pub(super) fn lines_of(first: NewLine, text: &str) -> Vec<NewLine> {
    let mut parts = parts(text).into_iter();
    let further = NewLine { reply_to: None, buttons: None, ..first.clone() };
    let mut lines = vec![NewLine { text: parts.next().unwrap_or_default(), ..first }];
    lines.extend(parts.enumerate().map(|(index, text)| {
        let message_id = part_id(&further.message_id, index + 1);
        NewLine { message_id, text, ..further.clone() }
    }));
    lines
}

/// A text, cut into lines.
fn parts(text: &str) -> Vec<String> {
    cut(text, MAX_LINE_CHARS as usize, Unit::Chars)
}

/// The id of an action's line, to those who do not have the key as good as any other. The number of an
/// action would tell everybody in the room how much all agents do; its time they see anyway, and an id
/// that begins with it lies beside the one before: a store finds a place for it at the end of an index,
/// and not on a page of its own.
fn line_id(key: &str, id: ActionId, received_at: UnixMillis) -> String {
    let digest = fingerprint(&format!("{key} {}", id.0));
    format!("wa{:011x}{}", received_at.0.max(0), hex(&digest[..8]))
}

/// The room of a target. Its threads have the ids of lines: whoever names anything else means
/// something that is not here.
fn room(target: &Target) -> Option<&str> {
    let in_room = thread(target).is_none_or(is_line_id);
    room_of(&target.chat_id).filter(|room| in_room && check_name("room", room).is_ok())
}

/// The thread of a target.
fn thread(target: &Target) -> Option<&str> {
    target.thread_id.as_deref().filter(|thread| *thread != target.chat_id)
}

/// What an agent says it is at, as it is shown: on one row, and not longer than it may be.
fn words(said: &str) -> String {
    let words: Vec<&str> = said.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    let row = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if row.chars().count() <= MAX_WORDS {
        return row;
    }
    let cut: String = row.chars().take(MAX_WORDS - 1).collect();
    format!("{}…", cut.trim_end())
}

/// What a failure of the store means: it has written nothing.
fn failed(error: &Error) -> Outcome {
    match error.kind() {
        Kind::Unavailable => Outcome::Later {
            after: STORE_AGAIN,
            reach: Reach::Action,
            why: "the store does not commit".into(),
        },
        _ => refused(error.to_string()),
    }
}

impl Bot for Webchat {
    fn platform(&self) -> &str {
        NAME
    }

    fn id(&self) -> &str {
        BOT
    }

    fn places(&self, target: &Target) -> Whereabouts {
        match room(target) {
            Some(room) => Whereabouts::Places(vec![room.to_owned(), "*".to_owned()]),
            None => Whereabouts::Nowhere,
        }
    }
}

impl Platform for Webchat {
    fn descriptor(&self) -> Descriptor {
        descriptor()
    }

    fn is_own(&self) -> bool {
        true
    }

    fn chat_key(&self, target: &Target) -> String {
        match room(target) {
            Some(room) => conversation(room, thread(target)),
            None => target.chat_id.clone(),
        }
    }

    fn keeps(&self, at: &str) -> Option<(Holder, FileId)> {
        file_at(at)
    }

    fn dedupe(&self, _action: &Action, _way: Option<Way>) -> Dedupe {
        Dedupe::Yes
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Outcome> {
        Box::pin(async { self.perform(delivery).await.unwrap_or_else(|error| failed(&error)) })
    }

    fn typing<'a>(
        &'a self,
        target: &'a Target,
        said: Option<&'a str>,
    ) -> BoxFuture<'a, Result<ActionResult>> {
        Box::pin(async move {
            if let Some(room) = room(target) {
                self.hub.works(room, thread(target), said.map(words));
            }
            Ok(ActionResult::ok())
        })
    }

    fn draft<'a>(
        &'a self,
        target: &'a Target,
        _draft_id: i64,
        text: &'a str,
    ) -> Option<BoxFuture<'a, Result<ActionResult>>> {
        Some(Box::pin(async move {
            if let Some(room) = room(target) {
                // Of a text that will be several lines, the one that is being written.
                let shown = parts(text).pop().unwrap_or_default();
                self.hub.draft(room, thread(target), shown);
            }
            Ok(ActionResult::ok())
        }))
    }

    fn react<'a>(
        &'a self,
        target: &'a Target,
        message_id: &'a str,
        emoji: &'a str,
        remove: bool,
    ) -> Option<BoxFuture<'a, Result<ActionResult>>> {
        Some(Box::pin(async move {
            if let Some(room) = room(target) {
                self.mark(room, message_id, emoji, remove).await?;
            }
            Ok(ActionResult::ok())
        }))
    }

    fn chat_info<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<ActionResult>> {
        Box::pin(async move {
            let room = room(target).unwrap_or_default();
            Ok(match person_of(room) {
                Some(person) => ActionResult::chat(person, chat_type::DM),
                None => ActionResult::chat(room, chat_type::GROUP),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_has_one_id_in_a_store_and_it_does_not_count() {
        let id = |key, number| line_id(key, ActionId(number), UnixMillis(1_800_000_000_000));
        assert_eq!(id("a", 7), id("a", 7));
        assert_ne!(id("a", 7), id("b", 7), "another store has others");
        let ids: std::collections::BTreeSet<String> = (0..1_000).map(|number| id("a", number)).collect();
        assert_eq!(ids.len(), 1_000);
        assert!(ids.iter().all(|id| id.len() == 29), "none is shorter for being early");
        let later = line_id("a", ActionId(3), UnixMillis(1_800_000_000_001));
        assert!(ids.iter().all(|id| *id < later), "what comes later lies behind it");
        assert_eq!(line_id("a", ActionId(3), UnixMillis(-1)).len(), 29, "whatever the clock says");
        assert_eq!((part_id("wa7", 0), part_id("wa7", 2)), ("wa7".into(), "wa7.2".into()));
    }

    #[test]
    fn a_room_is_what_will_be_written_to() {
        let with = |chat_id: &str, thread_id: Option<&str>| {
            let target = Target { chat_id: chat_id.into(), thread_id: thread_id.map(str::to_owned) };
            room(&target).map(str::to_owned)
        };
        assert_eq!(with("web-lab", None).as_deref(), Some("lab"));
        assert_eq!(with("web-lab", Some("web-lab")).as_deref(), Some("lab"));
        assert_eq!(with("web-dm:ann", None).as_deref(), Some("dm:ann"));
        assert_eq!(with("web-lab", Some("wa7")).as_deref(), Some("lab"), "a thread of it");
        for (chat_id, thread_id) in [
            ("web-lab", Some("web-den")),
            ("web-lab", Some("lab")),
            ("web-lab", Some("wa/7")),
            ("web-", None),
            ("web-*", None),
            ("web-a b", None),
            ("lab", None),
            ("", None),
        ] {
            assert_eq!(with(chat_id, thread_id), None, "{chat_id} {thread_id:?}");
        }
    }

    #[test]
    fn what_an_agent_is_at_is_a_row_of_words() {
        assert_eq!(words(" Reading\n\u{7}files "), "Reading files");
        assert_eq!(words(" "), "", "which takes the words away");
        let long = words(&"word ".repeat(100));
        assert!(long.chars().count() <= MAX_WORDS && long.ends_with('…'), "{long}");
    }
}
