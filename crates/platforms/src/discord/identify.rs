//! When a shard may identify: Discord takes one in five seconds from each of a few groups of shards,
//! and so many a day. A server that is alone counts for itself. Nodes that share a bot take turns,
//! which are short leases, and ask Discord how many are left.

use super::Discord;
use super::api::Call;
use super::api_error::LONGEST_WAIT;
use super::parse::{GatewayBot, StartLimit};
use crate::ingress::STORE_AGAIN;
use crate::nodes::Nodes;
use angelia_core::clock::{self, Mono};
use angelia_core::directory::BotKey;
use angelia_core::limit::spread;
use angelia_core::secret::random_bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, oneshot};
use tokio::time::sleep;
use twilight_gateway::queue::{InMemoryQueue, Queue};

/// How long after an identify the next one of its group may follow: Discord's five seconds, and
/// what both may be on their way.
const TURN: Duration = Duration::from_millis(5_500);
/// How soon somebody who waits for a turn asks again.
const TURN_AGAIN: Duration = Duration::from_millis(400);
/// How long is believed what Discord said is left for the day: others identify as well.
const BELIEVED_FOR: Duration = Duration::from_secs(60);
/// With no more left than this, Discord is asked before each one.
const FEW: u32 = 20;
/// How soon Discord is asked again that did not answer, or has none left.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// Who says when a shard may identify.
#[derive(Clone)]
pub(super) enum Identify {
    /// The process, for itself.
    Alone(InMemoryQueue),
    /// The nodes, together.
    Shared(Arc<Turns>),
}

impl Queue for Identify {
    fn enqueue(&self, shard: u32) -> oneshot::Receiver<()> {
        match self {
            Self::Alone(queue) => queue.enqueue(shard),
            Self::Shared(turns) => {
                let (granted, wait) = oneshot::channel();
                tokio::spawn(turns.clone().grant(shard, granted));
                wait
            }
        }
    }
}

impl Identify {
    /// For a server that is alone.
    pub(super) fn alone(limit: &StartLimit) -> Self {
        let StartLimit { total, remaining, max_concurrency, .. } = *limit;
        let total = total.max(remaining);
        // Nobody may identify without a turn: no turns at once would mean as many as one likes.
        Self::Alone(InMemoryQueue::new(max_concurrency.max(1), remaining, reset_after(limit), total))
    }

    /// For nodes that share a bot.
    pub(super) fn shared(discord: Arc<Discord>, nodes: Arc<dyn Nodes>, limit: StartLimit) -> Self {
        let left = Mutex::new(Left { limit, asked: clock::mono() });
        Self::Shared(Arc::new(Turns { discord, nodes, left }))
    }
}

/// How long Discord lets a bot begin no session.
pub(super) fn no_session_for(limit: &StartLimit) -> Option<Duration> {
    (limit.remaining == 0).then(|| reset_after(limit))
}

fn reset_after(limit: &StartLimit) -> Duration {
    Duration::from_millis(limit.reset_after).min(LONGEST_WAIT)
}

/// What the turns of one group of shards are called.
fn turn_of(bot: &BotKey, shard: u32, limit: &StartLimit) -> String {
    format!("identify {}/{}/{}", bot.platform, bot.bot, shard % u32::from(limit.max_concurrency.max(1)))
}

/// The turns of one bot's shards, on whichever node.
pub(super) struct Turns {
    discord: Arc<Discord>,
    nodes: Arc<dyn Nodes>,
    left: Mutex<Left>,
}

/// What Discord said is left, and when.
struct Left {
    limit: StartLimit,
    asked: Mono,
}

impl Left {
    /// Whether that is to be believed.
    fn is_known(&self, now: Mono) -> bool {
        let believed_for = if self.limit.remaining <= FEW { Duration::ZERO } else { BELIEVED_FOR };
        now.since(self.asked) < believed_for
    }
}

impl Turns {
    /// Tells a shard when it may, unless it does not wait any more.
    async fn grant(self: Arc<Self>, shard: u32, mut granted: oneshot::Sender<()>) {
        while let Err(pause) = self.turn(shard).await {
            tokio::select! {
                () = granted.closed() => return,
                () = sleep(spread(pause, u64::from_ne_bytes(random_bytes()))) => {}
            }
        }
        let _ = granted.send(());
    }

    /// Takes a shard's turn; or how long to wait before it is asked for again.
    async fn turn(&self, shard: u32) -> Result<(), Duration> {
        let mut left = self.left.lock().await;
        if !left.is_known(clock::mono()) {
            let asked: GatewayBot =
                self.discord.api.read(Call::get("gateway/bot")).await.map_err(|_| ASK_AGAIN)?;
            *left = Left { limit: asked.session_start_limit, asked: clock::mono() };
        }
        if let Some(wait) = no_session_for(&left.limit) {
            return Err(wait.min(ASK_AGAIN));
        }
        let name = turn_of(&self.discord.account.key, shard, &left.limit);
        match self.nodes.turn(&name, TURN).await {
            Ok(true) => {
                left.limit.remaining -= 1;
                Ok(())
            }
            Ok(false) => Err(TURN_AGAIN),
            Err(_) => Err(STORE_AGAIN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(remaining: u32, max_concurrency: u16) -> StartLimit {
        StartLimit { total: 1_000, remaining, reset_after: 5_000, max_concurrency }
    }

    #[test]
    fn shards_of_one_group_have_one_turn() {
        let bot = BotKey::new("discord", "7");
        let turn = |shard, concurrency| turn_of(&bot, shard, &limit(9, concurrency));
        assert_eq!(turn(0, 1), turn(1, 1));
        assert_eq!(turn(0, 2), turn(2, 2));
        assert_ne!(turn(0, 2), turn(1, 2));
        assert_eq!(turn(3, 0), turn(4, 0), "no turns at once would be as many as one likes");
    }

    #[test]
    fn what_is_left_is_asked_for_anew_when_others_may_have_used_it() {
        let asked = Mono(Duration::from_secs(100));
        let left = |remaining| Left { limit: limit(remaining, 1), asked };
        assert!(left(FEW + 1).is_known(asked + BELIEVED_FOR / 2));
        assert!(!left(FEW + 1).is_known(asked + BELIEVED_FOR));
        assert!(!left(FEW).is_known(asked), "with so few each one counts");
        assert_eq!(no_session_for(&limit(0, 1)), Some(Duration::from_secs(5)));
        assert_eq!(no_session_for(&limit(1, 1)), None);
    }
}
