//! A press: what a button carries, who may press it, and what that comes to.

use super::{Choice, Prompt, PromptKind};
use crate::admission::{Admitted, Approve, DropReason};
use crate::clock::UnixMillis;
use crate::own_words::OwnWords;
use crate::ports::ActionId;
use angelia_contract::event::PromptResponse;

/// What a button's token starts with. Gateways' own buttons start otherwise.
const PREFIX: &str = "angelia:";

/// What stands behind a button.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Button {
    /// The question.
    pub number: ActionId,
    /// Which of its options.
    pub option: usize,
}

impl Button {
    /// As providers carry it: at most 40 bytes.
    pub fn token(self) -> String {
        format!("{PREFIX}{}:{}", self.number.0, self.option)
    }

    /// Reads [`Button::token`] back; `None` for anything else.
    pub fn read(token: &str) -> Option<Self> {
        let (number, option) = token.strip_prefix(PREFIX)?.split_once(':')?;
        let button = Self { number: ActionId(number.parse().ok()?), option: option.parse().ok()? };
        (button.token() == token).then_some(button)
    }
}

/// Somebody who presses.
#[derive(Clone, Copy, Debug)]
pub struct Presser<'a> {
    /// Where they did: the chat that was written to.
    pub chat_id: &'a str,
    /// Who it is.
    pub person: &'a str,
    /// Whether the chat is that person and the bot.
    pub private: bool,
    /// Whom what they say there is for, or why it is for nobody.
    pub admitted: &'a Result<Admitted, DropReason>,
}

/// An answer on its way into the records, with the entry that carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Press {
    /// The question.
    pub number: ActionId,
    /// What was chosen.
    pub option_id: String,
    /// By whom.
    pub by: String,
}

/// A press that answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The instance that asked.
    pub to: Admitted,
    /// What is noted.
    pub press: Press,
    /// What the gateway is told.
    pub response: PromptResponse,
    /// What stood on the button.
    pub label: String,
}

/// What a press comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It answers.
    Answers(Box<Answer>),
    /// It does not, and whoever pressed is told this.
    Say(OwnWords),
    /// Whoever pressed reaches nobody there.
    Nobody(DropReason),
}

/// What a press of a button comes to.
///
/// The answer goes to the instance that asked, and to no other: not to one that has the chat by
/// now. An approval is given by those in whose turns it was asked; where nobody knows whose that
/// is, by nobody in company, unless the route lets anybody.
pub fn judge(prompt: Option<&Prompt>, option: usize, by: Presser<'_>, now: UnixMillis) -> Verdict {
    let to = match by.admitted {
        Ok(admitted) => admitted,
        Err(reason) => return Verdict::Nobody(*reason),
    };
    let is_its = |prompt: &&Prompt| {
        let may_answer = !to.named || prompt.instance == to.instance;
        prompt.chat_id == by.chat_id && prompt.tenant == to.tenant && may_answer
    };
    let asked = prompt.filter(is_its);
    let chosen = asked.and_then(|prompt| Some((prompt, prompt.choices.get(option)?)));
    // Whoever presses the same once more is shown that it counted.
    let again = |prompt: &Prompt, choice: &Choice| {
        prompt.answered.as_ref().is_some_and(|it| it.option_id == choice.id && it.by == by.person)
    };
    let open = chosen.filter(|(prompt, choice)| prompt.is_open(now) || again(prompt, choice));
    let Some((prompt, choice)) = open else { return Verdict::Say(OwnWords::PromptOver) };
    let is_theirs =
        by.private || to.options.approve == Approve::Any || prompt.asked_of.iter().any(|it| it == by.person);
    if prompt.kind == PromptKind::Approval && !is_theirs {
        return Verdict::Say(OwnWords::PromptNotYours);
    }
    let (number, option_id) = (prompt.number, choice.id.clone());
    Verdict::Answers(Box::new(Answer {
        to: Admitted { instance: prompt.instance, ..to.clone() },
        press: Press { number, option_id: option_id.clone(), by: by.person.to_owned() },
        response: PromptResponse {
            prompt_id: prompt.prompt_id.clone(),
            option_id,
            label: Some(choice.label.clone()),
            ..PromptResponse::default()
        },
        label: choice.label.clone(),
    }))
}

/// Which option somebody means who answers a question in words, where there are no buttons: its
/// number, or what stands on it.
pub fn picked(said: &str, labels: impl IntoIterator<Item = impl AsRef<str>>) -> Option<usize> {
    let said = said.trim().trim_end_matches(['.', ')', '!']).trim_end();
    let labels: Vec<_> = labels.into_iter().collect();
    let is_said = |label: &str| label.to_lowercase() == said.to_lowercase();
    let by_words = labels.iter().position(|label| is_said(label.as_ref()));
    let by_number = said.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    match (by_number.filter(|at| *at < labels.len()), by_words) {
        // A number that is also what another one says means neither for certain.
        (Some(number), Some(words)) if number != words => None,
        (number, words) => number.or(words),
    }
}
