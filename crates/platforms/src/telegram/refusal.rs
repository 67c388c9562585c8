//! What Telegram's refusals of a message mean.

/// Whether a refusal is about the text and its styles: then the text goes out
/// as it was typed.
pub(super) fn is_about_text(why: &str) -> bool {
    let why = why.to_ascii_lowercase();
    ["entit", "parse", "message text", "text is too long", "message is too long", "message_too_long", "url"]
        .iter()
        .any(|word| why.contains(word))
}

/// Whether a refusal says that the message to be changed is not there any more.
pub(super) fn is_gone(why: &str) -> bool {
    why.to_ascii_lowercase().contains("message to edit not found")
}

/// A refusal with what can be done about it.
pub(super) fn explained(why: &str) -> String {
    let lower = why.to_ascii_lowercase();
    let next = [
        ("blocked by the user", "the person has blocked the bot and would have to unblock it"),
        ("user is deactivated", "the person's account is gone"),
        ("thread not found", "the topic is gone; write to the chat itself or to another topic"),
        ("topic_deleted", "the topic is gone; write to the chat itself or to another topic"),
        ("topic_closed", "the topic is closed; an administrator can open it again"),
        (
            "chat not found",
            "the bot is not in this chat, or it is gone: add the bot, or have the person write to it",
        ),
        ("kicked", "the bot was removed from the chat: an administrator can add it again"),
        ("not a member", "the bot is not in the chat: an administrator can add it"),
        ("rights to send", "the bot may not write there: an administrator can allow it"),
        ("message to edit not found", "the message is gone; send a new one"),
        ("can't be edited", "the message cannot be changed any more; send a new one"),
    ]
    .iter()
    .find(|(word, _)| lower.contains(word));
    match next {
        Some((_, next)) => format!("Telegram refused ({why}): {next}"),
        None => format!("Telegram refused: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_the_text_is_told_from_what_is_about_the_place() {
        for text in [
            "Bad Request: can't parse entities: Unsupported start tag",
            "Bad Request: ENTITY_BOUNDS_INVALID",
            "Bad Request: ENTITIES_TOO_LONG",
            "Bad Request: message is too long",
            "Bad Request: wrong HTTP URL specified",
            "Bad Request: entity beginning at UTF-16 offset 5 ends after the end of the text",
        ] {
            assert!(is_about_text(text), "{text}");
        }
        for place in [
            "Bad Request: chat not found",
            "Bad Request: message thread not found",
            "Bad Request: message to edit not found",
            "Bad Request: message can't be edited",
            "Forbidden: bot was blocked by the user",
            "Forbidden: bot was kicked from the supergroup chat",
            "Bad Request: not enough rights to send text messages to the chat",
        ] {
            assert!(!is_about_text(place), "{place}");
            assert!(explained(place).contains("): "), "{place} has a next step");
        }
        assert!(is_gone(&explained("Bad Request: message to edit not found")));
        assert!(!is_gone(&explained("Forbidden: bot was kicked from the supergroup chat")));
        assert!(!is_gone(&explained("Bad Request: message can't be edited")));
        assert_eq!(explained("Bad Request: novelty"), "Telegram refused: Bad Request: novelty");
    }
}
