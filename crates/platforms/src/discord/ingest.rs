//! Listening: who the bot is, where to connect, and a task for each shard.

use super::api_error::{ApiError, LONGEST_WAIT, TOKEN_REFUSED};
use super::message::Reader;
use super::parse::{GatewayBot, StartLimit, User};
use super::rest::Call;
use super::shard::{Dial, Shard};
use super::{Discord, NAME};
use crate::ingress::{Ingress, Stop};
use angelia_core::limit::Backoff;
use angelia_core::store::{Cursor, StreamStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;
use twilight_gateway::ShardId;
use twilight_gateway::queue::InMemoryQueue;

/// First and longest pause while Discord cannot be asked where to connect.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How soon a shard that failed for a defect of ours is begun again.
const SHARD_AGAIN: Duration = Duration::from_secs(5);
/// Most shards one server runs: 2,500 guilds each.
const MAX_SHARDS: u32 = 256;
/// What became of a bot that cannot listen.
enum Ended {
    /// It is time to stop.
    Stopped,
    /// An operator has to do something first.
    GaveUp(String),
}

impl Discord {
    /// Listens until the ingress says stop.
    pub(super) async fn run(self: Arc<Self>, ingress: Ingress) {
        let stop = ingress.stop.clone();
        let ended = tokio::select! {
            () = stop.wait() => Ended::Stopped,
            begun = self.begin() => match begun {
                Ok(gateway) => Listening::new(self.clone(), ingress, gateway).run().await,
                Err(why) => Ended::GaveUp(why),
            },
        };
        if let Ended::GaveUp(why) = ended {
            tracing::error!(bot = self.own_id(), platform = NAME, why, "a bot has stopped");
            self.account.health.stopped(why);
            stop.wait().await;
        }
    }

    /// Who the bot is and where to connect, however often that has to be asked.
    async fn begin(&self) -> Result<GatewayBot, String> {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let failure = match self.first_calls().await {
                Ok(gateway) => return Ok(gateway),
                Err(Begin::Wrong(why)) => return Err(why),
                Err(Begin::ApiError(ApiError::Unauthorized)) => return Err(TOKEN_REFUSED.into()),
                Err(Begin::ApiError(failure)) => failure,
            };
            let why = failure.why();
            tracing::warn!(
                bot = self.own_id(),
                why,
                "Discord does not tell where to connect; it is asked again"
            );
            self.account.health.down(why);
            sleep(backoff.pause().max(failure.pause())).await;
        }
    }

    async fn first_calls(&self) -> Result<GatewayBot, Begin> {
        let me: User = self.rest.read(Call::get("users/@me")).await.map_err(Begin::ApiError)?;
        if me.id != self.own_id() {
            return Err(Begin::Wrong(wrong_id(self.own_id(), &me)));
        }
        self.rest.read(Call::get("gateway/bot")).await.map_err(Begin::ApiError)
    }
}

/// Why it did not begin.
enum Begin {
    Wrong(String),
    ApiError(ApiError),
}

/// What to say of a token that belongs to another bot.
pub(super) fn wrong_id(own_id: &str, me: &User) -> String {
    format!(
        "the token is that of {} ({}), and the bot is configured with the id {own_id}: \
         correct one of the two in the configuration",
        me.username.as_deref().unwrap_or("another bot"),
        me.id
    )
}

/// A bot and its shards.
struct Listening {
    reader: Reader,
    gateway: GatewayBot,
    queue: InMemoryQueue,
    shards: u32,
}

impl Listening {
    fn new(discord: Arc<Discord>, ingress: Ingress, gateway: GatewayBot) -> Self {
        let StartLimit { total, remaining, reset_after, max_concurrency } = gateway.session_start_limit;
        let reset_after = Duration::from_millis(reset_after).min(LONGEST_WAIT);
        // Nobody may identify without a turn: no turns at once would mean as many as one likes.
        let queue = InMemoryQueue::new(max_concurrency.max(1), remaining, reset_after, total.max(remaining));
        let shards = gateway.shards.clamp(1, MAX_SHARDS);
        Self { reader: Reader { discord, ingress }, gateway, queue, shards }
    }

    async fn run(self) -> Ended {
        loop {
            if let Some(ended) = self.run_shards().await {
                return ended;
            }
            // All begin again where each of them was.
            tracing::error!(bot = self.reader.discord.own_id(), "a Discord shard failed; all begin again");
            self.reader
                .discord
                .account
                .health
                .down("a shard failed for a defect of this server; it begins again");
            sleep(SHARD_AGAIN).await;
        }
    }

    /// Runs all shards; `None` if one of them failed for a defect of ours.
    async fn run_shards(&self) -> Option<Ended> {
        let Reader { discord, ingress } = &self.reader;
        let cursors = ingress.stop.until_stored(|| ingress.ports.records.cursors(&discord.account.key)).await;
        let Ok(cursors) = cursors else { return Some(Ended::Stopped) };
        discord.shards.begin(self.shards);
        let (halt, halted) = Stop::new();
        let mut tasks = JoinSet::new();
        for number in 0..self.shards {
            tasks.spawn(self.shard(number, &cursors, halted.clone()));
        }
        let ended = tokio::select! {
            () = ingress.stop.wait() => Some(Ended::Stopped),
            () = discord.rest.revoked() => Some(Ended::GaveUp(TOKEN_REFUSED.into())),
            Some(done) = tasks.join_next() => match done {
                Ok(Some(why)) => Some(Ended::GaveUp(why)),
                _ => None,
            },
        };
        halt.send_replace(true);
        while tasks.join_next().await.is_some() {}
        ended
    }

    /// One shard, as a task: why Discord must not be called again, if so.
    fn shard(
        &self,
        number: u32,
        cursors: &[Cursor],
        halt: Stop,
    ) -> impl Future<Output = Option<String>> + use<> {
        let Reader { discord, .. } = &self.reader;
        let dial = Dial {
            id: ShardId::new(number, self.shards),
            token: discord.config.token.clone(),
            gateway_url: discord.config.gateway_url.as_ref().unwrap_or(&self.gateway.url).clone(),
            queue: self.queue.clone(),
        };
        let mut shard = Shard::new(self.reader.clone(), halt, dial, cursors);
        let StartLimit { remaining, reset_after, .. } = self.gateway.session_start_limit;
        async move {
            if shard.is_new() && remaining == 0 {
                let wait = Duration::from_millis(reset_after).min(LONGEST_WAIT);
                shard.wait(wait, &no_identifies_left(wait)).await.ok()?;
            }
            shard.run().await
        }
    }
}

fn no_identifies_left(wait: Duration) -> String {
    format!("Discord lets this bot begin no more sessions for {} minutes", wait.as_secs().div_ceil(60))
}
