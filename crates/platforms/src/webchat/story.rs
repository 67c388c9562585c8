//! What happened to a line, for the people of its room: the steps of the journal
//! that `angelia explain` tells, without the names of tenants and gateways.

use super::address;
use super::normalize::{NAME, chat_id};
use super::speak::Api;
use crate::admission::Which;
use angelia_core::admission::DropReason;
use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Result};
use angelia_core::store::{ActionTrace, Edits, JournalStore, Line, MessageTrace};
use serde::Serialize;

/// Answers told of; more than anybody reads.
const MOST_ANSWERS: usize = 20;

/// The way of a line, and of what was written in answer to it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Told {
    message_id: String,
    received_at: Option<UnixMillis>,
    stored_at: Option<UnixMillis>,
    pushed_at: Option<UnixMillis>,
    pushes: u32,
    settled_at: Option<UnixMillis>,
    outcome: Option<String>,
    dropped: Option<Dropped>,
    answers: Vec<Answer>,
}

/// Why it reached no agent.
#[derive(Debug, Serialize)]
struct Dropped {
    reason: &'static str,
    hint: &'static str,
    at: UnixMillis,
}

/// Something an agent wrote.
#[derive(Debug, Serialize)]
struct Answer {
    message_id: Option<String>,
    accepted_at: UnixMillis,
    written_at: Option<UnixMillis>,
    state: String,
    error: Option<String>,
    edits: u64,
    last_edit_at: Option<UnixMillis>,
}

impl Told {
    /// The steps of what a person said.
    fn legs_of(&mut self, story: &MessageTrace) {
        self.received_at = Some(story.received_at);
        self.stored_at = Some(story.appended_at);
        self.pushed_at = story.pushed_at;
        self.pushes = story.pushes;
        self.settled_at = story.settled_at;
        self.outcome.clone_from(&story.outcome);
    }
}

impl Api {
    /// What happened to a line of a room. An agent's line is told of with the one it answers.
    pub(super) async fn story(&self, room: &str, message_id: &str) -> Result<Told> {
        let line = self.ports.lines.line(room, message_id).await?;
        let line = line.ok_or_else(|| Error::not_found("there is no such message in this room"))?;
        let chat = chat_id(room);
        let own = self.own_action(&line, &chat).await?;
        let question = match &own {
            Some(action) => action.reply_to.clone(),
            None => Some(line.message_id.clone()),
        };
        let is_asked = question.is_some();
        let message_id = question.unwrap_or_else(|| line.message_id.clone());
        let mut told = Told { message_id, ..Told::default() };
        let stories = self.ports.records.explain(&told.message_id).await?;
        let stories = stories.into_iter().filter(|story| is_of(story, &chat)).collect::<Vec<_>>();
        if is_asked {
            let which = Which { chat_id: &chat, thread_id: None, message_id: &told.message_id };
            told.dropped = self.admission.why_dropped(which).map(dropped);
            if let Some(story) = stories.first() {
                told.legs_of(story);
            }
        }
        if told.dropped.is_none() && told.received_at.is_none() {
            // Longer remembered than the drops themselves.
            told.dropped = line.undelivered.map(|reason| dropped((reason, line.at)));
        }
        let mut actions: Vec<_> = stories.into_iter().flat_map(|story| story.replies).collect();
        if let Some(own) = own
            && !actions.iter().any(|action| action.id == own.id)
        {
            actions.insert(0, own);
        }
        for action in actions.into_iter().take(MOST_ANSWERS) {
            let edits = match &action.message_id {
                Some(message_id) => self.ports.records.edits(&chat, message_id).await?,
                None => Edits::default(),
            };
            told.answers.push(answer(action, edits));
        }
        if told.received_at.is_none() && told.answers.is_empty() && told.dropped.is_none() {
            return Err(Error::not_found(
                "nothing is known of its way: the server wrote it itself, or it is older than the journal's 72 hours",
            ));
        }
        Ok(told)
    }

    /// What an agent did to write a line.
    async fn own_action(&self, line: &Line, chat: &str) -> Result<Option<ActionTrace>> {
        if !line.from_agent {
            return Ok(None);
        }
        // Further pieces of a long text are written by the action of the first.
        let first = line.message_id.split('.').next().unwrap_or_default();
        let actions = self.ports.records.explain_action(first).await?;
        Ok(actions.into_iter().find(|action| action.chat_id == chat && action.op != "edit"))
    }
}

/// Whether a story is of a line of this chat: ids may be others elsewhere.
fn is_of(story: &MessageTrace, chat: &str) -> bool {
    story.platform == NAME && story.chat_id == chat
}

fn dropped((reason, at): (DropReason, UnixMillis)) -> Dropped {
    Dropped { reason: reason.as_str(), hint: address::hint(reason), at }
}

fn answer(action: ActionTrace, edits: Edits) -> Answer {
    Answer {
        message_id: action.message_id,
        accepted_at: action.accepted_at,
        written_at: action.finished_at,
        state: action.state,
        error: action.error,
        edits: edits.count,
        last_edit_at: edits.last_at,
    }
}
