//! How bots are, on whichever nodes they are read.

use super::{Admin, other_nodes};
use crate::ingress::Bots;
use angelia_core::directory::BotKey;
use angelia_platforms::{BotState, Health, Platform};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Bots in one answer: a message on the bus holds so many with ease.
const BOTS: usize = 128;

/// How a bot is, as one node knows it.
#[derive(Serialize, Deserialize)]
pub(super) struct BotHealth {
    bot: BotKey,
    health: Health,
}

/// How bots are, as this node knows it. Of those that others read it knows what it counted.
fn known_here(bots: &Bots) -> impl Iterator<Item = BotHealth> {
    bots.all().iter().filter_map(|bot| Some(BotHealth { bot: key(&**bot), health: bot.health()? }))
}

fn key(bot: &dyn Platform) -> BotKey {
    BotKey::new(bot.platform(), bot.id())
}

/// What this node tells others, those that it reads first.
pub(super) fn to_tell(bots: &Bots) -> Vec<BotHealth> {
    let mut known: Vec<BotHealth> = known_here(bots).collect();
    known.sort_by_key(|it| it.health.state == BotState::Elsewhere);
    known.truncate(BOTS);
    known
}

/// How all bots are, as all nodes know it.
pub(super) struct Healths(HashMap<BotKey, Health>);

impl Healths {
    /// Asks the other nodes, if there are any. Answers also which of them did not tell.
    pub(super) async fn of(admin: &Admin) -> (Self, Vec<String>) {
        let (told, not_asked) = other_nodes::health(admin).await;
        (Self::joined(known_here(&admin.bots).chain(told)), not_asked)
    }

    fn joined(all: impl Iterator<Item = BotHealth>) -> Self {
        let mut known: HashMap<BotKey, Health> = HashMap::new();
        for BotHealth { bot, health } in all {
            let joined = match known.remove(&bot) {
                Some(other) => other.and(health),
                None => health,
            };
            known.insert(bot, joined);
        }
        Self(known)
    }

    /// How a bot is; the web chat has nobody to listen to.
    pub(super) fn of_bot(&self, bot: &dyn Platform) -> Option<Health> {
        self.0.get(&key(bot)).cloned()
    }
}
