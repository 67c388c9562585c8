//! Which shards hear, so that one that does not is not hidden by the others.

use super::Discord;
use crate::health::{BotState, Health};
use angelia_core::clock::{self, Mono};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Without a word for so long a shard is deaf, whatever its socket says: two
/// heartbeats, and time for a new connection.
const SILENT_AFTER: Duration = Duration::from_secs(120);

const SILENT: &str = "nothing was heard of Discord for two minutes";
const CONNECTING: &str = "it is connecting";

/// What is known of every shard's hearing.
#[derive(Debug, Default)]
pub(super) struct Ears(Mutex<BTreeMap<u32, Ear>>);

#[derive(Debug)]
enum Ear {
    Hears { last: Mono },
    Deaf { why: String },
}

impl Ears {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Ear>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first shard that does not hear, why, and for how long beyond what is bearable.
fn deaf(ears: &BTreeMap<u32, Ear>, now: Mono) -> Option<(u32, &str, Duration)> {
    ears.iter().find_map(|(shard, ear)| match ear {
        Ear::Deaf { why } => Some((*shard, why.as_str(), Duration::ZERO)),
        Ear::Hears { last } => {
            let silent = now.since(*last).checked_sub(SILENT_AFTER)?;
            Some((*shard, SILENT, silent))
        }
    })
}

fn named(ears: &BTreeMap<u32, Ear>, shard: u32, why: &str) -> String {
    if ears.len() > 1 { format!("shard {shard}: {why}") } else { why.to_owned() }
}

impl Discord {
    /// So many shards begin to connect.
    pub(super) fn shards_begin(&self, count: u32) {
        *self.ears.lock() = (0..count).map(|shard| (shard, Ear::Deaf { why: CONNECTING.into() })).collect();
    }

    /// Something was heard on a shard.
    pub(super) fn heard(&self, shard: u32) {
        let mut ears = self.ears.lock();
        let now = clock::mono();
        ears.insert(shard, Ear::Hears { last: now });
        match deaf(&ears, now) {
            None => self.pulse.heard(),
            // A bot that begins is not down before one of its shards fails.
            Some((_, CONNECTING, _)) if self.pulse.health().state == BotState::Starting => {
                self.pulse.heard_in_part();
            }
            Some((other, why, _)) => {
                self.pulse.heard_in_part();
                self.pulse.down(named(&ears, other, why));
            }
        }
    }

    /// A shard does not go on with what it heard.
    pub(super) fn held_up(&self, shard: u32, why: &str) {
        let mut ears = self.ears.lock();
        ears.insert(shard, Ear::Deaf { why: why.to_owned() });
        self.pulse.down(named(&ears, shard, why));
    }

    /// A shard does not hear.
    pub(super) fn deaf(&self, shard: u32, why: &str) {
        self.held_up(shard, why);
        tracing::info!(bot = self.own_id(), shard, why, "a Discord shard is disconnected");
    }

    /// How the bot is, as far as silence does not say otherwise.
    pub(super) fn state(&self) -> Health {
        let ears = self.ears.lock();
        let mut health = self.pulse.health();
        if health.state == BotState::Up
            && let Some((shard, why, span)) = deaf(&ears, clock::mono())
        {
            (health.state, health.since) = (BotState::Down, clock::wall().before(span));
            health.why = Some(named(&ears, shard, why));
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
        let hears = |ago: Duration| Ear::Hears { last: now.before(ago) };
        let mut ears = BTreeMap::from([(0, hears(Duration::ZERO)), (1, hears(Duration::from_secs(100)))]);
        assert_eq!(deaf(&ears, now), None);
        ears.insert(1, hears(SILENT_AFTER + Duration::from_secs(7)));
        assert_eq!(deaf(&ears, now), Some((1, SILENT, Duration::from_secs(7))));
        ears.insert(0, Ear::Deaf { why: "cut".into() });
        assert_eq!(deaf(&ears, now).unwrap().1, "cut");
        assert_eq!(named(&ears, 0, "cut"), "shard 0: cut");
    }
}
