//! `Ingress`: what a bot that listens is given by the server: the ports, the seal, admission, when to stop.

use crate::admission::Admission;
use angelia_core::directory::BotKey;
use angelia_core::error::Result;
use angelia_core::ports::{LeaseToken, Ports};
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
    /// When to stop.
    pub stop: Stop,
}

impl Ingress {
    /// Commits what a bot received and how far it has read, under the lease that is held for it.
    pub async fn take_in(&self, bot: &BotKey, intakes: Vec<Intake>) -> Result<Vec<Taken>> {
        self.ports.ingest.take_in(bot, self.held.token(bot), intakes).await
    }
}

/// The leases that this node holds to read the streams of bots.
#[derive(Debug, Default)]
pub struct HeldLeases(RwLock<HashMap<BotKey, LeaseToken>>);

impl HeldLeases {
    /// A lease was taken, or taken anew.
    pub fn took(&self, bot: &BotKey, token: LeaseToken) {
        self.0.write().insert(bot.clone(), token);
    }

    /// The token of a bot's lease; `None` if none was taken.
    pub fn token(&self, bot: &BotKey) -> Option<LeaseToken> {
        self.0.read().get(bot).copied()
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
