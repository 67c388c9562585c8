//! A message on its way to a gateway.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::lenient;
use crate::source::Source;

/// Message types a gateway knows; any other is handled as text there.
pub mod message_type {
    /// Plain text.
    pub const TEXT: &str = "text";
    /// A place.
    pub const LOCATION: &str = "location";
    /// A picture. Gateways do not know the word `image`.
    pub const PHOTO: &str = "photo";
    /// A film.
    pub const VIDEO: &str = "video";
    /// Sound that is not transcribed.
    pub const AUDIO: &str = "audio";
    /// Speech, which gateways transcribe.
    pub const VOICE: &str = "voice";
    /// Any other file.
    pub const DOCUMENT: &str = "document";
    /// A sticker.
    pub const STICKER: &str = "sticker";
    /// A slash command; what counts is the leading `/` of the text.
    pub const COMMAND: &str = "command";
}

/// One normalised message event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// What was said; may be empty.
    #[serde(default, deserialize_with = "lenient::text_or_empty")]
    pub text: String,
    /// One of [`message_type`].
    #[serde(default = "text_type", deserialize_with = "type_or_text")]
    pub message_type: String,
    /// Where it was said, and by whom.
    pub source: Source,
    /// The platform's message id; gateways drop repeats by it.
    #[serde(default, deserialize_with = "lenient::opt_text")]
    pub message_id: Option<String>,
    /// The message this one answers.
    #[serde(default, deserialize_with = "lenient::opt_text")]
    pub reply_to_message_id: Option<String>,
    /// Where attachments can be fetched.
    #[serde(default, deserialize_with = "lenient::texts")]
    pub media_urls: Vec<String>,
    /// What the attachments are, matched to `media_urls` by url.
    #[serde(default, deserialize_with = "lenient::forgiving_list")]
    pub media: Vec<Media>,
    /// Earlier messages of the chat, oldest first.
    #[serde(default, deserialize_with = "lenient::forgiving_list", skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextItem>,
    /// Set when context was wanted and could not be fetched.
    #[serde(default, deserialize_with = "lenient::opt_flag", skip_serializing_if = "Option::is_none")]
    pub context_error: Option<bool>,
    /// What the answered message said.
    #[serde(
        default,
        deserialize_with = "lenient::forgiving_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub reply_to: Option<ReplyTo>,
    /// The press of a prompt's button.
    #[serde(
        default,
        deserialize_with = "lenient::forgiving_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub prompt_response: Option<PromptResponse>,
    /// Keys this crate does not know, kept as they came.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Default for Event {
    fn default() -> Self {
        Self {
            text: String::new(),
            message_type: text_type(),
            source: Source::default(),
            message_id: None,
            reply_to_message_id: None,
            media_urls: Vec::new(),
            media: Vec::new(),
            context: Vec::new(),
            context_error: None,
            reply_to: None,
            prompt_response: None,
            extra: Map::new(),
        }
    }
}

impl Event {
    /// The files that came with it, in their order. They lead to the connector and nowhere else.
    pub fn files(&self) -> impl Iterator<Item = EventFile<'_>> {
        self.media_urls.iter().map(|url| {
            let row = self.media.iter().find(|row| row.url == *url);
            EventFile {
                url,
                name: row.and_then(|row| row.filename.as_deref()),
                media_type: row.and_then(|row| row.mime.as_deref()),
                size: row.and_then(|row| row.extra.get("size")?.as_u64()),
            }
        })
    }

    /// What was said before in the chat and not to the agent, oldest first: who, and what.
    pub fn said_before(&self) -> impl Iterator<Item = (&str, &str)> {
        let said = self.context.iter().filter(|item| !item.text.is_empty());
        said.map(|item| (item.source.name().unwrap_or_default(), item.text.as_str()))
    }

    /// What the message it answers said, and who said that; `None` if it answers none, or the
    /// agent is not told.
    pub fn replies_to(&self) -> Option<(Option<&str>, &str)> {
        let reply = self.reply_to.as_ref()?;
        Some((reply.author.as_deref(), reply.text.as_deref().filter(|text| !text.is_empty())?))
    }
}

/// A file that came with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventFile<'a> {
    /// Where it is fetched.
    pub url: &'a str,
    /// What it is called, if that is known.
    pub name: Option<&'a str>,
    /// Its MIME type, if that is known.
    pub media_type: Option<&'a str>,
    /// Its bytes, if the connector says how many.
    pub size: Option<u64>,
}

/// One attachment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Media {
    /// The entry of `media_urls` this row describes.
    #[serde(deserialize_with = "lenient::text")]
    pub url: String,
    /// Its MIME type, where known.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Its file name, where known.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// Keys this crate does not know, kept as they came.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One earlier message of the chat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextItem {
    /// What was said; gateways skip rows without text.
    #[serde(default, deserialize_with = "lenient::text_or_empty")]
    pub text: String,
    /// Who said it.
    #[serde(default)]
    pub source: ContextSource,
    /// Keys this crate does not know, kept as they came.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Who said an earlier message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextSource {
    /// The author's name.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    /// The author's id, shown when there is no name.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Keys this crate does not know, kept as they came.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ContextSource {
    /// What its author is called, or else their id.
    pub fn name(&self) -> Option<&str> {
        let name = self.user_name.as_deref().filter(|name| !name.is_empty());
        name.or(self.user_id.as_deref().filter(|id| !id.is_empty()))
    }
}

/// What the answered message said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplyTo {
    /// Its text.
    #[serde(default, deserialize_with = "lenient::opt_text")]
    pub text: Option<String>,
    /// Its author.
    #[serde(default, deserialize_with = "lenient::opt_text")]
    pub author: Option<String>,
    /// Whether the bot itself wrote it.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub is_own: bool,
    /// Keys this crate does not know, kept as they came.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The press of a prompt's button.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromptResponse {
    /// The prompt that was answered.
    #[serde(deserialize_with = "lenient::text")]
    pub prompt_id: String,
    /// The option that was chosen.
    #[serde(deserialize_with = "lenient::text")]
    pub option_id: String,
    /// The text on the button.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The message that showed the prompt.
    #[serde(default, deserialize_with = "lenient::opt_text", skip_serializing_if = "Option::is_none")]
    pub prompt_message_id: Option<String>,
    /// Keys this crate does not know, kept as they came.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

fn text_type() -> String {
    message_type::TEXT.to_owned()
}

fn type_or_text<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    Ok(lenient::opt_text(d)?.unwrap_or_else(text_type))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_are_told_by_their_rows_and_without_one_by_their_url() {
        let event: Event = serde_json::from_value(json!({
            "text": "", "source": {"platform": "discord", "chat_id": "1"},
            "media_urls": ["http://h/relay/media/1", "http://h/relay/media/2"],
            "media": [{"url": "http://h/relay/media/2", "mime": "text/plain", "filename": "a.txt", "size": 3}],
        }))
        .unwrap();
        let files: Vec<_> = event.files().collect();
        let bare = EventFile { url: "http://h/relay/media/1", name: None, media_type: None, size: None };
        assert_eq!(files[0], bare);
        assert_eq!(
            (files[1].name, files[1].media_type, files[1].size),
            (Some("a.txt"), Some("text/plain"), Some(3))
        );
    }

    #[test]
    fn what_was_said_before_and_what_is_replied_to_can_be_asked_for() {
        let event: Event = serde_json::from_value(json!({
            "text": "is that true?", "source": {"platform": "discord", "chat_id": "1"},
            "context": [
                {"text": "at nine", "source": {"user_name": "bob", "user_id": "7"}},
                {"text": "or so", "source": {"user_id": "7"}}, {"text": "", "source": {}},
            ],
            "reply_to": {"text": "at nine", "author": "bob", "is_own": false},
        }))
        .unwrap();
        assert_eq!(event.said_before().collect::<Vec<_>>(), [("bob", "at nine"), ("7", "or so")]);
        assert_eq!(event.replies_to(), Some((Some("bob"), "at nine")));
        assert_eq!(Event::default().replies_to(), None);
    }
}
