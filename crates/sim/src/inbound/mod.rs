//! What people write: it is appended to the logs of instances, hints tell of it, and
//! sockets on several nodes drain it to their agents.

mod judge;
mod session;
mod store;
mod world;

use angelia_core::inbox::{InstanceId, Seq};
use std::fmt;

/// What is simulated: the real thing, or one that is known to be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As it is.
    Sound,
    /// Nobody looks at epochs.
    NoFence,
    /// A hint is taken for the next one, whatever is missing in between, and
    /// nobody looks at the log by themselves.
    Watermark,
}

/// What must never be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An accepted entry reached nobody.
    Lost(InstanceId, Seq),
    /// An entry came after a later one of its conversation.
    OutOfOrder(InstanceId, Seq, Seq),
    /// A gateway got what was for another.
    SomeoneElses(InstanceId, Seq),
    /// Somebody changed an instance that another had claimed.
    PastTheFence(InstanceId),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(instance, seq) => {
                write!(f, "instance {}: {} reached nobody", instance.0, seq.buffer_id())
            }
            Self::OutOfOrder(instance, before, seq) => {
                write!(f, "instance {}: {} came after {}", instance.0, seq.buffer_id(), before.buffer_id())
            }
            Self::SomeoneElses(instance, seq) => {
                write!(f, "instance {} got {} of somebody else", instance.0, seq.buffer_id())
            }
            Self::PastTheFence(instance) => {
                write!(f, "instance {} was changed by one that had lost it", instance.0)
            }
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
    (outcome, world.trace.take())
}
