//! A transaction of the store: the database, what is counted beside its rows, and what is
//! to be told once it is durable.

use super::budget::Budget;
use super::clock::Clock;
use super::db::{Db, Sql};
use angelia_core::inbox::{Held, InstanceId, Mark, Quota, Seq, Usage};
use angelia_core::ports::{ActionId, Hint};
use angelia_core::records::Erased;
use angelia_core::rooms::RoomSize;
use angelia_core::store::Line;
use std::sync::Arc;

/// An open transaction. Whatever it says of counts includes what it has done itself.
pub(crate) trait Txn: Db {
    /// The time written into rows of this transaction.
    fn now(&self) -> i64;

    /// How much may be kept.
    fn quota(&self) -> Quota;

    /// By which rows grow old.
    fn clock(&self) -> &Arc<Clock>;

    /// What a statement says after a table to be answered by an index; nothing where the
    /// database finds it by itself.
    fn by_index(&self, _index: &str) -> String {
        String::new()
    }

    /// Has nobody else change the log and the inbox of an instance until the end of this
    /// transaction. What is read of them after this stays as it is.
    fn lock(&mut self, instance: InstanceId) -> Sql<()>;

    /// Has nobody adopt the actions of an owner until the end of this transaction.
    fn share_owner(&mut self, _owner: i64) -> Sql<()> {
        Ok(())
    }

    /// Waits until no transaction of an owner is open, or of any: and has none begin before the
    /// end of this one.
    fn lock_owners(&mut self, _owner: Option<i64>) -> Sql<()> {
        Ok(())
    }

    /// There is a new owner of actions.
    fn new_owner(&mut self, _owner: i64) -> Sql<()> {
        Ok(())
    }

    /// Has nobody else change what waits for the instances of a gateway, as it is stored and as
    /// it is going to be, until the end of this transaction: whoever admitted something to one of
    /// them comes before this, or sees it.
    fn lock_gateway(&mut self, _tenant: &str, _gateway: &str, _instance: InstanceId) -> Sql<()> {
        Ok(())
    }

    /// Has nobody else change an action until the end of this transaction.
    fn lock_action(&mut self, _action: ActionId) -> Sql<()> {
        Ok(())
    }

    /// Has nobody else write in a room of the web chat until the end of this transaction.
    fn lock_room(&mut self, _room: &str) -> Sql<()> {
        Ok(())
    }

    /// Has nobody else take or give back a lease until the end of this transaction.
    fn share_lease(&mut self, _name: &str) -> Sql<()> {
        Ok(())
    }

    /// Has nobody else take, keep or give back a lease until the end of this transaction, and
    /// nobody write under it.
    fn lock_lease(&mut self, _name: &str) -> Sql<()> {
        Ok(())
    }

    /// What waits for an instance.
    fn usage(&mut self, instance: InstanceId) -> Sql<Usage>;

    /// Looks at the same, chat by chat.
    fn with_held(&mut self, instance: InstanceId, look: &mut dyn FnMut(&Held)) -> Sql<()>;

    /// The same, with what one chat holds; what the others hold is in all.
    fn held_with(&mut self, instance: InstanceId, chat: &str) -> Sql<Held>;

    /// Counts an entry that waits from now on.
    fn count_in(&mut self, instance: InstanceId, chat: &Arc<str>, bytes: usize) -> Sql<()>;

    /// Counts an entry that does not wait any more.
    fn count_out(&mut self, instance: InstanceId, chat: &str, bytes: usize) -> Sql<()>;

    /// Nothing waits for an instance any more.
    fn count_none(&mut self, instance: InstanceId) -> Sql<()>;

    /// Where the log of an instance is.
    fn mark(&mut self, instance: InstanceId) -> Sql<Mark>;

    /// Moves the log of an instance on.
    fn set_mark(&mut self, instance: InstanceId, mark: Mark) -> Sql<()>;

    /// Whose an instance is.
    fn tenant_of(&mut self, instance: InstanceId) -> Sql<Option<Arc<str>>>;

    /// What is kept of a tenant, in bytes.
    fn stored(&mut self, tenant: &str) -> Sql<u64>;

    /// So many bytes more are kept of a tenant, and so many less.
    fn store(&mut self, tenant: &str, more: u64, less: u64);

    /// An action was written down; whose it is may be remembered.
    fn accepted(&mut self, _action: ActionId, _tenant: &str) {}

    /// An action is finished.
    fn finished(&mut self, _action: ActionId) {}

    /// An instance is gone.
    fn forgot_instance(&mut self, _instance: InstanceId) {}

    /// An instance is this tenant's; that may be remembered.
    fn serves(&mut self, _instance: InstanceId, _tenant: &str) {}

    /// Writes what was counted, so that statements see it.
    fn write_counters(&mut self) -> Sql<()>;

    /// So much of a tenant was taken away at once that it is counted anew.
    fn recount(&mut self, tenant: &str) -> Sql<()>;

    /// What a room holds with so many lines and bytes more; never less than it really does.
    fn room_grows(&mut self, room: &str, lines: u64, bytes: usize) -> Sql<RoomSize>;

    /// A removed tenant left nothing in a room: its numbers begin anew.
    fn room_is_empty(&mut self, _room: &str) -> Sql<()> {
        Ok(())
    }

    /// What a room holds now.
    fn set_room_size(&mut self, room: &str, size: RoomSize) -> Sql<()>;

    /// One number for lines and edits of a room, so that a reader continues after either.
    fn next_line_number(&mut self, room: &str) -> Sql<i64>;

    /// The next row's own id, never given again: a removal goes by it. Nobody else sees it.
    fn next_line_id(&mut self) -> Sql<i64>;

    /// Counts one on, durably with this transaction; answers the number, which nobody else gets.
    fn count_up(&mut self, counter: &str) -> Sql<i64>;

    /// Has a counter stand there at least.
    fn raise(&mut self, counter: &str, to: i64) -> Sql<()>;

    /// Where a counter stands; zero if nobody counted.
    fn counter(&mut self, counter: &str) -> Sql<i64>;

    /// Writes a line of the change feed. Lines become visible in the order of their numbers.
    fn feed(&mut self, records: &str, key: &str) -> Sql<()>;

    /// Tells of something once it is durable.
    fn tell(&mut self, hint: Hint);

    /// Marks the transaction as one that moves a bot's place in what it reads.
    fn taken_in(&mut self) {}

    /// How much this transaction may delete.
    fn budget(&self) -> Budget;

    /// The same for what the server does by itself; `None` if it does not matter.
    fn upkeep_budget(&self) -> Option<Budget>;

    /// While space is short: has room made after the commit for what comes next.
    fn then_make_room(&mut self) {}

    /// What this transaction replaced is to be gone from the disk; tells whether it is.
    fn then_erase(&mut self, erased: Erased);

    /// Tells of removed entries once that is durable.
    fn removed(&mut self, instance: InstanceId, seqs: Vec<Seq>) {
        self.tell(Hint::Removed { instance, seqs });
    }

    /// Tells of a web-chat line once it is durable.
    fn line(&mut self, line: Line) {
        self.tell(Hint::Line(line));
    }
}
