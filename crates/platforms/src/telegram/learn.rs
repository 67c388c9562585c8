//! What a message tells of the chat it is in.

use super::Telegram;
use super::parse::{self, Message};
use angelia_core::directory::{Chat, ChatKind};
use angelia_core::error::Result;
use angelia_core::inbox::InstanceId;

/// The row of a topic: found by its group's id and its own.
pub(super) fn topic_row(chat_id: &str, topic: i64) -> String {
    format!("{chat_id}/{topic}")
}

/// What Telegram says of a chat.
pub(super) fn described(chat: &parse::Chat) -> Chat {
    let person = chat.is_private().then(|| chat.id());
    Chat { name: chat.name(), person, ..Chat::new(chat.id(), chat.kind.kind()) }
}

/// The name that a topic got with a message.
fn new_name(message: &Message) -> Option<&str> {
    let edited = message.rest.contains_key("forum_topic_edited");
    message.text_of(if edited { "forum_topic_edited" } else { "forum_topic_created" }, "name")
}

/// The name a topic began with: messages in it show the one that opened it.
fn first_name(message: &Message) -> Option<&str> {
    message.reply_to_message.as_ref()?.text_of("forum_topic_created", "name")
}

impl Telegram {
    /// Takes note of the chat of a message; answers what is new and has to be
    /// committed.
    pub(super) async fn learn_from(&self, message: &Message) -> Result<Vec<Chat>> {
        let mut chats = vec![described(&message.chat)];
        if let Some(topic) = message.topic() {
            let row = topic_row(&message.chat.id(), topic);
            let mut name = new_name(message).map(str::to_owned);
            if name.is_none() {
                // The name it has now is newer than the one it began with.
                let known = self.account.directory.find(&row).await?;
                let known = known.and_then(|known| known.chat.name.clone());
                name = known.or_else(|| first_name(message).map(str::to_owned));
            }
            chats.push(Chat { parent: Some(message.chat.id()), name, ..Chat::new(row, ChatKind::Topic) });
        }
        self.account.directory.learn_all(chats).await
    }

    /// Takes note of the language of somebody whom an agent answers; answers what is new and
    /// has to be committed. Of others it is not noted: a crowd would change it with every line.
    pub(super) async fn learn_language(&self, message: &Message) -> Result<Vec<Chat>> {
        let Some(language) = message.language() else { return Ok(Vec::new()) };
        let chat = Chat { language: Some(language), ..described(&message.chat) };
        self.account.directory.learn_all(vec![chat]).await
    }

    /// Whom a topic was opened for, as far as it is at hand: what is said there is meant for them.
    pub(super) fn engaged_in(&self, message: &Message) -> Option<InstanceId> {
        let row = topic_row(&message.chat.id(), message.topic()?);
        self.account.directory.at_hand(&row)?.engaged
    }

    /// The name of a topic, as far as it is at hand.
    pub(super) fn topic_name(&self, message: &Message) -> Option<String> {
        let row = topic_row(&message.chat.id(), message.topic()?);
        self.account.directory.at_hand(&row)?.chat.name.clone()
    }
}
