//! A posted line, as the event a gateway reads.

use angelia_contract::event::{Event, message_type};
use angelia_contract::source::{Source, chat_type};
use angelia_core::store::NewLine;

/// The platform's name. Gateways do not know it and file it under `relay`.
pub const NAME: &str = "webchat";
/// The one bot of the platform.
pub const BOT: &str = "webchat";
/// Chat ids carry it, so that they are never mistaken for another platform's.
const PREFIX: &str = "web-";

/// The chat id of a room.
pub fn chat_id(room: &str) -> String {
    format!("{PREFIX}{room}")
}

/// The room behind a chat id.
pub fn room_of(chat_id: &str) -> Option<&str> {
    chat_id.strip_prefix(PREFIX).filter(|room| !room.is_empty())
}

/// The event a line makes. The contract keeps `is_bot` and `message_is_edit`
/// off the wire; `source_flags` is the operator's word to write them.
pub(super) fn event(line: &NewLine, source_flags: bool) -> Event {
    let is_command = line.text.starts_with('/');
    Event {
        text: line.text.clone(),
        message_type: if is_command { message_type::COMMAND } else { message_type::TEXT }.into(),
        message_id: Some(line.message_id.clone()),
        reply_to_message_id: line.reply_to.clone(),
        source: Source {
            platform: NAME.into(),
            chat_id: chat_id(&line.room),
            chat_type: chat_type::GROUP.into(),
            chat_name: Some(line.room.clone()),
            user_id: Some(line.author.clone()),
            user_name: Some(line.author.clone()),
            user_display_name: Some(line.author.clone()),
            message_id: Some(line.message_id.clone()),
            is_bot: source_flags.then_some(false),
            message_is_edit: source_flags.then_some(false),
            ..Source::default()
        },
        ..Event::default()
    }
}
