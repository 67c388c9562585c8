//! The press of a button below a question.

use super::ingest::new_line;
use super::room::{conversation, person_of};
use super::routes::{Answer, Answered, Api, body};
use super::verify::Caller;
use super::{address, normalize};
use crate::inbound;
use angelia_contract::event::{Event, PromptResponse, message_type};
use angelia_core::admission::{Admitted, DropReason};
use angelia_core::clock;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::inbox::WhenFull;
use angelia_core::own_words::{self, Language, OwnWords};
use angelia_core::prompts::{self, Presser, PromptStore, Verdict, judge};
use angelia_core::store::{Guest, LineAnswer, NewEntry, NewLine};
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// A press, as a client sends it: which button, counted from 0.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pressed {
    option: usize,
}

/// Answers a question of the agent by one of its buttons.
pub(super) async fn press(
    State(api): State<Arc<Api>>,
    Path((_, id)): Path<(String, String)>,
    caller: Caller,
    request: Request,
) -> Answered {
    let Pressed { option } = body(request, r#"{"option": 0}"#).await?;
    api.check_pace(&caller)?;
    let (Guest { person, visiting, .. }, language) = (caller.guest, caller.language);
    let question = api.line(&person.room, &id).await?;
    let over = || Error::conflict(OwnWords::PromptOver.text(language));
    let buttons = question.buttons.as_ref().ok_or_else(over)?;
    let said = NewLine { thread: question.thread, ..new_line(person, String::new()) };
    let admitted = api.decide(&said, true);
    api.hold_back(visiting, &admitted, language).await?;
    let prompt = api.ports.records.prompt(buttons.prompt).await?;
    let presser = Presser {
        chat_id: &conversation(&said.room, said.thread.as_deref()),
        person: &said.author,
        private: person_of(&said.room).is_some(),
        admitted: &admitted,
    };
    let prompts::Answer { to, press, response, label } =
        match judge(prompt.as_ref(), option, presser, clock::wall()) {
            Verdict::Say(words) => return Err(refused(words, language).into()),
            Verdict::Nobody(reason) => {
                api.dropped(&said, true, reason);
                return Err(nobody(reason, language).into());
            }
            Verdict::Answers(answer) => *answer,
        };
    let entry =
        api.press_entry(&said, to, PromptResponse { prompt_message_id: Some(id.clone()), ..response })?;
    let shown = own_words::chosen(&label, &said.author);
    let NewLine { room, message_id, author, .. } = said;
    let answer = LineAnswer { room, message_id: id, author, shown, press, entry };
    match api.ports.lines.answer_line(answer).await {
        Ok(true) => Ok(Answer(StatusCode::ACCEPTED, json!({ "message_id": message_id, "chosen": label }))),
        Ok(false) => Err(over().into()),
        Err(gone) if gone.kind() == Kind::NotFound => Err(nobody(DropReason::NoInstance, language).into()),
        Err(failed) => Err(failed.into()),
    }
}

/// What somebody is told whose press answers nothing.
fn refused(words: OwnWords, language: Language) -> Error {
    let kind = if words == OwnWords::PromptNotYours { Kind::Forbidden } else { Kind::Conflict };
    Error::new(kind, words.text(language))
}

fn nobody(reason: DropReason, language: Language) -> Error {
    Error::forbidden(format!("{}: {}", reason.as_str(), address::hint(reason, language)))
}

impl Api {
    /// The inbox entry that carries an answer to whoever asked.
    fn press_entry(&self, said: &NewLine, to: Admitted, response: PromptResponse) -> Result<NewEntry> {
        let event = Event {
            text: format!("/{}", response.option_id),
            message_type: message_type::COMMAND.into(),
            prompt_response: Some(response),
            ..normalize::event(said, self.source_flags)
        };
        let entry = inbound::entry(&self.bot, &event, to, said.at)?;
        Ok(NewEntry { when_full: WhenFull::Refuse, ..entry })
    }
}
