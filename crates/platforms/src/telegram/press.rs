//! Buttons: how a question shows them, what the press of one comes to, and what the message shows
//! from then on.

use super::address::Me;
use super::ingest::Listener;
use super::parse::{Callback, Message};
use super::render::MAX_UNITS;
use super::{Telegram, normalize, take};
use crate::inbound;
use crate::kit::Sighting;
use angelia_contract::event::{Event, message_type};
use angelia_contract::length::Unit;
use angelia_core::clock;
use angelia_core::error::Result;
use angelia_core::own_words::{self, Language, OwnWords};
use angelia_core::ports::ActionId;
use angelia_core::prompts::{Answer, Button, Choice, Presser, Prompt, PromptStore, Verdict, judge};
use angelia_core::store::{Intake, Taken};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The buttons of a question, one below the other.
pub(super) fn keyboard(number: ActionId, choices: &[Choice]) -> Value {
    let row = |(option, choice): (usize, &Choice)| json!([{ "text": choice.label, "callback_data": Button { number, option }.token() }]);
    json!({ "inline_keyboard": choices.iter().enumerate().map(row).collect::<Vec<_>>() })
}

/// A press whose presser is to be told what came of it.
#[derive(Clone)]
pub(super) struct Pressed {
    callback: String,
    language: Language,
    /// Why it answers nothing.
    words: Option<OwnWords>,
    /// The message with the question, and what it shows once that is answered.
    shows: Option<Shows>,
}

#[derive(Clone)]
struct Shows {
    chat: i64,
    message: i64,
    text: String,
    entities: Value,
}

impl Pressed {
    fn refused(callback: &Callback, words: OwnWords) -> Self {
        let language = callback.language();
        Self { callback: callback.id.clone(), language, words: Some(words), shows: None }
    }

    /// What it is once the store has told.
    pub(super) fn after(self, taken: Taken) -> Self {
        let words = if taken.not_open {
            Some(OwnWords::PromptOver)
        } else if taken.no_instance {
            Some(OwnWords::AgentNotSetUp)
        } else {
            self.words
        };
        Self { shows: self.shows.filter(|_| words.is_none()), words, ..self }
    }
}

/// The press, as if its presser had written in the chat.
fn as_said(callback: &Callback, message: Message) -> Message {
    Message { from: Some(callback.from.clone()), sender_chat: None, text: None, caption: None, ..message }
}

impl Listener {
    /// What a press comes to: an entry for the instance that asked, or words for whoever pressed.
    pub(super) async fn pressed(
        &self,
        me: &Me,
        mut callback: Callback,
    ) -> Result<(Intake, Option<Sighting>, Pressed)> {
        let over = |callback: &Callback| Pressed::refused(callback, OwnWords::PromptOver);
        let button = callback.data.as_deref().and_then(Button::read);
        let raw = callback.message.0.take().unwrap_or_default();
        let question = serde_json::from_value::<Message>(raw.clone()).ok();
        let (Some(button), Some(question)) = (button, question) else {
            return Ok((Intake::default(), None, over(&callback)));
        };
        let shown = shown(&question, &raw);
        let said = as_said(&callback, question);
        let mut intake = Intake { chats: self.bot.learn_from(&said).await?, ..Intake::default() };
        let seen = take::sighting(&said, me);
        let sighting = Sighting { addressed: true, message_id: callback.id.clone(), ..seen };
        let key = &self.bot.account.key;
        let prompt = self.ingress.ports.records.prompt(button.number).await?;
        let prompt = prompt.filter(|prompt: &Prompt| prompt.bot == *key);
        let admitted = sighting.decide(&self.ingress, key);
        let presser = Presser {
            chat_id: &sighting.chat_id,
            person: &sighting.author,
            private: sighting.private,
            admitted: &admitted,
        };
        let pressed = match judge(prompt.as_ref(), button.option, presser, clock::wall()) {
            Verdict::Say(words) => Pressed::refused(&callback, words),
            Verdict::Nobody(reason) => Pressed::refused(&callback, reason.own_words()),
            Verdict::Answers(answer) => {
                let Answer { to, press, mut response, label } = *answer;
                response.prompt_message_id = Some(said.message_id.to_string());
                let edited = self.ingress.source_flags.then_some(false);
                let mut source = normalize::source(&said, self.bot.topic_name(&said), edited);
                source.message_id = Some(callback.id.clone());
                let by = source.user_name.clone().unwrap_or_else(|| sighting.author.clone());
                let event = Event {
                    text: format!("/{}", response.option_id),
                    message_type: message_type::COMMAND.into(),
                    message_id: Some(callback.id.clone()),
                    prompt_response: Some(response),
                    source,
                    ..Event::default()
                };
                intake.entry = Some(inbound::entry(key, &event, to, clock::wall())?);
                intake.press = Some(press);
                let shows = shown.map(|shown| shown.with(&own_words::chosen(&label, &by)));
                Pressed { callback: callback.id.clone(), language: callback.language(), words: None, shows }
            }
        };
        Ok((intake, Some(sighting), pressed))
    }
}

/// What the message with a question shows; nothing of one that is too old for Telegram to tell.
fn shown(question: &Message, raw: &Value) -> Option<Shows> {
    let text = question.text.clone()?;
    let entities = raw.get("entities").cloned().unwrap_or_else(|| json!([]));
    Some(Shows { chat: question.chat.id, message: question.message_id, text, entities })
}

impl Shows {
    /// The same with a line below, if there is room for it.
    fn with(self, line: &str) -> Self {
        let text = format!("{}\n\n{line}", self.text);
        if Unit::Utf16.measure(&text) > MAX_UNITS { self } else { Self { text, ..self } }
    }
}

impl Telegram {
    /// Tells whoever pressed what came of it, and has the message show what was chosen.
    pub(super) fn tell_presser(self: &Arc<Self>, pressed: Pressed) {
        let bot = self.clone();
        self.account.reply_after(Duration::ZERO, async move {
            let mut asked = json!({ "callback_query_id": pressed.callback });
            if let Some(words) = pressed.words {
                asked["text"] = words.text(pressed.language).into();
                asked["show_alert"] = true.into();
            }
            // What is too old to be answered is not: nobody looks at it any more.
            let told = bot.api.call::<Value>("answerCallbackQuery", &asked).await;
            let Some(Shows { chat, message, text, entities }) = pressed.shows else {
                return told.map(drop);
            };
            // Without a keyboard in it, an edit takes the buttons away.
            let shows = json!({ "chat_id": chat, "message_id": message, "text": text, "entities": entities });
            bot.about_to_write(&chat.to_string(), &text).await;
            bot.api.write::<Value>("editMessageText", &shows, || true).await.map(drop)
        });
    }
}
