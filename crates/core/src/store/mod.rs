//! What is kept, and the stores of it: rules asked of any records, and what engines keep row by row.
//!
//! Every write resolves only after it is durable. A store that cannot commit
//! answers [`Kind::Unavailable`](crate::Kind::Unavailable) and has changed nothing.

mod access;
mod audit;
mod clock;
mod directory;
mod identity;
mod inbox;
mod intake;
mod journal;
mod notices;
mod page;
mod seals;
mod streams;
mod vault;
mod webchat;

pub use crate::ports::log::{Appended, Log, NewEntry, Returned, Revised, Revision, Settlement};
pub use access::{AccessStore, Client, CodeAllow, EnrollToken, Fingerprint, LinkCode};
pub use audit::AuditStore;
pub use clock::{Checked, ClockStore};
pub use directory::DirectoryStore;
pub use identity::{
    DATABASE_ID, GatewayChange, IdentityStore, NewGateway, RemovedTenant, StoredGateway, StoredInstance,
    StoredSecret, TenantIdentity,
};
pub use inbox::{Gap, Inboxes, Listed, ListedInbox, Overdue};
pub use intake::{Cursor, Ingest, Intake, NewQuarantined, Taken, Traffic};
pub use journal::{ActionStory, Edits, JournalStore, Story};
pub use notices::{NoticeKind, NoticeStore, Untold};
pub use page::{Filling, Page, PageSize};
pub use seals::{KeyChange, Resealed, Retired, SealStore, SealedValue};
pub use streams::{Missed, Quarantined, StreamStore};
pub use vault::VaultStore;
pub use webchat::{
    CONNECTOR, Earlier, Guest, Invited, Line, LineEdit, LineRevision, Lines, NewLine, Person, Posted,
    RoomStore, Unrelayed,
};

use crate::space;

pub use crate::ports::{Accepted, ActionId, ActionOutcome, Later, NewAction, StoredAction};

/// Tenant and id of a gateway that is not remembered any more.
pub type ForgottenGateway = (String, String);

/// What was past its time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Revoked gateways that are not remembered any more.
    pub forgotten: Vec<ForgottenGateway>,
    /// Messages that waited longer than the quota allows, dead letters included.
    pub overaged: u64,
}

/// The store itself: whether it commits, its disk, and what is past its time.
pub trait Upkeep: ClockStore {
    /// Whether the last commit went through; what `/readyz` shows.
    fn healthy(&self) -> bool;

    /// Writes something small to find out whether commits work again.
    fn probe(&self) -> Later<'_, ()>;

    /// How the disk is doing.
    fn disk(&self) -> Later<'_, space::Report>;

    /// Looks after the disk: deletes what removed tenants left, lets the database
    /// shrink, and keeps space back for the operator.
    fn tend(&self) -> Later<'_, ()>;

    /// Deletes what removed tenants left, in small steps that also fit a full disk.
    /// Whatever cut it short, the next call goes on.
    fn finish_removals(&self) -> Later<'_, ()>;

    /// Drops what is past its time: seen keys, journal, overaged entries. Of what
    /// is kept for its age nothing goes while a leap of the clock is unconfirmed.
    fn prune(&self) -> Later<'_, Pruned>;
}
