//! A message, as the event a gateway reads.

use super::NAME;
use super::chats::Spot;
use super::files::STICKERS;
use super::parse::{Attachment, Message, Referenced, Snapshot, Sticker, User};
use crate::kit::attached;
use crate::kit::context::Author;
use angelia_contract::event::{Event, Media, ReplyTo, message_type};
use angelia_contract::source::{Source, chat_type};
use angelia_core::context::quoted;
use angelia_core::directory::ChatKind;
use angelia_core::media::{Origin, attach};
use serde_json::Map;

/// The flag of a message that is a recording.
const IS_VOICE: u64 = 1 << 13;

/// Messages that people write: plain ones, answers, commands of both kinds.
/// Others tell what happened: somebody joined, a thread began.
pub(super) fn is_said(message: &Message) -> bool {
    matches!(message.kind.0, None | Some(0 | 19 | 20 | 23))
}

/// What stands for something that was sent and cannot be told.
const UNSUPPORTED: &str = "[unsupported message]";

/// Whether a message says or shows anything.
pub(super) fn is_empty(message: &Message) -> bool {
    is_silent(message) && message.attachments.is_empty()
}

fn is_silent(message: &Message) -> bool {
    message.content.as_deref().is_none_or(|text| text.trim().is_empty())
}

/// Puts into words what a message says without any: what was forwarded, a
/// sticker, a poll.
pub(super) fn spell_out(message: &mut Message) {
    for Snapshot { message: forwarded } in std::mem::take(&mut message.message_snapshots) {
        if is_silent(message) {
            message.content = forwarded.content.0;
        }
        message.attachments.extend(forwarded.attachments);
        message.sticker_items.extend(forwarded.sticker_items);
    }
    if !is_empty(message) {
        message.sticker_items.clear();
        return;
    }
    let stickers: Vec<String> = message
        .sticker_items
        .iter()
        .map(|sticker| attached::titled("sticker", Some(&sticker.name)))
        .collect();
    if !stickers.is_empty() {
        message.content = Some(stickers.join(" "));
    } else if let Some(question) = message.poll["question"]["text"].as_str() {
        message.content = Some(attached::titled("poll:", Some(question)));
    }
}

/// Puts a word in the place of something that cannot be told at all.
pub(super) fn mark_unsupported(message: &mut Message) {
    message.content = Some(UNSUPPORTED.to_owned());
}

/// The message that another one answers. What refers to one in another channel,
/// or forwards it, answers nothing.
fn answered(message: &Message) -> (Option<String>, Option<&Referenced>) {
    let reference = message.message_reference.as_ref();
    let is_answer = reference.is_none_or(|reference| {
        let is_here = reference.channel_id.as_ref().is_none_or(|channel| *channel == message.channel_id);
        matches!(reference.kind.0, None | Some(0)) && is_here
    });
    if !is_answer {
        return (None, None);
    }
    let inline = message.referenced_message.as_ref();
    let id = reference.and_then(|reference| reference.message_id.as_ref());
    (id.or(inline.map(|inline| &inline.id)).map(|id| id.0.clone()), inline)
}

/// Who wrote the message that another one answers.
pub(super) fn answered_author(message: &Message) -> Option<Author> {
    let answered = answered(message).1?;
    let author = answered.author.as_ref()?;
    let is_bot = author.bot == Some(true) || answered.webhook_id.is_some();
    Some(Author { id: author.id.0.clone(), is_bot })
}

/// Whether a person did not write it.
pub(super) fn is_by_bot(message: &Message) -> bool {
    message.author.bot == Some(true) || message.webhook_id.is_some()
}

/// The word gateways know a kind of chat by.
pub(super) fn type_of(kind: ChatKind) -> &'static str {
    match kind {
        ChatKind::Dm => chat_type::DM,
        ChatKind::Thread => chat_type::THREAD,
        _ => chat_type::GROUP,
    }
}

/// How an event is to be written.
#[derive(Clone, Copy)]
pub(super) struct Writing<'a> {
    /// The bot's own user id.
    pub(super) own_id: &'a str,
    /// Whether the source says what the contract keeps off the wire: whether a
    /// bot wrote it, whether it was changed.
    pub(super) source_flags: bool,
    /// Whether it was changed.
    pub(super) is_edit: bool,
}

/// The event a message makes that says `text`.
pub(super) fn event(message: &Message, spot: &Spot, text: &str, writing: Writing<'_>) -> Event {
    let (reply_to_message_id, answered) = answered(message);
    Event {
        text: attached::below(text, &note(&message.attachments, message.flags.0)),
        message_type: type_of_message(message, text).into(),
        message_id: Some(message.id.0.clone()),
        reply_to_message_id,
        reply_to: answered.map(|answered| reply_to(answered, writing.own_id)),
        media: rows(message),
        source: source(message, spot, writing),
        ..Event::default()
    }
}

fn source(message: &Message, spot: &Spot, writing: Writing<'_>) -> Source {
    let chat = &spot.chat.chat;
    let is_thread = chat.kind == ChatKind::Thread;
    let user_name = shown_name(message);
    Source {
        platform: NAME.into(),
        chat_id: chat.chat_id.clone(),
        chat_type: type_of(chat.kind).into(),
        chat_name: chat_name(message, spot),
        chat_topic: topic(spot),
        user_id: Some(message.author.id.0.clone()),
        user_display_name: user_name.clone(),
        user_name,
        user_handle: message.author.username.0.clone(),
        thread_id: is_thread.then(|| chat.chat_id.clone()),
        parent_chat_id: chat.parent.clone(),
        scope_id: chat.scope.clone(),
        message_id: Some(message.id.0.clone()),
        is_bot: writing.source_flags.then(|| is_by_bot(message)),
        message_is_edit: writing.source_flags.then_some(writing.is_edit),
        ..Source::default()
    }
}

/// How the others there see the author. The handle is not for people to be called by.
fn shown_name(message: &Message) -> Option<String> {
    let nick = message.member.as_ref().and_then(|member| member.nick.as_deref());
    nick.filter(|nick| !nick.is_empty()).or_else(|| message.author.name()).map(str::to_owned)
}

/// What a chat is about. A post has no topic of its own, and is about what its forum is.
fn topic(spot: &Spot) -> Option<String> {
    let forum = spot.parent.as_ref().filter(|parent| parent.chat.kind == ChatKind::Forum);
    let inherited = || forum.and_then(|forum| forum.chat.topic.clone());
    spot.chat.chat.topic.clone().or_else(inherited)
}

/// How people call a chat: `guild / #channel / thread`, or the person's name.
fn chat_name(message: &Message, spot: &Spot) -> Option<String> {
    let chat = &spot.chat.chat;
    if chat.kind == ChatKind::Dm {
        return message.author.name().map(str::to_owned).or_else(|| chat.name.clone());
    }
    let guild = spot.guild.as_ref().and_then(|guild| guild.chat.name.clone());
    let channel = |name: &Option<String>| name.as_ref().map(|name| format!("#{name}"));
    let (channel, thread) = match chat.kind {
        ChatKind::Thread => {
            (spot.parent.as_ref().and_then(|parent| channel(&parent.chat.name)), chat.name.clone())
        }
        _ => (channel(&chat.name), None),
    };
    let names: Vec<String> = [guild, channel, thread].into_iter().flatten().collect();
    (!names.is_empty()).then(|| names.join(" / "))
}

fn type_of_message(message: &Message, text: &str) -> &'static str {
    match message.attachments.first() {
        _ if text.starts_with('/') => message_type::COMMAND,
        Some(file) => type_of_file(file, message.flags.0),
        None if !message.sticker_items.is_empty() => message_type::STICKER,
        None => message_type::TEXT,
    }
}

/// What a file is, by the flags of its message.
fn type_of_file(file: &Attachment, flags: Option<u64>) -> &'static str {
    let mime = file.content_type.as_deref().unwrap_or_default();
    match mime.split('/').next().unwrap_or_default() {
        "image" => message_type::PHOTO,
        "video" => message_type::VIDEO,
        "audio" if flags.unwrap_or_default() & IS_VOICE != 0 => message_type::VOICE,
        "audio" => message_type::AUDIO,
        _ => message_type::DOCUMENT,
    }
}

/// What an agent reads of the files of a message.
fn note(files: &[Attachment], flags: Option<u64>) -> String {
    attached::note(files.iter().map(|file| match type_of_file(file, flags) {
        // Discord names every recording alike.
        message_type::VOICE => attached::named("voice message", None),
        kind => attached::named(kind, file.filename.as_deref()),
    }))
}

/// The rows of what a message shows: its files, and its stickers behind them.
fn rows(message: &Message) -> Vec<Media> {
    let files = message.attachments.iter().map(|file| row(file, message.flags.0));
    files.chain(message.sticker_items.iter().filter_map(sticker)).collect()
}

fn row(file: &Attachment, flags: Option<u64>) -> Media {
    let mut extra = Map::new();
    extra.insert("kind".into(), type_of_file(file, flags).into());
    if let Some(size) = file.size.0 {
        extra.insert("size".into(), size.into());
    }
    let mime = file.content_type.0.clone();
    let filename = attached::file_name(file.filename.as_deref(), mime.as_deref());
    let mut row = Media { url: file.url.clone(), mime, filename, extra };
    attach(&mut row, &Origin { at: file.url.clone(), album: None });
    row
}

/// The row of a sticker, unless it is one of those that only Discord can draw.
fn sticker(sticker: &Sticker) -> Option<Media> {
    let (ending, mime) = match sticker.format_type.0? {
        1 | 2 => ("png", "image/png"),
        4 => ("gif", "image/gif"),
        _ => return None,
    };
    let id =
        sticker.id.0.as_ref().map(|id| id.0.as_str()).filter(|id| id.bytes().all(|b| b.is_ascii_digit()))?;
    let filename = attached::file_name(Some(&format!("{}.{ending}", sticker.name)), Some(mime));
    let mut row = Media { mime: Some(mime.into()), filename, ..Media::default() };
    row.extra.insert("kind".into(), message_type::STICKER.into());
    attach(&mut row, &Origin { at: format!("{STICKERS}{id}.{ending}"), album: None });
    Some(row)
}

fn reply_to(answered: &Referenced, own_id: &str) -> ReplyTo {
    let said = answered.content.as_deref().unwrap_or_default();
    let text = attached::below(said, &note(&answered.attachments, answered.flags.0));
    ReplyTo {
        text: quoted(&text),
        author: answered.author.as_ref().and_then(User::name).map(str::to_owned),
        is_own: answered.author.as_ref().is_some_and(|author| author.id.0 == own_id),
        ..ReplyTo::default()
    }
}

#[cfg(test)]
#[path = "normalize_tests.rs"]
mod tests;
