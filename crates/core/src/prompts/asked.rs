//! What an agent asks: a question, its buttons, and of whom.

use super::{OPEN_AT_MOST, OPEN_FOR};
use crate::directory::BotKey;
use crate::inbox::InstanceId;
use crate::ports::ActionId;
use crate::words::words;
use angelia_contract::action::{Action, PromptOption};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;

/// Most buttons of one question: five rows of five, which every platform with buttons shows.
pub const MAX_CHOICES: usize = 25;
/// Longest label, in characters: as much as the narrowest platform shows.
pub const MAX_LABEL: usize = 80;
/// What a button may look like.
const STYLES: [&str; 3] = ["primary", "success", "danger"];
/// Longest id of a question or an option, as gateways may write them.
const MAX_ID: usize = 32;
/// The hint that says of whom something is asked. Gateways write there who spoke last in the chat;
/// whose turn it is, the connector knows better. No id has a space in it.
const ASKED_OF: &str = "user_id";
/// Longest such hint.
const MAX_ASKED_OF: usize = 512;

words! {
    /// What is asked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PromptKind {
        /// Leave to do something: only whoever asked for it gives that.
        Approval = "approval",
        /// What is meant: anybody who may speak there says it.
        Clarify = "clarify",
    }
}

/// One button.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What its gateway calls it.
    pub id: String,
    /// What stands on it.
    pub label: String,
    /// What it looks like, in the contract's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style: Option<String>,
}

/// The buttons of a question in one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices(pub Vec<Choice>);

/// A question on its way into the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPrompt {
    /// The action that asks it.
    pub number: ActionId,
    /// Whose it is.
    pub tenant: String,
    /// Who waits for the answer.
    pub instance: InstanceId,
    /// The bot that shows it.
    pub bot: BotKey,
    /// The chat that is written to.
    pub chat_id: String,
    /// What its gateway calls it.
    pub prompt_id: String,
    /// What is asked.
    pub kind: PromptKind,
    /// The buttons.
    pub choices: Vec<Choice>,
    /// Whose turn it is asked in.
    pub asked_of: Vec<String>,
    /// How long it can be answered.
    pub open_for: Duration,
}

impl NewPrompt {
    /// What a `prompt` asks; an error says why it cannot be shown as buttons. `None` for any
    /// other action.
    pub fn of(
        action: &Action,
        number: ActionId,
        (tenant, instance): (&str, InstanceId),
        (bot, chat_id): (BotKey, String),
    ) -> Option<Result<Self, &'static str>> {
        let Action::Prompt { prompt_id, prompt_kind, options, timeout_s, metadata, .. } = action else {
            return None;
        };
        let asked_of = match metadata.get(ASKED_OF) {
            Some(Value::String(people)) if people.len() <= MAX_ASKED_OF => {
                people.split_whitespace().map(str::to_owned).collect()
            }
            Some(Value::Number(person)) => vec![person.to_string()],
            _ => Vec::new(),
        };
        Some(usable(action).map(|()| Self {
            number,
            tenant: tenant.to_owned(),
            instance,
            bot,
            chat_id,
            prompt_id: prompt_id.clone(),
            kind: PromptKind::parse(prompt_kind).unwrap_or(PromptKind::Approval),
            choices: choices(options),
            asked_of,
            open_for: open_for(*timeout_s),
        }))
    }
}

/// Notes beside a `prompt` in whose turns it is asked. Where no turn is known, the gateway's word stays.
pub fn note_asked_of(action: &mut Action, people: &[String]) {
    if let Action::Prompt { metadata, .. } = action
        && !people.is_empty()
    {
        let mut noted = String::new();
        for person in people.iter().filter(|person| !person.contains(char::is_whitespace)) {
            if noted.len() + 1 + person.len() <= MAX_ASKED_OF {
                noted.extend([person, " "]);
            }
        }
        metadata.insert(ASKED_OF.to_owned(), noted.trim_end().into());
    }
}

/// Whether an action is no question, or one that can be shown; why not.
pub fn usable(action: &Action) -> Result<(), &'static str> {
    let Action::Prompt { prompt_id, options, content, .. } = action else { return Ok(()) };
    if content.trim().is_empty() {
        return Err("a prompt needs a question");
    }
    if !(1..=MAX_CHOICES).contains(&options.len()) {
        return Err("a prompt needs between 1 and 25 options");
    }
    let mut ids = HashSet::new();
    if !is_id(prompt_id) || !options.iter().all(|option| is_id(&option.id) && ids.insert(&*option.id)) {
        return Err(
            "the ids of a prompt and its options are 1 to 32 of A-Z a-z 0-9 _ . -, each option's own",
        );
    }
    Ok(())
}

fn is_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=MAX_ID).contains(&id.len()) && id.bytes().all(is_plain)
}

/// The buttons as they are shown: each has a label of one line, and none is too long.
pub fn choices(options: &[PromptOption]) -> Vec<Choice> {
    let choice = |option: &PromptOption| {
        let label = option.label.split_whitespace().collect::<Vec<_>>().join(" ");
        let label = if label.is_empty() { option.id.clone() } else { label };
        let style = option.style.clone().filter(|style| STYLES.contains(&style.as_str()));
        Choice { id: option.id.clone(), label: cut(&label), style }
    };
    options.iter().map(choice).collect()
}

fn cut(label: &str) -> String {
    if label.chars().count() <= MAX_LABEL {
        return label.to_owned();
    }
    label.chars().take(MAX_LABEL - 1).chain(['…']).collect()
}

fn open_for(timeout_s: Option<f64>) -> Duration {
    let asked =
        timeout_s.filter(|seconds| *seconds >= 1.0).and_then(|it| Duration::try_from_secs_f64(it).ok());
    asked.unwrap_or(OPEN_FOR).min(OPEN_AT_MOST)
}

/// The question with its options as numbered lines, where there are no buttons.
pub fn numbered(question: &str, choices: &[Choice]) -> String {
    let lines = choices.iter().enumerate().map(|(at, choice)| format!("\n{}. {}", at + 1, choice.label));
    let mut text = format!("{}\n", question.trim_end());
    text.extend(lines);
    text
}
