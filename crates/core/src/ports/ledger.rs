//! The ledger of outbound actions. What may be done to one, and by whom, is
//! decided in [`ActionRow`](crate::egress::ActionRow).

use super::{BoxFuture, LeaseToken};
use crate::clock::UnixMillis;
use crate::directory::BotKey;
use crate::egress::{ActionState, Owner};
use crate::error::Error;
use crate::error::Result;
use crate::inbox::InstanceId;
use crate::vault::{Answering, Use};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number of an action in the ledger.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct ActionId(pub i64);

/// An authorized action on its way into the ledger.
#[derive(Clone, Debug)]
pub struct NewAction {
    /// The sender's tenant.
    pub tenant: String,
    /// The sender's instance.
    pub instance: InstanceId,
    /// The gateway that asked; `None` for what the connector says itself.
    pub gateway_id: Option<String>,
    /// The platform written to.
    pub platform: String,
    /// The bot that writes.
    pub bot: String,
    /// The chat written to.
    pub chat_id: String,
    /// The thread in it.
    pub thread_id: Option<String>,
    /// The operation.
    pub op: String,
    /// The message it changes.
    pub edits: Option<String>,
    /// The message it answers.
    pub reply_to: Option<String>,
    /// The action, serialized; gone once it is finished.
    pub body: Vec<u8>,
    /// What of it may answer an interaction; `None` if it cannot.
    pub answering: Option<Answering>,
    /// When it was received.
    pub received_at: UnixMillis,
}

/// An action that is in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its number.
    pub id: ActionId,
    /// The capability it uses. It was chosen with the action, so that a crash
    /// does not choose again.
    pub uses: Option<Use>,
    /// When that capability ends.
    pub uses_until: Option<UnixMillis>,
}

/// An unfinished action, as found at start: without its body, which is read
/// when its turn comes.
#[derive(Clone, Debug)]
pub struct StoredAction {
    /// Its number.
    pub id: ActionId,
    /// The sender's tenant.
    pub tenant: String,
    /// The sender's instance.
    pub instance: InstanceId,
    /// The gateway that asked, where that is known.
    pub gateway_id: Option<String>,
    /// The platform written to.
    pub platform: String,
    /// The bot that writes.
    pub bot: String,
    /// The chat written to.
    pub chat_id: String,
    /// The thread in it.
    pub thread_id: Option<String>,
    /// The operation.
    pub op: String,
    /// The message it changes.
    pub edits: Option<String>,
    /// Bytes of its body.
    pub bytes: u64,
    /// When it was received.
    pub received_at: UnixMillis,
    /// The capability it uses.
    pub uses: Option<Use>,
    /// When that capability ends; nothing if it is gone.
    pub uses_until: Option<UnixMillis>,
    /// How far it came.
    pub state: ActionState,
    /// When its provider was first about to be called, where that is written down.
    pub begun_at: Option<UnixMillis>,
    /// How many processes ended while they called for it.
    pub crashes: u32,
}

/// How an action ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionOutcome {
    /// Any state but [`ActionState::Accepted`] and [`ActionState::Sending`].
    pub state: ActionState,
    /// The id the provider gave.
    pub message_id: Option<String>,
    /// What went wrong, without any text of the message.
    pub error: Option<String>,
}

/// What came of leaving an action open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOpen {
    /// It has ended, and what is said of it is accepted under this number.
    Remarked(ActionId),
    /// It had ended before; nothing changed.
    Before,
    /// It is not its owner's any more; nothing changed, and whoever works on it may still send it.
    NotOurs,
}

/// What an owner is told that was replaced; nothing was changed.
pub fn owner_replaced() -> Error {
    Error::conflict("another process took over what this one worked on")
}

/// Actions of which somebody asks in one read how they ended.
pub const MAX_OUTCOMES: usize = 500;

/// The ledger: what agents want done, written down before a provider is called.
///
/// An action has an [`Owner`], the process that works on it. Whoever is not its
/// owner any more changes nothing: a process that was believed dead and wakes up
/// finds its actions adopted, calls nobody, and accepts nothing more.
pub trait Ledger: Send + Sync {
    /// An owner that never was before; larger than every earlier one.
    fn new_owner(&self) -> BoxFuture<'_, Result<Owner>>;

    /// Makes what `whose` left unfinished `by`'s, or what everybody left; answers
    /// the last action there is, so that what is accepted from now on is told from it.
    /// Whoever left it is [replaced](Owner::is_replaced). An error if `by` itself is.
    fn adopt(&self, by: Owner, whose: Option<Owner>) -> BoxFuture<'_, Result<ActionId>>;

    /// Makes everything that is unfinished of a bot a new owner's, whoever had it, and notes with
    /// the bot's lease that it is; whoever was noted there before is [replaced](Owner::is_replaced).
    /// All in one commit, under the lease: [`lease_lost`](crate::lease::lease_lost) if that is
    /// somebody else's by now, and nothing changes.
    fn take_over(&self, bot: &BotKey, under: LeaseToken) -> BoxFuture<'_, Result<Owner>>;

    /// Who is noted with a bot's lease: what others accept under this owner the node that holds
    /// the bot performs.
    fn outbox(&self, bot: &BotKey) -> BoxFuture<'_, Result<Option<Owner>>>;

    /// Who has something of a bot that is unfinished.
    fn owners(&self, bot: &BotKey) -> BoxFuture<'_, Result<Vec<Owner>>>;

    /// How these ended, as far as they have. At most [`MAX_OUTCOMES`] are asked for at once.
    fn outcomes(&self, ids: Vec<ActionId>) -> BoxFuture<'_, Result<Vec<(ActionId, ActionOutcome)>>>;

    /// Makes actions durable, all or none, before the provider is called.
    /// Their numbers grow in the order given. Each that answers something claims
    /// the capability that [`choose_for_send`](crate::vault::choose_for_send) names.
    /// An error says that nothing was written, as gateways are told then: where a
    /// commit may have happened after all, an engine finds that out first. One who is
    /// [replaced](Owner::is_replaced) accepts nothing.
    fn accept(&self, by: Owner, actions: Vec<NewAction>) -> BoxFuture<'_, Result<Vec<Accepted>>>;

    /// Notes that a provider is about to be called that does not dedupe for ever,
    /// and when, if that is the first time. `false`: the action is not `by`'s any
    /// more, or has ended; then it must not be called.
    fn begin(&self, by: Owner, id: ActionId) -> BoxFuture<'_, Result<bool>>;

    /// Notes that the call certainly wrote nothing: the action waits again, and
    /// was not begun. Nothing, if it is not `by`'s.
    fn postpone(&self, by: Owner, id: ActionId) -> BoxFuture<'_, Result<()>>;

    /// Notes how actions ended, in one commit, and forgets their texts. What has
    /// ended does not change. A capability that one claimed is answered, or open
    /// again if nothing was said. Answers those that are not `by`'s any more, of
    /// which nothing was noted: whoever works on them may still send them.
    fn finish(&self, by: Owner, ends: Vec<(ActionId, ActionOutcome)>)
    -> BoxFuture<'_, Result<Vec<ActionId>>>;

    /// Notes that nobody knows whether an action arrived, as [`Ledger::finish`] does, and
    /// accepts in the same commit what is said of that: a crash neither loses nor doubles it.
    /// It claims no capability and asks for no room: the text that ends makes some. An error
    /// says that nothing was written, as for [`Ledger::accept`].
    fn leave_open(
        &self,
        by: Owner,
        id: ActionId,
        outcome: ActionOutcome,
        remark: NewAction,
    ) -> BoxFuture<'_, Result<LeftOpen>>;

    /// Some of what is unfinished and `by`'s, oldest first, after `after`.
    fn unfinished(
        &self,
        by: Owner,
        after: ActionId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredAction>>>;

    /// The body of an unfinished action; `None` once it is finished.
    fn body(&self, id: ActionId) -> BoxFuture<'_, Result<Option<Vec<u8>>>>;

    /// Notes what the provider says became of a message that was sent, such as
    /// `delivered`, in the place of what was noted before; `false` if that is something else by
    /// now, or no action is known that sent it.
    fn note_receipt(
        &self,
        bot: &BotKey,
        message_id: &str,
        before: Option<&str>,
        receipt: &str,
    ) -> BoxFuture<'_, Result<bool>>;
}
