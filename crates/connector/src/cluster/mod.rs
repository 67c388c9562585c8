//! The nodes that share one store: who is there, what only one of them does at a time, and how
//! they ask each other. A server that is alone has everything, always.
//!
//! | Question | File |
//! |---|---|
//! | Who is there, and what is this node's? | `mod.rs`, over `angelia_core::cluster` |
//! | Something that only one node does | `duty.rs` |
//! | Which agents are there, on whichever node? | `presence.rs` |
//! | How is another node asked? | `calls.rs` |
//! | How does something arrive without a bus? | `signs.rs` |
//! | What do nodes tell of themselves? | `facts.rs` |

mod calls;
mod duty;
mod facts;
mod presence;
mod signs;

pub(crate) use calls::{Calls, Subject};
pub(crate) use duty::Duty;
pub(crate) use facts::{Facts, KeyFacts};
pub(crate) use presence::Presence;

use duty::Book;

use crate::identities::Identities;
use crate::supervise::Lifecycle;
use angelia_core::clock::{self, Mono, UnixMillis};
use angelia_core::cluster::{BEAT_EVERY, Duties, Nodes as _, Sign, TERM};
use angelia_core::directory::BotKey;
use angelia_core::egress::Owner;
use angelia_core::error::{Error, Result};
use angelia_core::lease::{self, Fenced, Under};
use angelia_core::ports::{
    Bus, Control, Following, Hint, Lease, LeaseToken, Leases as _, Ledger, Term, Topic,
};
use angelia_core::records::Records;
use angelia_core::records::rows::NodeRow;
use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use signs::Signs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, Notify};

/// How soon a store that does not commit is asked for the leases of a server that is alone.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// Between two signs of life, however many are wanted.
const LEAST_PAUSE: Duration = Duration::from_millis(10);
/// How often a node that hands over looks whether work has stopped.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// This node among the others.
pub(crate) struct Cluster {
    records: Arc<dyn Records>,
    ledger: Arc<dyn Ledger>,
    bus: Arc<dyn Bus>,
    node: String,
    /// Whether others may use the same store.
    shared: bool,
    /// Whether it takes what only one of them does at a time.
    takes: bool,
    calls: Arc<Calls>,
    book: Arc<Book>,
    /// As whom the ledger knows this node.
    owner: AsyncMutex<Option<Owner>>,
    /// Until when what is known here is what others know.
    current_until: Mutex<Mono>,
    /// Who was there with the last sign of life.
    seen: RwLock<Seen>,
    identities: OnceLock<Weak<Identities>>,
    facts: OnceLock<Box<dyn Fn() -> Value + Send + Sync>>,
    signs: Signs,
    /// Who hears what other nodes say with their signs of life.
    listener: OnceLock<Box<dyn Fn(Control) + Send + Sync>>,
    /// Answers to what it asks come by this.
    _answers: Option<Following>,
    /// Somebody wants a sign of life given now.
    look: Notify,
    /// Signs of life that could not be given.
    failed: AtomicU64,
    came_at: UnixMillis,
}

/// What one node does for all of them. What is written for it is refused once another node does it
/// ([`Cluster::records_for`]). Waking writes nothing, and upkeep drops only what is past its time by
/// the store's clock: there two nodes come to the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chore {
    /// Waking gateways for which something waits.
    Wake,
    /// Telling people that their agent is away, or that something was lost.
    Notices,
    /// Dropping what is past its time, and taking up what nodes left that are gone.
    Upkeep,
}

impl Chore {
    const ALL: [Self; 3] = [Self::Wake, Self::Notices, Self::Upkeep];

    fn lease(self) -> &'static str {
        match self {
            Self::Wake => "wake",
            Self::Notices => "notices",
            Self::Upkeep => "upkeep",
        }
    }
}

/// Which nodes there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) there: Vec<NodeRow>,
}

/// How a node shares its store with others.
#[derive(Clone, Copy)]
pub(crate) struct Sharing {
    /// Whether others may use it.
    pub(crate) shared: bool,
    /// Whether this node takes what only one of them does at a time. One that does not serves
    /// gateways, webhooks and the web chat.
    pub(crate) takes: bool,
}

impl Cluster {
    pub(crate) fn new(
        records: Arc<dyn Records>,
        ledger: Arc<dyn Ledger>,
        bus: Arc<dyn Bus>,
        node: String,
        Sharing { shared, takes }: Sharing,
    ) -> Arc<Self> {
        let mut duties = Duties::default();
        let _answers = shared.then(|| Following::new(&bus, Topic::Node(node.clone())));
        Chore::ALL.iter().filter(|_| shared).for_each(|chore| duties.add(chore.lease()));
        Arc::new(Self {
            records,
            ledger,
            calls: Arc::new(Calls::new(node.clone(), bus.clone())),
            bus,
            node,
            shared,
            takes,
            book: Book::new(duties),
            owner: AsyncMutex::default(),
            current_until: Mutex::default(),
            seen: RwLock::default(),
            identities: OnceLock::new(),
            facts: OnceLock::new(),
            signs: Signs::default(),
            listener: OnceLock::new(),
            _answers,
            look: Notify::new(),
            failed: AtomicU64::new(0),
            came_at: clock::wall(),
        })
    }

    /// Whether others may use the same store.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Whether this node takes what only one of them does at a time.
    pub(crate) fn takes(&self) -> bool {
        self.takes
    }

    /// What this node is called.
    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    /// What nodes hear each other by.
    pub(crate) fn bus(&self) -> &Arc<dyn Bus> {
        &self.bus
    }

    /// Where leases are kept.
    pub(crate) fn records(&self) -> &dyn Records {
        &*self.records
    }

    /// How other nodes are asked.
    pub(crate) fn calls(&self) -> &Arc<Calls> {
        &self.calls
    }

    /// Who is known here has to be what others know: it is read with every sign of life.
    pub(crate) fn follow_with(&self, identities: &Arc<Identities>) {
        let _ = self.identities.set(Arc::downgrade(identities));
    }

    /// What this node tells of itself.
    pub(crate) fn tell_of_itself(&self, facts: impl Fn() -> Value + Send + Sync + 'static) {
        let _ = self.facts.set(Box::new(facts));
    }

    /// Has somebody told of what other nodes say with their signs of life.
    pub(crate) fn hear_by(&self, listener: impl Fn(Control) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }

    /// Says something to other nodes that has to arrive: over the bus, and with the next signs of
    /// life, as nobody knows whether they hear the bus. So it may be heard twice.
    pub(crate) fn say(&self, control: Control) {
        if self.shared {
            self.signs.say(control.clone(), clock::mono());
            if !self.bus.is_connected() {
                self.look_now();
            }
        }
        self.bus.publish(Hint::Control(control));
    }

    /// Something that only one node does at a time.
    pub(crate) fn duty(&self, name: &str) -> Arc<Duty> {
        self.book.change(|duties| duties.add(name));
        self.look.notify_one();
        Duty::new(name, &self.book)
    }

    /// Something that is not to be done any more.
    pub(crate) fn no_duty(&self, name: &str) {
        self.book.change(|duties| duties.remove(name));
        self.look.notify_one();
    }

    /// The token of something that is this node's at this moment.
    pub(crate) fn holds(&self, name: &str) -> Option<LeaseToken> {
        self.book.read(|duties| duties.token(name, clock::mono()))
    }

    /// The same of a bot.
    pub(crate) fn holds_bot(&self, bot: &BotKey) -> Option<LeaseToken> {
        self.holds(&lease::of_bot(bot))
    }

    /// Whether what is known here is what others know. A node that stood still for longer than
    /// it is believed to be there admits nobody and sends nothing until it has caught up.
    pub(crate) fn is_current(&self) -> bool {
        !self.shared || clock::mono() < *self.current_until.lock()
    }

    /// Which nodes there are.
    pub(crate) fn seen(&self) -> Seen {
        self.seen.read().clone()
    }

    /// The nodes beside this one, as the store knows at this moment.
    pub(crate) async fn others_now(&self) -> Result<Vec<String>> {
        let (now, rows) = self.records.nodes().await?;
        let others = rows.into_iter().filter(|row| row.is_there(now) && row.node != self.node);
        Ok(others.map(|row| row.node).collect())
    }

    /// When this node came.
    pub(crate) fn started_at(&self) -> UnixMillis {
        self.came_at
    }

    /// What only one node does and this one would, by name.
    pub(crate) fn wants(&self) -> Vec<String> {
        self.book.read(Duties::wanted)
    }

    /// How many leases this node holds at this moment.
    pub(crate) fn leases_held(&self) -> usize {
        let now = clock::mono();
        let is_held = |duties: &Duties, lease: &Lease| duties.token(&lease.name, now).is_some();
        self.book.read(|duties| duties.held().iter().filter(|lease| is_held(duties, lease)).count())
    }

    /// Signs of life that could not be given since the start.
    pub(crate) fn failed_beats(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Whether what any node says comes here at once: this one is connected to the bus, and so, by
    /// their own word, are all the others. Who counts on it looks more often while it is not so.
    pub(crate) fn hears_all(&self) -> bool {
        let seen = self.seen.read();
        let mut others = seen.there.iter().filter(|row| row.node != self.node);
        self.bus.is_connected() && others.all(|row| Facts::of(row).bus)
    }

    /// Whether a node is there, as far as is known.
    pub(crate) fn is_there(&self, node: &str) -> bool {
        node == self.node || self.seen.read().there.iter().any(|it| it.node == node)
    }

    /// As whom the ledger knows this node.
    pub(crate) async fn owner(&self) -> Result<Owner> {
        let mut owner = self.owner.lock().await;
        if let Some(owner) = *owner {
            return Ok(owner);
        }
        Ok(*owner.insert(self.ledger.new_owner().await?))
    }

    /// The same, once the ledger says that whoever it was is replaced: others believed this node
    /// gone. It says who it is now with its next sign of life.
    pub(crate) async fn renew_owner(&self, replaced: Owner) -> Result<Owner> {
        {
            let mut owner = self.owner.lock().await;
            *owner = owner.filter(|owner| *owner != replaced);
        }
        self.look_now();
        self.owner().await
    }

    /// Has a sign of life given now: something may be free.
    pub(crate) fn look_now(&self) {
        self.look.notify_one();
    }

    /// Whether a chore is this node's to do now. A server that is alone does all of them,
    /// whether the store commits or not.
    pub(crate) fn does(&self, chore: Chore) -> bool {
        !self.shared || self.holds(chore.lease()).is_some()
    }

    /// The records, for what is written as a chore: refused once another node does it.
    pub(crate) fn records_for(&self, chore: Chore) -> Result<Arc<dyn Records>> {
        if !self.shared {
            return Ok(self.records.clone());
        }
        let token = self.holds(chore.lease()).ok_or_else(lease::lease_lost)?;
        let under = Under { lease: chore.lease().to_owned(), token };
        Ok(Arc::new(Fenced::new(self.records.clone(), under)))
    }

    /// Hears what another node says.
    pub(crate) fn hear(&self, control: Control) {
        match control {
            Control::Freed { lease } if self.book.read(|duties| duties.contains(&lease)) => self.look_now(),
            Control::Call { bot, id, node, body } if self.holds_bot(&bot).is_some() => {
                self.calls.asked(bot, id, node, &body);
            }
            Control::Inquiry { id, node, body } => self.calls.inquired(id, node, &body),
            Control::Answer { node, id, body } => self.calls.answered(&node, id, &body),
            _ => {}
        }
    }

    /// Joins the nodes: nothing is admitted or sent before. A server that is alone takes
    /// everything now, if the store commits.
    pub(crate) async fn join(&self) -> Result<()> {
        if self.shared {
            return self.give_sign().await;
        }
        self.take_all().await;
        Ok(())
    }

    /// Gives signs of life until the server stops.
    pub(crate) async fn keep(self: Arc<Self>, life: Arc<Lifecycle>) {
        if !self.shared {
            return self.keep_alone(&life).await;
        }
        loop {
            if life.unless_stopped(self.next_sign()).await.is_none() {
                return;
            }
            // One that stood still stops before it asks what it lost: the store may not answer.
            self.book.change(|duties| duties.pass_time(clock::mono()));
            let mut sign = std::pin::pin!(self.give_sign());
            let given = loop {
                let until = self.book.read(Duties::held_until).unwrap_or_default();
                let left = until.since(clock::mono());
                tokio::select! {
                    given = &mut sign => break given,
                    () = tokio::time::sleep(left), if !left.is_zero() => {}
                }
                self.book.change(|duties| duties.pass_time(clock::mono()));
            };
            if let Err(error) = given {
                self.failed.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(%error, "a sign of life could not be given");
                self.book.change(|duties| duties.pass_time(clock::mono()));
            }
        }
    }

    /// Resolves when the next sign of life is due: soon, sooner if somebody wants one, and when what
    /// is held ends.
    async fn next_sign(&self) {
        tokio::time::sleep(LEAST_PAUSE).await;
        let until = self.book.read(Duties::held_until).unwrap_or_default();
        let left = Some(until.since(clock::mono())).filter(|left| !left.is_zero());
        let pause = left.map_or(BEAT_EVERY, |left| left.min(BEAT_EVERY));
        let _ = tokio::time::timeout(pause, self.look.notified()).await;
    }

    async fn keep_alone(&self, life: &Lifecycle) {
        loop {
            let again = async { drop(tokio::time::timeout(ASK_AGAIN, self.look.notified()).await) };
            if life.unless_stopped(again).await.is_none() {
                return;
            }
            self.take_all().await;
        }
    }

    /// A server that is alone takes everything. On a full disk it takes nothing of what is kept
    /// back for the operator; neither could be written then what a bot reads.
    async fn take_all(&self) {
        for name in self.book.read(Duties::missing) {
            match self.records.acquire(&name, &self.node, Term::Alone).await {
                Ok(Some(lease)) => self.book.change(|duties| duties.take(lease)),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(what = name, %error, "what only one may do cannot begin yet; it is tried again");
                    return;
                }
            }
        }
    }

    async fn give_sign(&self) -> Result<()> {
        let owner = self.owner().await?.0;
        let now = clock::mono();
        let (held, mut wanted) = self.book.read(|duties| (duties.held(), duties.wanted()));
        let (offered, unwanted) = self.book.read(|duties| (duties.offered(now), duties.unwanted(now)));
        if !self.takes {
            wanted.clear();
        }
        let facts = self.facts.get().map_or_else(|| json!({}), |facts| facts());
        let facts = self.signs.with(facts, clock::mono()).to_string();
        let sign = Sign { node: self.node.clone(), owner, facts, held, wanted, offered, unwanted };
        let began = clock::mono();
        // One that hangs on a connection of which nothing is heard is not waited for.
        let beat = tokio::time::timeout(TERM, self.records.beat(sign)).await;
        let beat = beat.map_err(|_| Error::unavailable("the store did not answer in time"))??;
        // A node that stood still knows what it lost before it believes that it holds anything.
        self.book.change(|duties| duties.learn(&beat, began));
        if let Some(lease) = &beat.give_up {
            tracing::info!(lease, "given to a node that has less to do");
        }
        if let Some(listener) = self.listener.get() {
            self.signs.hear(&self.node, &beat.nodes).into_iter().for_each(listener);
        }
        *self.seen.write() = Seen { there: beat.nodes };
        if let Some(identities) = self.identities.get().and_then(Weak::upgrade) {
            identities.follow().await?;
        }
        *self.current_until.lock() = began + TERM;
        self.give_back().await
    }

    /// Gives back leases whose work has stopped.
    async fn give_back(&self) -> Result<()> {
        let stopped = self.book.read(Duties::to_give_back);
        if stopped.is_empty() {
            return Ok(());
        }
        self.records.release_all(&stopped).await?;
        for Lease { name: lease, .. } in stopped {
            self.book.change(|duties| duties.gave_back(&lease));
            self.bus.publish(Hint::Control(Control::Freed { lease }));
        }
        Ok(())
    }

    /// Hands over what only one node does, so that others need not wait: as soon as its work has
    /// stopped, or time is over. Sockets stay.
    pub(crate) async fn hand_over(&self, within: Duration) {
        self.book.change(Duties::leave);
        let stopped = async {
            while self.book.read(Duties::is_at_work) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let _ = tokio::time::timeout(within, stopped).await;
        if self.shared {
            self.look_now();
        }
    }

    /// Leaves the nodes.
    pub(crate) async fn leave(&self) {
        if !self.shared {
            return;
        }
        let held = self.book.read(Duties::held);
        if tokio::time::timeout(TERM, self.records.leave(&self.node)).await.is_ok_and(|left| left.is_ok()) {
            for lease in held {
                self.bus.publish(Hint::Control(Control::Freed { lease: lease.name }));
            }
        }
    }
}
