//! Being the node that holds a bot: what is accepted for it, here and elsewhere, is performed
//! here.
//!
//! With the bot's lease comes its outbox: an owner of its own in the ledger, under which every
//! node accepts. Whoever held the bot before is fenced off with it. The bus says that something
//! waits; without a word it is looked for all the same (docs/decisions/0046).

use super::Egress;
use super::chats::{self, News};
use super::resume::{self, Found};
use crate::cluster::Duty;
use crate::supervise::Lifecycle;
use angelia_core::clock;
use angelia_core::directory::BotKey;
use angelia_core::egress::{InHand, Owner};
use angelia_core::error::Result;
use angelia_core::lease;
use angelia_core::ports::{ActionId, Following, LeaseToken, Topic};
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, RwLock, RwLockReadGuard};

/// How often is looked for what others accepted, while they can say so.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(3);
/// The same while they cannot.
pub(super) const LOOK_DEAF: Duration = Duration::from_secs(1);
/// How soon a store is asked again that did not let a bot's work be taken over.
const OPEN_AGAIN: Duration = Duration::from_millis(200);
/// How long calls that are made may take to be written down, before another node has the bot.
const CLOSED_WITHIN: Duration = Duration::from_secs(4);
/// How often is looked whether they have been.
const CLOSING: Duration = Duration::from_millis(10);

/// As whom the ledger is spoken to for an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ActingAs {
    /// As this process.
    #[default]
    Node,
    /// As the outbox of a bot, for as long as its lease is held by this token.
    Outbox(Owner, LeaseToken),
    /// As whoever took up what a node left.
    Heir(Owner),
}

/// What is to be done by one bot, if this node holds it.
pub(super) struct Outbox {
    key: BotKey,
    duty: Arc<Duty>,
    open: Mutex<Option<(Owner, LeaseToken)>>,
    in_hand: Mutex<InHand>,
    /// Shared by whatever is being accepted here: it is not taken for something of others.
    accepting: RwLock<()>,
    look: Notify,
}

impl Outbox {
    /// The outbox of a bot; nothing for a server that is alone, or of the connector's own chats.
    pub(super) fn of(parts: &crate::server::Parts, bot: usize) -> Option<Self> {
        let (cluster, bot) = (&parts.cluster, &parts.bots[bot]);
        if !cluster.is_shared() || bot.is_own() {
            return None;
        }
        let key = BotKey::new(bot.platform(), bot.id());
        let duty = cluster.duty(&lease::of_bot(&key));
        Some(Self {
            key,
            duty,
            open: Mutex::default(),
            in_hand: Mutex::default(),
            accepting: RwLock::default(),
            look: Notify::new(),
        })
    }

    /// Something may wait.
    pub(super) fn look(&self) {
        self.look.notify_one();
    }

    /// Has what is accepted by `owner` from now on not be taken for something of others until it
    /// is [taken in hand](Accepting::took).
    pub(super) async fn accepting(&self, owner: Owner) -> Accepting<'_> {
        Accepting { outbox: self, owner, _shared: self.accepting.read().await }
    }
}

/// Something is being accepted here.
pub(super) struct Accepting<'a> {
    outbox: &'a Outbox,
    owner: Owner,
    _shared: RwLockReadGuard<'a, ()>,
}

impl Accepting<'_> {
    pub(super) fn took(self, ids: impl Iterator<Item = ActionId>) {
        // Whoever holds the bot now finds what was accepted before.
        let open = self.outbox.open.lock();
        if open.is_some_and(|(owner, _)| owner == self.owner) {
            let mut in_hand = self.outbox.in_hand.lock();
            ids.for_each(|id| {
                in_hand.take(id);
            });
        }
    }
}

/// Somebody at work, until this is dropped.
struct AtWork(Arc<Duty>);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.stopped();
    }
}

impl Egress {
    /// Whether a bot's calls are made by another node, or by none just now.
    pub(super) fn is_elsewhere(&self, bot: usize) -> bool {
        self.outboxes[bot].as_ref().is_some_and(|outbox| outbox.open.lock().is_none())
    }

    /// As whom what a bot is to do is accepted here; `None` if its calls are made elsewhere.
    pub(super) fn under(&self, bot: usize) -> Option<ActingAs> {
        match &self.outboxes[bot] {
            None => Some(ActingAs::Node),
            Some(outbox) => outbox.open.lock().map(|(owner, token)| ActingAs::Outbox(owner, token)),
        }
    }

    /// The ledger says that somebody else works for a bot.
    pub(super) fn replaced(&self, bot: usize, owner: Owner) {
        if let Some(outbox) = &self.outboxes[bot] {
            let mut open = outbox.open.lock();
            *open = open.filter(|(ours, _)| *ours != owner);
        }
    }

    /// Who that is in the ledger.
    pub(super) async fn owner_under(&self, under: ActingAs) -> Result<Owner> {
        match under {
            ActingAs::Node if self.cluster.is_shared() => self.cluster.owner().await,
            ActingAs::Node => self.owner().await,
            ActingAs::Outbox(owner, _) | ActingAs::Heir(owner) => Ok(owner),
        }
    }

    /// Whether the provider may be called at this moment: by the clock of this node, too.
    pub(super) fn may_call(&self, bot: usize, under: ActingAs) -> bool {
        match (&self.outboxes[bot], under) {
            (Some(outbox), ActingAs::Outbox(_, token)) => {
                self.cluster.is_current() && self.cluster.holds_bot(&outbox.key) == Some(token)
            }
            _ => self.cluster.is_current(),
        }
    }

    /// The same for what is not in the ledger.
    pub(super) fn may_call_now(&self, bot: usize) -> bool {
        self.under(bot).is_some_and(|under| self.may_call(bot, under))
    }

    /// Keeps the outbox of a bot whenever this node holds it.
    pub(super) async fn keep_outbox(self: Arc<Self>, bot: usize, life: Arc<Lifecycle>) {
        let Some(outbox) = &self.outboxes[bot] else { return };
        while let Some(token) = life.unless_stopped(outbox.duty.ours()).await {
            let _at_work = AtWork(outbox.duty.clone());
            let _following = Following::new(self.cluster.bus(), Topic::Bot(outbox.key.clone()));
            let over = async {
                tokio::select! {
                    () = outbox.duty.over() => {}
                    () = life.stopped() => {}
                }
            };
            let mut over = std::pin::pin!(over);
            if self.open_outbox(bot, outbox, token, over.as_mut()).await {
                self.serve_outbox(bot, outbox, over.as_mut()).await;
            }
            self.close_outbox(bot, outbox).await;
        }
    }

    /// Takes over what the bot has to do; `false` if it is not this node's before that is done.
    async fn open_outbox(
        self: &Arc<Self>,
        bot: usize,
        outbox: &Outbox,
        token: LeaseToken,
        mut over: impl Future<Output = ()> + Unpin,
    ) -> bool {
        loop {
            let taken = async {
                let owner = self.ledger.take_over(&outbox.key, token).await?;
                *outbox.in_hand.lock() = InHand::default();
                // What is accepted here meanwhile goes the way of others, and is found.
                let found = self.look_in(outbox, owner).await?;
                Ok::<_, angelia_core::error::Error>((owner, found))
            };
            let taken = tokio::select! {
                taken = taken => taken,
                () = &mut over => return false,
            };
            match taken {
                Ok((owner, found)) => {
                    self.rate_limits[bot].take_over();
                    if !found.is_empty() {
                        tracing::info!(
                            bot = %lease::of_bot(&outbox.key),
                            count = found.len(),
                            "finishing actions of a bot that is this node's now"
                        );
                    }
                    self.hand_out(bot, ActingAs::Outbox(owner, token), found, false).await;
                    *outbox.open.lock() = Some((owner, token));
                    return true;
                }
                Err(error) => {
                    tracing::debug!(bot = %lease::of_bot(&outbox.key), %error, "its work could not be taken over");
                    tokio::select! {
                        () = tokio::time::sleep(OPEN_AGAIN) => {}
                        () = &mut over => return false,
                    }
                }
            }
        }
    }

    /// Performs what others accept, until the bot is not this node's any more.
    async fn serve_outbox(
        self: &Arc<Self>,
        bot: usize,
        outbox: &Outbox,
        mut over: impl Future<Output = ()> + Unpin,
    ) {
        let Some((owner, token)) = *outbox.open.lock() else { return };
        loop {
            let every = if self.cluster.hears_all() { LOOK_EVERY } else { LOOK_DEAF };
            tokio::select! {
                () = outbox.look.notified() => {}
                () = tokio::time::sleep(every) => {}
                () = &mut over => return,
            }
            let found = tokio::select! {
                found = self.look_in(outbox, owner) => found,
                () = &mut over => return,
            };
            // What a store does not tell now it tells the next time.
            if let Ok(found) = found {
                self.hand_out(bot, ActingAs::Outbox(owner, token), found, true).await;
            }
        }
    }

    /// What is unfinished and not in hand yet; it is from now on.
    async fn look_in(&self, outbox: &Outbox, owner: Owner) -> Result<Found> {
        let began = clock::mono();
        let after = outbox.in_hand.lock().after();
        let mut found = resume::unfinished(self, owner, after).await?;
        // Whatever was being accepted here while that was read is in hand by now.
        let _quiet = outbox.accepting.write().await;
        let mut in_hand = outbox.in_hand.lock();
        found.retain(|stored| in_hand.take(stored.id));
        in_hand.looked(began, clock::mono());
        Ok(found)
    }

    /// Gives actions to the tasks of their chats. One that has too much to do finds them later.
    async fn hand_out(self: &Arc<Self>, bot: usize, under: ActingAs, found: Found, untouched: bool) {
        let sorted = resume::sort(self, found, under).await;
        for (key, stored) in sorted {
            let ids: Vec<ActionId> = stored.iter().map(|stored| stored.id).collect();
            if !chats::tell(self, key, News::Adopted { stored, under, untouched })
                && let Some(outbox) = &self.outboxes[bot]
            {
                let mut in_hand = outbox.in_hand.lock();
                ids.into_iter().for_each(|id| in_hand.leave(id));
            }
        }
    }

    /// Begins nothing more by the bot, and waits until what was called is written down.
    async fn close_outbox(&self, bot: usize, outbox: &Outbox) {
        *outbox.open.lock() = None;
        self.chats.close(bot);
        let closed = async {
            while self.chats.is_busy(bot) {
                tokio::time::sleep(CLOSING).await;
            }
        };
        let _ = tokio::time::timeout(CLOSED_WITHIN, closed).await;
        self.chats.cut_off(bot);
    }
}
