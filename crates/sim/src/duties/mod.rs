//! What only one node does at a time: nodes give signs of life, take leases, read the streams
//! of bots under them, stand still, die, leave and come back, while the store fails or answers late.

mod node;
mod store;
mod world;

use std::fmt;

/// What is simulated: the real thing, or one that is known to be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As it is.
    Sound,
    /// The store looks at no token.
    NoFence,
    /// A node does not look at its clock: what it was told it holds, it holds.
    NoClock,
    /// A node counts the term from the answer to its sign of life on.
    LateTerm,
}

/// What must never be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Two nodes take the same bot for their own at the same moment.
    TwoHolders(usize),
    /// Something of a bot's stream was taken in twice, or set back.
    Doubled(usize, u64),
    /// Something of it was passed over.
    Lost(usize, u64),
    /// When everything is well again, nobody reads it.
    Unread(usize),
    /// When everything is well for long, one node has two more than another.
    Uneven,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoHolders(bot) => write!(f, "two nodes take bot {bot} for their own"),
            Self::Doubled(bot, item) => write!(f, "bot {bot}: {item} was taken in again"),
            Self::Lost(bot, item) => write!(f, "bot {bot}: what comes before {item} was passed over"),
            Self::Unread(bot) => write!(f, "nobody reads bot {bot}"),
            Self::Uneven => write!(f, "one node has two more to do than another"),
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
