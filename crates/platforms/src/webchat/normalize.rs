//! A posted line, as the event a gateway reads.

use super::files::{note, rows, type_of};
use super::room::{AGENT, chat_id, person_of};
use super::{NAME, address};
use crate::kit::attached;
use angelia_contract::event::{Event, ReplyTo, message_type};
use angelia_contract::source::{Source, chat_type};
use angelia_core::context::quoted;
use angelia_core::store::{Line, NewLine};

/// The event a line makes. The contract keeps `is_bot` and `message_is_edit`
/// off the wire; `source_flags` is the operator's word to write them.
pub(super) fn event(line: &NewLine, source_flags: bool) -> Event {
    let said = address::said(&line.text);
    let is_command = said.starts_with('/');
    let text = attached::below(said, &note(&line.files));
    // A thread is one conversation, whoever speaks in it.
    let (chat_type, chat_name) = match (&line.thread, person_of(&line.room)) {
        (Some(_), _) => (chat_type::THREAD, line.room.as_str()),
        (None, Some(person)) => (chat_type::DM, person),
        (None, None) => (chat_type::GROUP, line.room.as_str()),
    };
    Event {
        text,
        message_type: if is_command { message_type::COMMAND } else { type_of(&line.files) }.into(),
        media: rows(&line.room, &line.files),
        message_id: Some(line.message_id.clone()),
        reply_to_message_id: line.reply_to.clone(),
        source: Source {
            platform: NAME.into(),
            chat_id: chat_id(&line.room),
            chat_type: chat_type.into(),
            chat_name: Some(chat_name.to_owned()),
            user_id: Some(line.author.clone()),
            user_name: Some(line.author.clone()),
            user_display_name: Some(line.author.clone()),
            thread_id: line.thread.clone(),
            parent_chat_id: line.thread.as_ref().map(|_| chat_id(&line.room)),
            message_id: Some(line.message_id.clone()),
            is_bot: source_flags.then_some(false),
            message_is_edit: source_flags.then_some(false),
            ..Source::default()
        },
        ..Event::default()
    }
}

/// What a line refers to. What the connector itself said there is for people.
pub(super) fn reply_to(answered: &Line) -> Option<ReplyTo> {
    let is_own = answered.from_agent && answered.author == AGENT;
    let text = quoted(&attached::below(&answered.text, &note(&answered.files)));
    let author = Some(answered.author.clone());
    (is_own || !answered.from_agent).then(|| ReplyTo { text, author, is_own, ..ReplyTo::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_contract::session_key::{KeyOptions, Rules, session_key};
    use angelia_core::media::{FileId, MediaKind};
    use angelia_core::store::RoomFile;

    fn said_in(room: &str, text: &str) -> Event {
        let line = NewLine {
            room: room.into(),
            message_id: "wp1".into(),
            author: "ann".into(),
            text: text.into(),
            ..NewLine::default()
        };
        event(&line, false)
    }

    #[test]
    fn a_private_room_is_a_dm_and_any_other_a_group() {
        let key = |event: &Event| session_key(&event.source, &KeyOptions::default(), Rules::Published);
        let dm = said_in("dm:ann", "hi");
        assert_eq!((dm.source.chat_type.as_str(), dm.source.chat_name.as_deref()), ("dm", Some("ann")));
        assert_eq!(key(&dm), "agent:main:relay:dm:web-dm:ann");
        let group = said_in("lab", "hi");
        assert_eq!(
            (group.source.chat_type.as_str(), group.source.chat_name.as_deref()),
            ("group", Some("lab"))
        );
        assert_eq!(key(&group), "agent:main:relay:group:web-lab:ann");
    }

    #[test]
    fn a_thread_is_one_conversation_for_all_who_speak_in_it() {
        let in_thread = |author: &str| {
            let line = NewLine {
                room: "lab".into(),
                author: author.into(),
                thread: Some("wa7".into()),
                ..NewLine::default()
            };
            event(&line, false).source
        };
        for rules in [Rules::Published, Rules::Newer] {
            let key = |author| session_key(&in_thread(author), &KeyOptions::default(), rules);
            assert_eq!(key("ann"), "agent:main:relay:thread:web-lab:wa7");
            assert_eq!(key("bob"), key("ann"));
        }
        assert_eq!(in_thread("ann").parent_chat_id.as_deref(), Some("web-lab"));
    }

    #[test]
    fn files_come_along_and_are_named_below_the_words() {
        let file = |name: &str, kind| {
            let id = Some(FileId::named(&[name]));
            RoomFile { id, name: name.into(), size: 7, mime: String::new(), kind, alt: None }
        };
        let with = |text: &str, files: &[RoomFile]| {
            let line = NewLine { text: text.into(), files: files.to_vec(), ..NewLine::default() };
            let event = event(&line, false);
            (event.text, event.message_type, event.media.len())
        };
        let files = [file("a.png", MediaKind::Image), file("b.pdf", MediaKind::Document)];
        assert_eq!(with("look", &[]), ("look".into(), "text".into(), 0));
        assert_eq!(with("look", &files), ("look\n[photo a.png] [document b.pdf]".into(), "photo".into(), 2));
        assert_eq!(with("", &files[1..]), ("[document b.pdf]".into(), "document".into(), 1));
        assert_eq!(with("/new", &files[..1]), ("/new".into(), "command".into(), 1));
    }

    #[test]
    fn a_mention_before_a_command_is_left_out() {
        let event = said_in("lab", "@agent /new");
        assert_eq!((event.text.as_str(), event.message_type.as_str()), ("/new", message_type::COMMAND));
        assert_eq!(said_in("lab", "ask @agent").text, "ask @agent");
    }
}
