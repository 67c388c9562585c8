//! The store traits: what is asked of records, each method a rule of this crate that is run over
//! them. Who is known here and what lets somebody in is asked by the traits of this folder; the
//! others stand with their rules.
//!
//! [`records`](crate::records) is how rows are read and written, [`ports`](crate::ports) what an
//! engine has to implement; what is here is implemented once, for every engine.
//!
//! Every write resolves only after it is durable. A store that cannot commit
//! answers [`Kind::Unavailable`](crate::Kind::Unavailable) and has changed nothing.

mod access;
mod identity;
mod page;

pub use crate::audit::AuditStore;
pub use crate::directory::DirectoryStore;
pub use crate::journal::{ActionTrace, Edits, JournalStore, MessageTrace};
pub use crate::notices::{NoticeKind, NoticeStore, Untold};
pub use crate::ports::log::{Appended, Log, NewEntry, Returned, Revised, Revision, Settlement, Withdrawal};
pub use crate::ports::{
    Accepted, ActionId, ActionOutcome, BoxFuture, Buttons, CONNECTOR, Checked, ClockStore, Cursor, Earlier,
    ForgottenGateway, Gap, Guest, Inboxes, Ingest, Intake, Invited, Line, LineAnswer, LineEdit, LineMark,
    LineRevision, Lines, Listed, ListedInbox, NewAction, NewLine, NewQuarantined, NewThread, Overdue, Person,
    Posted, Pruned, RoomFile, StoredAction, Taken, ThreadName, Traffic, Upkeep,
};
pub use crate::quarantine::{Missed, Quarantined, StreamStore};
pub use crate::rooms::RoomStore;
pub use crate::seal::{KeyChange, Resealed, Retired, SealStore, SealedValue};
pub use crate::vault::VaultStore;
pub use access::{AccessStore, Client, CodeAllow, EnrollToken, Fingerprint, LinkCode, Manifest};
pub use identity::{
    DATABASE_ID, GatewayChange, IdentityStore, NewGateway, StoredGateway, StoredInstance, TenantBelongings,
    TenantIdentity,
};
pub use page::{Filling, Page, PageSize};
