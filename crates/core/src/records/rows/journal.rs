//! The journal and the ledger, as far as somebody who asks what happened reads them.
//! The log and the ledger write them.

use crate::clock::UnixMillis;
use crate::inbox::{InstanceId, Seq};
use crate::ports::ActionId;
use crate::records::table::{field, record};
use crate::store::ActionTrace;

field!(Seq as i64, |seq| seq.0, |seq| Some(Seq(seq)));
field!(ActionId as i64, |id| id.0, |id| Some(ActionId(id)));

record! {
    /// A received message: its place in the log, and the steps it took.
    pub struct JournalRow in "journal", key 1,
    walks [[] along "id", ["message_id"] along "id", ["message_id", "chat_id"] along "id", ["seq"] along "id"], long true {
        /// Its number; grows.
        id: i64,
    } foreign {
        /// Its place in the log of its instance.
        seq: Seq,
        /// What it was.
        kind: String,
        /// The platform it came from.
        platform: String,
        /// The bot that received it.
        bot: String,
        /// The chat it came from.
        chat_id: String,
        /// The provider's id.
        message_id: String,
        /// The tenant it belongs to.
        tenant: String,
        /// The instance it was for.
        instance: InstanceId,
        /// When it reached us.
        received_at: UnixMillis,
        /// When it was durable.
        appended_at: UnixMillis,
        /// When it was first pushed.
        pushed_at: Option<UnixMillis>,
        /// When it had to wait for the end of a turn.
        held_at: Option<UnixMillis>,
        /// When the turn it began was asked to end.
        interrupted_at: Option<UnixMillis>,
        /// On how many sockets it was pushed.
        pushes: i64,
        /// When it left the inbox.
        settled_at: Option<UnixMillis>,
        /// How it left the inbox, in words.
        outcome: Option<String>,
    }
}

record! {
    /// An outbound action, without what it says.
    pub struct LedgerRow in "actions", key 1, finds [["state"]],
    walks [["message_id"] along "id", ["message_id", "chat_id"] along "id",
           ["reply_to", "chat_id", "platform", "bot"] along "id"], long true {
        /// Its number in the ledger.
        id: ActionId,
    } foreign {
        /// Whoever asked for it.
        instance: InstanceId,
        /// The gateway that did; `None` for what the connector says itself.
        gateway_id: Option<String>,
        /// The platform written to.
        platform: String,
        /// The bot that wrote.
        bot: String,
        /// The chat written to.
        chat_id: String,
        /// The operation.
        op: String,
        /// The message it answers.
        reply_to: Option<String>,
        /// The id the provider gave.
        message_id: Option<String>,
        /// How far it came.
        state: String,
        /// What went wrong.
        error: Option<String>,
        /// When it was accepted.
        received_at: UnixMillis,
        /// When it was finished.
        finished_at: Option<UnixMillis>,
        /// What the provider says became of the message.
        receipt: Option<String>,
    }
}

impl From<LedgerRow> for ActionTrace {
    fn from(row: LedgerRow) -> Self {
        Self {
            id: row.id,
            op: row.op,
            chat_id: row.chat_id,
            reply_to: row.reply_to,
            accepted_at: row.received_at,
            finished_at: row.finished_at,
            state: row.state,
            message_id: row.message_id,
            error: row.error,
            receipt: row.receipt,
        }
    }
}
