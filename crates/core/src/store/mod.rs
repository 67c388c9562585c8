//! The store traits (`IdentityStore`, `VaultStore`, …): what is asked of records, each method a
//! rule of this crate that is run over them.
//!
//! [`records`](crate::records) is how rows are read and written, [`ports`](crate::ports) what an
//! engine has to implement; what is here is implemented once, for every engine.
//!
//! Every write resolves only after it is durable. A store that cannot commit
//! answers [`Kind::Unavailable`](crate::Kind::Unavailable) and has changed nothing.

mod access;
mod audit;
mod directory;
mod identity;
mod journal;
mod notices;
mod page;
mod rooms;
mod seals;
mod streams;
mod vault;

pub use crate::ports::log::{Appended, Log, NewEntry, Returned, Revised, Revision, Settlement};
pub use crate::ports::{
    Accepted, ActionId, ActionOutcome, BoxFuture, CONNECTOR, Checked, ClockStore, Cursor, Earlier,
    ForgottenGateway, Gap, Guest, Inboxes, Ingest, Intake, Invited, Line, LineEdit, LineRevision, Lines,
    Listed, ListedInbox, NewAction, NewLine, NewQuarantined, Overdue, Person, Posted, Pruned, StoredAction,
    Taken, Traffic, Unrelayed, Upkeep,
};
pub use access::{AccessStore, Client, CodeAllow, EnrollToken, Fingerprint, LinkCode};
pub use audit::AuditStore;
pub use directory::DirectoryStore;
pub use identity::{
    DATABASE_ID, GatewayChange, IdentityStore, NewGateway, StoredGateway, StoredInstance, StoredSecret,
    TenantBelongings, TenantIdentity,
};
pub use journal::{ActionTrace, Edits, JournalStore, MessageTrace};
pub use notices::{NoticeKind, NoticeStore, Untold};
pub use page::{Filling, Page, PageSize};
pub use rooms::RoomStore;
pub use seals::{KeyChange, Resealed, Retired, SealStore, SealedValue};
pub use streams::{Missed, Quarantined, StreamStore};
pub use vault::VaultStore;
