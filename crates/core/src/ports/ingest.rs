//! What a bot received, committed together with how far it has read.

use super::BoxFuture;
use super::log::{Appended, NewEntry, Revised, Revision, Withdrawal};
use crate::clock::UnixMillis;
use crate::directory::{BotKey, Chat};
use crate::error::Result;
use crate::inbox::{CancellableWrite, InstanceId};
use crate::lease::Under;
use crate::prompts::Press;
use crate::seal::Sealed;
use crate::threads::Moved;
use crate::vault::NewCapability;
use bytes::Bytes;
use std::time::Duration;

/// How far a bot has read one of its streams: a shard of its socket, its updates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Which stream of the bot.
    pub stream: String,
    /// Where it is; only the platform reads it.
    pub position: String,
}

/// The newest message of a chat, whoever it was for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The chat.
    pub chat_id: String,
    /// Its newest message.
    pub message_id: String,
    /// When it was seen.
    pub at: UnixMillis,
}

/// Something a provider sent that could not be read.
#[derive(Clone, Debug)]
pub struct NewQuarantined {
    /// Which one it was, for people: the provider's number and kind, no text.
    pub what: String,
    /// Why it could not be read, without any text of it.
    pub why: String,
    /// The bytes, sealed for the row that [`quarantine`](crate::seal::quarantine) describes.
    pub sealed: Sealed,
    /// When it came.
    pub at: UnixMillis,
}

/// What one thing that was received comes to. Everything in it is committed together.
#[derive(Clone, Debug, Default)]
pub struct Intake {
    /// Chats as the provider describes them now. What was seen there stays, and nothing is
    /// written where nothing differs.
    pub chats: Vec<Chat>,
    /// The newest messages of chats. One older than the newest that is known counts for
    /// nothing, and so does one of a chat that is not known: nobody could say what that is.
    pub traffic: Vec<Traffic>,
    /// A message that was admitted.
    pub entry: Option<NewEntry>,
    /// Whether its entry waits for a thread of its own: then it is kept apart, and is in the log
    /// when it is [released](Ingest::release).
    pub opens: bool,
    /// Whether others of its conversation may wait for threads: it waits behind those, and opens none.
    pub follows: bool,
    /// What its answer may use; kept only with an entry that is new.
    pub capability: Option<NewCapability>,
    /// Whether the entry is still wanted when it is written. If it is not, everything
    /// but the entry and its capability is: the stream was read all the same.
    pub patience: Option<CancellableWrite>,
    /// The question that its entry answers. If it is not open any more, or was answered so by the same
    /// person before, everything but the entry is written.
    pub press: Option<Press>,
    /// What a message that may still wait says now.
    pub revision: Option<Revision>,
    /// Messages that were deleted; those that still wait are taken out.
    pub withdrawals: Vec<Withdrawal>,
    /// A chat in which an instance was addressed, so that it is meant from now on. A chat that
    /// is not known stays so.
    pub engaged: Option<(String, InstanceId)>,
    /// What could not be read; kept by the rule [`quarantine::add`](crate::quarantine::add).
    pub quarantined: Option<NewQuarantined>,
    /// How far the stream is read with this.
    pub cursor: Option<Cursor>,
}

/// What became of an [`Intake`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// What became of its entry.
    pub appended: Option<Appended>,
    /// Whether its entry waits for a thread of its own.
    pub opens: bool,
    /// What became of its revision.
    pub revised: Option<Revised>,
    /// Whether the instance of its entry is gone: everything but the entry was written.
    pub no_instance: bool,
    /// Whether nobody wanted its entry any more: everything else was written.
    pub given_up: bool,
    /// Whether the question that its entry answers was not open any more: everything but the entry
    /// was written.
    pub not_open: bool,
    /// Whether its entry was refused because the inbox is full: nothing was written.
    pub full: bool,
}

/// A message that waits for a thread of its own.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Its number; grows.
    pub id: i64,
    /// Whose it is.
    pub tenant: String,
    /// Who gets it.
    pub instance: InstanceId,
    /// The bot that received it.
    pub bot: BotKey,
    /// Where it was written.
    pub chat_id: String,
    /// The provider's id.
    pub message_id: String,
    /// The event, as it would be without a thread.
    pub body: Bytes,
    /// How long ago it was noted that a thread is about to be opened for it, if it was.
    pub begun: Option<Duration>,
}

/// Which messages that wait for threads are looked for.
#[derive(Clone, Debug)]
pub enum Openings {
    /// Those of one chat.
    OfChat(BotKey, String),
    /// The one of a bot's chat with this message id.
    One(BotKey, String, String),
    /// Those that came so long ago, of any.
    OlderThan(Duration),
}

/// Whether a thread may be opened for a message that waits for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It may, and so often that was noted, this time among them.
    Try(u32),
    /// Somebody is at it, or at the message whose thread it was written in.
    NotYet,
    /// It waits no more.
    Gone,
}

/// What became of a message that waited for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// It is in the log.
    InLog,
    /// It waits no more: somebody was first, or it was deleted.
    Gone,
    /// Nobody serves its instance any more.
    NoInstance,
}

/// Taking in what bots receive.
pub trait Ingest: Send + Sync {
    /// Commits everything, all or none, in order. Whoever says how far it has read says under
    /// which lease: the bot's, or that of the one stream. Unavailable if another node has that by
    /// now. Without one nothing is noted of streams of a bot whose lease was ever taken.
    fn take_in(
        &self,
        bot: &BotKey,
        under: Option<Under>,
        intakes: Vec<Intake>,
    ) -> BoxFuture<'_, Result<Vec<Taken>>>;

    /// Messages that wait for threads, in order; some of them.
    fn openings(&self, which: Openings) -> BoxFuture<'_, Result<Vec<Opening>>>;

    /// Notes that a thread is about to be opened for a message, so that a crash is known of,
    /// unless somebody noted it less than `within` ago.
    fn begin_opening(&self, id: i64, within: Duration) -> BoxFuture<'_, Result<Begun>>;

    /// Puts a message that waited into the log: where it moved to, or as it was.
    fn release(&self, id: i64, moved: Option<Moved>) -> BoxFuture<'_, Result<Released>>;
}
