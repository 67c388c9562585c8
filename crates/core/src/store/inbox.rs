//! The inbox as the store sees it.

use super::{Later, Page, PageSize};
use crate::audit::Actor;
use crate::clock::UnixMillis;
use crate::inbox::{AckHabit, Entry, EntryKind, InstanceId, Seq, SettledBy, Usage, WhenFull};
use bytes::Bytes;
use std::sync::Arc;

/// An admitted event on its way into the log.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// The tenant it belongs to.
    pub tenant: String,
    /// The instance that receives it.
    pub instance: InstanceId,
    /// What the body is.
    pub kind: EntryKind,
    /// The platform of the bot that received it.
    pub platform: Arc<str>,
    /// The bot that received it.
    pub bot: Arc<str>,
    /// The chat it came from.
    pub chat_id: Arc<str>,
    /// The provider's id; with platform, bot, chat and kind the key under which it is seen once.
    pub message_id: String,
    /// The conversation key a gateway would build.
    pub session_key: Arc<str>,
    /// The event, serialized.
    pub body: Bytes,
    /// Whether it overtakes what waits.
    pub ahead: bool,
    /// What becomes of it if the inbox is full.
    pub when_full: WhenFull,
    /// When it reached us.
    pub received_at: UnixMillis,
}

/// What an event says after its author changed it.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The platform of the bot that received it.
    pub platform: Arc<str>,
    /// The bot that received it.
    pub bot: Arc<str>,
    /// The chat it came from.
    pub chat_id: Arc<str>,
    /// The provider's id.
    pub message_id: String,
    /// The instance it is admitted to as it is now.
    pub instance: InstanceId,
    /// What the body is now.
    pub kind: EntryKind,
    /// The event as it is now, serialized.
    pub body: Bytes,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revised {
    /// It still waited, and says the new thing now.
    Replaced,
    /// It does not wait: it was delivered, or never admitted.
    NotWaiting,
    /// It waits for another instance than the one the change is admitted to.
    Elsewhere,
}

/// What became of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is in the log.
    New(Seq),
    /// It had been seen before; nothing was written.
    Seen(Seq),
}

/// An entry that leaves the inbox because it settled.
#[derive(Clone, Copy, Debug)]
pub struct Settlement {
    /// Which entry.
    pub seq: Seq,
    /// By what.
    pub by: SettledBy,
    /// When it was pushed on the socket that settled it.
    pub pushed_at: Option<UnixMillis>,
}

/// What a socket left unsettled.
#[derive(Clone, Debug)]
pub struct Returned {
    /// Entries in flight when it ended, with the time each was pushed.
    pub entries: Vec<(Seq, UnixMillis)>,
    /// The oldest, if the socket ended without any acknowledgement.
    pub strike: Option<Seq>,
}

/// A summary of one inbox.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ListedInbox {
    /// Its number.
    pub instance: InstanceId,
    /// The tenant.
    pub tenant: String,
    /// The instance's name.
    pub name: String,
    /// Entries waiting.
    pub waiting: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Dead letters.
    pub dead: u64,
    /// When the oldest waiting entry was received.
    pub oldest_at: Option<UnixMillis>,
    /// Whether the gateway said it goes idle.
    pub idle: bool,
    /// Messages lost to quotas, chat by chat.
    pub gaps: Vec<Gap>,
}

/// Entries that went because an inbox was over its quota.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Gap {
    /// The chat that lost them.
    pub chat_id: String,
    /// How many.
    pub lost: u64,
    /// When the first of them had been received.
    pub first_at: UnixMillis,
    /// When the last of them had been received.
    pub last_at: UnixMillis,
}

/// One entry as an operator sees it: never with its text.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Listed {
    /// Its place in the log.
    pub seq: Seq,
    /// The instance's number.
    pub instance: InstanceId,
    /// What it is.
    pub kind: String,
    /// The platform it came from.
    pub platform: String,
    /// The chat it came from.
    pub chat_id: String,
    /// The provider's id.
    pub message_id: String,
    /// Its size.
    pub bytes: u64,
    /// When it was received.
    pub received_at: UnixMillis,
    /// Sockets that ended on it.
    pub strikes: u32,
    /// When it became a dead letter.
    pub dead_at: Option<UnixMillis>,
}

/// Appending, draining and settling.
pub trait InboxStore: Send + Sync {
    /// Appends one event, unless its key was seen before. Not found if its
    /// instance is gone: nothing is written for whoever was removed. Unavailable if
    /// the inbox is full and it is to be refused then.
    fn append(&self, entry: NewEntry) -> Later<'_, Appended>;

    /// Replaces what a waiting entry says, at its place in line, if it waits for
    /// the instance that the change is admitted to.
    fn revise(&self, revision: Revision) -> Later<'_, Revised>;

    /// Waiting entries after `after` in order, without those that go ahead.
    fn load(&self, instance: InstanceId, after: Seq, size: PageSize) -> Later<'_, Page<Entry>>;

    /// The first waiting entries that go ahead of the queue.
    fn load_ahead(&self, instance: InstanceId, size: PageSize) -> Later<'_, Page<Entry>>;

    /// Takes settled entries out; ones that are gone already are no error.
    fn settle(&self, instance: InstanceId, settled: Vec<Settlement>) -> Later<'_, ()>;

    /// Takes entries out that were acknowledged on another socket than they were pushed
    /// on; answers which. Those that no socket of the instance was known to push stay.
    fn settle_late(&self, instance: InstanceId, seqs: Vec<Seq>) -> Later<'_, Vec<Seq>>;

    /// Notes in the journal when entries still in flight were pushed.
    fn note_pushed(&self, pushed: Vec<(Seq, UnixMillis)>) -> Later<'_, ()>;

    /// Notes what a socket left behind; answers the entry that became a dead letter.
    fn returned(&self, instance: InstanceId, returned: Returned) -> Later<'_, Option<Seq>>;

    /// Marks an instance as idle, or live again.
    fn set_idle(&self, instance: InstanceId, idle: bool) -> Later<'_, ()>;

    /// Remembers what was learnt of a gateway's habit.
    fn set_habit(&self, instance: InstanceId, habit: AckHabit) -> Later<'_, ()>;

    /// What waits for an instance now.
    fn usage(&self, instance: InstanceId) -> Usage;

    /// Instances with something waiting.
    fn waiting(&self) -> Vec<InstanceId>;

    /// All inboxes with something to tell.
    fn inboxes(&self) -> Later<'_, Vec<ListedInbox>>;

    /// Entries of one inbox, or of all; `dead` chooses dead letters.
    fn entries(&self, instance: Option<InstanceId>, dead: bool, limit: usize) -> Later<'_, Vec<Listed>>;

    /// One entry, dead or waiting.
    fn entry(&self, seq: Seq) -> Later<'_, Option<Listed>>;

    /// Puts dead letters back in line; all of them, or one. Answers how many.
    fn redrive(&self, instance: Option<InstanceId>, seq: Option<Seq>, by: &Actor) -> Later<'_, u64>;

    /// Throws entries away: dead letters only, unless one is named. Answers how many.
    fn purge(&self, instance: Option<InstanceId>, seq: Option<Seq>, by: &Actor) -> Later<'_, u64>;
}
