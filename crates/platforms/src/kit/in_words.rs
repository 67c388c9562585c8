//! Questions where there are no buttons: they are asked with numbered lines, and a number is the
//! press.

use super::{Account, Sighting, inbound};
use crate::ingress::Ingress;
use angelia_contract::action::Action;
use angelia_contract::event::{Event, message_type};
use angelia_core::admission::Admitted;
use angelia_core::clock;
use angelia_core::error::Result;
use angelia_core::inbox::WhenFull;
use angelia_core::prompts::{
    self, Answer, MAX_LABEL, Press, Presser, PromptStore, Verdict, judge, numbered, picked,
};
use angelia_core::store::NewEntry;

/// The text of a `send`, or of a question with its options below; `None` for anything else.
pub(crate) fn in_words(action: &Action) -> Option<String> {
    match action {
        Action::Send { content, .. } => Some(content.clone()),
        Action::Prompt { content, options, .. } => Some(numbered(content, &prompts::choices(options))),
        _ => None,
    }
}

impl Account {
    /// The press that a person's words are, if they name an option of the newest question in
    /// their chat.
    pub(super) async fn as_press(
        &self,
        ingress: &Ingress,
        sighting: &Sighting,
        admitted: &Admitted,
        event: &Event,
    ) -> Result<Option<(Press, NewEntry)>> {
        if event.text.chars().count() > MAX_LABEL + 2 || !event.media.is_empty() {
            return Ok(None);
        }
        let open = ingress.ports.records.open_prompts(&self.key, &sighting.chat_id).await?;
        let Some(prompt) = open.first() else { return Ok(None) };
        let labels = prompt.choices.iter().map(|choice| &choice.label);
        let Some(option) = picked(&event.text, labels) else { return Ok(None) };
        let admitted = Ok(admitted.clone());
        let presser = Presser {
            chat_id: &sighting.chat_id,
            person: &sighting.author,
            private: sighting.private,
            admitted: &admitted,
        };
        let Verdict::Answers(answer) = judge(Some(prompt), option, presser, clock::wall()) else {
            return Ok(None);
        };
        let Answer { to, press, response, .. } = *answer;
        let event = Event {
            text: format!("/{}", response.option_id),
            message_type: message_type::COMMAND.into(),
            prompt_response: Some(response),
            ..event.clone()
        };
        let entry = inbound::entry(&self.key, &event, to, clock::wall())?;
        Ok(Some((press, NewEntry { when_full: WhenFull::Refuse, ..entry })))
    }
}
