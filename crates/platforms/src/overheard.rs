//! The `Overheard` trait: what was said in company and not to the agent. Decided in core,
//! implemented by the connector.

use crate::admission::Which;
use angelia_contract::event::ContextItem;
use angelia_core::admission::{Admitted, Observed};
use angelia_core::clock::UnixMillis;
use angelia_core::context::Said;
use angelia_core::directory::BotKey;
use angelia_core::inbox::InstanceId;

/// An event that was admitted, as far as the lines before it matter.
#[derive(Clone, Copy, Debug)]
pub struct Wanting<'a> {
    /// Whom it is for.
    pub admitted: &'a Admitted,
    /// When it was said.
    pub at: UnixMillis,
    /// Whether its author changed what it says: it has the lines that it had, and no more.
    pub changed: bool,
}

/// Who remembers for a while what was said and was not for an agent.
pub trait Overheard: Send + Sync {
    /// Keeps what somebody said, if the agent there may know it.
    fn note(&self, observed: Observed<'_>, which: Which<'_>, said: Said);

    /// What was said before an event, oldest first, as far as its instance may know it. Each line
    /// goes to an instance once.
    fn before(&self, observed: Observed<'_>, which: Which<'_>, wanting: Wanting<'_>) -> Vec<ContextItem>;

    /// An event is not delivered: the next has its lines.
    fn give_back(&self, bot: &BotKey, which: Which<'_>, instance: InstanceId);

    /// Whether the agent may know what this author said to others where something was observed
    /// for it.
    fn may_know(&self, observed: Observed<'_>, admitted: &Admitted, author: &str, is_bot: bool) -> bool;

    /// A line says something else now.
    fn reword(&self, bot: &BotKey, which: Which<'_>, text: &str);

    /// A line is gone.
    fn forget(&self, bot: &BotKey, which: Which<'_>);
}

/// Remembers nothing, and lets nothing be known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deaf;

impl Overheard for Deaf {
    fn note(&self, _observed: Observed<'_>, _which: Which<'_>, _said: Said) {}

    fn before(&self, _observed: Observed<'_>, _which: Which<'_>, _wanting: Wanting<'_>) -> Vec<ContextItem> {
        Vec::new()
    }

    fn give_back(&self, _bot: &BotKey, _which: Which<'_>, _instance: InstanceId) {}

    fn may_know(&self, _observed: Observed<'_>, _admitted: &Admitted, _author: &str, _is_bot: bool) -> bool {
        false
    }

    fn reword(&self, _bot: &BotKey, _which: Which<'_>, _text: &str) {}

    fn forget(&self, _bot: &BotKey, _which: Which<'_>) {}
}
