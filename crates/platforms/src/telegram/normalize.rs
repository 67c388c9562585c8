//! A Telegram message, as the event a gateway reads.

use super::address::{self, Me};
use super::media::{self, Carried};
use super::parse::{ChatType, Message};
use super::{NAME, locate};
use crate::kit::attached;
use crate::kit::context::Author;
use angelia_contract::event::{Event, ReplyTo, message_type};
use angelia_contract::source::Source;
use angelia_core::context::quoted;

/// What an agent reads of a message whose sort is not known here.
pub(super) const UNSUPPORTED: &str = "[unsupported message]";

/// The event a message makes; `None` if nothing was said: somebody joined, a
/// title changed. `edited` tells whether it was changed, where sources tell that and `is_bot`,
/// which the contract keeps off the wire.
pub(super) fn event(
    me: &Me,
    message: &Message,
    topic_name: Option<String>,
    edited: Option<bool>,
) -> Option<Event> {
    let carried = media::carried(message);
    let words = address::said(me, message.words().0);
    let text = match &carried {
        Some(carried) => attached::below(&words, &carried.placeholder),
        None if words.is_empty() && is_service(message) => return None,
        None if words.is_empty() => UNSUPPORTED.to_owned(),
        None => words,
    };
    let message_type = match &carried {
        Some(Carried { message_type, .. }) => message_type,
        None if text.starts_with('/') => message_type::COMMAND,
        None => message_type::TEXT,
    };
    let answered = message.answers();
    Some(Event {
        text,
        message_type: message_type.into(),
        message_id: Some(message.message_id.to_string()),
        reply_to_message_id: answered.map(|answered| answered.message_id.to_string()),
        reply_to: answered.map(|answered| reply_to(message, answered, me)),
        media: carried.and_then(|carried| carried.media).into_iter().collect(),
        source: source(message, topic_name, edited),
        ..Event::default()
    })
}

pub(super) fn source(message: &Message, chat_topic: Option<String>, edited: Option<bool>) -> Source {
    let topic = message.topic();
    let (author, user_name) = (message.author(), message.author_name());
    // A channel speaks for itself: its posts are one conversation, with no person in it.
    let person =
        author.filter(|author| message.chat.kind != ChatType::Channel || author.id != message.chat.id);
    Source {
        platform: NAME.into(),
        chat_id: message.chat.id(),
        chat_type: locate::type_of(message.chat.kind.kind(), topic).into(),
        chat_name: message.chat.name(),
        chat_topic,
        user_id: person.map(|person| person.id.to_string()),
        user_display_name: user_name.clone(),
        user_name,
        user_handle: author.and_then(|author| author.username.0.clone()),
        thread_id: topic.map(|topic| topic.to_string()),
        message_id: Some(message.message_id.to_string()),
        is_bot: edited.map(|_| message.is_by_bot()),
        message_is_edit: edited,
        ..Source::default()
    }
}

/// Who wrote the message that another one answers.
pub(super) fn answered_author(message: &Message) -> Option<Author> {
    let answered = message.answers()?;
    let id = answered.author().map_or(answered.chat.id, |author| author.id);
    Some(Author { id: id.to_string(), is_bot: answered.is_by_bot() })
}

fn reply_to(message: &Message, answered: &Message, me: &Me) -> ReplyTo {
    let words = answered.words().0;
    let text = match media::carried(answered) {
        Some(carried) => attached::below(words, &carried.placeholder),
        None => words.to_owned(),
    };
    // Of a part that was marked, only that is meant. Nothing is said of what may hold a code.
    let marked = message.text_of("quote", "text").and_then(quoted);
    ReplyTo {
        text: quoted(&text).map(|all| marked.unwrap_or(all)),
        author: answered.author_name(),
        is_own: answered.from.as_ref().is_some_and(|user| user.id == me.id),
        ..ReplyTo::default()
    }
}

/// What a message that tells what happened carries instead of words: Telegram's names, one a
/// line. It adds to these from time to time; what is new is taken for something said, so that
/// nobody who wrote is met with silence.
const SERVICE_MESSAGES: &str = include_str!("service_messages.txt");

/// Whether a message tells what happened.
pub(super) fn is_service(message: &Message) -> bool {
    // These are read for what they say, so they are not among the rest.
    message.migrate_to_chat_id.is_some()
        || message.migrate_from_chat_id.is_some()
        || SERVICE_MESSAGES.lines().any(|name| message.rest.contains_key(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_contract::session_key::{KeyOptions, Rules, session_key};
    use angelia_contract::source::chat_type;
    use serde_json::{Value, json};

    fn said(message: Value) -> Event {
        let me = Me { id: 77, username: "angelia_bot".into() };
        event(&me, &serde_json::from_value(message).unwrap(), Some("news".into()), None).unwrap()
    }

    fn key(event: &Event) -> String {
        session_key(&event.source, &KeyOptions::default(), Rules::Published)
    }

    #[test]
    fn every_sort_of_chat_has_the_key_gateways_give_it() {
        let ann = json!({"id": 1001, "first_name": "Ann", "last_name": "Lee", "username": "ann"});
        let private = json!({"id": 1001, "type": "private", "first_name": "Ann"});
        let group = json!({"id": -100200, "type": "supergroup", "title": "lab", "is_forum": true});
        let channel = json!({"id": -100300, "type": "channel", "title": "news"});
        for (message, expected) in [
            (json!({"chat": private, "from": ann}), "agent:main:telegram:dm:1001"),
            (
                json!({"chat": private, "from": ann, "message_thread_id": 7, "is_topic_message": true}),
                "agent:main:telegram:dm:1001:7",
            ),
            (json!({"chat": group, "from": ann}), "agent:main:telegram:group:-100200:1001"),
            (
                json!({"chat": group, "from": ann, "message_thread_id": 5, "is_topic_message": true}),
                "agent:main:telegram:forum:-100200:5",
            ),
            (
                json!({"chat": group, "from": ann, "message_thread_id": 5}),
                "agent:main:telegram:group:-100200:1001",
            ),
            (json!({"chat": channel, "sender_chat": channel}), "agent:main:telegram:channel:-100300"),
            (json!({"chat": channel}), "agent:main:telegram:channel:-100300"),
        ] {
            let mut message = message;
            message["message_id"] = 9.into();
            message["text"] = "hi".into();
            assert_eq!(key(&said(message.clone())), expected, "{message}");
        }
        // The same chat and thread as a group, which no message here makes.
        let source = Source {
            platform: NAME.into(),
            chat_id: "-100200".into(),
            chat_type: chat_type::GROUP.into(),
            user_id: Some("1001".into()),
            thread_id: Some("5".into()),
            ..Source::default()
        };
        let as_group = session_key(&source, &KeyOptions::default(), Rules::Published);
        assert_eq!(as_group, "agent:main:telegram:group:-100200:5");
    }

    #[test]
    fn a_message_of_a_topic_says_where_it_is_and_who_wrote_it() {
        let event = said(json!({
            "message_id": 9, "text": "@angelia_bot /new", "message_thread_id": 5, "is_topic_message": true,
            "chat": {"id": -100200, "type": "supergroup", "title": "lab"},
            "from": {"id": 1001, "first_name": "Ann", "last_name": "Lee", "username": "ann"},
            "reply_to_message": {"message_id": 5, "chat": {"id": -100200, "type": "supergroup"}, "forum_topic_created": {"name": "news"}}
        }));
        let source = serde_json::to_value(&event.source).unwrap();
        assert_eq!(
            source,
            json!({
                "platform": "telegram", "chat_id": "-100200", "chat_type": "forum", "chat_name": "lab",
                "chat_topic": "news", "thread_id": "5", "message_id": "9", "user_id": "1001",
                "user_name": "Ann Lee", "user_display_name": "Ann Lee", "user_handle": "ann"
            })
        );
        assert_eq!((event.text.as_str(), event.message_type.as_str()), ("/new", "command"));
        assert_eq!((event.reply_to, event.reply_to_message_id), (None, None));
    }

    #[test]
    fn whoever_stays_anonymous_is_the_chat_they_speak_for() {
        let event = said(json!({
            "message_id": 9, "text": "hi", "chat": {"id": -100200, "type": "supergroup", "title": "lab"},
            "from": {"id": 1087968824, "is_bot": true, "first_name": "Group", "username": "GroupAnonymousBot"},
            "sender_chat": {"id": -100200, "type": "supergroup", "title": "lab"}, "author_signature": "boss"
        }));
        assert_eq!(event.source.user_id.as_deref(), Some("-100200"));
        assert_eq!(event.source.user_name.as_deref(), Some("boss"));
    }

    #[test]
    fn an_answer_carries_what_it_answers() {
        let event = said(json!({
            "message_id": 9, "text": "yes", "chat": {"id": -5, "type": "group"}, "from": {"id": 1001},
            "reply_to_message": {"message_id": 8, "chat": {"id": -5, "type": "group"},
                "from": {"id": 77, "is_bot": true, "first_name": "Angelia"}, "text": "é".repeat(600)}
        }));
        let reply = event.reply_to.unwrap();
        assert_eq!(event.reply_to_message_id.as_deref(), Some("8"));
        assert_eq!((reply.author.as_deref(), reply.is_own), (Some("Angelia"), true));
        assert_eq!(reply.text.map(|text| text.chars().count()), Some(angelia_core::context::LINE_CHARS));
    }

    #[test]
    fn an_answer_to_a_command_with_a_code_does_not_quote_it() {
        for text in ["/link s3cret", "/start s3cret", "@angelia_bot /link s3cret", "/link@other_bot s3cret"] {
            let event = said(json!({
                "message_id": 9, "text": "what is this?", "chat": {"id": -5, "type": "group"}, "from": {"id": 1001},
                "reply_to_message": {"message_id": 8, "chat": {"id": -5, "type": "group"},
                    "from": {"id": 1002, "first_name": "Bob"}, "text": text}
            }));
            let reply = event.reply_to.unwrap();
            assert_eq!((reply.text, reply.author.as_deref()), (None, Some("Bob")), "{text}");
        }
    }

    #[test]
    fn what_is_of_no_known_sort_is_not_passed_over() {
        let event = said(json!({"message_id": 9, "chat": {"id": 1001, "type": "private"},
            "from": {"id": 1001}, "paid_media": {"star_count": 5}}));
        assert_eq!((event.text.as_str(), event.message_type.as_str()), (UNSUPPORTED, "text"));
    }

    #[test]
    fn a_file_comes_with_its_caption_and_a_word_for_it() {
        let file = |caption: Value| {
            said(json!({"message_id": 9, "chat": {"id": 1001, "type": "private"}, "from": {"id": 1001},
                "photo": [{"file_id": "x", "width": 4, "height": 3}], "caption": caption}))
        };
        let captioned = file(json!("look"));
        assert_eq!(
            (captioned.text.as_str(), captioned.message_type.as_str()),
            ("look\n[photo, 4×3]", "photo")
        );
        assert_eq!(file(json!("/stop")).text, "/stop", "a bare command stays one");
        let bare = file(json!(null));
        assert_eq!((bare.text.as_str(), bare.media.len(), bare.media_urls.len()), ("[photo, 4×3]", 1, 0));
        let joined = json!({"message_id": 9, "chat": {"id": -5, "type": "group"}, "new_chat_members": []});
        let me = Me { id: 77, username: String::new() };
        assert!(event(&me, &serde_json::from_value(joined).unwrap(), None, Some(false)).is_none());
    }

    #[test]
    fn what_happened_is_told_from_what_was_said() {
        let is_service = |extra: Value| {
            let mut message = json!({"message_id": 5, "date": 1, "chat": {"id": 1, "type": "private"}});
            message.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            super::is_service(&serde_json::from_value(message).unwrap())
        };
        assert_eq!(SERVICE_MESSAGES.lines().count(), 52);
        for happened in SERVICE_MESSAGES.lines() {
            let value = match happened {
                "migrate_from_chat_id" | "migrate_to_chat_id" => json!(-5),
                _ => json!({}),
            };
            assert!(is_service(json!({ happened: value })), "{happened}");
        }
        for said in ["story", "game", "invoice", "paid_media", "checklist", "giveaway", "of_tomorrow"] {
            assert!(!is_service(json!({ said: {} })), "{said}");
        }
        assert!(!is_service(json!({})));
    }
}
