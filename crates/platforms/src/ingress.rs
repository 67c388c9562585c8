//! `Ingress`: what a bot that listens is given by the server: the ports, the seal, admission, when to stop.

use crate::admission::Admission;
use crate::nodes::Nodes;
use angelia_core::directory::BotKey;
use angelia_core::error::{Error, Result};
use angelia_core::ports::{LeaseToken, Ports, Under};
use angelia_core::seal::Sealed;
use angelia_core::store::{Intake, Taken};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// How soon a store that does not answer is asked again.
pub(crate) const STORE_AGAIN: Duration = Duration::from_secs(1);

/// Seals bytes that only this server is to read again.
pub trait Seal: Send + Sync {
    /// Seals `text` for the row that `bound_to` describes.
    fn seal(&self, text: &str, bound_to: &str) -> Result<Sealed>;
}

/// Everything a listening bot needs of the server.
#[derive(Clone)]
pub struct Ingress {
    /// Where what it receives is kept.
    pub ports: Ports,
    /// Who decides whose message it is.
    pub admission: Arc<dyn Admission>,
    /// How it keeps what it cannot read.
    pub seal: Arc<dyn Seal>,
    /// Whether sources carry `is_bot` and `message_is_edit`.
    pub source_flags: bool,
    /// The URL providers reach this server at, without a trailing slash.
    pub public_url: Arc<str>,
    /// Under which leases its streams are read.
    pub held: Arc<HeldLeases>,
    /// Which of them what it received is written under.
    pub under: WrittenUnder,
    /// The other nodes; none of a server that is alone.
    pub nodes: Option<Arc<dyn Nodes>>,
    /// When to stop.
    pub stop: Stop,
}

impl Ingress {
    /// Commits what a bot received and how far it has read, under the lease that is held for it.
    /// Unavailable while it is not known whether this server knows what others know: what was
    /// decided may not be so any more.
    pub async fn take_in(&self, bot: &BotKey, intakes: Vec<Intake>) -> Result<Vec<Taken>> {
        if !self.held.is_current() {
            return Err(Error::unavailable("this server has to catch up with the others first"));
        }
        self.ports.ingest.take_in(bot, self.lease_of(bot), intakes).await
    }

    /// Under which lease what a bot received is written; `None` if it is not this node's.
    pub(crate) fn lease_of(&self, bot: &BotKey) -> Option<Under> {
        match &self.under {
            WrittenUnder::Held => self.held.token(bot).map(|token| Under::bot(bot, token)),
            WrittenUnder::Fixed(under) => under.clone(),
        }
    }

    /// The same, where everything is written under this lease: what is written was decided while
    /// that was held, and does not count under a later one.
    pub(crate) fn under(&self, under: Option<Under>) -> Self {
        Self { under: WrittenUnder::Fixed(under), ..self.clone() }
    }

    /// Whether this node has a bot: what it remembers of it is all there is to know.
    pub(crate) fn has(&self, bot: &BotKey) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.has(bot))
    }
}

/// Which lease something is written under.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WrittenUnder {
    /// The bot's, as this node holds it when it is written.
    #[default]
    Held,
    /// This one, or none, whatever is held by then.
    Fixed(Option<Under>),
}

/// The leases that this node holds to read the streams of bots.
#[derive(Default)]
pub struct HeldLeases {
    tokens: RwLock<HashMap<BotKey, LeaseToken>>,
    /// Whether this node knows what others know; nothing of one that is alone.
    is_current: Option<Box<dyn Fn() -> bool + Send + Sync>>,
}

impl HeldLeases {
    /// Those of a node among others.
    pub fn checked_by(is_current: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { tokens: RwLock::default(), is_current: Some(Box::new(is_current)) }
    }

    /// A lease was taken, or taken anew.
    pub fn took(&self, bot: &BotKey, token: LeaseToken) {
        self.tokens.write().insert(bot.clone(), token);
    }

    /// A lease is not held any more.
    pub fn lost(&self, bot: &BotKey) {
        self.tokens.write().remove(bot);
    }

    /// The token of a bot's lease; `None` if none was taken.
    pub fn token(&self, bot: &BotKey) -> Option<LeaseToken> {
        self.tokens.read().get(bot).copied()
    }

    /// Whether this node knows what others know.
    fn is_current(&self) -> bool {
        self.is_current.as_ref().is_none_or(|is_current| is_current())
    }
}

/// Tells a listener that the server stops.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

/// It is time to stop: what is not committed stays so and comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Halted;

impl Stop {
    /// A signal, and what it follows: `true` is sent once.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Whether it is time.
    pub fn is_now(&self) -> bool {
        *self.0.borrow()
    }

    /// Resolves when it is time, or nobody is left who could tell.
    pub async fn wait(&self) {
        let _ = self.0.clone().wait_for(|now| *now).await;
    }

    /// Waits for something, but not longer than until it is time.
    pub(crate) async fn unless_halted<T>(&self, something: impl Future<Output = T>) -> Result<T, Halted> {
        tokio::select! {
            biased;
            () = self.wait() => Err(Halted),
            done = something => Ok(done),
        }
    }

    /// Waits for a while, but not longer than until it is time.
    pub(crate) async fn pause(&self, span: Duration) -> Result<(), Halted> {
        self.unless_halted(sleep(span)).await
    }

    /// Asks the store until it answers.
    pub(crate) async fn until_stored<T, F: Future<Output = Result<T>>>(
        &self,
        ask: impl Fn() -> F,
    ) -> Result<T, Halted> {
        loop {
            match ask().await {
                Ok(answer) => return Ok(answer),
                Err(_) => self.pause(STORE_AGAIN).await?,
            }
        }
    }
}
