//! A command, a press or a form, as Discord sends it, and what it says.

use super::address;
use super::parse::{Channel, Id, Member, Message, User, unreadable};
use crate::kit::Lenient;
use angelia_contract::event::PromptResponse;
use angelia_core::commands::ASK;
use angelia_core::own_words::Language;
use angelia_core::prompts::Button;
use angelia_core::secret::Secret;
use angelia_core::vault::Deferral;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What interactions are, in Discord's numbers.
pub(super) const PING: u64 = 1;
pub(super) const COMMAND: u64 = 2;
pub(super) const COMPONENT: u64 = 3;
pub(super) const AUTOCOMPLETE: u64 = 4;
pub(super) const FORM: u64 = 5;

/// Where other people talk to each other, and somebody has brought the bot along.
const AMONG_OTHERS: u64 = 2;
/// Discord's kinds of private chats, of two and of several.
const DM: u64 = 1;
const GROUP_DM: u64 = 3;

/// Longest and shortest credential. Discord's have some 200 characters; one of a
/// few could be guessed, and would be found in many a text that holds none.
const MAX_TOKEN: usize = 512;
const MIN_TOKEN: usize = 16;

/// What the callback token of a prompt's button starts with.
const PROMPT_PREFIX: &str = "hp1:";
/// Longest callback token.
const MAX_PROMPT_TOKEN: usize = 64;
/// Longest id in a callback token.
const MAX_PROMPT_ID: usize = 32;

/// The language of whoever is told something of an interaction, whatever else it is.
pub(super) fn language(body: Option<&Value>) -> Language {
    let locale = body.and_then(|body| body["locale"].as_str());
    locale.map(Language::of_tag).unwrap_or_default()
}

/// An interaction of a person. It holds its credential, and nobody prints it.
#[derive(Clone, Deserialize)]
pub(super) struct Interaction {
    pub(super) id: Id,
    #[serde(rename = "type")]
    kind: u64,
    pub(super) application_id: Id,
    #[serde(deserialize_with = "token")]
    pub(super) token: Secret,
    channel_id: Lenient<Id>,
    /// Where it happened, if Discord says so.
    pub(super) channel: Lenient<Channel>,
    pub(super) guild_id: Lenient<Id>,
    context: Lenient<u64>,
    locale: Lenient<String>,
    member: Lenient<Joined>,
    user: Lenient<User>,
    #[serde(default)]
    data: Value,
    /// The message that shows what was pressed.
    pub(super) message: Lenient<Pressed>,
    /// The message it would be, had the person written it.
    #[serde(skip)]
    pub(super) said: Message,
}

/// A message with buttons.
#[derive(Clone, Deserialize)]
pub(super) struct Pressed {
    pub(super) id: Id,
    pub(super) content: Lenient<String>,
}

#[derive(Clone, Deserialize)]
struct Joined {
    user: User,
    #[serde(flatten)]
    member: Member,
}

impl Interaction {
    /// Reads one; an error is why it cannot be read, without any text of it.
    pub(super) fn read(body: &Value) -> Result<Self, String> {
        let mut read = Self::deserialize(body).map_err(|error| unreadable(&error))?;
        if ![COMMAND, COMPONENT, FORM].contains(&read.kind) {
            return Err(format!("interactions of type {} are not known", read.kind));
        }
        let (author, member) = match (read.member.0.take(), read.user.0.take()) {
            (Some(Joined { user, member }), _) => (user, Some(member)),
            (None, Some(user)) => (user, None),
            (None, None) => return Err("it does not say who did it".into()),
        };
        let channel_id = read.channel_id.0.take();
        let channel_id = channel_id.or_else(|| read.channel.as_ref().map(|channel| channel.id.clone()));
        let channel_id = channel_id.ok_or("it does not say where it happened")?;
        let ids = [&read.id, &read.application_id, &channel_id, &author.id];
        if ids.into_iter().any(|id| address::snowflake(id).is_none()) {
            return Err("one of its ids is none of Discord's".into());
        }
        if !is_token(read.token.expose()) {
            return Err("its credential is none of Discord's".into());
        }
        let channel = read.channel.0.take().filter(|channel| channel.id == channel_id);
        read.channel = Lenient(channel.map(|channel| among_others(channel, read.context.0)));
        let (id, member) = (read.id.clone(), Lenient(member));
        read.said = Message { id, channel_id, author, member, ..Message::default() };
        Ok(read)
    }

    /// The language that the person has set, where Discord tells.
    pub(super) fn language(&self) -> Option<Language> {
        self.locale.as_deref().map(Language::of_tag)
    }

    /// What the person sees until the answer comes.
    pub(super) fn deferral(&self) -> Deferral {
        match self.kind {
            // What was pressed stays as it is.
            COMPONENT => Deferral::Update,
            // Who has filled in a form has to see that somebody got it.
            _ => Deferral::Message,
        }
    }

    /// What answers it: in this form it is below `webhooks/` in a URL.
    pub(super) fn credential(&self) -> Secret {
        Secret::new(format!("{}/{}", self.application_id.0, self.token.expose()))
    }

    /// What it says.
    pub(super) fn text(&self) -> String {
        match self.kind {
            COMMAND => command(&self.data),
            COMPONENT => match self.prompt() {
                Some((_, option)) => format!("/{option}"),
                None => component(&self.data),
            },
            _ => form(&self.data),
        }
    }

    /// The name of the command, if it is one.
    pub(super) fn command(&self) -> Option<String> {
        scalar(&self.data["name"]).filter(|_| self.kind == COMMAND)
    }

    /// The prompt it answers, if it is the press of one of its buttons.
    pub(super) fn prompt_response(&self) -> Option<PromptResponse> {
        let (prompt, option) = self.prompt()?;
        Some(PromptResponse {
            prompt_id: prompt.to_owned(),
            option_id: option.to_owned(),
            prompt_message_id: self.message.as_ref().map(|message| message.id.0.clone()),
            ..PromptResponse::default()
        })
    }

    /// The button that was pressed, if it is one of the connector's own.
    pub(super) fn button(&self) -> Option<Button> {
        self.data["custom_id"].as_str().filter(|_| self.kind == COMPONENT).and_then(Button::read)
    }

    /// Prompt and option of a callback token.
    fn prompt(&self) -> Option<(&str, &str)> {
        let custom_id = self.data["custom_id"].as_str().filter(|_| self.kind == COMPONENT)?;
        let is_id = |id: &str| {
            (1..=MAX_PROMPT_ID).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        };
        let (prompt, option) = custom_id.strip_prefix(PROMPT_PREFIX)?.split_once(':')?;
        let is_one = custom_id.len() <= MAX_PROMPT_TOKEN && is_id(prompt) && is_id(option);
        is_one.then_some((prompt, option))
    }
}

fn token<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
    String::deserialize(deserializer).map(Secret::new)
}

/// Whether a text can be a credential, and part of a URL as it stands.
pub(super) fn is_token(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~=".contains(&byte);
    (MIN_TOKEN..=MAX_TOKEN).contains(&text.len())
        && text.bytes().all(is_plain)
        && text.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

/// A chat of two that the bot is not one of is no private chat with it.
fn among_others(channel: Channel, context: Option<u64>) -> Channel {
    let is_others = channel.kind == DM && context == Some(AMONG_OTHERS);
    Channel { kind: if is_others { GROUP_DM } else { channel.kind }, ..channel }
}

fn command(data: &Value) -> String {
    let name = scalar(&data["name"]).unwrap_or_default();
    let mut words = Vec::new();
    option_words(&data["options"], &mut words);
    if name == ASK && !words.is_empty() {
        return words.join(" ");
    }
    words.insert(0, format!("/{name}"));
    words.join(" ")
}

/// Sub-commands stand by their name, everything else by its value.
fn option_words(options: &Value, words: &mut Vec<String>) {
    for option in options.as_array().into_iter().flatten() {
        match &option["value"] {
            Value::Null => {
                words.extend(scalar(&option["name"]));
                option_words(&option["options"], words);
            }
            value => words.extend(scalar(value)),
        }
    }
}

/// A button stands by its id; a menu also says which entries were chosen.
fn component(data: &Value) -> String {
    let chosen = data["values"].as_array().into_iter().flatten().filter_map(scalar);
    scalar(&data["custom_id"]).into_iter().chain(chosen).collect::<Vec<_>>().join(" ")
}

fn form(data: &Value) -> String {
    let lines = form_lines(&data["components"]);
    if lines.is_empty() { component(data) } else { lines.join("\n") }
}

/// The fields of a form, however they are nested.
fn form_lines(components: &Value) -> Vec<String> {
    components.as_array().into_iter().flatten().flat_map(field_lines).collect()
}

fn field_lines(component: &Value) -> Vec<String> {
    let chosen: Vec<_> = component["values"].as_array().into_iter().flatten().filter_map(scalar).collect();
    let value = scalar(&component["value"]).or_else(|| (!chosen.is_empty()).then(|| chosen.join(",")));
    let line = scalar(&component["custom_id"]).zip(value).map(|(id, value)| format!("{id}={value}"));
    let mut lines: Vec<String> = line.into_iter().collect();
    // Rows hold a list of fields, labels hold a single one.
    lines.extend(form_lines(&component["components"]));
    if component["component"].is_object() {
        lines.extend(field_lines(&component["component"]));
    }
    lines
}

fn scalar(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
#[path = "interaction_tests.rs"]
mod tests;
