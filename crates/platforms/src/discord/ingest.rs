//! Listening: who the bot is, where to connect, and a task for each shard.

use super::api::Call;
use super::api_error::{ApiError, TOKEN_REFUSED};
use super::identify::{Identify, no_session_for};
use super::parse::{GatewayBot, User};
use super::shard::{Dial, Shard};
use super::spread::Spread;
use super::take::Reader;
use super::{Discord, NAME};
use crate::ingress::{Ingress, Stop};
use angelia_core::limit::Backoff;
use angelia_core::store::StreamStore;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;
use twilight_gateway::ShardId;

/// First and longest pause while Discord cannot be asked where to connect.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How soon a shard that failed for a defect of ours is begun again.
pub(super) const SHARD_AGAIN: Duration = Duration::from_secs(5);
/// Most shards one server runs: 2,500 guilds each.
pub(super) const MAX_SHARDS: u32 = 256;

impl Discord {
    /// Listens until the ingress says stop.
    pub(super) async fn run(self: Arc<Self>, ingress: Ingress) {
        if let Some(nodes) = &ingress.nodes {
            self.api.among(nodes.clone(), self.account.key.clone());
        }
        let stop = ingress.stop.clone();
        let Ok(begun) = stop.unless_halted(self.begin()).await else { return };
        let ended = match begun {
            Ok(gateway) => match ingress.nodes.clone() {
                Some(nodes) => Spread::new(self.clone(), ingress, nodes, gateway).run().await,
                None => Listening::new(self.clone(), ingress, gateway).run().await,
            },
            Err(why) => Err(why),
        };
        if let Err(why) = ended {
            tracing::error!(bot = self.own_id(), platform = NAME, why, "a bot has stopped");
            self.account.health.stopped(why);
            stop.wait().await;
        }
    }

    /// Who the bot is and where to connect; or why an operator has to do something first.
    async fn begin(&self) -> Result<GatewayBot, String> {
        let me: User = self.until_told("users/@me").await?;
        if me.id.0 != self.own_id() {
            return Err(wrong_id(self.own_id(), &me));
        }
        self.until_told("gateway/bot").await
    }

    /// What Discord says, however often it has to be asked.
    async fn until_told<T: DeserializeOwned>(&self, path: &str) -> Result<T, String> {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let failure = match self.api.read(Call::get(path)).await {
                Err(ApiError::Unauthorized) => return Err(TOKEN_REFUSED.into()),
                Err(failure) => failure,
                Ok(told) => return Ok(told),
            };
            let (bot, why) = (self.own_id(), failure.why());
            tracing::warn!(bot, why, "Discord does not tell where to connect; it is asked again");
            self.account.health.down(why);
            sleep(backoff.pause().max(failure.pause())).await;
        }
    }
}

/// What to say of a token that belongs to another bot.
pub(super) fn wrong_id(own_id: &str, me: &User) -> String {
    format!(
        "the token is that of {} ({}), and the bot is configured with the id {own_id}: \
         correct one of the two in the configuration",
        me.username.as_deref().unwrap_or("another bot"),
        me.id.0
    )
}

/// A bot and its shards.
struct Listening {
    reader: Reader,
    gateway: GatewayBot,
    identify: Identify,
    /// How long no session can be begun.
    no_session_for: Option<Duration>,
}

impl Listening {
    fn new(discord: Arc<Discord>, ingress: Ingress, mut gateway: GatewayBot) -> Self {
        let identify = Identify::alone(&gateway.session_start_limit);
        gateway.shards = gateway.shards.clamp(1, MAX_SHARDS);
        let no_session_for = no_session_for(&gateway.session_start_limit);
        Self { reader: Reader { discord, ingress }, gateway, identify, no_session_for }
    }

    /// Listens until it is time to stop; an error is what an operator has to do something about.
    async fn run(self) -> Result<(), String> {
        loop {
            if let Some(ended) = self.run_shards().await {
                return ended;
            }
            // All begin again where each of them was.
            let Reader { discord, .. } = &self.reader;
            tracing::error!(bot = discord.own_id(), "a Discord shard failed; all begin again");
            discord.account.health.down("a shard failed for a defect of this server; it begins again");
            sleep(SHARD_AGAIN).await;
        }
    }

    /// Runs all shards; `None` if one of them failed for a defect of ours.
    async fn run_shards(&self) -> Option<Result<(), String>> {
        let Reader { discord, ingress } = &self.reader;
        let cursors = ingress.stop.until_stored(|| ingress.ports.records.cursors(&discord.account.key)).await;
        let Ok(cursors) = cursors else { return Some(Ok(())) };
        let GatewayBot { url, shards, .. } = &self.gateway;
        discord.shards.begin(*shards);
        let (halt, halted) = Stop::new();
        let mut tasks = JoinSet::new();
        for number in 0..*shards {
            let dial = Dial {
                id: ShardId::new(number, *shards),
                token: discord.config.token.clone(),
                gateway_url: discord.config.gateway_url.as_ref().unwrap_or(url).clone(),
                queue: self.identify.clone(),
            };
            let shard = Shard::new(self.reader.clone(), halted.clone(), dial, &cursors);
            tasks.spawn(shard.run(self.no_session_for));
        }
        let ended = tokio::select! {
            () = ingress.stop.wait() => Some(Ok(())),
            () = discord.api.revoked() => Some(Err(TOKEN_REFUSED.into())),
            Some(done) = tasks.join_next() => match done {
                Ok(Some(why)) => Some(Err(why)),
                _ => None,
            },
        };
        halt.send_replace(true);
        while tasks.join_next().await.is_some() {}
        ended
    }
}
