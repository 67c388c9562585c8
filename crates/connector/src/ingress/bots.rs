//! The bots of this server: which there are, and how they listen, from its start to its end.

use super::forward::{OtherNodes, take_forwarded};
use crate::cluster::Duty;
use crate::keyring::Keyring;
use crate::server::{Options, Parts};
use crate::telemetry::{Counter, Metrics};
use angelia_contract::descriptor::Descriptor;
use angelia_core::directory::BotKey;
use angelia_core::error::Result;
use angelia_core::lease;
use angelia_core::ports::LeaseToken;
use angelia_core::seal::Sealed;
use angelia_core::secret::Secret;
use angelia_platforms::{Admission, HeldLeases, Ingress, Nodes, Platform, Seal, Stop, WrittenUnder};
use axum::Router;
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

/// A bot, and what says whether it is this node's to read; nothing of the connector's own.
type Reader = (Arc<dyn Platform>, Option<Arc<Duty>>);

/// Everybody who listens.
pub(crate) struct Listeners {
    bots: Vec<Reader>,
    ingress: Ingress,
    webhooks: Router,
    tell: watch::Sender<bool>,
    metrics: Arc<Metrics>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    /// Whether this node reads bots at all. One that does not never calls a provider.
    takes: bool,
}

impl Listeners {
    pub(crate) fn new(parts: &Parts, admission: Arc<dyn Admission>, options: &Options) -> Self {
        let (tell, stop) = Stop::new();
        let (cluster, shared) = (parts.cluster.clone(), parts.cluster.is_shared());
        let ingress = Ingress {
            ports: parts.ports.clone(),
            admission,
            seal: Arc::new(SealFor(parts.keys.clone())),
            source_flags: options.source_flags,
            public_url: options.public_url.as_str().into(),
            held: Arc::new(HeldLeases::checked_by(move || cluster.is_current())),
            under: WrittenUnder::Held,
            nodes: shared.then(|| Arc::new(OtherNodes(parts.cluster.clone())) as Arc<dyn Nodes>),
            stop,
        };
        let mut webhooks = Router::new();
        for bot in parts.bots.all() {
            webhooks = webhooks.merge(bot.clone().webhooks(ingress.clone()));
        }
        if shared {
            take_forwarded(&parts.cluster, webhooks.clone());
        }
        let duty = |bot: &Arc<dyn Platform>| {
            (!bot.is_own()).then(|| parts.cluster.duty(&lease::of_bot(&key(&**bot))))
        };
        let bots = parts.bots.all().iter().map(|bot| (bot.clone(), duty(bot))).collect();
        let (metrics, tasks) = (parts.metrics.clone(), Mutex::default());
        Self { bots, ingress, webhooks, tell, metrics, tasks, takes: parts.cluster.takes() }
    }

    /// What providers post to.
    pub(crate) fn webhooks(&self) -> Router {
        self.webhooks.clone()
    }

    /// Lets every bot listen for as long as it is this node's. What is so already is known
    /// before anything is posted: webhooks are written under leases too.
    pub(crate) fn start(&self) {
        for (bot, duty) in &self.bots {
            let (bot, ingress, metrics) = (bot.clone(), self.ingress.clone(), self.metrics.clone());
            let everywhere = self.takes && ingress.nodes.is_some() && bot.listens_everywhere();
            if everywhere {
                let (bot, ingress, metrics) = (bot.clone(), ingress.clone(), metrics.clone());
                self.tasks.lock().push(tokio::spawn(async move { keep(bot, ingress, &metrics).await }));
            }
            let listens = match duty.clone() {
                Some(duty) => {
                    let now = duty.ours().now_or_never();
                    if let Some(token) = now {
                        ingress.held.took(&key(&*bot), token);
                    }
                    let turns = Turns { bot, ingress, duty, everywhere, metrics };
                    tokio::spawn(async move { turns.take(now).await })
                }
                None => tokio::spawn(async move { keep(bot, ingress, &metrics).await }),
            };
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

fn key(bot: &dyn Platform) -> BotKey {
    BotKey::new(bot.platform(), bot.id())
}

/// A bot that is this node's from time to time.
struct Turns {
    bot: Arc<dyn Platform>,
    ingress: Ingress,
    duty: Arc<Duty>,
    /// Whether it listens all the time, whoever has it.
    everywhere: bool,
    metrics: Arc<Metrics>,
}

impl Turns {
    /// Lets a bot listen whenever it is this node's to read, until the server stops. `now` is
    /// what it holds already.
    async fn take(self, mut now: Option<LeaseToken>) {
        let Self { bot, ingress, duty, .. } = &self;
        let key = key(&**bot);
        loop {
            let token = match now.take() {
                Some(token) => token,
                None => {
                    self.is_elsewhere(true);
                    tokio::select! {
                        () = ingress.stop.wait() => return,
                        token = duty.ours() => token,
                    }
                }
            };
            self.is_elsewhere(false);
            bot.changed_hands();
            ingress.held.took(&key, token);
            self.listen().await;
            ingress.held.lost(&key);
            bot.changed_hands();
            duty.stopped();
            if ingress.stop.is_now() {
                return;
            }
            tracing::info!(
                platform = bot.platform(),
                bot = bot.id(),
                "another node has this bot from now on"
            );
        }
    }

    /// Listens for as long as the bot is this node's.
    async fn listen(&self) {
        let Self { bot, ingress, duty, everywhere, metrics } = self;
        let (tell, stop) = Stop::new();
        let listening = async {
            if *everywhere {
                stop.wait().await;
            } else {
                keep(bot.clone(), Ingress { stop: stop.clone(), ..ingress.clone() }, metrics).await;
            }
        };
        let mut listening = std::pin::pin!(listening);
        tokio::select! {
            biased;
            () = duty.over() => {}
            () = ingress.stop.wait() => {}
            () = &mut listening => {}
        }
        tell.send_replace(true);
        let _ = tokio::time::timeout(GOODBYE, listening).await;
    }

    /// Another node has the bot, as far as there are others; or this one.
    fn is_elsewhere(&self, elsewhere: bool) {
        let Self { bot, ingress, everywhere, .. } = self;
        if ingress.nodes.is_some()
            && !everywhere
            && let Some(account) = bot.account()
        {
            account.is_elsewhere(elsewhere);
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
