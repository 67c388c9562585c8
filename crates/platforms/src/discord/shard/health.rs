//! Which shards hear, so that one that does not is not hidden by the others.

use crate::health::{BotState, Health, HealthRecord};
use angelia_core::clock::{self, Mono};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Without a word for so long a shard is disconnected, whatever its socket says: two
/// heartbeats, and time for a new connection.
const SILENT_AFTER: Duration = Duration::from_secs(120);

const SILENT: &str = "nothing was heard of Discord for two minutes";
const CONNECTING: &str = "it is connecting";

/// How a bot is, with what is known of every shard's hearing.
#[derive(Debug)]
pub(in crate::discord) struct ShardHealth {
    bot: String,
    record: HealthRecord,
    shards: Mutex<BTreeMap<u32, Hearing>>,
}

#[derive(Debug)]
enum Hearing {
    Hears { last: Mono },
    Disconnected { why: String },
}

impl ShardHealth {
    /// That of a bot whose shards did not begin yet.
    pub(in crate::discord) fn new(bot: &str) -> Self {
        Self { bot: bot.to_owned(), record: HealthRecord::default(), shards: Mutex::default() }
    }

    /// So many shards begin to connect.
    pub(in crate::discord) fn begin(&self, count: u32) {
        let connecting = |shard| (shard, Hearing::Disconnected { why: CONNECTING.into() });
        *self.shards.lock() = (0..count).map(connecting).collect();
    }

    /// The bot as a whole does not hear for this reason.
    pub(in crate::discord) fn down(&self, why: impl Into<String>) {
        self.record.down(why);
    }

    /// It gave up for this reason.
    pub(in crate::discord) fn stopped(&self, why: impl Into<String>) {
        self.record.stopped(why);
    }

    /// Counts something.
    pub(in crate::discord) fn count(&self, what: &'static str) {
        self.record.count(what);
    }

    /// How the bot is, as far as silence does not say otherwise.
    pub(in crate::discord) fn health(&self) -> Health {
        let shards = self.shards.lock();
        let mut health = self.record.health();
        if health.state == BotState::Up
            && let Some((shard, why, span)) = disconnected(&shards, clock::mono())
        {
            (health.state, health.since) = (BotState::Down, clock::wall().before(span));
            health.why = Some(named(&shards, shard, why));
        }
        health
    }
}

/// One shard's part of it.
pub(super) struct ShardStatus {
    pub(super) shard: u32,
    pub(super) health: Arc<ShardHealth>,
}

impl ShardStatus {
    /// Whose shard it is.
    pub(super) fn bot(&self) -> &str {
        &self.health.bot
    }

    /// Counts something.
    pub(super) fn count(&self, what: &'static str) {
        self.health.count(what);
    }

    /// Something was heard.
    pub(super) fn heard(&self) {
        let ShardHealth { record, shards, .. } = &*self.health;
        let (mut shards, now) = (shards.lock(), clock::mono());
        shards.insert(self.shard, Hearing::Hears { last: now });
        match disconnected(&shards, now) {
            None => record.heard(),
            // A bot that begins is not down before one of its shards fails.
            Some((_, CONNECTING, _)) if record.health().state == BotState::Starting => record.heard_in_part(),
            Some((other, why, _)) => {
                record.heard_in_part();
                record.down(named(&shards, other, why));
            }
        }
    }

    /// It does not go on with what it heard.
    pub(super) fn held_up(&self, why: &str) {
        let mut shards = self.health.shards.lock();
        shards.insert(self.shard, Hearing::Disconnected { why: why.to_owned() });
        self.health.down(named(&shards, self.shard, why));
    }

    /// It does not hear.
    pub(super) fn disconnected(&self, why: &str) {
        self.held_up(why);
        tracing::info!(bot = self.bot(), shard = self.shard, why, "a Discord shard is disconnected");
    }
}

/// The first shard that does not hear, why, and for how long beyond what is bearable.
fn disconnected(shards: &BTreeMap<u32, Hearing>, now: Mono) -> Option<(u32, &str, Duration)> {
    shards.iter().find_map(|(shard, hearing)| match hearing {
        Hearing::Disconnected { why } => Some((*shard, why.as_str(), Duration::ZERO)),
        Hearing::Hears { last } => {
            let silent = now.since(*last).checked_sub(SILENT_AFTER)?;
            Some((*shard, SILENT, silent))
        }
    })
}

fn named(shards: &BTreeMap<u32, Hearing>, shard: u32, why: &str) -> String {
    if shards.len() > 1 { format!("shard {shard}: {why}") } else { why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_deaf_shard_is_not_hidden_by_the_others() {
        let now = clock::mono() + 3 * SILENT_AFTER;
        let hears = |ago: Duration| Hearing::Hears { last: now.before(ago) };
        let mut shards = BTreeMap::from([(0, hears(Duration::ZERO)), (1, hears(Duration::from_secs(100)))]);
        assert_eq!(disconnected(&shards, now), None);
        shards.insert(1, hears(SILENT_AFTER + Duration::from_secs(7)));
        assert_eq!(disconnected(&shards, now), Some((1, SILENT, Duration::from_secs(7))));
        shards.insert(0, Hearing::Disconnected { why: "cut".into() });
        assert_eq!(disconnected(&shards, now).unwrap().1, "cut");
        assert_eq!(named(&shards, 0, "cut"), "shard 0: cut");
    }
}
