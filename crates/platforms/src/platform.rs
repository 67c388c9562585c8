//! What every platform can do.

use angelia_contract::action::{Action, ActionResult};
use angelia_contract::descriptor::Descriptor;
use angelia_core::egress::{Bot, Dedupe, Rate, Target};
use angelia_core::store::{ActionId, Later};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// An authorized action that is in the ledger and has to reach the provider.
#[derive(Clone)]
pub struct Delivery {
    /// Its number in the ledger; the key under which a provider may dedupe.
    pub id: ActionId,
    /// Where to. This was checked; nothing else in the action names a place.
    pub target: Target,
    /// What to do.
    pub action: Action,
    /// How the platform tells how far it is, and asks to go on.
    pub progress: Arc<dyn Progress>,
}

/// The other end of a [`Delivery`] that takes more than one call.
pub trait Progress: Send + Sync {
    /// The provider has the first part: the gateway is answered now. A platform
    /// that does not dedupe has to see to the rest itself from here on,
    /// because the whole cannot be given to it again.
    fn first_part(&self, message_id: &str);

    /// To be asked before every provider call but the first: waits until the bot may
    /// call again. `false`: the sender may not write there any more, make no call.
    fn next_call(&self) -> BoxFuture<'_, bool>;
}

/// What came of giving a [`Delivery`] to the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The provider has it.
    Sent {
        /// The message; of several, the first.
        message_id: String,
        /// Whether the platform finished the action in the ledger already, in
        /// one commit with the message.
        recorded: bool,
    },
    /// The provider will not take it.
    Refused {
        /// Why, for the gateway and the ledger; without any text of the message.
        why: String,
    },
    /// It was certainly not written: a rate limit, no connection. To be tried again.
    Later {
        /// Not before this much time has passed.
        after: Duration,
        /// Why, for the ledger.
        why: String,
    },
    /// It may have been written.
    Unknown {
        /// Why, for the gateway and the ledger.
        why: String,
    },
}

/// One bot on one platform.
pub trait Platform: Bot + Send + Sync {
    /// What gateways are told of it.
    fn descriptor(&self) -> Descriptor;

    /// Whether giving it the same [`Delivery`] twice says the thing once.
    fn dedupe(&self) -> Dedupe;

    /// How often the provider lets this bot call; `None` if it does not count.
    fn budget(&self) -> Option<Rate> {
        None
    }

    /// Whether the connector itself is the provider: what it refuses annoys nobody.
    fn is_own(&self) -> bool {
        false
    }

    /// Performs a `send` or `edit`.
    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Outcome>;

    /// Shows that the agent is writing. Never recorded.
    fn typing<'a>(&'a self, target: &'a Target) -> Later<'a, ActionResult>;

    /// Tells a chat's name and type.
    fn chat_info<'a>(&'a self, target: &'a Target) -> Later<'a, ActionResult>;
}
