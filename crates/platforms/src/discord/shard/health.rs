//! Which shards hear, so that one that does not is not hidden by the others.

use crate::discord::Discord;
use crate::health::{BotState, Health};
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

/// What is known of every shard's hearing.
#[derive(Debug, Default)]
pub(in crate::discord) struct ShardHealth(Mutex<BTreeMap<u32, Hearing>>);

#[derive(Debug)]
enum Hearing {
    Hears {
        last: Mono,
    },
    Disconnected {
        why: String,
    },
    /// Another node reads it.
    Elsewhere,
}

impl ShardHealth {
    /// So many shards begin to connect.
    pub(in crate::discord) fn begin(&self, count: u32) {
        let connecting = |shard| (shard, Hearing::Disconnected { why: CONNECTING.into() });
        *self.0.lock() = (0..count).map(connecting).collect();
    }

    /// So many shards are shared out over nodes.
    pub(in crate::discord) fn begin_elsewhere(&self, count: u32) {
        *self.0.lock() = (0..count).map(|shard| (shard, Hearing::Elsewhere)).collect();
    }

    /// Another node reads a shard from now on.
    pub(in crate::discord) fn elsewhere(&self, shard: u32) {
        self.0.lock().insert(shard, Hearing::Elsewhere);
    }

    /// A shard begins to connect here; answers whether it is the only one.
    fn begin_one(&self, shard: u32) -> bool {
        let mut shards = self.0.lock();
        let is_first = shards.values().all(|hearing| matches!(hearing, Hearing::Elsewhere));
        shards.insert(shard, Hearing::Disconnected { why: CONNECTING.into() });
        is_first
    }

    /// How the bot is, as far as the silence of a shard does not say otherwise.
    pub(in crate::discord) fn of(&self, mut health: Health) -> Health {
        let shards = self.0.lock();
        let is_elsewhere = |hearing: &Hearing| matches!(hearing, Hearing::Elsewhere);
        if health.state != BotState::Stopped && !shards.is_empty() && shards.values().all(is_elsewhere) {
            return Health { state: BotState::Elsewhere, why: None, ..health };
        }
        if health.state == BotState::Up
            && let Some((shard, why, span)) = disconnected(&shards, clock::mono())
        {
            (health.state, health.since) = (BotState::Down, clock::wall().before(span));
            health.why = Some(named(&shards, shard, why));
        }
        health
    }
}

impl Discord {
    /// A shard begins to connect that another node had, or nobody.
    pub(in crate::discord) fn begin_shard(&self, shard: u32) {
        if self.shards.begin_one(shard) {
            self.account.health.begin_anew();
        }
    }
}

/// One shard's part of how the bot is.
pub(super) struct ShardStatus {
    pub(super) shard: u32,
    pub(super) discord: Arc<Discord>,
}

impl ShardStatus {
    /// Whose shard it is.
    pub(super) fn bot(&self) -> &str {
        self.discord.own_id()
    }

    /// Counts something.
    pub(super) fn count(&self, what: &'static str) {
        self.discord.account.health.count(what);
    }

    /// Something was heard.
    pub(super) fn heard(&self) {
        let Discord { account, shards, .. } = &*self.discord;
        let (health, mut shards, now) = (&account.health, shards.0.lock(), clock::mono());
        shards.insert(self.shard, Hearing::Hears { last: now });
        match disconnected(&shards, now) {
            None => health.heard(),
            // A bot that begins is not down before one of its shards fails.
            Some((_, CONNECTING, _)) if health.health().state == BotState::Starting => health.heard_in_part(),
            Some((other, why, _)) => {
                health.heard_in_part();
                health.down(named(&shards, other, why));
            }
        }
    }

    /// It does not go on with what it heard.
    pub(super) fn held_up(&self, why: &str) {
        let mut shards = self.discord.shards.0.lock();
        shards.insert(self.shard, Hearing::Disconnected { why: why.to_owned() });
        self.discord.account.health.down(named(&shards, self.shard, why));
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
        Hearing::Elsewhere => None,
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

    #[test]
    fn a_shard_that_another_node_reads_is_not_down() {
        let (shards, up) = (ShardHealth::default(), Health { state: BotState::Up, ..Health::default() });
        assert_eq!(shards.of(up.clone()).state, BotState::Up);
        shards.begin_elsewhere(2);
        assert_eq!(shards.of(up.clone()).state, BotState::Elsewhere);
        assert!(shards.begin_one(1));
        let connecting = shards.of(up.clone());
        assert_eq!(
            (connecting.state, connecting.why.as_deref()),
            (BotState::Down, Some("shard 1: it is connecting"))
        );
        shards.0.lock().insert(1, Hearing::Hears { last: clock::mono() });
        assert_eq!(shards.of(up.clone()).state, BotState::Up, "the other one is elsewhere");
        assert!(!shards.begin_one(0));
        shards.elsewhere(0);
        shards.elsewhere(1);
        assert_eq!(shards.of(up).state, BotState::Elsewhere);
        let stopped = Health { state: BotState::Stopped, ..Health::default() };
        assert_eq!(shards.of(stopped).state, BotState::Stopped, "that is worse");
    }
}
