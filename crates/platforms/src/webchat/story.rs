//! What happened to a line, for the people of its room: the steps of the journal
//! that `angelia explain` tells, without the names of tenants and gateways.

use super::NAME;
use super::ingest::why;
use super::room::chat_id;
use super::routes::{Answer, Answered, Api};
use super::verify::Caller;
use crate::admission::Which;
use angelia_core::error::{Error, Result};
use angelia_core::store::{ActionTrace, Edits, JournalStore, Line};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

/// Answers told of; more than anybody reads.
const MOST_ANSWERS: usize = 20;

/// The way of a line of a room, and of what was written in answer to it. An agent's line is
/// told of with the one it answers.
pub(super) async fn story(
    State(api): State<Arc<Api>>,
    caller: Caller,
    Path((room, message_id)): Path<(String, String)>,
) -> Answered {
    let chat = chat_id(&room);
    let line = api.line(&room, &message_id).await?;
    let own = api.own_action(&line, &chat).await?;
    let asked = match &own {
        Some(action) => action.reply_to.as_ref(),
        None => Some(&line.message_id),
    };
    let message_id = asked.unwrap_or(&line.message_id);
    let mut traces = api.ports.records.explain(message_id).await?;
    // Ids may be others elsewhere.
    traces.retain(|trace| trace.platform == NAME && trace.chat_id == chat);
    let trace = traces.first().filter(|_| asked.is_some());
    let which = Which { chat_id: &chat, thread_id: None, message_id };
    let dropped = asked.and_then(|_| api.admission.why_dropped(which)).or_else(|| {
        // Longer remembered than the drops themselves.
        line.undelivered.filter(|_| trace.is_none()).map(|reason| (reason, line.at))
    });
    let mut told = json!({
        "message_id": message_id,
        "received_at": trace.map(|trace| trace.received_at),
        "stored_at": trace.map(|trace| trace.appended_at),
        "held_at": trace.and_then(|trace| trace.held_at),
        "pushed_at": trace.and_then(|trace| trace.pushed_at),
        "pushes": trace.map_or(0, |trace| trace.pushes),
        "interrupted_at": trace.and_then(|trace| trace.interrupted_at),
        "settled_at": trace.and_then(|trace| trace.settled_at),
        "outcome": trace.and_then(|trace| trace.outcome.as_ref()),
        "dropped": dropped.map(|(reason, at)| {
            let (reason, hint) = why(reason, caller.language);
            json!({ "reason": reason, "hint": hint, "at": at })
        }),
    });
    let is_received = trace.is_some();
    let mut actions: Vec<_> = traces.into_iter().flat_map(|trace| trace.replies).collect();
    if let Some(own) = own
        && !actions.iter().any(|action| action.id == own.id)
    {
        actions.insert(0, own);
    }
    if !is_received && actions.is_empty() && dropped.is_none() {
        let unknown = "nothing is known of its way: the server wrote it itself, or it is older than the journal's 72 hours";
        return Err(Error::not_found(unknown).into());
    }
    told["answers"] = api.answers(&chat, actions).await?.into();
    Ok(Answer(StatusCode::OK, told))
}

impl Api {
    /// A line of a room.
    pub(super) async fn line(&self, room: &str, message_id: &str) -> Result<Line> {
        let line = self.ports.lines.line(room, message_id).await?;
        line.ok_or_else(|| Error::not_found("there is no such message in this room"))
    }

    /// What is told of what an agent wrote in a chat.
    async fn answers(&self, chat: &str, actions: Vec<ActionTrace>) -> Result<Vec<Value>> {
        let mut answers = Vec::new();
        for action in actions.into_iter().take(MOST_ANSWERS) {
            let edits = match &action.message_id {
                Some(message_id) => self.ports.records.edits(chat, message_id).await?,
                None => Edits::default(),
            };
            answers.push(json!({
                "message_id": action.message_id, "accepted_at": action.accepted_at,
                "written_at": action.finished_at, "state": action.state, "error": action.error,
                "edits": edits.count, "last_edit_at": edits.last_at,
            }));
        }
        Ok(answers)
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
