//! What is for the connector itself: `/start`, `/link`, a group's new id, the
//! bot's farewell from a chat.

use super::Telegram;
use super::address::{self, Me};
use super::ingest::Listener;
use super::parse::{Member, Message};
use super::replies::Answer;
use crate::kit::{ApiError, ErrorKind, Sighting};
use angelia_core::admission::link_command;
use angelia_core::clock;
use angelia_core::error::Result;
use angelia_core::own_words::OwnWords;
use angelia_core::secret::Secret;
use angelia_core::store::DirectoryStore;
use serde_json::json;
use std::time::Duration;

/// How long finding out who administers a chat may hold up what is read next.
const MEMBER_WITHIN: Duration = Duration::from_secs(5);

/// Something only the connector can do about an update. It happens between
/// commits: after everything before it, before everything after it.
pub(super) enum Own {
    /// Somebody wants to know what this is.
    Greet,
    /// Somebody typed a link code.
    Link(Secret),
    /// A group has a new id: from the old one to that.
    Moved { from: String, to: String },
    /// The bot is not in this chat any more.
    Gone(String),
}

/// The move that a message tells of: the old group names the new one, and the
/// new one the old.
pub(super) fn migration(message: &Message) -> Option<Own> {
    let here = message.chat.id();
    match (message.migrate_to_chat_id, message.migrate_from_chat_id) {
        (Some(to), _) => Some(Own::Moved { from: here, to: to.to_string() }),
        (None, Some(from)) => Some(Own::Moved { from: from.to_string(), to: here }),
        (None, None) => None,
    }
}

/// What to do about a command that no agent may get; `None` if it is not one.
/// A code that was meant for another bot is dropped without a word.
pub(super) fn command(me: &Me, message: &Message, said: &str, addressed: bool) -> Option<Option<Own>> {
    if let Some(code) = link_command(said) {
        let ours = !address::is_for_another(me, message);
        return Some(ours.then(|| Own::Link(Secret::new(code))));
    }
    match start_command(said)? {
        _ if !addressed => None,
        "" => Some(Some(Own::Greet)),
        payload => Some(Some(Own::Link(Secret::new(payload)))),
    }
}

/// What follows `/start`: nothing, or what a deep link carries.
fn start_command(said: &str) -> Option<&str> {
    let said = said.trim();
    let (word, rest) = said.split_once(char::is_whitespace).unwrap_or((said, ""));
    word.eq_ignore_ascii_case("/start").then(|| rest.trim())
}

/// Whether a text may hold a link code: that is for no agent, not even quoted.
pub(super) fn may_hold_code(said: &str) -> bool {
    link_command(said).is_some() || start_command(said).is_some()
}

impl Listener {
    /// Does it; answers what to tell in the chat. An error means that nothing
    /// was done and nothing is used up, and that it has to be tried again.
    pub(super) async fn settle(&self, own: &Own, who: Option<&Sighting>) -> Result<Option<Answer>> {
        let bot = &self.bot;
        match (own, who) {
            (Own::Greet, who) => {
                let language = who.map(|who| who.language).unwrap_or_default();
                let greeting = bot.config.greeting.as_deref();
                Ok(Some(Answer::now(greeting.unwrap_or(OwnWords::Greeting.text(language)))))
            }
            (Own::Link(code), Some(who)) => self.link(code, who).await,
            (Own::Link(_), None) => Ok(None),
            (Own::Moved { from, to }, _) => bot.move_chat(from, to).await.map(|()| None),
            (Own::Gone(chat_id), _) => bot.leave(chat_id).await.map(|()| None),
        }
    }

    /// Tries a code, unless its sender tried one just now. Whether the chat has
    /// room for an answer does not matter: others may have used that up.
    async fn link(&self, code: &Secret, who: &Sighting) -> Result<Option<Answer>> {
        let Self { bot, ingress } = self;
        // Without a code there is nothing that only some may do.
        if code.expose().is_empty() {
            let text = bot.account.use_code(ingress, who, true, "").await?;
            return Ok(Some(Answer::now(text)));
        }
        if !bot.words.may_try(&who.chat_id, &who.author, clock::mono()) {
            bot.account.health.count("unanswered");
            return Ok(None);
        }
        let answer = match bot.administers(who).await {
            Ok(administrator) => {
                let text = bot.account.use_code(ingress, who, administrator, code.expose()).await?;
                // They wait for it, and are few.
                Answer { text, patient: administrator }
            }
            Err(_) => Answer::now(OwnWords::AdministratorUnknown.text(who.language)),
        };
        // Not before: the same code is tried again after an error.
        bot.words.tried(&who.chat_id, &who.author, clock::mono());
        Ok(Some(answer))
    }
}

impl Telegram {
    /// Whether somebody administers the chat they wrote in. Whoever writes in
    /// its name does.
    async fn administers(&self, who: &Sighting) -> Result<bool, ApiError> {
        if who.private || who.author == who.chat_id {
            return Ok(true);
        }
        // What is not a person, such as another channel, administers nothing.
        let Some(person) = who.author.parse::<i64>().ok().filter(|id| *id > 0) else { return Ok(false) };
        if let Some(known) = self.words.administers(&who.chat_id, person, clock::mono()) {
            return Ok(known);
        }
        let asked = json!({ "chat_id": who.chat_id, "user_id": person });
        let found = match self.api.call_within::<Member>("getChatMember", &asked, MEMBER_WITHIN).await {
            Ok(member) => matches!(member.status.as_str(), "creator" | "administrator"),
            Err(ApiError { kind: ErrorKind::Refused(_), .. }) => false,
            Err(error) => return Err(error),
        };
        self.words.found_out(&who.chat_id, person, found, clock::mono());
        Ok(found)
    }

    async fn leave(&self, chat_id: &str) -> Result<()> {
        let known = self.account.directory.find(chat_id).await?;
        // A group that moved is left behind too, and still has to lead to the new one.
        if known.is_some_and(|known| known.moved_to.is_some()) {
            return Ok(());
        }
        self.ports.records.forget_chat(&self.account.key, chat_id).await?;
        let here = |id: Option<&str>| id == Some(chat_id);
        self.account
            .directory
            .forget(|known| here(Some(&known.chat.chat_id)) || here(known.chat.parent.as_deref()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn found(text: &str, addressed: bool) -> Option<Option<Own>> {
        let me = Me { id: 77, username: "angelia_bot".into() };
        let length = text.find(' ').unwrap_or(text.len());
        let message: Value = json!({
            "message_id": 5, "chat": {"id": -5, "type": "group"}, "from": {"id": 1001}, "text": text,
            "entities": [{"type": "bot_command", "offset": 0, "length": length}]
        });
        let message: Message = serde_json::from_value(message).unwrap();
        command(&me, &message, &address::said(&me, text), addressed)
    }

    #[test]
    fn start_greets_and_its_payload_links() {
        assert!(matches!(found("/start", true), Some(Some(Own::Greet))));
        assert!(matches!(found("/start@angelia_bot", true), Some(Some(Own::Greet))));
        assert!(found("/start", false).is_none(), "not in company unless it is meant");
        assert!(found("/start@other_bot", false).is_none());
        for text in ["/start abc", "/start@angelia_bot abc", "/link abc", "/link@Angelia_Bot  abc"] {
            match found(text, true) {
                Some(Some(Own::Link(code))) => assert_eq!(code.expose(), "abc", "{text}"),
                _ => panic!("{text} is a link"),
            }
        }
        assert!(matches!(found("/link@other_bot abc", false), Some(None)), "nobody gets another bot's code");
        assert!(found("/starting", true).is_none() && found("hello", true).is_none());
    }

    #[test]
    fn either_end_of_a_move_tells_of_it() {
        let message = |extra: Value| {
            let mut message = json!({"message_id": 5, "chat": {"id": -5, "type": "group"}});
            message.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            migration(&serde_json::from_value(message).unwrap())
        };
        let moved = |own| match own {
            Some(Own::Moved { from, to }) => (from, to),
            _ => panic!("a move"),
        };
        assert_eq!(moved(message(json!({"migrate_to_chat_id": -1005}))), ("-5".into(), "-1005".into()));
        assert_eq!(moved(message(json!({"migrate_from_chat_id": -4}))), ("-4".into(), "-5".into()));
        assert!(message(json!({"text": "hi"})).is_none());
    }
}
