//! Which shards hear, so that one that does not is not hidden by the others.

use super::Discord;
use crate::health::{BotState, Health};
use angelia_core::clock::{self, Mono};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::time::Duration;

/// Without a word for so long a shard is disconnected, whatever its socket says: two
/// heartbeats, and time for a new connection.
const SILENT_AFTER: Duration = Duration::from_secs(120);

const SILENT: &str = "nothing was heard of Discord for two minutes";
const CONNECTING: &str = "it is connecting";

/// What is known of every shard's hearing.
#[derive(Debug, Default)]
pub(super) struct ShardHealth(Mutex<BTreeMap<u32, ShardStatus>>);

#[derive(Debug)]
enum ShardStatus {
    Hears { last: Mono },
    Disconnected { why: String },
}

impl ShardHealth {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, ShardStatus>> {
        self.0.lock()
    }
}

/// The first shard that does not hear, why, and for how long beyond what is bearable.
fn disconnected(shards: &BTreeMap<u32, ShardStatus>, now: Mono) -> Option<(u32, &str, Duration)> {
    shards.iter().find_map(|(shard, ear)| match ear {
        ShardStatus::Disconnected { why } => Some((*shard, why.as_str(), Duration::ZERO)),
        ShardStatus::Hears { last } => {
            let silent = now.since(*last).checked_sub(SILENT_AFTER)?;
            Some((*shard, SILENT, silent))
        }
    })
}

fn named(shards: &BTreeMap<u32, ShardStatus>, shard: u32, why: &str) -> String {
    if shards.len() > 1 { format!("shard {shard}: {why}") } else { why.to_owned() }
}

impl Discord {
    /// So many shards begin to connect.
    pub(super) fn shards_begin(&self, count: u32) {
        *self.shards.lock() =
            (0..count).map(|shard| (shard, ShardStatus::Disconnected { why: CONNECTING.into() })).collect();
    }

    /// Something was heard on a shard.
    pub(super) fn heard(&self, shard: u32) {
        let mut shards = self.shards.lock();
        let now = clock::mono();
        shards.insert(shard, ShardStatus::Hears { last: now });
        match disconnected(&shards, now) {
            None => self.health.heard(),
            // A bot that begins is not down before one of its shards fails.
            Some((_, CONNECTING, _)) if self.health.health().state == BotState::Starting => {
                self.health.heard_in_part();
            }
            Some((other, why, _)) => {
                self.health.heard_in_part();
                self.health.down(named(&shards, other, why));
            }
        }
    }

    /// A shard does not go on with what it heard.
    pub(super) fn held_up(&self, shard: u32, why: &str) {
        let mut shards = self.shards.lock();
        shards.insert(shard, ShardStatus::Disconnected { why: why.to_owned() });
        self.health.down(named(&shards, shard, why));
    }

    /// A shard does not hear.
    pub(super) fn disconnected(&self, shard: u32, why: &str) {
        self.held_up(shard, why);
        tracing::info!(bot = self.own_id(), shard, why, "a Discord shard is disconnected");
    }

    /// How the bot is, as far as silence does not say otherwise.
    pub(super) fn state(&self) -> Health {
        let shards = self.shards.lock();
        let mut health = self.health.health();
        if health.state == BotState::Up
            && let Some((shard, why, span)) = disconnected(&shards, clock::mono())
        {
            (health.state, health.since) = (BotState::Down, clock::wall().before(span));
            health.why = Some(named(&shards, shard, why));
        }
        health
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_deaf_shard_is_not_hidden_by_the_others() {
        let now = clock::mono() + 3 * SILENT_AFTER;
        let hears = |ago: Duration| ShardStatus::Hears { last: now.before(ago) };
        let mut shards = BTreeMap::from([(0, hears(Duration::ZERO)), (1, hears(Duration::from_secs(100)))]);
        assert_eq!(disconnected(&shards, now), None);
        shards.insert(1, hears(SILENT_AFTER + Duration::from_secs(7)));
        assert_eq!(disconnected(&shards, now), Some((1, SILENT, Duration::from_secs(7))));
        shards.insert(0, ShardStatus::Disconnected { why: "cut".into() });
        assert_eq!(disconnected(&shards, now).unwrap().1, "cut");
        assert_eq!(named(&shards, 0, "cut"), "shard 0: cut");
    }
}
