//! The ports: what the decisions need from a store, implemented by the engines.
//!
//! Every write resolves only after it is durable. A store that cannot commit
//! answers [`Kind::Unavailable`](crate::Kind::Unavailable) and has changed nothing.

mod actions;
mod identity;
mod inbox;
mod journal;
mod webchat;

pub use actions::{ActionId, ActionOutcome, ActionStore, NewAction, StoredAction};
pub use identity::{IdentityStore, NewGateway, StoredGateway, StoredInstance, StoredSecret};
pub use inbox::{Appended, Gap, InboxStore, Listed, ListedInbox, NewEntry, Returned, Settlement};
pub use journal::{ActionStory, JournalStore, Story};
pub use webchat::{Line, LineEdit, NewLine, Person, Posted, WebchatStore};

use crate::error::Result;
use crate::inbox::{Entry, InstanceId, Seq};
use std::future::Future;
use std::pin::Pin;

/// An answer that comes after the disk had its say.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Everything the server keeps.
pub trait Store: InboxStore + IdentityStore + ActionStore + WebchatStore + JournalStore {
    /// Whether the last commit went through; what `/readyz` shows.
    fn healthy(&self) -> bool;

    /// Writes something small to find out whether commits work again.
    fn probe(&self) -> Later<'_, ()>;

    /// Drops what is past its time: seen keys, journal, overaged entries.
    fn prune(&self) -> Later<'_, ()>;
}

/// Who is told of commits, in commit order. A hint: whoever misses one reads the store.
pub trait Announce: Send + Sync {
    /// An entry was appended; `ahead` ones overtake their queue.
    fn appended(&self, instance: InstanceId, entry: Entry, ahead: bool);

    /// Entries left the inbox other than by settling.
    fn removed(&self, instance: InstanceId, seqs: &[Seq]);

    /// A web-chat line was written or changed.
    fn line(&self, line: &Line);
}
