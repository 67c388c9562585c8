//! What must be true whatever happened.

use super::{LineId, Violation, people};
use angelia_core::clock::Mono;
use angelia_core::inbox::{Entry, Seq};
use angelia_core::turns::{JOINED_BYTES, JOINED_LINES, MAX_HELD, Turns};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a line may take whose conversation is quiet, whatever others do.
const PROMPT: Duration = Duration::from_secs(3);
/// What broke so long ago bears on nothing any more.
const FORGOTTEN: Duration = Duration::from_secs(130);

#[derive(Debug)]
struct Known {
    session_key: String,
    seq: Seq,
    at: Mono,
    /// Whether it has nothing to wait for.
    quiet: bool,
    /// Whether it is no words: those may overtake it.
    press: bool,
    reached: bool,
}

/// What was written, and what came of it.
#[derive(Default)]
pub(crate) struct Judge {
    pub(crate) now: Mono,
    lines: BTreeMap<LineId, Known>,
    /// Lines that reached nobody yet.
    waiting: BTreeSet<LineId>,
    /// The last line of each conversation that reached the model.
    last: BTreeMap<String, Seq>,
    /// When something last reached the gateway of a conversation, or it worked there.
    busy: BTreeMap<String, Mono>,
    /// What each entry was when it was pushed first, and what this process knows of.
    pushed: BTreeMap<Seq, Vec<LineId>>,
    known: BTreeSet<Seq>,
    on_socket: BTreeSet<Seq>,
    broke: Option<Mono>,
}

impl Judge {
    /// A line was appended. `rest` is how long a conversation has to be left alone to be quiet.
    pub(crate) fn appended(&mut self, entry: &Entry, rest: Duration) {
        let event = people::event(entry);
        let session_key = entry.session_key.to_string();
        for id in people::lines(&event.text) {
            let quiet = self.is_sound() && self.is_quiet(&session_key, rest);
            let press = event.prompt_response.is_some() || event.text.starts_with('/');
            let (seq, at, session_key) = (entry.seq, self.now, session_key.clone());
            self.lines.insert(id, Known { session_key, seq, at, quiet, press, reached: false });
            self.waiting.insert(id);
        }
    }

    fn is_sound(&self) -> bool {
        self.broke.is_none_or(|at| self.now.since(at) > FORGOTTEN)
    }

    fn is_quiet(&self, session_key: &str, rest: Duration) -> bool {
        let left_alone = self.busy.get(session_key).is_none_or(|at| self.now.since(*at) > rest);
        left_alone && !self.waiting.iter().any(|id| self.lines[id].session_key == session_key)
    }

    /// Something broke: who waits may wait for that.
    pub(crate) fn broke(&mut self) {
        self.broke = Some(self.now);
        self.waiting.iter().for_each(|id| {
            if let Some(line) = self.lines.get_mut(id) {
                line.quiet = false;
            }
        });
    }

    /// The gateway is at work in a conversation.
    pub(crate) fn works(&mut self, session_key: &str) {
        self.busy.insert(session_key.to_owned(), self.now);
    }

    /// There is a new socket.
    pub(crate) fn connected(&mut self) {
        self.on_socket.clear();
    }

    /// The gateway is a new process, which knows of nothing.
    pub(crate) fn restarted(&mut self) {
        self.known.clear();
    }

    /// An entry reaches the gateway; whether it knows it already, and drops it.
    pub(crate) fn pushed(&mut self, entry: &Entry) -> Result<bool, Violation> {
        let event = people::event(entry);
        let lines = people::lines(&event.text);
        if lines.len() > JOINED_LINES || lines.len() > 1 && event.text.len() > JOINED_BYTES {
            return Err(Violation::TooMuch("lines that went together"));
        }
        if !self.on_socket.insert(entry.seq) {
            return Err(Violation::PushedTwice(entry.seq));
        }
        let first = self.pushed.entry(entry.seq).or_insert_with(|| lines.clone());
        if *first != lines {
            return Err(Violation::Changed(entry.seq));
        }
        self.works(&entry.session_key);
        Ok(!self.known.insert(entry.seq))
    }

    /// What is in an entry reaches the model.
    pub(crate) fn reached(&mut self, entry: &Entry) -> Result<(), Violation> {
        for id in people::lines(&people::event(entry).text) {
            let Some(line) = self.lines.get_mut(&id) else { continue };
            let again = std::mem::replace(&mut line.reached, true);
            self.waiting.remove(&id);
            // Only a new process gets something twice, and that in the same form.
            if again && self.pushed[&entry.seq].contains(&id) && line.seq != entry.seq {
                let before = self.pushed.iter().any(|(seq, lines)| *seq != entry.seq && lines.contains(&id));
                if before {
                    return Err(Violation::Twice(id));
                }
            }
            if again || line.press {
                continue;
            }
            if line.quiet && self.now.since(line.at) > PROMPT {
                return Err(Violation::Waited(id));
            }
            let last = self.last.entry(line.session_key.clone()).or_default();
            if *last > line.seq {
                return Err(Violation::OutOfOrder(id));
            }
            *last = line.seq;
        }
        Ok(())
    }

    /// What a socket holds.
    pub(crate) fn held(&self, turns: &Turns) -> Result<(), Violation> {
        let too_many = turns.pass_over().len() > MAX_HELD;
        if too_many { Err(Violation::TooMuch("conversations that are held")) } else { Ok(()) }
    }

    /// Whether nobody who has nothing to wait for waits.
    pub(crate) fn is_prompt(&self) -> Result<(), Violation> {
        let late = |id: &&LineId| {
            let line = &self.lines[*id];
            line.quiet && !line.press && self.now.since(line.at) > PROMPT
        };
        self.waiting.iter().find(late).map_or(Ok(()), |id| Err(Violation::Waited(*id)))
    }

    /// Whether every line reached the model.
    pub(crate) fn verdict(&self) -> Result<(), Violation> {
        self.waiting.first().map_or(Ok(()), |id| Err(Violation::Lost(*id)))
    }
}
