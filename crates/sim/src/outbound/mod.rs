//! What agents send: gateways ask, nodes write it into the ledger they share and
//! call providers, each bot's calls by the node that holds it.
//!
//! What is driven are core's [`ChatQueue`](angelia_core::egress::delivery::ChatQueue),
//! the rules of the ledger, and its clock. Who lives and who holds what is simulated
//! as a cluster would keep it: a member that is not heard of for half a minute is
//! replaced, and whoever replaces it adopts what it left.

mod gateway;
mod judge;
mod members;
mod process;
mod provider;
mod store;
mod takeover;
mod world;

use angelia_core::ports::ActionId;
use std::fmt;

/// What is simulated: the real thing, or one that is known to be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As it is.
    Sound,
    /// The ledger lets everybody begin and finish everything.
    NoFence,
    /// A node that starts takes up everything that is unfinished, also what others
    /// work on, and nobody asks whose it is.
    ResumeEverything,
    /// What is said of a message in doubt is written down by a commit of its own.
    RemarkApart,
}

/// What must never be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An accepted action did not end.
    Lost(ActionId),
    /// An action was called after a later one of its chat.
    OutOfOrder(ActionId, ActionId),
    /// A provider has it twice.
    SaidTwice(ActionId),
    /// A provider has it, and its agent was told that it never would.
    ToldNever(ActionId),
    /// The ledger says that a provider has it or has not, and that is not so.
    Untrue(ActionId),
    /// A message does not show what it was changed to last.
    OldText(ActionId),
    /// The ledger listened to somebody who had lost the action.
    PastTheFence(ActionId),
    /// It was called for a gateway that had been revoked.
    Revoked(ActionId),
    /// Nobody in its chat heard that it may be missing.
    PassedOver(ActionId),
    /// Its chat heard that twice, or it was repeated twice.
    RemarkedTwice(ActionId),
    /// A request was answered twice.
    AnsweredTwice(u64),
    /// A request was taken and never answered, by a node that went on.
    Silent(u64),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(id) => write!(f, "action {} never ended", id.0),
            Self::OutOfOrder(later, id) => write!(f, "action {} was called after {}", id.0, later.0),
            Self::SaidTwice(id) => write!(f, "action {} was said twice", id.0),
            Self::ToldNever(id) => {
                write!(f, "action {} was said after its agent heard that it never was", id.0)
            }
            Self::Untrue(id) => write!(f, "action {} did not end as the ledger says", id.0),
            Self::OldText(id) => write!(f, "what action {} changed shows an older text", id.0),
            Self::PastTheFence(id) => write!(f, "action {} was changed by one that had lost it", id.0),
            Self::Revoked(id) => write!(f, "action {} was called for a revoked gateway", id.0),
            Self::PassedOver(id) => write!(f, "action {} is in doubt, and its chat heard nothing", id.0),
            Self::RemarkedTwice(id) => write!(f, "action {} was remarked upon twice", id.0),
            Self::AnsweredTwice(request) => write!(f, "request {request} was answered twice"),
            Self::Silent(request) => write!(f, "request {request} was never answered"),
        }
    }
}

/// Lets so many things happen, then lets everything settle. Answers how many
/// events the machines were told, or what was wrong.
pub fn run(seed: u64, steps: usize, variant: Variant) -> Result<u64, Violation> {
    world::World::new(seed, variant, false).run(steps)
}

/// The same, with the story of what happened.
pub fn replay(seed: u64, steps: usize, variant: Variant) -> (Result<u64, Violation>, Vec<String>) {
    let mut world = world::World::new(seed, variant, true);
    let outcome = world.run(steps);
    (outcome, world.outside.trace.take())
}
