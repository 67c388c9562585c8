//! After an outage, what only the guilds themselves tell when they report:
//! channels in which something was said meanwhile, and those that are gone.

use super::Shard;
use super::read_back::{MAX_CHATS, OUT_OF_TIME, Unread};
use crate::discord::address::{id_before, made_at, snowflake};
use crate::discord::chats::{self, Gone};
use crate::discord::parse::{Channel, Guild, Object};
use crate::discord::take::Heard;
use crate::ingress::Halted;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::directory::{Chat, ChatKind, KnownChat};
use angelia_core::store::Missed;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tokio::time::Instant;

/// How far this server's clock and Discord's may be apart.
const SLACK: Duration = Duration::from_secs(10 * 60);
/// How long one guild may take. The shard is not read meanwhile.
const GUILD_WITHIN: Duration = Duration::from_secs(10);
/// How long after the new session anything is read back: later everybody waits
/// for what is said now.
const ALL_WITHIN: Duration = Duration::from_secs(120);

const INTERRUPTED: &str = "the server ended before all of it was read back";

/// Kinds of channels without messages of their own: categories, forums, media.
const WITHOUT_MESSAGES: [u64; 3] = [4, 15, 16];

/// What is still to be found out after an outage.
pub(super) struct Outage {
    heard: UnixMillis,
    /// Guilds that did not report yet.
    guilds: HashSet<String>,
    /// Chats that were read back already, or are noted as a gap.
    read: HashSet<String>,
    /// What was known of chats before.
    known: HashMap<String, KnownChat>,
    until: Instant,
    left: usize,
}

impl Outage {
    /// One since `heard`, with what was known and what was read back at its end.
    pub(super) fn new(
        heard: UnixMillis,
        guilds: HashSet<String>,
        known: Vec<KnownChat>,
        read: Vec<Unread>,
    ) -> Self {
        Self {
            heard,
            guilds,
            left: MAX_CHATS.saturating_sub(read.len()),
            read: read.into_iter().map(|owed| owed.chat_id).collect(),
            known: known.into_iter().map(|known| (known.chat.chat_id.clone(), known)).collect(),
            until: Instant::now() + ALL_WITHIN,
        }
    }

    /// The last message that was seen in a chat.
    fn seen(&self, chat_id: &str) -> Option<u64> {
        self.known.get(chat_id)?.last_message.as_deref().and_then(snowflake)
    }

    /// The chats of a guild in which something was said that nobody heard. Those
    /// that were heard before come first: the bot may see them.
    fn owed(&self, guild: &str, listed: &[Object]) -> Vec<Unread> {
        let since = self.heard.before(SLACK);
        let unread = listed.iter().filter(|chat| !self.read.contains(&*chat.id));
        let owed = unread.filter_map(|chat| {
            let newest = chat.last_message_id.as_deref().and_then(snowflake)?;
            let after = self.seen(&chat.id).unwrap_or_default().max(id_before(since));
            snowflake(&chat.id)?;
            let guild = Some(guild.to_owned());
            (newest > after).then(|| Unread {
                chat_id: chat.id.0.clone(),
                guild,
                after,
                since: made_at(after),
            })
        });
        let mut owed: Vec<Unread> = owed.collect();
        owed.sort_by_key(|owed| self.seen(&owed.chat_id).is_none());
        owed
    }

    /// The channels of a guild that it does not name any more.
    fn gone(&self, guild: &str, channels: &[Object]) -> Vec<String> {
        if channels.is_empty() {
            // There is no guild without any: they were not told.
            return Vec::new();
        }
        let named: HashSet<&str> = channels.iter().map(|channel| &*channel.id).collect();
        let own = self.known.values().map(|known| &known.chat);
        let is_channel = |chat: &&Chat| matches!(chat.kind, ChatKind::Group | ChatKind::Forum);
        let own = own.filter(is_channel).filter(|chat| chat.scope.as_deref() == Some(guild));
        own.map(|chat| chat.chat_id.clone()).filter(|id| !named.contains(id.as_str())).collect()
    }
}

impl Shard {
    /// A guild reports. After an outage, what was said there is read back, once
    /// what the guild taught is committed.
    pub(super) async fn catch_up(&mut self, data: &str, heard: Heard) -> Result<Heard, Halted> {
        let Some(mut outage) = self.outage.take() else { return Ok(heard) };
        let guild: Option<Guild> = serde_json::from_str(data).ok();
        let guild = guild.filter(|guild| guild.unavailable != Some(true));
        let Some(guild) = guild.filter(|guild| outage.guilds.remove(&*guild.id)) else {
            self.outage = Some(outage);
            return Ok(heard);
        };
        self.commit(heard, None).await?;
        let listed = |value: &Value| -> Option<Object> { serde_json::from_value(value.clone()).ok() };
        let channels: Vec<Object> = guild.channels.iter().filter_map(listed).collect();
        for id in outage.gone(&guild.id, &channels) {
            self.forget(Gone::Chat(id)).await?;
        }
        let chats = guild.channels.iter().chain(guild.threads.iter());
        let read: Vec<Object> =
            chats.filter(|chat| self.is_read(chat, &guild.id)).filter_map(listed).collect();
        let mut owed = outage.owed(&guild.id, &read);
        let rest = owed.split_off(owed.len().min(outage.left));
        outage.left -= owed.len();
        let deadline = outage.until.min(Instant::now() + GUILD_WITHIN);
        let mut missed = self.read_chats(&owed, deadline).await?;
        missed.extend(rest.iter().map(|owed| owed.gap(OUT_OF_TIME)));
        self.note(missed).await?;
        self.goes_on(outage);
        Ok(Heard::default())
    }

    /// An outage is over when the last of its guilds has reported.
    fn goes_on(&mut self, outage: Outage) {
        if outage.guilds.is_empty() { self.progress.owed_since = None } else { self.outage = Some(outage) }
    }

    /// The bot is not in a guild any more, which will not report.
    pub(super) fn owes_nothing(&mut self, guild: &str) {
        if let Some(mut outage) = self.outage.take() {
            outage.guilds.remove(guild);
            self.goes_on(outage);
        }
    }

    /// A session goes on whose outage was not over when this server ended: nobody
    /// knows any more which guilds were still to report.
    pub(super) async fn give_up_owed(&mut self) -> Result<(), Halted> {
        let Some(since) = self.progress.owed_since.filter(|_| self.outage.is_none()) else { return Ok(()) };
        let (until, why) = (clock::wall(), INTERRUPTED.to_owned());
        self.note(vec![Missed { chat_id: None, after: None, since, until, why }]).await?;
        self.progress.owed_since = None;
        self.commit(Heard::default(), self.progress.processed.clone()).await.map(drop)
    }

    /// Whether a chat of a guild's list can hold messages that are for anybody here.
    fn is_read(&self, chat: &Value, guild: &str) -> bool {
        let Ok(channel) = serde_json::from_value::<Channel>(chat.clone()) else { return true };
        let chat = chats::chat(&channel, Some(guild), self.reader.bot());
        let is_routed = || chat.is_none_or(|chat| self.reader.is_routed(&chat));
        !WITHOUT_MESSAGES.contains(&channel.kind) && is_routed()
    }

    /// Forgets the guilds that the bot was in and is not any more.
    pub(super) async fn leave_guilds(
        &mut self,
        chats: &mut Vec<KnownChat>,
        guilds: &HashSet<String>,
    ) -> Result<(), Halted> {
        let scopes: HashSet<String> = chats.iter().filter_map(|known| known.chat.scope.clone()).collect();
        for left in scopes.difference(guilds) {
            self.forget(Gone::Guild(left.clone())).await?;
        }
        chats.retain(|known| known.chat.scope.as_ref().is_none_or(|guild| guilds.contains(guild)));
        Ok(())
    }

    async fn forget(&mut self, gone: Gone) -> Result<(), Halted> {
        self.halt.until_stored(|| self.reader.discord.forget(&gone)).await
    }
}
