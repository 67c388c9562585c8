//! Whether a message is meant for the bot, and what of it the agent gets.

use super::parse::{Message, Span};

/// Who the bot is, as Telegram says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Me {
    /// Its user id.
    pub(super) id: i64,
    /// Its name, without the `@`.
    pub(super) username: String,
}

impl Me {
    /// Whether this is its name, without the `@`.
    fn is_called(&self, name: &str) -> bool {
        !self.username.is_empty() && name.eq_ignore_ascii_case(&self.username)
    }
}

/// Whether a message says that it is for the bot: a mention, an answer to what
/// the bot wrote, a command. What names another bot's command is not.
pub(super) fn addresses(me: &Me, message: &Message) -> bool {
    let (text, spans) = message.words();
    if is_for_another(me, message) {
        return false;
    }
    let answered = message.answers().and_then(|answered| answered.from.as_ref());
    answered.is_some_and(|author| author.id == me.id) || spans.iter().any(|span| names(me, text, span))
}

/// Whether a message is a command that names another bot.
pub(super) fn is_for_another(me: &Me, message: &Message) -> bool {
    let (text, spans) = message.words();
    let command = spans.iter().find(|span| span.kind == "bot_command" && span.offset == 0);
    let command = command.and_then(|span| slice(text, span)).unwrap_or_default();
    command.split_once('@').is_some_and(|(_, bot)| !me.is_called(bot))
}

fn names(me: &Me, text: &str, span: &Span) -> bool {
    match span.kind.as_str() {
        "mention" => {
            let name = slice(text, span).unwrap_or_default();
            name.strip_prefix('@').is_some_and(|name| me.is_called(name))
        }
        "text_mention" => span.user.as_ref().is_some_and(|user| user.id == me.id),
        "bot_command" => span.offset == 0,
        _ => false,
    }
}

/// The stretch of a text that a span marks, if it is within and cuts no character.
fn slice(text: &str, span: &Span) -> Option<String> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let end = span.offset.checked_add(span.length)?;
    String::from_utf16(units.get(span.offset..end)?).ok()
}

/// What the agent gets of a text: without the mention it begins with and
/// without the bot's name behind a command, so that `@bot /new` and `/new@bot`
/// are the command `/new`.
pub(super) fn said(me: &Me, text: &str) -> String {
    let text = without_mention(me, text);
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    match word.split_once('@') {
        Some((command, bot)) if command.starts_with('/') && me.is_called(bot) => format!("{command}{rest}"),
        _ => text.to_owned(),
    }
}

fn without_mention<'a>(me: &Me, text: &'a str) -> &'a str {
    let Some(named) = text.trim_start().strip_prefix('@') else { return text };
    let end = named.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(named.len());
    let (name, rest) = named.split_at(end);
    if !me.is_called(name) {
        return text;
    }
    let rest = rest.trim_start();
    let rest = rest.strip_prefix([',', ':']).unwrap_or(rest).trim_start();
    // A mention alone is all that was said.
    if rest.is_empty() { text } else { rest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn me() -> Me {
        Me { id: 77, username: "Angelia_Bot".into() }
    }

    fn message(extra: Value) -> Message {
        let mut message = json!({"message_id": 5, "chat": {"id": -5, "type": "group"}, "from": {"id": 1001}});
        message.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        serde_json::from_value(message).unwrap()
    }

    fn marked(text: &str, kind: &str, offset: usize, length: usize) -> Value {
        json!({"text": text, "entities": [{"type": kind, "offset": offset, "length": length}]})
    }

    #[test]
    fn a_message_is_meant_for_the_bot_if_it_says_so() {
        let own =
            json!({"message_id": 4, "chat": {"id": -5, "type": "group"}, "from": {"id": 77}, "text": "x"});
        let other =
            json!({"message_id": 4, "chat": {"id": -5, "type": "group"}, "from": {"id": 78}, "text": "x"});
        for (extra, expected) in [
            (marked("hi @angelia_bot", "mention", 3, 12), true),
            (marked("😀 @angelia_bot", "mention", 3, 12), true),
            (marked("@angelia_bots", "mention", 0, 13), false),
            (marked("@angelia_bot", "bold", 0, 12), false),
            (json!({"text": "@angelia_bot"}), false),
            (marked("@angelia_bot", "mention", 0, 99), false),
            (
                json!({"text": "you", "entities": [{"type": "text_mention", "offset": 0, "length": 3, "user": {"id": 77}}]}),
                true,
            ),
            (
                json!({"text": "you", "entities": [{"type": "text_mention", "offset": 0, "length": 3, "user": {"id": 78}}]}),
                false,
            ),
            (
                json!({"caption": "@angelia_bot", "caption_entities": [{"type": "mention", "offset": 0, "length": 12}]}),
                true,
            ),
            (marked("/new", "bot_command", 0, 4), true),
            (marked("/new@ANGELIA_bot", "bot_command", 0, 16), true),
            (marked("/new@other_bot", "bot_command", 0, 14), false),
            (marked("say /new", "bot_command", 4, 4), false),
            (json!({"text": "yes", "reply_to_message": own}), true),
            (json!({"text": "yes", "reply_to_message": other}), false),
            (
                json!({"text": "yes", "reply_to_message": own, "message_thread_id": 4, "is_topic_message": true}),
                false,
            ),
            (json!({"text": "hello"}), false),
        ] {
            assert_eq!(addresses(&me(), &message(extra.clone())), expected, "{extra}");
        }
        let mut both = marked("/new@other_bot", "bot_command", 0, 14);
        both["reply_to_message"] = own;
        assert!(!addresses(&me(), &message(both)), "a command for another bot");
    }

    #[test]
    fn the_bots_name_is_not_part_of_what_was_said() {
        for (text, expected) in [
            ("/new@angelia_bot", "/new"),
            ("/model@Angelia_Bot gpt  5\nnow", "/model gpt  5\nnow"),
            ("/new@other_bot", "/new@other_bot"),
            ("@angelia_bot /new", "/new"),
            ("@angelia_bot /new@angelia_bot x", "/new x"),
            (" @ANGELIA_BOT: what now?", "what now?"),
            ("@angelia_bot", "@angelia_bot"),
            ("@angelia_bots go", "@angelia_bots go"),
            ("hi @angelia_bot /new", "hi @angelia_bot /new"),
            ("me@angelia_bot x", "me@angelia_bot x"),
            ("", ""),
        ] {
            assert_eq!(said(&me(), text), expected, "{text:?}");
        }
    }

    #[test]
    fn spans_count_utf16_units() {
        let span =
            |offset, length| Span { kind: String::new(), offset, length, user: crate::kit::Lenient(None) };
        assert_eq!(slice("a😀b", &span(3, 1)), Some("b".into()));
        assert_eq!(slice("a😀b", &span(1, 2)), Some("😀".into()));
        assert_eq!(slice("a😀b", &span(2, 1)), None);
        assert_eq!(slice("a😀b", &span(0, 9)), None);
    }
}
