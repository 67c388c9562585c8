//! Discord interactions as events.
//!
//! A connector that passes an interaction through leaves it to the gateway to
//! make a message of it. This follows what the newest hermes-agent does, so
//! that session keys agree.

use angelia_contract::event::message_type;
use angelia_contract::source::chat_type;
use angelia_contract::{Event, PassthroughForward, PromptResponse, Source};
use serde_json::Value;

/// Interaction types that carry something to say.
const COMMAND: u64 = 2;
const COMPONENT: u64 = 3;
const MODAL: u64 = 5;

/// Discord's channel types of threads.
const THREADS: [u64; 3] = [10, 11, 12];

/// What the callback token of a prompt's button starts with.
const PROMPT_PREFIX: &str = "hp1:";
/// Longest callback token.
const MAX_PROMPT_TOKEN: usize = 64;
/// Longest id in a callback token.
const MAX_PROMPT_ID: usize = 32;

/// The event a forwarded Discord interaction stands for.
///
/// None if the request is not from Discord or not an interaction of a person:
/// a command becomes `/name value…`, a button its prompt's answer or its id, a
/// form one `id=value` line for each field.
pub fn interaction_event(forward: &PassthroughForward) -> Option<Event> {
    if !forward.platform.eq_ignore_ascii_case("discord") {
        return None;
    }
    let body: Value = serde_json::from_slice(&forward.body).ok()?;
    let data = &body["data"];
    let event = match body["type"].as_u64()? {
        COMMAND => command(data)?,
        COMPONENT => component(data, &body["message"])?,
        MODAL => plain(modal_lines(&data["components"]).join("\n")),
        _ => return None,
    };
    let message_id = text(&body["id"]);
    Some(Event {
        source: Source { message_id: message_id.clone(), profile: forward.profile.clone(), ..source(&body)? },
        message_id,
        ..event
    })
}

fn source(body: &Value) -> Option<Source> {
    let channel = &body["channel"];
    let chat_id = text(&body["channel_id"]).or_else(|| text(&channel["id"]))?;
    let scope_id = text(&body["guild_id"]);
    let member = &body["member"];
    let user = if member["user"].is_object() { &member["user"] } else { &body["user"] };
    let in_thread = channel["type"].as_u64().is_some_and(|kind| THREADS.contains(&kind));
    let kind = match (&scope_id, in_thread) {
        (None, _) => chat_type::DM,
        (Some(_), true) => chat_type::THREAD,
        (Some(_), false) => chat_type::GROUP,
    };
    let in_thread = kind == chat_type::THREAD;
    let user_handle = text(&user["username"]);
    let shown = text(&member["nick"]).or_else(|| text(&user["global_name"]));
    let user_name = shown.or_else(|| user_handle.clone());
    Some(Source {
        platform: "discord".to_owned(),
        chat_type: kind.to_owned(),
        chat_name: text(&channel["name"]),
        user_id: text(&user["id"]),
        user_display_name: user_name.clone(),
        user_name,
        user_handle,
        thread_id: Some(chat_id.clone()).filter(|_| in_thread),
        parent_chat_id: text(&channel["parent_id"]).filter(|_| in_thread),
        chat_id,
        scope_id,
        ..Source::default()
    })
}

fn command(data: &Value) -> Option<Event> {
    let mut words = vec![format!("/{}", text(&data["name"])?)];
    option_words(&data["options"], &mut words);
    Some(Event { message_type: message_type::COMMAND.to_owned(), ..plain(words.join(" ")) })
}

/// Sub-commands stand by their name, everything else by its value.
fn option_words(options: &Value, words: &mut Vec<String>) {
    for option in options.as_array().into_iter().flatten() {
        match &option["value"] {
            Value::Null => {
                words.extend(text(&option["name"]));
                option_words(&option["options"], words);
            }
            value => words.extend(scalar(value)),
        }
    }
}

fn component(data: &Value, message: &Value) -> Option<Event> {
    let custom_id = text(&data["custom_id"])?;
    if let Some((prompt_id, option_id)) = prompt_token(&custom_id) {
        let prompt_response = PromptResponse {
            prompt_id: prompt_id.to_owned(),
            option_id: option_id.to_owned(),
            prompt_message_id: text(&message["id"]),
            ..PromptResponse::default()
        };
        return Some(Event {
            message_type: message_type::COMMAND.to_owned(),
            prompt_response: Some(prompt_response),
            ..plain(format!("/{option_id}"))
        });
    }
    // A menu says which entries were chosen; a button has none.
    let chosen = data["values"].as_array().into_iter().flatten().filter_map(scalar);
    let words: Vec<_> = std::iter::once(custom_id).chain(chosen).collect();
    Some(plain(words.join(" ")))
}

/// Prompt and option of a callback token.
fn prompt_token(custom_id: &str) -> Option<(&str, &str)> {
    let is_id = |id: &str| {
        (1..=MAX_PROMPT_ID).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
    };
    let token = custom_id.strip_prefix(PROMPT_PREFIX)?;
    let (prompt, option) = token.split_once(':')?;
    (custom_id.len() <= MAX_PROMPT_TOKEN && is_id(prompt) && is_id(option)).then_some((prompt, option))
}

/// The fields of a form, however they are nested.
fn modal_lines(components: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for component in components.as_array().into_iter().flatten() {
        let values = component["values"].as_array().into_iter().flatten();
        let chosen: Vec<_> = values.filter_map(scalar).collect();
        let value = scalar(&component["value"]).or_else(|| (!chosen.is_empty()).then(|| chosen.join(",")));
        if let (Some(id), Some(value)) = (text(&component["custom_id"]), value) {
            lines.push(format!("{id}={value}"));
        }
        // Rows hold a list of fields, labels hold a single one.
        lines.extend(modal_lines(&component["components"]));
        if component["component"].is_object() {
            lines.extend(modal_lines(&Value::Array(vec![component["component"].clone()])));
        }
    }
    lines
}

fn plain(text: String) -> Event {
    Event { text, ..Event::default() }
}

fn text(value: &Value) -> Option<String> {
    scalar(value).filter(|text| !text.is_empty())
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
