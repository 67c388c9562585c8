//! The bots of this server: which there are, and how they listen, from its start to its end.

use crate::keyring::Keyring;
use crate::server::{Options, Parts};
use crate::telemetry::{Counter, Metrics};
use angelia_contract::descriptor::Descriptor;
use angelia_core::directory::BotKey;
use angelia_core::error::Result;
use angelia_core::lease;
use angelia_core::ports::{Leases as _, Term, lease_lost};
use angelia_core::seal::Sealed;
use angelia_core::secret::Secret;
use angelia_platforms::{Admission, Ingress, Platform, Seal, Stop};
use futures_util::FutureExt;
use parking_lot::Mutex;
use std::ops::Index;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long listeners get to write down how far they are and to say goodbye.
const GOODBYE: Duration = Duration::from_secs(4);

/// Longest text that is kept of something that cannot be read: enough to see what
/// it is, and a thousand of them are no burden.
const MAX_SEALED: usize = 64 * 1024;
/// The pause before a bot that failed listens again.
const LISTEN_AGAIN: Duration = Duration::from_secs(5);

/// All bots, in the order in which they are configured.
pub(crate) struct Bots(Vec<Arc<dyn Platform>>);

impl Bots {
    pub(crate) fn new(bots: Vec<Arc<dyn Platform>>) -> Arc<Self> {
        Arc::new(Self(bots))
    }

    /// Every one of them.
    pub(crate) fn all(&self) -> &[Arc<dyn Platform>] {
        &self.0
    }

    /// The position of a bot, if it is configured.
    pub(crate) fn position(&self, bot: &BotKey) -> Option<usize> {
        let named = |it: &Arc<dyn Platform>| *it.platform() == *bot.platform && *it.id() == *bot.bot;
        self.0.iter().position(named)
    }

    /// The same, unless the bot is the connector's own: nobody is told there that an agent is away.
    pub(crate) fn position_of_others(&self, bot: &BotKey) -> Option<usize> {
        self.position(bot).filter(|position| !self[*position].is_own())
    }

    pub(crate) fn descriptors(&self) -> Vec<Descriptor> {
        self.0.iter().map(|bot| bot.descriptor()).collect()
    }
}

impl Index<usize> for Bots {
    type Output = Arc<dyn Platform>;

    fn index(&self, position: usize) -> &Self::Output {
        &self.0[position]
    }
}

/// Everybody who listens.
pub(crate) struct Listeners {
    bots: Arc<Bots>,
    /// As whom their leases are held.
    node: String,
    ingress: Ingress,
    tell: watch::Sender<bool>,
    metrics: Arc<Metrics>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Listeners {
    pub(crate) fn new(parts: &Parts, admission: Arc<dyn Admission>, options: &Options) -> Self {
        let (tell, stop) = Stop::new();
        let ingress = Ingress {
            ports: parts.ports.clone(),
            admission,
            seal: Arc::new(SealFor(parts.keys.clone())),
            source_flags: options.source_flags,
            public_url: options.public_url.as_str().into(),
            held: Arc::default(),
            stop,
        };
        Self {
            bots: parts.bots.clone(),
            node: parts.node.clone(),
            ingress,
            tell,
            metrics: parts.metrics.clone(),
            tasks: Mutex::default(),
        }
    }

    /// What bots work with.
    pub(crate) fn ingress(&self) -> &Ingress {
        &self.ingress
    }

    /// Lets every bot listen. Their leases are taken first: what comes by webhook is written
    /// under them too. One that the store does not commit now is taken as soon as it does; on a
    /// full disk it takes nothing of what is kept back for the operator, and neither could be
    /// written what the bot reads.
    pub(crate) async fn start(&self) {
        for bot in self.bots.all() {
            let (bot, ingress, node) = (bot.clone(), self.ingress.clone(), self.node.clone());
            let metrics = self.metrics.clone();
            let taken = bot.is_own() || is_lease_taken(&*bot, &ingress, &node).await;
            let listens = tokio::spawn(async move {
                if taken || take_lease_at_last(&*bot, &ingress, &node).await {
                    keep(bot, ingress, &metrics).await;
                }
            });
            self.tasks.lock().push(listens);
        }
    }

    /// Tells them to stop, and waits until they have.
    pub(crate) async fn stop(&self) {
        self.tell.send_replace(true);
        let tasks = std::mem::take(&mut *self.tasks.lock());
        let gone = async {
            for task in tasks {
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout(GOODBYE, gone).await;
    }
}

/// Takes the lease under which a bot's streams are read; an error if that is not possible now.
async fn take_lease(bot: &dyn Platform, ingress: &Ingress, node: &str) -> Result<()> {
    let key = BotKey::new(bot.platform(), bot.id());
    let taken = ingress.ports.records.acquire(&lease::of_bot(&key), node, Term::Alone).await?;
    ingress.held.took(&key, taken.ok_or_else(lease_lost)?.token);
    Ok(())
}

/// The same; why it was not possible is told.
async fn is_lease_taken(bot: &dyn Platform, ingress: &Ingress, node: &str) -> bool {
    let taken = take_lease(bot, ingress, node).await;
    if let Err(error) = &taken {
        tracing::warn!(platform = bot.platform(), bot = bot.id(), %error, "a bot cannot be read yet; it is tried again");
    }
    taken.is_ok()
}

/// The same, however long it takes; `false` if the server stops first. What comes by webhook
/// meanwhile is refused as while the store does not commit.
async fn take_lease_at_last(bot: &dyn Platform, ingress: &Ingress, node: &str) -> bool {
    loop {
        tokio::select! {
            () = ingress.stop.wait() => return false,
            () = tokio::time::sleep(LISTEN_AGAIN) => {}
        }
        if take_lease(bot, ingress, node).await.is_ok() {
            tracing::info!(platform = bot.platform(), bot = bot.id(), "a bot can be read now");
            return true;
        }
    }
}

/// Lets a bot listen, and again should it fail for a defect of ours: a bot that
/// is deaf for ever is worse than one that stumbles.
async fn keep(bot: Arc<dyn Platform>, ingress: Ingress, metrics: &Metrics) {
    while AssertUnwindSafe(bot.clone().listen(ingress.clone())).catch_unwind().await.is_err() {
        metrics.count(Counter::TaskPanics);
        tracing::error!(platform = bot.platform(), bot = bot.id(), "a bot failed; it begins again");
        tokio::select! {
            () = ingress.stop.wait() => return,
            () = tokio::time::sleep(LISTEN_AGAIN) => {}
        }
    }
}

/// The beginning of a text that is too long to be kept whole.
fn shortened(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_SEALED)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// Seals under the master key of the moment.
struct SealFor(Arc<Keyring>);

impl Seal for SealFor {
    fn seal(&self, text: &str, bound_to: &str) -> Result<Sealed> {
        self.0.seal(&Secret::new(shortened(text)), bound_to)
    }
}
