//! The log, the port of inboxes: appending, claiming, draining and settling what waits for each
//! instance, in order, hot and fenced.
//!
//! The row of an instance is its lock. An append takes the next number under it,
//! so the numbers of an instance are dense, and their order is the order of the
//! commits. A socket that begins to drain claims the instance, which raises its
//! epoch; whoever claimed before learns that with the next thing it writes.
//!
//! Dedupe is part of an append: a key that was seen before is not appended again.

use crate::clock::UnixMillis;
use crate::error::Result;
use crate::inbox::{AckHabit, Entry, EntryKind, Epoch, InstanceId, Mark, Seq, SettledBy, Usage, WhenFull};
use crate::store::{BoxFuture, Page, PageSize};
use crate::turns::{ConversationKey, WhileBusy};
use bytes::Bytes;
use std::ops::Deref;
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
    /// What its route says becomes of it while the agent is busy.
    pub while_busy: Option<WhileBusy>,
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

impl Revised {
    /// What becomes of a change that is admitted to an instance, by for whom its entry waits.
    pub fn of(waits_for: Option<InstanceId>, admitted_to: InstanceId) -> Self {
        match waits_for {
            None => Self::NotWaiting,
            Some(instance) if instance == admitted_to => Self::Replaced,
            Some(_) => Self::Elsewhere,
        }
    }
}

/// A message that was deleted where it was written.
#[derive(Clone, Debug)]
pub struct Withdrawal {
    /// The platform of the bot that received it.
    pub platform: Arc<str>,
    /// The bot that received it.
    pub bot: Arc<str>,
    /// The chat it came from.
    pub chat_id: Arc<str>,
    /// The provider's id.
    pub message_id: String,
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

/// A stretch of the log, and how far the log went when it was read.
#[derive(Clone, Debug, Default)]
pub struct Stretch {
    /// The entries, in order.
    pub page: Page<Entry>,
    /// Where the log was.
    pub mark: Mark,
}

impl Deref for Stretch {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        &self.page
    }
}

impl IntoIterator for Stretch {
    type Item = Entry;
    type IntoIter = std::vec::IntoIter<Entry>;

    fn into_iter(self) -> Self::IntoIter {
        self.page.into_iter()
    }
}

/// An instance that was claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Under which it is drained from now on.
    pub epoch: Epoch,
    /// Where the log is.
    pub mark: Mark,
    /// What waits.
    pub usage: Usage,
    /// The node whose socket drained it until now, if that had not left.
    pub former: Option<String>,
}

/// Where the log of an instance is, and who drains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogState {
    /// The instance.
    pub instance: InstanceId,
    /// Where its log is.
    pub mark: Mark,
    /// Under which it was last claimed.
    pub epoch: Epoch,
    /// The node whose socket drains it; `None` once that has left. One that was killed leaves
    /// nothing: whether it is there is known of nodes.
    pub node: Option<String>,
}

/// A turn that a gateway works on, as far as it has to outlive its socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTurn {
    /// Its conversation.
    pub conversation: ConversationKey,
    /// The platform it is on.
    pub platform: Arc<str>,
    /// The bot it is behind.
    pub bot: Arc<str>,
    /// The thread or topic of its chat.
    pub thread_id: Option<String>,
    /// The entry that began it.
    pub seq: Seq,
    /// The message that began it.
    pub message_id: String,
    /// Who wrote that.
    pub author: Option<String>,
    /// Whether it waits for an answer to what it asked.
    pub asks: bool,
}

/// What became of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnNote {
    /// It began.
    Opened(OpenTurn),
    /// It is over, or nobody waits for it any more.
    Closed(ConversationKey),
    /// It was asked to end.
    Interrupted(OpenTurn),
    /// An entry waits for its end.
    Held(Seq),
}

impl TurnNote {
    /// The entry that began a turn, if it says so.
    pub fn opens(&self) -> Option<Seq> {
        match self {
            Self::Opened(turn) => Some(turn.seq),
            Self::Closed(_) | Self::Interrupted(_) | Self::Held(_) => None,
        }
    }
}

/// Lines that go together: the last of them takes the text of all.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The lines as they were read, in order, each with its revision: the last one stays.
    pub lines: Vec<(Seq, u32)>,
    /// What it says then.
    pub body: Bytes,
}

/// Whether an instance is still drained by whoever wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// It is.
    Ours,
    /// Somebody claimed it meanwhile.
    Lost,
}

impl Ownership {
    /// Whose an instance is that was last claimed under an epoch; one that is gone is nobody's.
    pub fn of(last: Option<Epoch>, epoch: Epoch) -> Self {
        if last.is_some_and(|last| last <= epoch) { Self::Ours } else { Self::Lost }
    }
}

/// Appending, draining and settling.
pub trait Log: Send + Sync {
    /// Appends one event, unless its key was seen before. It may wait for an instance that
    /// no gateway served yet. Not found if the instance is gone, or those that served it
    /// were all revoked: nothing is written for whoever was removed. Unavailable if the
    /// inbox is full and it is to be refused then.
    fn append(&self, entry: NewEntry) -> BoxFuture<'_, Result<Appended>>;

    /// Replaces what a waiting entry says, at its place in line, if it waits for
    /// the instance that the change is admitted to.
    fn revise(&self, revision: Revision) -> BoxFuture<'_, Result<Revised>>;

    /// Takes a waiting entry out because its message was deleted; `false` if it stays. What a
    /// socket is known to have pushed stays, and so does what took up other lines.
    fn withdraw(&self, withdrawal: Withdrawal) -> BoxFuture<'_, Result<bool>>;

    /// Makes `node` the one that drains an instance, and raises its epoch; its
    /// gateway is awake. Not found if the instance is gone.
    fn claim(&self, instance: InstanceId, node: &str) -> BoxFuture<'_, Result<Claimed>>;

    /// Notes that no socket drains an instance any more; unless it was lost.
    fn leave(&self, instance: InstanceId, epoch: Epoch) -> BoxFuture<'_, Result<Ownership>>;

    /// Waiting entries after `after` in order, without those that go ahead and
    /// without the conversations to pass over.
    fn load(
        &self,
        instance: InstanceId,
        after: Seq,
        pass_over: &[ConversationKey],
        size: PageSize,
    ) -> BoxFuture<'_, Result<Stretch>>;

    /// The first waiting entries of one conversation, those that go ahead among them.
    fn load_conversation(
        &self,
        instance: InstanceId,
        conversation: &ConversationKey,
        size: PageSize,
    ) -> BoxFuture<'_, Result<Stretch>>;

    /// Has one entry take the text of others, which are gone with it; it does not change any
    /// more. `None`, and nothing is written, if one of them does not wait as it was read,
    /// or the instance was lost.
    fn join(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        joined: Joined,
    ) -> BoxFuture<'_, Result<Option<Entry>>>;

    /// Notes what became of turns, in order; unless the instance was lost.
    fn note_turns(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        notes: Vec<TurnNote>,
    ) -> BoxFuture<'_, Result<Ownership>>;

    /// The turns that are open, oldest first.
    fn open_turns(&self, instance: InstanceId) -> BoxFuture<'_, Result<Vec<OpenTurn>>>;

    /// The first waiting entries that go ahead of the queue.
    fn load_ahead(&self, instance: InstanceId, size: PageSize) -> BoxFuture<'_, Result<Stretch>>;

    /// Takes settled entries out, whoever drains the instance by now: what was
    /// acknowledged is done. Ones that are gone already are no error.
    fn settle(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        settled: Vec<Settlement>,
    ) -> BoxFuture<'_, Result<Ownership>>;

    /// Takes entries out that were acknowledged on another socket than they were pushed
    /// on; answers which. Those that no socket of the instance was known to push stay.
    fn settle_late(&self, instance: InstanceId, seqs: Vec<Seq>) -> BoxFuture<'_, Result<Vec<Seq>>>;

    /// Notes in the journal when entries still in flight were pushed.
    fn note_pushed(&self, instance: InstanceId, pushed: Vec<(Seq, UnixMillis)>) -> BoxFuture<'_, Result<()>>;

    /// Notes what a socket left behind; answers the entry that became a dead letter.
    /// Of whoever lost the instance only the pushes are noted: its end says nothing
    /// of an entry that another socket has by now.
    fn returned(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        returned: Returned,
    ) -> BoxFuture<'_, Result<Option<Seq>>>;

    /// Marks an instance as idle, or live again; unless it was lost.
    fn set_idle(&self, instance: InstanceId, epoch: Epoch, idle: bool) -> BoxFuture<'_, Result<Ownership>>;

    /// Remembers what was learnt of a gateway's habit; unless it was lost.
    fn set_habit(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        habit: AckHabit,
    ) -> BoxFuture<'_, Result<Ownership>>;

    /// Where the logs of instances are, and who drains them: what finds a hint that never came.
    /// Of those that are gone nothing is answered.
    fn states(&self, instances: Vec<InstanceId>) -> BoxFuture<'_, Result<Vec<LogState>>>;

    /// What waits for an instance now.
    fn usage(&self, instance: InstanceId) -> BoxFuture<'_, Result<Usage>>;

    /// Instances with something waiting.
    fn waiting(&self) -> BoxFuture<'_, Result<Vec<InstanceId>>>;
}
