//! `react`: the bot's reaction on a message. Telegram has a vocabulary of its own, and lets a bot
//! put one of its words on a message.

use super::Telegram;
use super::api::words;
use super::locate::number;
use crate::kit::{ApiError, ErrorKind};
use angelia_contract::action::ActionResult;
use angelia_core::egress::Target;
use angelia_core::error::Result;
use serde_json::{Value, json};

/// What can be put on a message, as the Bot API lists it.
const WORDS: &str = "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 \
    🕊 🤡 🥱 🥴 😍 🐳 ❤\u{200d}🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 \
    🍾 💋 🖕 😈 😴 😭 🤓 👻 👨\u{200d}💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 \
    🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷\u{200d}♂ 🤷 🤷\u{200d}♀ \
    😡";
/// What makes a character an emoji; Telegram leaves it out.
const AS_EMOJI: char = '\u{fe0f}';

/// The word for an emoji; `None` if Telegram has none.
fn word(emoji: &str) -> Option<&'static str> {
    let plain = emoji.replace(AS_EMOJI, "");
    let meant = match plain.as_str() {
        "✅" => "👍",
        "❌" => "👎",
        other => other,
    };
    WORDS.split(' ').find(|word| *word == meant)
}

/// What is asked of Telegram; `None` for what it has no word for.
pub(super) fn asked(message_id: &str, emoji: &str, remove: bool) -> Option<Value> {
    let (word, message) = (word(emoji)?, number(message_id)?);
    let shown = if remove { json!([]) } else { json!([{ "type": "emoji", "emoji": word }]) };
    Some(json!({ "message_id": message, "reaction": shown }))
}

impl Telegram {
    /// Puts a reaction on a message, or takes it away, as [`asked`] says.
    pub(super) async fn mark(&self, target: &Target, mut asked: Value) -> Result<ActionResult> {
        let Some(spot) = self.spot(target).await? else {
            return Ok(ActionResult::failed("this is not a chat"));
        };
        asked["chat_id"] = spot.chat().into();
        match self.api.call::<Value>("setMessageReaction", &asked).await {
            // An ornament is not worth a word about a pause.
            Ok(_) | Err(ApiError { kind: ErrorKind::Limited { .. } | ErrorKind::Unknown, .. }) => {
                Ok(ActionResult::ok())
            }
            // Nothing is missing where there is nothing to mark.
            Err(error) if words(&error).is_some_and(is_no_message) => Ok(ActionResult::ok()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a refusal says that there is no such message.
fn is_no_message(why: &str) -> bool {
    why.contains("message to react not found") || why.contains("MESSAGE_ID_INVALID")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_gateways_have_their_words() {
        let words = [("👀", "👀"), ("✅", "👍"), ("❌", "👎"), ("👍", "👍"), ("❤\u{fe0f}", "❤")];
        for (emoji, meant) in words {
            assert_eq!(word(emoji), Some(meant), "{emoji}");
        }
        for none in ["", "⏳", "eyes", "👀👀"] {
            assert_eq!(word(none), None, "{none}");
        }
    }
}
