//! The chats of Discord: what it says of guilds, channels and threads, as the directory
//! keeps it, and where a message was written: from the directory, or from Discord itself
//! before anything is made of the message. What a chat is is never guessed.

use super::api::Call;
use super::api_error::ApiError;
use super::interaction::Interaction;
use super::parse::{Channel, Guild, Message, Role, RoleChange, ThreadList, User, read};
use super::{Discord, address};
use crate::ingress::STORE_AGAIN;
use angelia_core::directory::{Chat, ChatKind, KnownChat};
use angelia_core::error::{Error, Result};
use angelia_core::store::DirectoryStore;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// What the row of a guild begins with. A guild's first channel may have the
/// guild's own id, and both are kept.
const GUILD: &str = "guild:";

/// The key of a guild's row.
pub(super) fn guild_key(guild: &str) -> String {
    format!("{GUILD}{guild}")
}

/// A chat and what it belongs to.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub(super) chat: Arc<KnownChat>,
    /// Of a thread, its channel.
    pub(super) parent: Option<Arc<KnownChat>>,
    pub(super) guild: Option<Arc<KnownChat>>,
}

impl Spot {
    /// The roles by which the guild calls the bot.
    pub(super) fn own_roles(&self) -> &[String] {
        self.guild.as_ref().map_or(&[], |guild| &guild.chat.roles)
    }
}

/// Why a message cannot be taken in.
#[derive(Debug)]
pub(super) enum IngestError {
    /// Never: this is why, without any text of it.
    Unreadable(String),
    /// Not now.
    NotNow { pause: Duration, why: String },
}

/// A chat that was looked for.
type Found = Result<Arc<KnownChat>, IngestError>;

impl From<String> for IngestError {
    fn from(why: String) -> Self {
        Self::Unreadable(why)
    }
}

impl From<Error> for IngestError {
    fn from(error: Error) -> Self {
        Self::NotNow { pause: STORE_AGAIN, why: error.to_string() }
    }
}

impl From<ApiError> for IngestError {
    fn from(failure: ApiError) -> Self {
        match failure {
            ApiError::Refused { .. } | ApiError::Unreadable => Self::Unreadable(failure.why()),
            _ => Self::NotNow { pause: failure.pause(), why: failure.why() },
        }
    }
}

/// What an event about guilds and channels comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lesson {
    /// Chats as Discord describes them now.
    pub(super) chats: Vec<Chat>,
    /// Where the bot is not any more.
    pub(super) gone: Option<Gone>,
    /// Whether the guild's roles were not told: those that are known stay.
    pub(super) without_roles: bool,
    /// A role that is, or is not any more, the bot's own in a guild.
    pub(super) role: Option<OwnRole>,
}

/// Something the bot is not in any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// One channel or thread.
    Chat(String),
    /// A guild with all of its channels.
    Guild(String),
}

/// A change of the roles by which a guild calls the bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnRole {
    pub(super) guild: String,
    pub(super) role: String,
    pub(super) is_own: bool,
}

/// Reads an event, if it is about guilds and channels; an error is why it cannot be
/// read, without any text of it.
pub(super) fn lesson(event: &str, data: &str, own_id: &str) -> Result<Option<Lesson>, String> {
    let mut lesson = Lesson::default();
    match event {
        "GUILD_CREATE" | "GUILD_UPDATE" => {
            let guild: Guild = read(data)?;
            if guild.unavailable != Some(true) {
                lesson.chats = guild_chats(&guild, own_id);
                lesson.without_roles = guild.roles.is_none();
            }
        }
        "GUILD_DELETE" => {
            let guild: Guild = read(data)?;
            // An outage of Discord's is no farewell.
            lesson.gone = Some(Gone::Guild(guild.id.0)).filter(|_| guild.unavailable != Some(true));
        }
        "CHANNEL_DELETE" | "THREAD_DELETE" => lesson.gone = Some(Gone::Chat(read::<Channel>(data)?.id.0)),
        "THREAD_LIST_SYNC" => {
            let list: ThreadList = read(data)?;
            lesson.chats = channels(&list.threads, &list.guild_id, own_id);
        }
        "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE" | "GUILD_ROLE_DELETE" => {
            lesson.role = role_change(read(data)?, own_id);
        }
        "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE" => {
            lesson.chats.extend(chat(&read(data)?, None, own_id));
        }
        _ => return Ok(None),
    }
    Ok(Some(lesson))
}

fn role_change(change: RoleChange, own_id: &str) -> Option<OwnRole> {
    let is_own = change.role.as_ref().is_some_and(|role| is_own(role, own_id));
    let role = change.role.0.map(|role| role.id).or(change.role_id.0)?;
    Some(OwnRole { guild: change.guild_id.0, role: role.0, is_own })
}

/// A guild and everything in it that can be read.
fn guild_chats(guild: &Guild, own_id: &str) -> Vec<Chat> {
    let mut chats = vec![guild_chat(guild, own_id)];
    chats.extend(channels(&guild.channels, &guild.id, own_id));
    chats.extend(channels(&guild.threads, &guild.id, own_id));
    chats
}

/// The row of a guild.
pub(super) fn guild_chat(guild: &Guild, own_id: &str) -> Chat {
    let roles = guild.roles.iter().flatten().filter(|role| is_own(role, own_id));
    Chat {
        // With its own id as what it belongs to, so that it goes with its chats.
        scope: Some(guild.id.0.clone()),
        name: guild.name.0.clone(),
        roles: roles.map(|role| role.id.0.clone()).collect(),
        ..Chat::new(guild_key(&guild.id), ChatKind::Scope)
    }
}

/// Whether Discord made a role for the bot itself.
fn is_own(role: &Role, own_id: &str) -> bool {
    role.tags.as_ref().is_some_and(|tags| tags.bot_id.as_deref() == Some(own_id))
}

fn channels(values: &[Value], guild: &str, own_id: &str) -> Vec<Chat> {
    let read = values.iter().filter_map(|value| serde_json::from_value::<Channel>(value.clone()).ok());
    read.filter_map(|channel| chat(&channel, Some(guild), own_id)).collect()
}

/// A channel as the directory keeps it; `None` if nobody writes there, or
/// nobody here knows what it is: that is never guessed.
pub(super) fn chat(channel: &Channel, guild: Option<&str>, own_id: &str) -> Option<Chat> {
    let scope = channel.guild_id.as_deref().or(guild).map(str::to_owned);
    let person = channel.recipients.iter().find(|person| person.id.0 != own_id);
    let (kind, parent, scope) = match channel.kind {
        // Text, voice, announcements, stages.
        0 | 2 | 5 | 13 => (ChatKind::Group, None, Some(scope?)),
        // Forums, and those of media.
        15 | 16 => (ChatKind::Forum, None, Some(scope?)),
        // The parent of a channel is its category, which is no chat.
        10..=12 => (ChatKind::Thread, Some(channel.parent_id.as_ref()?.0.clone()), Some(scope?)),
        1 => (ChatKind::Dm, None, None),
        3 => (ChatKind::Group, None, None),
        _ => return None,
    };
    let is_dm = kind == ChatKind::Dm;
    Some(Chat {
        parent,
        scope,
        name: if is_dm { person.and_then(User::name).map(str::to_owned) } else { channel.name.0.clone() },
        topic: channel.topic.0.clone().filter(|topic| !topic.is_empty()),
        person: person.filter(|_| is_dm).map(|person| person.id.0.clone()),
        ..Chat::new(channel.id.0.clone(), kind)
    })
}

impl Discord {
    /// Where a message was written.
    pub(super) async fn spot(&self, message: &Message) -> Result<Spot, IngestError> {
        let known = self.account.directory.find(&message.channel_id).await?;
        let chat = match known.filter(|known| address::places(&known.chat).is_some()) {
            Some(known) => known,
            None => self.first_seen(message).await?,
        };
        self.spot_at(chat, true).await
    }

    /// Where an interaction happened, and the chat if the directory cannot place it
    /// and the interaction can. Nobody waits for names: those come if they are known.
    pub(super) async fn spot_of(
        &self,
        interaction: &Interaction,
    ) -> Result<(Spot, Option<Chat>), IngestError> {
        let known = self.account.directory.find(&interaction.said.channel_id).await?;
        let known = known.filter(|known| address::places(&known.chat).is_some());
        let (chat, told) = match (known, self.told(interaction)) {
            (Some(known), _) => (known, None),
            (None, Some(told)) => (Arc::new(told.clone().into()), Some(told)),
            (None, None) => (self.first_seen(&interaction.said).await?, None),
        };
        Ok((self.spot_at(chat, false).await?, told))
    }

    /// A chat with the language of whoever interacts there, if that is new and has to be
    /// committed. Messages do not tell it.
    pub(super) fn language_of(&self, interaction: &Interaction, chat: &Chat) -> Option<Chat> {
        let language = Some(interaction.language()?);
        let chat = Chat { language, ..chat.clone() };
        self.account.directory.learn(&chat).then_some(chat)
    }

    /// A chat and what it belongs to: from the directory or, if `asking`, from Discord.
    async fn spot_at(&self, chat: Arc<KnownChat>, asking: bool) -> Result<Spot, IngestError> {
        let parent = match &chat.chat.parent {
            Some(parent) => self.above(parent, self.fetch_channel(parent), asking).await?,
            None => None,
        };
        let guild = match &chat.chat.scope {
            Some(guild) => self.above(&guild_key(guild), self.fetch_guild(guild), asking).await?,
            None => None,
        };
        Ok(Spot { chat, parent, guild })
    }

    /// What a message can do without: names come from it, and no place.
    async fn above(
        &self,
        key: &str,
        fetched: impl Future<Output = Found>,
        asking: bool,
    ) -> Result<Option<Arc<KnownChat>>, IngestError> {
        let known = self.account.directory.find(key).await?;
        if known.is_some() || !asking {
            return Ok(known);
        }
        match fetched.await {
            Err(IngestError::Unreadable(why)) => {
                let (bot, id) = (self.own_id(), key.trim_start_matches(GUILD));
                tracing::debug!(bot, id, why, "Discord does not show what a chat belongs to");
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    /// What an interaction itself tells of its chat, if that is enough to place it.
    fn told(&self, interaction: &Interaction) -> Option<Chat> {
        let channel = interaction.channel.as_ref()?;
        let mut chat = chat(channel, interaction.guild_id.as_deref(), self.own_id())?;
        if chat.kind == ChatKind::Dm {
            // Of the two in it, the one who acts and is not the bot.
            let author = &interaction.said.author;
            chat.name = author.name().map(str::to_owned);
            chat.person = Some(author.id.0.clone());
        }
        address::places(&chat).is_some().then_some(chat)
    }

    /// A chat that neither memory nor store can place.
    async fn first_seen(&self, message: &Message) -> Found {
        let known = self.fetch_channel(&message.channel_id).await?;
        if known.chat.kind == ChatKind::Dm && known.chat.person.is_none() {
            // Of the two in it, the one who writes and is not the bot.
            let chat = Chat { person: Some(message.author.id.0.clone()), ..known.chat.clone() };
            return Ok(self.account.directory.keep(chat, &self.ports).await?);
        }
        match address::places(&known.chat) {
            Some(_) => Ok(known),
            None => Err(IngestError::Unreadable("Discord does not say what its channel belongs to".into())),
        }
    }

    /// Asks Discord for a guild, and keeps what it says.
    async fn fetch_guild(&self, id: &str) -> Found {
        let guild: Guild = self.api.read(Call::get(format!("guilds/{id}"))).await?;
        Ok(self.account.directory.keep(guild_chat(&guild, self.own_id()), &self.ports).await?)
    }

    /// Asks Discord for a channel, and keeps what it says.
    pub(super) async fn fetch_channel(&self, id: &str) -> Found {
        let unreadable = |why: &str| IngestError::Unreadable(why.to_owned());
        if address::snowflake(id).is_none() {
            return Err(unreadable("its channel's id is none of Discord's"));
        }
        let channel: Channel = self.api.read(Call::get(format!("channels/{id}"))).await?;
        if channel.id.0 != id {
            return Err(unreadable("Discord answered with another channel"));
        }
        let chat = chat(&channel, None, self.own_id());
        let chat = chat.ok_or_else(|| unreadable("its channel is of an unknown kind"))?;
        Ok(self.account.directory.keep(chat, &self.ports).await?)
    }

    /// Takes note of what an event teaches; answers the chats that are new, and
    /// have to be committed.
    pub(super) async fn take_note(&self, mut lesson: Lesson) -> Result<Vec<Chat>> {
        if lesson.without_roles
            && let Some(guild) = lesson.chats.iter_mut().find(|chat| chat.kind == ChatKind::Scope)
            && let Some(known) = self.account.directory.find(&guild.chat_id).await?
        {
            guild.roles.clone_from(&known.chat.roles);
        }
        if let Some(change) = &lesson.role {
            lesson.chats.extend(self.with_role(change).await?);
        }
        if let Some(gone) = &lesson.gone {
            self.forget(gone).await?;
        }
        self.account.directory.learn_all(lesson.chats).await
    }

    /// The row of a guild after a change of its roles, if it is known.
    async fn with_role(&self, change: &OwnRole) -> Result<Option<Chat>> {
        let known = self.account.directory.find(&guild_key(&change.guild)).await?;
        let Some(mut guild) = known.map(|known| known.chat.clone()) else { return Ok(None) };
        guild.roles.retain(|role| *role != change.role);
        if change.is_own {
            guild.roles.push(change.role.clone());
        }
        Ok(Some(guild))
    }

    pub(super) async fn forget(&self, gone: &Gone) -> Result<()> {
        match gone {
            Gone::Chat(id) => {
                self.ports.records.forget_chat(&self.account.key, id).await?;
                self.account.directory.forget_chat(id);
            }
            Gone::Guild(id) => {
                self.ports.records.forget_scope(&self.account.key, id).await?;
                self.account.directory.forget(|known| known.chat.scope.as_ref() == Some(id));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "chats_tests.rs"]
mod tests;
