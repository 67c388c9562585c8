//! What bots know of chats, what they told there, and what they read, as it is kept.

use super::list_of;
use crate::clock::UnixMillis;
use crate::directory::{BotKey, Chat, ChatKind, KnownChat};
use crate::error::Result;
use crate::inbox::InstanceId;
use crate::own_words::Language;
use crate::records::Record as _;
use crate::records::table::{record, unreadable};
use crate::store::{Cursor, Missed, Quarantined, Untold};

record! {
    /// A chat of a bot. What it is and which roles the bot has there are read only by who
    /// asks for them: a word that nobody knows holds up no move.
    pub struct ChatRow in "chats", key 3, finds [["platform", "bot", "scope"]], walks [["platform", "bot"] along "last_at", ["platform", "bot"] along "chat_id"] {
        /// The platform of the bot.
        platform: String,
        /// The bot.
        bot: String,
        /// The chat.
        chat_id: String,
        /// What it is, by [`ChatKind::as_str`].
        kind: String,
        /// What it is beside or within.
        parent: Option<String>,
        /// What it belongs to.
        scope: Option<String>,
        /// How people call it.
        name: Option<String>,
        /// What it is about.
        topic: Option<String>,
        /// The other person of a private chat.
        person: Option<String>,
        /// The bot's own roles in a scope, as a JSON array.
        roles: String,
        /// The id it has now.
        moved_to: Option<String>,
        /// The instance that was addressed there.
        engaged: Option<InstanceId>,
        /// The newest message seen there.
        last_message: Option<String>,
        /// When that was.
        last_at: Option<UnixMillis>,
        /// The language that is spoken there, by [`Language::as_str`].
        language: Option<String>,
    }
}

record! {
    /// In which further messages a message is continued.
    pub struct PieceRow in "pieces", key 4, finds [["platform", "bot", "chat_id"]], walks [["platform", "bot"] along "chat_id"] {
        /// The platform of the bot.
        platform: String,
        /// The bot.
        bot: String,
        /// The chat.
        chat_id: String,
        /// The message.
        message_id: String,
        /// The further ones, as a JSON array.
        pieces: String,
        /// Since when.
        at: UnixMillis,
    }
}

record! {
    /// Something that a chat was told.
    pub struct NoticeRow in "notices", key 4, finds [["instance"]], walks [[] along "instance", ["kind", "platform", "bot"] along "chat_id"] {
        /// What it was about, by [`NoticeKind::as_str`](crate::store::NoticeKind::as_str).
        kind: String,
        /// The platform of the bot.
        platform: String,
        /// The bot.
        bot: String,
        /// The chat.
        chat_id: String,
        /// Whose outage it was about.
        instance: Option<InstanceId>,
        /// When.
        at: UnixMillis,
    }
}

// The log writes it.
record! {
    impl Untold in "untold_gaps", key 2, walks [[] along "instance"], long true {
        instance: InstanceId,
        chat_id: String,
    } foreign {
        platform: String,
        bot: String,
        message_id: String,
        thread_id: Option<String>,
    }
}

record! {
    /// How far a stream of a bot was read. Whatever takes in what bots receive writes it.
    pub struct CursorRow in "cursors", key 3, finds [["platform", "bot"]] {
        /// The platform of the bot.
        platform: String,
        /// The bot.
        bot: String,
        /// Which of its streams.
        stream: String,
    } foreign {
        /// Where it is.
        position: String,
    }
}

record! {
    /// A few characters that were made up for a bot once. They lie beside its streams.
    pub struct MintedRow in "cursors", key 3 {
        /// The platform of the bot.
        platform: String,
        /// The bot.
        bot: String,
        /// What they are for.
        stream: String,
        /// The characters.
        position: String,
        /// When they were made up.
        at: UnixMillis,
    }
}

record! {
    /// Something that could not be read.
    pub struct QuarantineRow in "quarantine", key 1, finds [["platform", "bot"]], walks [[] along "id", ["platform", "bot"] along "id"], long true {
        /// Its number; grows.
        id: i64,
        /// The platform of the bot that received it.
        platform: String,
        /// The bot.
        bot: String,
        /// Which one it was.
        what: String,
        /// Why it could not be read.
        why: String,
        /// What it is, sealed.
        sealed: Vec<u8>,
        /// When it came.
        at: UnixMillis,
    }
}

record! {
    impl Quarantined in "quarantine", key 1, finds [["platform", "bot"]], long true {
        id: i64,
    } foreign {
        platform: String,
        bot: String,
        what: String,
        why: String,
        at: UnixMillis,
    }
}

record! {
    /// A stretch of a chat that was not read.
    pub struct MissedRow in "missed", key 1, finds [["platform", "bot"]], walks [["platform", "bot"] along "id"], long true {
        /// Its number; grows.
        id: i64,
        /// The platform of the bot.
        platform: String,
        /// The bot.
        bot: String,
        /// The chat; `None` if nobody knows which ones.
        chat_id: Option<String>,
        /// The last message seen before.
        seen: Option<String>,
        /// When it began.
        since: UnixMillis,
        /// When it ended.
        until: UnixMillis,
        /// Why it was not read.
        why: String,
    }
}

impl ChatRow {
    /// A chat of which a bot knows this and nothing else.
    pub fn of(bot: &BotKey, known: &KnownChat) -> Self {
        let KnownChat { chat, moved_to, engaged, last_message, last_at } = known.clone();
        let Chat { chat_id, kind, parent, scope, name, topic, person, roles, language } = chat;
        Self {
            platform: bot.platform.as_ref().to_owned(),
            bot: bot.bot.as_ref().to_owned(),
            chat_id,
            kind: kind.as_str().to_owned(),
            parent,
            scope,
            name,
            topic,
            person,
            roles: serde_json::json!(roles).to_string(),
            moved_to,
            engaged,
            last_message,
            last_at,
            language: language.map(|it| it.as_str().to_owned()),
        }
    }

    /// What it says.
    pub fn known(self) -> Result<KnownChat> {
        let unreadable = || unreadable(Self::TABLE);
        let chat = Chat {
            chat_id: self.chat_id,
            kind: ChatKind::parse(&self.kind).ok_or_else(unreadable)?,
            parent: self.parent,
            scope: self.scope,
            name: self.name,
            topic: self.topic,
            person: self.person,
            roles: list_of(&self.roles).ok_or_else(unreadable)?,
            language: self.language.as_deref().and_then(Language::parse),
        };
        let Self { moved_to, engaged, last_message, last_at, .. } = self;
        Ok(KnownChat { chat, moved_to, engaged, last_message, last_at })
    }
}

impl PieceRow {
    /// The further messages, in order.
    pub fn list(&self) -> Result<Vec<String>> {
        list_of(&self.pieces).ok_or_else(|| unreadable(Self::TABLE))
    }
}

impl From<CursorRow> for Cursor {
    fn from(CursorRow { stream, position, .. }: CursorRow) -> Self {
        Self { stream, position }
    }
}

impl From<QuarantineRow> for (Quarantined, Vec<u8>) {
    fn from(QuarantineRow { id, platform, bot, what, why, sealed, at }: QuarantineRow) -> Self {
        (Quarantined { id, platform, bot, what, why, at }, sealed)
    }
}

impl From<MissedRow> for Missed {
    fn from(MissedRow { chat_id, seen, since, until, why, .. }: MissedRow) -> Self {
        Self { chat_id, after: seen, since, until, why }
    }
}
