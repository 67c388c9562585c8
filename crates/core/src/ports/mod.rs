//! The ports: what the decisions need from the world, each small, and implemented
//! by engines that pass the same tests.
//!
//! Every write resolves only after it is durable. An engine that cannot commit
//! answers [`Kind::Unavailable`](crate::Kind::Unavailable) and has changed nothing.

mod blobs;
mod bus;
mod inboxes;
mod ingest;
mod ledger;
mod lines;
pub mod log;
mod upkeep;

pub use crate::lease::{Lease, LeaseToken, Leases, Term, Under, lease_lost};
pub use blobs::{BlobReader, BlobWriter, Blobs, Listing};
pub use bus::{Bus, BusStats, Control, Following, Hint, HintKind, Listener, Said, Topic};
pub use inboxes::{Conversation, Gap, Inboxes, Listed, ListedInbox, Overdue};
pub use ingest::{
    Begun, Cursor, Ingest, Intake, NewQuarantined, Opening, Openings, Released, Taken, Traffic,
};
pub use ledger::{
    Accepted, ActionId, ActionOutcome, Ledger, LeftOpen, MAX_OUTCOMES, NewAction, StoredAction,
    owner_replaced,
};
pub use lines::{
    Buttons, CONNECTOR, Earlier, Guest, Invited, Line, LineAnswer, LineEdit, LineMark, LineRevision, Lines,
    NewLine, NewThread, Person, Posted, RoomFile, ThreadName,
};
pub use upkeep::{Checked, ClockStore, ForgottenGateway, Pruned, Upkeep};

use crate::records::Records;
use log::Log;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A future behind a pointer, so that a port can be a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a server keeps things in: one engine for all of it, or several.
#[derive(Clone)]
pub struct Ports {
    /// What waits for agents.
    pub log: Arc<dyn Log>,
    /// What bots receive.
    pub ingest: Arc<dyn Ingest>,
    /// Inboxes, as an operator sees them.
    pub inboxes: Arc<dyn Inboxes>,
    /// What agents want done.
    pub ledger: Arc<dyn Ledger>,
    /// What changes seldom: who is known here, what is known of chats, who did what.
    pub records: Arc<dyn Records>,
    /// What is said in the rooms of the web chat.
    pub lines: Arc<dyn Lines>,
    /// The store itself.
    pub upkeep: Arc<dyn Upkeep>,
    /// Whether other nodes may write to it as well: what was read then counts for a moment.
    pub shared: bool,
}

impl Ports {
    /// All of them of one engine.
    pub fn of<E>(engine: &Arc<E>) -> Self
    where
        E: Log + Ingest + Inboxes + Ledger + Records + Lines + Upkeep + 'static,
    {
        Self {
            log: engine.clone(),
            ingest: engine.clone(),
            inboxes: engine.clone(),
            ledger: engine.clone(),
            records: engine.clone(),
            lines: engine.clone(),
            upkeep: engine.clone(),
            shared: false,
        }
    }

    /// The same of a store that other nodes may use as well.
    pub fn shared(self) -> Self {
        Self { shared: true, ..self }
    }
}
