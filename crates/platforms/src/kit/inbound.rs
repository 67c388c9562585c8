//! From an event to what the store keeps of it.

use angelia_contract::event::Event;
use angelia_contract::session_key::{KeyOptions, Rules, session_key};
use angelia_contract::source::{Source, chat_type};
use angelia_core::admission::{Admitted, is_stop};
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Result};
use angelia_core::inbox::{EntryKind, WhenFull};
use angelia_core::store::{NewEntry, Revision};
use angelia_core::turns::{Sort, sort_of_text};

/// The source of what a person wrote to the bot alone, where people have no name but their
/// id and each is a chat.
pub(crate) fn from_person(platform: &str, person: &str, message_id: &str, source_flags: bool) -> Source {
    let person = || person.to_owned();
    Source {
        platform: platform.into(),
        chat_id: person(),
        chat_type: chat_type::DM.into(),
        chat_name: Some(person()),
        user_id: Some(person()),
        user_name: Some(person()),
        message_id: Some(message_id.into()),
        is_bot: source_flags.then_some(false),
        message_is_edit: source_flags.then_some(false),
        ..Source::default()
    }
}

/// The inbox entry an event makes for the instance it is admitted to. A platform that
/// brings each message by itself, and can be refused it, says [`WhenFull::Refuse`] instead.
pub(crate) fn entry(
    bot: &BotKey,
    event: &Event,
    admitted: Admitted,
    received_at: UnixMillis,
) -> Result<NewEntry> {
    // An option may be called `stop`, and stops nothing by that.
    let stops = event.prompt_response.is_none() && is_stop(&event.text);
    let kind = if stops { EntryKind::Stop } else { EntryKind::Message };
    let body = serde_json::to_vec(event).map_err(|_| Error::internal("the event could not be written"))?;
    Ok(NewEntry {
        tenant: admitted.tenant,
        instance: admitted.instance,
        kind,
        platform: bot.platform.clone(),
        bot: bot.bot.clone(),
        chat_id: event.source.chat_id.as_str().into(),
        message_id: event.message_id.clone().unwrap_or_default(),
        session_key: session_key(&event.source, &KeyOptions::default(), Rules::Published).into(),
        body: body.into(),
        ahead: goes_ahead(event, kind),
        while_busy: admitted.while_busy,
        when_full: WhenFull::MakeRoom,
        received_at,
    })
}

/// Whether an event overtakes what waits: a stop, and what answers a question of the agent.
fn goes_ahead(event: &Event, kind: EntryKind) -> bool {
    let answers = event.prompt_response.is_some() || sort_of_text(&event.text) == Sort::Decision;
    kind == EntryKind::Stop || answers
}

/// What an event that its author changed says to the instance it is admitted to now.
pub(crate) fn revision(
    bot: &BotKey,
    event: &Event,
    admitted: Admitted,
    received_at: UnixMillis,
) -> Result<Revision> {
    let NewEntry { platform, bot, chat_id, message_id, instance, kind, body, .. } =
        entry(bot, event, admitted, received_at)?;
    Ok(Revision { platform, bot, chat_id, message_id, instance, kind, body })
}
