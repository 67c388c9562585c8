//! What every platform can do, and what it needs from the server.

use angelia_contract::action::{Action, ActionResult};
use angelia_contract::descriptor::Descriptor;
use angelia_core::admission::{Admitted, DropReason, Observed};
use angelia_core::egress::Dedupe;
use angelia_core::store::{ActionId, Later};

/// An authorized action that is in the ledger and has to reach the provider.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its number in the ledger; the key under which a provider may dedupe.
    pub id: ActionId,
    /// What to do.
    pub action: Action,
}

/// One bot on one platform.
pub trait Platform: Send + Sync {
    /// The platform's name on the wire.
    fn name(&self) -> &str;

    /// The bot's id.
    fn bot(&self) -> &str;

    /// What gateways are told of it.
    fn descriptor(&self) -> Descriptor;

    /// The places that cover a chat, most specific first; `None` if the id is not of this platform.
    fn places(&self, chat_id: &str) -> Option<Vec<String>>;

    /// Whether giving it the same [`Delivery`] twice says the thing once.
    fn dedupe(&self) -> Dedupe;

    /// Performs a `send` or `edit` and finishes it in the ledger.
    fn deliver(&self, delivery: Delivery) -> Later<'_, ActionResult>;

    /// Shows that the agent is writing. Never recorded.
    fn typing(&self, chat_id: &str) -> Later<'_, ActionResult>;

    /// Tells a chat's name and type.
    fn chat_info(&self, chat_id: &str) -> Later<'_, ActionResult>;
}

/// Who decides whose message it is.
pub trait Admit: Send + Sync {
    /// Admits an event to one instance, or counts it as dropped for a reason.
    fn admit(&self, observed: Observed<'_>) -> Result<Admitted, DropReason>;
}
