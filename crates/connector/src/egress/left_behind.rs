//! The connector's own chats have no provider, and any node performs what is said there, as
//! itself. What a node leaves unfinished another one takes up: the one that does the upkeep.

use super::Egress;
use super::chats::{self, News};
use super::outbox::ActingAs;
use super::resume;
use crate::cluster::Chore;
use crate::supervise::Lifecycle;
use angelia_core::cluster::Nodes as _;
use angelia_core::egress::Owner;
use angelia_core::error::Result;
use angelia_core::ports::ActionId;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// How often is looked for what nodes left.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// Owners remembered as this node's own work on what others left: a node leaves something each
/// time it is gone, and what is left is done within minutes.
const MAX_HEIRS: usize = 1_024;

/// Whose work is nobody's, as far as was seen.
#[derive(Default)]
struct Missing {
    /// They were not there when it was looked last: one that is new may not be seen yet.
    before: HashSet<Owner>,
    /// As whom this node works on what others left.
    heirs: HashSet<Owner>,
}

impl Egress {
    /// Takes up what nodes left that are gone.
    pub(super) async fn take_up_left_behind(self: Arc<Self>, life: Arc<Lifecycle>) {
        let mut missing = Missing::default();
        while life.pause(LOOK_EVERY).await {
            if self.cluster.does(Chore::Upkeep)
                && self.cluster.is_current()
                && let Err(error) = self.look_behind(&mut missing).await
            {
                tracing::debug!(%error, "what other nodes left could not be taken up");
            }
        }
    }

    async fn look_behind(self: &Arc<Self>, missing: &mut Missing) -> Result<()> {
        let mut gone = HashSet::new();
        for bot in (0..self.bots.all().len()).filter(|bot| self.bots[*bot].is_own()) {
            gone.extend(self.ledger.owners(&self.bot_key(bot)).await?);
        }
        // After that: whoever had something then was there before, or is gone.
        let (now, nodes) = self.records.nodes().await?;
        for node in nodes.iter().filter(|node| node.is_there(now)) {
            gone.remove(&Owner(node.owner));
        }
        gone.remove(&self.cluster.owner().await?);
        missing.heirs.retain(|heir| gone.remove(heir));
        for whose in gone.intersection(&missing.before) {
            if missing.heirs.len() >= MAX_HEIRS {
                break;
            }
            missing.heirs.extend(self.take_up_of(*whose).await?);
        }
        missing.before = gone;
        Ok(())
    }

    /// Takes up what one left, as somebody who has nothing else. `None` if not all of it is in hand:
    /// the rest is taken up from that one.
    async fn take_up_of(self: &Arc<Self>, whose: Owner) -> Result<Option<Owner>> {
        let heir = self.ledger.new_owner().await?;
        self.ledger.adopt(heir, Some(whose)).await?;
        let found = resume::unfinished(self, heir, ActionId(0)).await?;
        if !found.is_empty() {
            tracing::info!(count = found.len(), "finishing actions that another node left");
        }
        let under = ActingAs::Heir(heir);
        let mut all = true;
        for (key, stored) in resume::sort(self, found, under).await {
            all &= chats::tell(self, key, News::Adopted { stored, under, untouched: false });
        }
        Ok(all.then_some(heir))
    }
}
