//! Where a message was written: from the directory, or from Discord itself
//! before anything is made of the message. What a chat is is never guessed.

use super::api::Call;
use super::api_error::ApiError;
use super::interaction::Interaction;
use super::learn;
use super::parse::{Channel, Guild, Message};
use super::{Discord, address};
use crate::ingress::STORE_AGAIN;
use angelia_core::directory::{Chat, ChatKind, KnownChat};
use angelia_core::error::{Error, Result};
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

    /// A chat and what it belongs to: from the directory or, if `asking`, from Discord.
    async fn spot_at(&self, chat: Arc<KnownChat>, asking: bool) -> Result<Spot, IngestError> {
        let directory = &self.account.directory;
        let parent = match &chat.chat.parent {
            Some(parent) => match directory.find(parent).await? {
                None if asking => self.if_any(parent, self.fetch_channel(parent).await)?,
                known => known,
            },
            None => None,
        };
        let guild = match &chat.chat.scope {
            Some(guild) => match directory.find(&guild_key(guild)).await? {
                None if asking => self.if_any(guild, self.fetch_guild(guild).await)?,
                known => known,
            },
            None => None,
        };
        Ok(Spot { chat, parent, guild })
    }

    /// What an interaction itself tells of its chat, if that is enough to place it.
    fn told(&self, interaction: &Interaction) -> Option<Chat> {
        let channel = interaction.channel.as_ref()?;
        let mut chat = learn::chat(channel, interaction.guild_id.as_deref(), self.own_id())?;
        if chat.kind == ChatKind::Dm {
            // Of the two in it, the one who acts and is not the bot.
            let author = &interaction.said.author;
            chat.name = author.name().map(str::to_owned);
            chat.person = Some(author.id.clone());
        }
        address::places(&chat).is_some().then_some(chat)
    }

    /// A chat that neither memory nor store can place.
    async fn first_seen(&self, message: &Message) -> Result<Arc<KnownChat>, IngestError> {
        let known = self.fetch_channel(&message.channel_id).await?;
        if known.chat.kind == ChatKind::Dm && known.chat.person.is_none() {
            // Of the two in it, the one who writes and is not the bot.
            let chat = Chat { person: Some(message.author.id.clone()), ..known.chat.clone() };
            return Ok(self.account.directory.keep(chat, &self.ports).await?);
        }
        match address::places(&known.chat) {
            Some(_) => Ok(known),
            None => Err(IngestError::Unreadable("Discord does not say what its channel belongs to".into())),
        }
    }

    /// Asks Discord for a guild, and keeps what it says.
    async fn fetch_guild(&self, id: &str) -> Result<Arc<KnownChat>, IngestError> {
        let guild: Guild = self.api.read(Call::get(format!("guilds/{id}"))).await?;
        Ok(self.account.directory.keep(learn::guild_chat(&guild, self.own_id()), &self.ports).await?)
    }

    /// Asks Discord for a channel, and keeps what it says.
    pub(super) async fn fetch_channel(&self, id: &str) -> Result<Arc<KnownChat>, IngestError> {
        let unreadable = |why: &str| IngestError::Unreadable(why.to_owned());
        if address::snowflake(id).is_none() {
            return Err(unreadable("its channel's id is none of Discord's"));
        }
        let channel: Channel = self.api.read(Call::get(format!("channels/{id}"))).await?;
        if channel.id != id {
            return Err(unreadable("Discord answered with another channel"));
        }
        let chat = learn::chat(&channel, None, self.own_id());
        let chat = chat.ok_or_else(|| unreadable("its channel is of an unknown kind"))?;
        Ok(self.account.directory.keep(chat, &self.ports).await?)
    }

    /// What a message can do without: names come from it, and no place.
    fn if_any(
        &self,
        id: &str,
        found: Result<Arc<KnownChat>, IngestError>,
    ) -> Result<Option<Arc<KnownChat>>, IngestError> {
        match found {
            Ok(known) => Ok(Some(known)),
            Err(IngestError::Unreadable(why)) => {
                tracing::debug!(bot = self.own_id(), id, why, "Discord does not show what a chat belongs to");
                Ok(None)
            }
            Err(not_now) => Err(not_now),
        }
    }
}
