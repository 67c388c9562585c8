//! A bot's shards, spread over the nodes that share its store: each is read by whoever holds its
//! lease, goes on from where the one before it was, and is handed over resumable.

use super::api_error::TOKEN_REFUSED;
use super::identify::{Identify, no_session_for};
use super::ingest::SHARD_AGAIN;
use super::parse::GatewayBot;
use super::shard::{Dial, Shard};
use super::take::Reader;
use super::{Discord, api::Call, ingest::MAX_SHARDS};
use crate::ingress::{Halted, Ingress, Stop};
use crate::nodes::{Duty, Nodes};
use angelia_core::lease;
use angelia_core::ports::{LeaseToken, Under};
use angelia_core::store::{Cursor, Intake, StreamStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use twilight_gateway::ShardId;

/// The row that says how many shards there are, beside their positions.
const COUNT: &str = "shards";
/// How soon a node looks again that waits for another one to say how many shards there are.
const AGREE_AGAIN: Duration = Duration::from_millis(300);
/// How often a node looks whether that is still so.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long a shard gets to write down how far it is and to say goodbye.
const GOODBYE: Duration = Duration::from_secs(4);

/// A bot whose shards are on whichever node.
pub(super) struct Spread {
    reader: Reader,
    nodes: Arc<dyn Nodes>,
    gateway: GatewayBot,
    identify: Identify,
    /// Under which lease of the bot its number of shards was last judged here.
    judged: Option<LeaseToken>,
}

/// What is to be done about the number of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    /// There are so many.
    Is(u32),
    /// From now on there are so many, and everybody has to know.
    Becomes(u32),
    /// Another node has to say.
    Unknown,
}

/// How many shards there are. All nodes have to agree: shards of different numbers would hear
/// the same guilds. Only whoever has the bot says so, and as long as Discord does not want twice as
/// many it stays: another number ends all sessions.
fn count(kept: Option<u32>, wanted: u32, has_bot: bool) -> Count {
    match kept {
        Some(kept) if !has_bot || wanted <= kept.saturating_mul(2) => Count::Is(kept),
        _ if has_bot => Count::Becomes(wanted),
        _ => Count::Unknown,
    }
}

/// How many shards the store says there are.
fn kept(cursors: &[Cursor]) -> Option<u32> {
    let kept = cursors.iter().find(|cursor| cursor.stream == COUNT)?;
    kept.position.parse().ok().filter(|count| (1..=MAX_SHARDS).contains(count))
}

impl Spread {
    pub(super) fn new(
        discord: Arc<Discord>,
        ingress: Ingress,
        nodes: Arc<dyn Nodes>,
        gateway: GatewayBot,
    ) -> Self {
        let identify = Identify::shared(discord.clone(), nodes.clone(), gateway.session_start_limit);
        Self { reader: Reader { discord, ingress }, nodes, gateway, identify, judged: None }
    }

    /// Reads what is this node's until it is time to stop; an error is what an operator has to
    /// do something about.
    pub(super) async fn run(mut self) -> Result<(), String> {
        loop {
            let Ok(count) = self.agree().await else { return Ok(()) };
            let ended = self.run_shards(count).await;
            // Whoever comes back asks for them again, maybe for another number.
            (0..count).for_each(|shard| self.nodes.no_duty(&self.lease(shard, count)));
            if let Some(ended) = ended {
                return ended;
            }
        }
    }

    fn lease(&self, shard: u32, count: u32) -> String {
        lease::of_shard(&self.reader.discord.account.key, shard, count)
    }

    /// Waits until it is known how many shards there are.
    async fn agree(&mut self) -> Result<u32, Halted> {
        let stop = self.reader.ingress.stop.clone();
        loop {
            if let Some(count) = self.look().await? {
                return Ok(count);
            }
            stop.pause(AGREE_AGAIN).await?;
        }
    }

    /// How many shards there are; `None` if that is not known yet.
    async fn look(&mut self) -> Result<Option<u32>, Halted> {
        let Reader { discord, ingress } = self.reader.clone();
        let key = &discord.account.key;
        let cursors = ingress.stop.until_stored(|| ingress.ports.records.cursors(key)).await?;
        let token = ingress.held.token(key);
        let judges = token.is_some() && token != self.judged;
        if judges && self.judged.is_some() {
            // It may be long ago that Discord was asked.
            match ingress.stop.unless_halted(discord.api.read(Call::get("gateway/bot"))).await? {
                Ok(gateway) => self.gateway = gateway,
                Err(_) => return Ok(kept(&cursors)),
            }
        }
        let wanted = self.gateway.shards.clamp(1, MAX_SHARDS);
        let agreed = match count(kept(&cursors), wanted, judges) {
            Count::Is(count) => Some(count),
            Count::Unknown => None,
            Count::Becomes(count) => {
                let cursor = Some(Cursor { stream: COUNT.into(), position: count.to_string() });
                let said = ingress.take_in(key, vec![Intake { cursor, ..Intake::default() }]).await;
                tracing::info!(bot = discord.own_id(), count, "a Discord bot's shards are shared out");
                said.is_ok().then_some(count)
            }
        };
        if agreed.is_some() && judges {
            self.judged = token;
        }
        Ok(agreed)
    }

    /// Runs what is this node's of so many shards; `None` if there is another number of them by now,
    /// or one failed for a defect of ours.
    async fn run_shards(&mut self, count: u32) -> Option<Result<(), String>> {
        let Reader { discord, ingress } = self.reader.clone();
        discord.shards.begin_elsewhere(count);
        let (halt, halted) = Stop::new();
        let mut tasks = JoinSet::new();
        for number in 0..count {
            tasks.spawn(self.turns(number, count, halted.clone()).take());
        }
        let ended = loop {
            tokio::select! {
                () = ingress.stop.wait() => break Some(Ok(())),
                () = discord.api.revoked() => break Some(Err(TOKEN_REFUSED.into())),
                Some(done) = tasks.join_next() => match done {
                    Ok(Some(why)) => break Some(Err(why)),
                    _ => {
                        tracing::error!(bot = discord.own_id(), "a Discord shard failed; all begin again");
                        sleep(SHARD_AGAIN).await;
                        break None;
                    }
                },
                () = sleep(LOOK_EVERY) => match self.look().await {
                    Ok(Some(other)) if other != count => break None,
                    _ => {}
                },
            }
        };
        halt.send_replace(true);
        while tasks.join_next().await.is_some() {}
        ended
    }

    fn turns(&self, number: u32, count: u32, halt: Stop) -> ShardTurns {
        let discord = &self.reader.discord;
        let name = self.lease(number, count);
        ShardTurns {
            duty: self.nodes.duty(&name),
            dial: Dial {
                id: ShardId::new(number, count),
                token: discord.config.token.clone(),
                gateway_url: discord.config.gateway_url.as_ref().unwrap_or(&self.gateway.url).clone(),
                queue: self.identify.clone(),
            },
            no_session_for: no_session_for(&self.gateway.session_start_limit),
            reader: self.reader.clone(),
            name,
            halt,
        }
    }
}

/// One shard, which is this node's from time to time.
struct ShardTurns {
    name: String,
    duty: Arc<dyn Duty>,
    reader: Reader,
    dial: Dial,
    no_session_for: Option<Duration>,
    halt: Stop,
}

/// Somebody is at work; not any more once this is dropped.
struct AtWork<'a>(&'a ShardTurns);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.reader.discord.shards.elsewhere(self.0.dial.id.number());
        self.0.duty.stopped();
    }
}

impl ShardTurns {
    /// Reads the shard whenever it is this node's. `Some` is why Discord must not be called again.
    async fn take(mut self) -> Option<String> {
        loop {
            let token = self.halt.unless_halted(self.duty.ours()).await.ok()?;
            let ended = self.read(token).await;
            if ended.is_some() || self.halt.is_now() {
                return ended;
            }
            // Known from the start; later whoever needs a session asks.
            self.no_session_for = None;
            tracing::info!(shard = %self.name, "another node reads this shard from now on");
        }
    }

    /// Reads it until it is another node's, from where the store says that it was.
    async fn read(&self, token: LeaseToken) -> Option<String> {
        let _at_work = AtWork(self);
        let Reader { discord, ingress } = &self.reader;
        discord.begin_shard(self.dial.id.number());
        let (tell, turn) = Stop::new();
        let under = Some(Under { lease: self.name.clone(), token });
        let reader = Reader { discord: discord.clone(), ingress: ingress.under(under) };
        let reading = async {
            let cursors =
                turn.until_stored(|| ingress.ports.records.cursors(&discord.account.key)).await.ok()?;
            Shard::new(reader, turn.clone(), self.dial.clone(), &cursors).run(self.no_session_for).await
        };
        let mut reading = std::pin::pin!(reading);
        tokio::select! {
            biased;
            () = self.duty.over() => {}
            () = self.halt.wait() => {}
            ended = &mut reading => return ended,
        }
        tell.send_replace(true);
        timeout(GOODBYE, reading).await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_the_bot_says_how_many_shards_there_are() {
        assert_eq!(count(None, 3, true), Count::Becomes(3));
        assert_eq!(count(None, 3, false), Count::Unknown);
        assert_eq!(count(Some(2), 3, true), Count::Is(2), "their sessions live on");
        assert_eq!(count(Some(2), 5, false), Count::Is(2));
        assert_eq!(count(Some(2), 5, true), Count::Becomes(5), "soon Discord would take no more");
        assert_eq!(count(Some(4), 1, true), Count::Is(4));
    }

    #[test]
    fn what_cannot_be_a_number_of_shards_is_none() {
        let with = |position: &str| kept(&[Cursor { stream: COUNT.into(), position: position.into() }]);
        assert_eq!((with("2"), with("0"), with("x"), with("100000")), (Some(2), None, None, None));
        assert_eq!(kept(&[Cursor { stream: "shard:0/2".into(), position: "2".into() }]), None);
    }
}
