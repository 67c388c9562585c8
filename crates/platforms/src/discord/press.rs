//! Buttons: how a question shows them, and what the press of one comes to.

use super::chats::{IngestError, Spot};
use super::descriptor::MAX_MESSAGE_CHARS;
use super::interaction::Interaction;
use super::normalize;
use super::take::{Heard, Reader, never};
use super::take_interaction::{Considered, Reply};
use crate::inbound;
use crate::kit::Sighting;
use angelia_contract::event::{Event, message_type};
use angelia_core::clock;
use angelia_core::directory::Chat;
use angelia_core::inbox::CancellableWrite;
use angelia_core::own_words;
use angelia_core::ports::ActionId;
use angelia_core::prompts::{Answer, Button, Choice, Presser, PromptStore, Verdict, judge};
use serde_json::{Value, json};

/// Buttons in one row.
const IN_A_ROW: usize = 5;

/// What Discord's buttons are called and look like, in its numbers.
const ROW: u8 = 1;
const BUTTON: u8 = 2;

/// The buttons of a question.
pub(super) fn components(number: ActionId, choices: &[Choice]) -> Value {
    let button = |(option, choice): (usize, &Choice)| {
        let style = match choice.style.as_deref() {
            Some("primary") => 1,
            Some("success") => 3,
            Some("danger") => 4,
            _ => 2,
        };
        json!({
            "type": BUTTON, "style": style, "label": choice.label,
            "custom_id": Button { number, option }.token(),
        })
    };
    let buttons: Vec<Value> = choices.iter().enumerate().map(button).collect();
    buttons.chunks(IN_A_ROW).map(|row| json!({ "type": ROW, "components": row })).collect()
}

/// What a question shows once it is answered; a long one makes room for the answer.
fn shown(question: &str, line: &str) -> String {
    let room = MAX_MESSAGE_CHARS as usize - line.chars().count() - 2;
    let question: String = if question.chars().count() > room {
        question.chars().take(room - 1).chain(['…']).collect()
    } else {
        question.to_owned()
    };
    format!("{question}\n\n{line}")
}

impl Reader {
    /// What a press comes to: an entry for the instance that asked, or words for whoever pressed.
    pub(super) async fn pressed(
        &self,
        interaction: &Interaction,
        button: Button,
        (spot, told): (&Spot, Option<Chat>),
        sighting: Sighting,
    ) -> Result<Considered, IngestError> {
        let key = &self.discord.account.key;
        let prompt = self.ingress.ports.records.prompt(button.number).await?;
        let prompt = prompt.filter(|prompt| prompt.bot == *key);
        let admitted = self.admit(&sighting);
        let presser = Presser {
            chat_id: &sighting.chat_id,
            person: &sighting.author,
            private: sighting.private,
            admitted: &admitted,
        };
        let Answer { to, press, mut response, label } =
            match judge(prompt.as_ref(), button.option, presser, clock::wall()) {
                Verdict::Say(words) => return Ok(Considered::at_once(Reply::Words(words))),
                Verdict::Nobody(reason) => return Ok(Considered::at_once(Reply::refusal(reason))),
                Verdict::Answers(answer) => *answer,
            };
        let question = interaction.message.as_ref();
        response.prompt_message_id = question.map(|message| message.id.0.clone());
        let text = format!("/{}", response.option_id);
        let event = Event {
            message_type: message_type::COMMAND.into(),
            prompt_response: Some(response),
            ..normalize::event(&interaction.said, spot, &text, self.writing(false))
        };
        let source = &event.source;
        let by = source.user_display_name.as_ref().or(source.user_name.as_ref());
        let line = own_words::chosen(&label, by.unwrap_or(&sighting.author));
        let question = question.and_then(|message| message.content.0.as_deref()).unwrap_or_default();
        let reply = Reply::Chosen(shown(question, &line));
        let entry = inbound::entry(key, &event, to, clock::wall()).map_err(never)?;
        let mut heard = Heard::default();
        heard.intake.chats.extend(told);
        heard.intake.chats.extend(self.discord.language_of(interaction, &spot.chat.chat));
        heard.intake.press = Some(press);
        heard.intake.patience = Some(CancellableWrite::default());
        heard.is_for(entry, sighting);
        // Whoever asked in a thread is not therefore whom it was begun with.
        heard.intake.engaged = None;
        Ok(Considered { heard: Some(heard), reply })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buttons_come_in_rows_of_five_and_carry_what_they_mean() {
        let choice = |id: usize| Choice { id: format!("c{id}"), label: "x".into(), style: None };
        let rows = components(ActionId(7), &(0..12).map(choice).collect::<Vec<_>>());
        let counts: Vec<usize> =
            rows.as_array().unwrap().iter().map(|row| row["components"].as_array().unwrap().len()).collect();
        assert_eq!(counts, [5, 5, 2]);
        let last = rows[2]["components"][1]["custom_id"].as_str().unwrap();
        assert_eq!(Button::read(last), Some(Button { number: ActionId(7), option: 11 }));
    }

    #[test]
    fn an_answer_always_fits_below_its_question() {
        assert_eq!(shown("May I?", "→ Yes (Ann)"), "May I?\n\n→ Yes (Ann)");
        assert_eq!(shown(&"x".repeat(2_000), "→ Yes (Ann)").chars().count(), 2_000);
    }
}
