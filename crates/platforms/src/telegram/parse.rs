//! What is read of an update: little, and that little tolerantly.
//!
//! Strict is what decides where a message goes and whose it is: an update in
//! which that cannot be read goes to quarantine. Everything else is left out
//! where it is not as expected, so that a field that Telegram changes never
//! makes the bot deaf.

use crate::kit::{Lenient, List};
use angelia_core::clock::UnixMillis;
use angelia_core::directory::ChatKind;
use angelia_core::own_words::Language;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// An update as it came, with the number it has if any can be found.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub(super) id: Option<i64>,
    pub(super) json: String,
}

impl Raw {
    pub(super) fn new(json: impl Into<String>) -> Self {
        #[derive(Deserialize)]
        struct Numbered {
            update_id: i64,
        }
        let json = json.into();
        let id = serde_json::from_str(&json).ok().map(|numbered: Numbered| numbered.update_id);
        Self { id, json }
    }
}

/// One update, of the kinds that are asked for.
#[derive(Debug, Deserialize)]
pub(super) struct Update {
    pub(super) message: Option<Message>,
    pub(super) edited_message: Option<Message>,
    pub(super) channel_post: Option<Message>,
    pub(super) edited_channel_post: Option<Message>,
    pub(super) my_chat_member: Option<MemberChange>,
    pub(super) callback_query: Option<Callback>,
}

/// Somebody pressed a button.
#[derive(Debug, Deserialize)]
pub(super) struct Callback {
    pub(super) id: String,
    pub(super) from: Sender,
    /// The message that the button is below, as it came: it is shown again.
    pub(super) message: Lenient<Value>,
    pub(super) data: Lenient<String>,
}

impl Callback {
    /// The language of whoever pressed.
    pub(super) fn language(&self) -> Language {
        self.from.language_code.as_deref().map(Language::of_tag).unwrap_or_default()
    }
}

/// The bot's own place in a chat has changed.
#[derive(Debug, Deserialize)]
pub(super) struct MemberChange {
    pub(super) chat: Chat,
    pub(super) new_chat_member: Member,
}

/// What somebody is in a chat.
#[derive(Debug, Deserialize)]
pub(super) struct Member {
    pub(super) status: String,
}

/// A message, as far as anybody here cares.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) message_id: i64,
    pub(super) chat: Chat,
    pub(super) from: Option<Sender>,
    pub(super) sender_chat: Option<Sender>,
    pub(super) message_thread_id: Option<i64>,
    #[serde(default)]
    pub(super) is_topic_message: bool,
    pub(super) text: Option<String>,
    pub(super) caption: Option<String>,
    pub(super) entities: List<Span>,
    pub(super) caption_entities: List<Span>,
    pub(super) reply_to_message: Lenient<Box<Message>>,
    pub(super) author_signature: Lenient<String>,
    pub(super) migrate_to_chat_id: Option<i64>,
    pub(super) migrate_from_chat_id: Option<i64>,
    /// What else it has, by name.
    #[serde(flatten)]
    pub(super) rest: BTreeMap<String, Value>,
}

/// A style, mention or command in a text; offsets in UTF-16 units.
#[derive(Debug, Deserialize)]
pub(super) struct Span {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) user: Lenient<Sender>,
}

/// What a chat is, in Telegram's words. Another word is not guessed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ChatType {
    Private,
    Group,
    Supergroup,
    Channel,
}

impl ChatType {
    /// What it is to the directory.
    pub(super) fn kind(self) -> ChatKind {
        match self {
            Self::Private => ChatKind::Dm,
            Self::Group | Self::Supergroup => ChatKind::Group,
            Self::Channel => ChatKind::Channel,
        }
    }
}

/// Where something was said.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Chat {
    pub(super) id: i64,
    #[serde(rename = "type")]
    pub(super) kind: ChatType,
    pub(super) title: Lenient<String>,
    pub(super) first_name: Lenient<String>,
    pub(super) last_name: Lenient<String>,
    /// Whether it has topics.
    pub(super) is_forum: Lenient<bool>,
}

/// A person, a bot, or the chat in whose name something was said: a channel, or a group
/// whose administrators stay anonymous.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Sender {
    pub(super) id: i64,
    #[serde(default)]
    pub(super) is_bot: bool,
    pub(super) title: Lenient<String>,
    pub(super) first_name: Lenient<String>,
    pub(super) last_name: Lenient<String>,
    pub(super) username: Lenient<String>,
    pub(super) language_code: Lenient<String>,
}

/// The title of a chat, or first and last name as people are called.
fn name(title: &Option<String>, first: &Option<String>, last: &Option<String>) -> Option<String> {
    let parts = [first, last].into_iter().flatten().filter(|part| !part.is_empty());
    let name = parts.map(String::as_str).collect::<Vec<_>>().join(" ");
    title.clone().or_else(|| (!name.is_empty()).then_some(name))
}

impl Chat {
    /// The id as text.
    pub(super) fn id(&self) -> String {
        self.id.to_string()
    }

    /// What people call it.
    pub(super) fn name(&self) -> Option<String> {
        name(&self.title, &self.first_name, &self.last_name)
    }

    pub(super) fn is_private(&self) -> bool {
        self.kind == ChatType::Private
    }
}

impl Sender {
    /// What people call it.
    pub(super) fn name(&self) -> Option<String> {
        name(&self.title, &self.first_name, &self.last_name).or_else(|| self.username.0.clone())
    }
}

/// The topic that is not one: messages there carry no thread, and sending with
/// its number is refused. Private chats have none: there it is a number like any.
pub(super) const GENERAL: i64 = 1;

impl Message {
    /// A word in something else that it has, such as the name of a topic.
    pub(super) fn text_of(&self, what: &str, key: &str) -> Option<&str> {
        self.rest.get(what)?.get(key)?.as_str()
    }

    /// When it was written, by Telegram's clock.
    pub(super) fn date(&self) -> Option<UnixMillis> {
        self.rest.get("date")?.as_i64().map(|seconds| UnixMillis(seconds.saturating_mul(1000)))
    }

    /// Who wrote it: the chat in whose name it was said, or the person.
    pub(super) fn author(&self) -> Option<&Sender> {
        self.sender_chat.as_ref().or(self.from.as_ref())
    }

    /// What people call whoever wrote it.
    pub(super) fn author_name(&self) -> Option<String> {
        let signed = self.author_signature.as_ref().filter(|_| self.sender_chat.is_some());
        signed.cloned().or_else(|| self.author()?.name())
    }

    /// The language that whoever wrote it has set, where Telegram tells.
    pub(super) fn language(&self) -> Option<Language> {
        self.from.as_ref()?.language_code.as_deref().map(Language::of_tag)
    }

    /// Whether a bot wrote it. Those who stay anonymous are shown as one by
    /// Telegram, and are none.
    pub(super) fn is_by_bot(&self) -> bool {
        self.sender_chat.is_none() && self.from.as_ref().is_some_and(|from| from.is_bot)
    }

    /// The topic it was said in. A thread of replies is not a topic.
    pub(super) fn topic(&self) -> Option<i64> {
        let real = |thread: i64| thread != GENERAL || self.chat.is_private();
        self.message_thread_id.filter(|thread| self.is_topic_message && real(*thread))
    }

    /// The words and what is marked in them: of a file, its caption.
    pub(super) fn words(&self) -> (&str, &[Span]) {
        match (&self.text, &self.caption) {
            (Some(text), _) => (text, &self.entities),
            (None, Some(caption)) => (caption, &self.caption_entities),
            (None, None) => ("", &[]),
        }
    }

    /// The message it answers. Whatever is said in a topic "answers" the
    /// message that opened it: that one does not count.
    pub(super) fn answers(&self) -> Option<&Message> {
        let answered = self.reply_to_message.as_deref()?;
        let opened_topic = answered.rest.contains_key("forum_topic_created")
            || self.is_topic_message && self.message_thread_id == Some(answered.message_id);
        (!opened_topic).then_some(answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(extra: Value) -> Result<Message, serde_json::Error> {
        let mut message = json!({
            "message_id": 5, "date": 1, "chat": {"id": -100200, "type": "supergroup", "title": "lab"},
            "from": {"id": 1001, "is_bot": false, "first_name": "Ann"}
        });
        message.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        serde_json::from_value(message)
    }

    #[test]
    fn what_does_not_route_is_left_out_where_it_is_odd() {
        let read = message(json!({
            "text": "hi", "entities": [{"type": "bold", "offset": 0, "length": 2}, {"type": 5}, null],
            "reply_to_message": {"text": "no id"}, "photo": "a picture", "voice": 1, "location": {"latitude": "x"},
            "forum_topic_created": 7, "author_signature": {}, "something_new": {"deep": []}
        }));
        let read = read.unwrap();
        assert_eq!((read.words().0, read.entities.len()), ("hi", 1));
        assert!(read.reply_to_message.is_none() && crate::telegram::media::carried(&read).is_none());
    }

    #[test]
    fn what_routes_is_read_exactly_or_not_at_all() {
        for odd in [
            json!({"chat": {"id": "-100200", "type": "supergroup"}}),
            json!({"chat": {"id": -100200, "type": "planet"}}),
            json!({"chat": {"id": -100200}}),
            json!({"from": {"is_bot": false}}),
            json!({"sender_chat": {"title": "x"}}),
            json!({"message_thread_id": "5"}),
            json!({"is_topic_message": "yes"}),
            json!({"message_id": null}),
            json!({"text": 5}),
        ] {
            assert!(message(odd.clone()).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_number_is_found_in_what_cannot_be_read() {
        assert_eq!(Raw::new(r#"{"update_id": 7, "message": {"chat": 1}}"#).id, Some(7));
        assert_eq!(Raw::new(r#"{"message": "\ud800", "update_id": 8}"#).id, Some(8));
        assert_eq!((Raw::new("{}").id, Raw::new("not json").id), (None, None));
    }

    #[test]
    fn topics_are_neither_general_nor_threads_of_replies() {
        let topic = |extra| message(extra).unwrap().topic();
        assert_eq!(topic(json!({"message_thread_id": 5, "is_topic_message": true})), Some(5));
        assert_eq!(topic(json!({"message_thread_id": 5})), None);
        assert_eq!(topic(json!({"message_thread_id": 1, "is_topic_message": true})), None);
        let first = json!({"message_thread_id": 1, "is_topic_message": true, "chat": {"id": 1001, "type": "private"}});
        assert_eq!(topic(first), Some(1), "private chats have no General");
        let first = json!({"message_id": 5, "chat": {"id": -100200, "type": "supergroup"}});
        let said =
            message(json!({"message_thread_id": 5, "is_topic_message": true, "reply_to_message": first}));
        assert!(said.unwrap().answers().is_none());
        let said = message(json!({"message_thread_id": 5, "reply_to_message": first})).unwrap();
        assert_eq!(said.answers().map(|answered| answered.message_id), Some(5));
    }
}
