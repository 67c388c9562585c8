//! Reading back: after a session was lost, what was said meanwhile is read from
//! the channels themselves, through the same path as everything else.

use super::Shard;
use super::outage::Outage;
use crate::discord::Discord;
use crate::discord::address::{made_at, snowflake};
use crate::discord::api::Call;
use crate::discord::api_error::ApiError;
use crate::discord::parse::Object;
use crate::ingress::Halted;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::directory::KnownChat;
use angelia_core::store::{DirectoryStore, Missed, StreamStore};
use futures_util::StreamExt;
use futures_util::stream;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How long before the outage a chat counts as in use.
const RECENT: Duration = Duration::from_secs(24 * 60 * 60);
/// Chats that are looked at, of all shards.
const MAX_LISTED: usize = 10_000;
/// Chats that are read back: with four at once and Discord's pace, more do not
/// fit into the time there is.
pub(super) const MAX_CHATS: usize = 500;
/// Messages of one chat: what one call gives.
const MAX_MESSAGES: usize = 100;
/// Calls at once, so that agents' answers still find room among the bot's calls.
const AT_ONCE: usize = 4;
/// How often one of them is tried.
const MAX_TRIES: usize = 3;
/// Chats of a guild that may be refused before it is asked for no more of them:
/// Discord shuts out an address whose calls are refused too often.
const MAX_REFUSALS: u32 = 3;
/// How long all of it may take. The shard is not read meanwhile, and Discord
/// gives up on one that is silent for its 41 s between heartbeats.
const WITHIN: Duration = Duration::from_secs(20);

pub(super) const OUT_OF_TIME: &str = "there was no time left to read it back";
const NOT_ASKED: &str = "Discord refused other channels of its server: give the bot View Channel and \
     Read Message History there";

/// What one chat answered, or why it did not.
type Page = Result<Vec<(u64, Box<RawValue>)>, String>;

/// How often Discord refused to show chats, by guild.
type Refusals = Mutex<HashMap<String, u32>>;

/// A chat in which something may have been said that nobody here heard.
pub(super) struct Unread {
    pub(super) chat_id: String,
    pub(super) guild: Option<String>,
    /// The last message that was seen, or one that is older than all that was not.
    pub(super) after: u64,
    pub(super) since: UnixMillis,
}

impl Unread {
    fn of(known: &KnownChat) -> Option<Self> {
        let after = snowflake(known.last_message.as_deref()?)?;
        let (chat_id, guild) = (known.chat.chat_id.clone(), known.chat.scope.clone());
        snowflake(&chat_id).map(|_| Self { chat_id, guild, after, since: made_at(after) })
    }

    /// What was said in the chat since it was last heard of.
    async fn page(&self, discord: &Discord, refusals: &Refusals) -> Page {
        let refused = |once_more: u32| {
            let Some(guild) = &self.guild else { return 0 };
            let mut counts = refusals.lock();
            let count = counts.entry(guild.clone()).or_default();
            *count += once_more;
            *count
        };
        if refused(0) >= MAX_REFUSALS {
            return Err(NOT_ASKED.into());
        }
        let Self { chat_id, after, .. } = self;
        let call = Call::get(format!("channels/{chat_id}/messages?after={after}&limit={MAX_MESSAGES}"));
        let mut tries = 1;
        loop {
            let failure = match discord.api.read(call.clone()).await {
                Ok(messages) => return Ok(oldest_first(messages)),
                Err(failure) => failure,
            };
            if failure.is_forbidden() {
                refused(1);
            }
            let is_final = matches!(failure, ApiError::Refused { .. } | ApiError::Unauthorized);
            if is_final || tries == MAX_TRIES {
                return Err(failure.why());
            }
            tries += 1;
            sleep(failure.pause()).await;
        }
    }

    pub(super) fn gap(&self, why: impl Into<String>) -> Missed {
        Missed {
            chat_id: Some(self.chat_id.clone()),
            after: Some(self.after.to_string()),
            since: self.since,
            until: clock::wall(),
            why: why.into(),
        }
    }
}

impl Shard {
    /// Reads back what was said in this shard's chats since they were last
    /// heard of, and notes what could not be read. `guilds` are those that the
    /// bot is still in; what else it knew is forgotten.
    pub(super) async fn read_back(&mut self, guilds: Option<Vec<Object>>) -> Result<(), Halted> {
        let deadline = Instant::now() + WITHIN;
        let (records, key) = (&self.reader.ingress.ports.records, &self.reader.discord.account.key);
        // Every chat anything was ever said in, the one with the newest message first.
        let known = self.halt.until_stored(|| records.recent_chats(key, UnixMillis(0), MAX_LISTED));
        let (now, mut chats) = (clock::wall(), known.await?);
        let session = self.progress.processed.as_ref().and_then(|position| position.heard_at);
        let newest = chats.first().and_then(|newest| newest.last_at);
        let heard = session.or(self.last_heard).or(newest).unwrap_or(now).min(now);
        // What an earlier outage still owes is owed as well.
        let heard = self.progress.owed_since.map_or(heard, |earlier| earlier.min(heard));
        let since = heard.before(RECENT);
        let is_recent = |known: &KnownChat| known.last_at.is_some_and(|at| at >= since);
        let mut is_cut = chats.len() >= MAX_LISTED && chats.last().is_some_and(is_recent);
        chats.retain(|known| self.hears(&known.chat));
        let guilds: Option<HashSet<String>> =
            guilds.map(|guilds| guilds.into_iter().map(|guild| guild.id.0).collect());
        if let Some(guilds) = &guilds {
            self.leave_guilds(&mut chats, guilds).await?;
        }
        let is_owed = |known: &&KnownChat| is_recent(known) && self.reader.is_routed(&known.chat);
        let mut owed: Vec<Unread> = chats.iter().filter(is_owed).filter_map(Unread::of).collect();
        is_cut |= owed.len() > MAX_CHATS;
        owed.truncate(MAX_CHATS);
        let mut missed = self.read_chats(&owed, deadline).await?;
        let long = now.before(RECENT) > heard;
        if long || is_cut {
            let why =
                if long { "it was longer than a day" } else { "more chats were in use than are read back" };
            missed.push(Missed { chat_id: None, after: None, since: heard, until: now, why: why.into() });
        }
        self.note(missed).await?;
        let guilds = guilds.filter(|guilds| !guilds.is_empty());
        self.outage = guilds.map(|guilds| Outage::new(heard, guilds, chats, owed));
        self.progress.owed_since = self.outage.as_ref().map(|_| heard);
        Ok(())
    }

    /// Reads chats back until the deadline; answers what could not be read.
    pub(super) async fn read_chats(
        &mut self,
        owed: &[Unread],
        deadline: Instant,
    ) -> Result<Vec<Missed>, Halted> {
        let (discord, refusals) = (self.reader.discord.clone(), Refusals::default());
        let pages: Vec<_> = owed.iter().map(|owed| owed.page(&discord, &refusals)).collect();
        let mut pages = stream::iter(pages).buffered(AT_ONCE);
        let mut missed = Vec::new();
        for (at, one) in owed.iter().enumerate() {
            let page = self.halt.unless_halted(timeout_at(deadline, pages.next())).await?;
            let Ok(Some(page)) = page else {
                // A page that comes after all would be taken for the next chat's.
                missed.extend(owed[at..].iter().map(|owed| owed.gap(OUT_OF_TIME)));
                break;
            };
            if let Some(why) = self.take_page(page, deadline).await? {
                missed.push(one.gap(why));
            }
        }
        Ok(missed)
    }

    /// Takes in what one chat answered; `Some` is why not all of it.
    async fn take_page(&mut self, page: Page, deadline: Instant) -> Result<Option<String>, Halted> {
        let messages = match page {
            Err(why) => return Ok(Some(why)),
            Ok(messages) => messages,
        };
        let is_full = messages.len() >= MAX_MESSAGES;
        for (id, raw) in messages {
            if Instant::now() >= deadline {
                return Ok(Some(OUT_OF_TIME.into()));
            }
            let what = format!("message {id}, read back");
            let heard = match timeout_at(deadline, self.message(true, raw.get(), raw.get(), what)).await {
                Ok(heard) => heard?,
                Err(_) => return Ok(Some(OUT_OF_TIME.into())),
            };
            // Where the new session stands is committed when all of this is.
            if heard.at_once {
                self.commit(heard, None).await.map(drop)?
            } else {
                self.progress.remember(heard.intake.traffic)
            }
        }
        Ok(is_full.then(|| format!("more than {MAX_MESSAGES} messages came meanwhile")))
    }

    /// Notes what could not be read back.
    pub(super) async fn note(&mut self, missed: Vec<Missed>) -> Result<(), Halted> {
        if missed.is_empty() {
            return Ok(());
        }
        let (records, key) = (&self.reader.ingress.ports.records, &self.reader.discord.account.key);
        self.halt.until_stored(|| records.note_missed(key, missed.clone())).await?;
        // Counted when it can be listed.
        for gap in &missed {
            self.status.count("gaps");
            let (bot, chat) = (self.reader.bot(), gap.chat_id.as_deref());
            tracing::warn!(bot, chat, why = gap.why, "messages of an outage could not be read back");
        }
        Ok(())
    }
}

/// Discord answers with the newest first.
fn oldest_first(messages: Vec<Box<RawValue>>) -> Vec<(u64, Box<RawValue>)> {
    let read = |raw: &RawValue| serde_json::from_str::<Object>(raw.get()).ok();
    let id = |raw: &RawValue| read(raw).and_then(|message| snowflake(&message.id));
    let mut messages: Vec<_> = messages.into_iter().map(|raw| (id(&raw).unwrap_or(0), raw)).collect();
    messages.sort_by_key(|(id, _)| *id);
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_turned_around() {
        let page: Vec<Box<RawValue>> =
            serde_json::from_str(r#"[{"id": "1000"}, {"id": "999"}, {"odd": 1}, {"id": "99"}]"#).unwrap();
        let ids: Vec<u64> = oldest_first(page).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [0, 99, 999, 1000]);
    }
}
