//! Turns: people write while an agent is at work, and what they write waits for it.
//!
//! What is driven are core's [`Turns`](angelia_core::turns::Turns), its backlog and its window,
//! as a socket of the connector drives them, over a log that fails at times. Time is
//! simulated. The gateway marks its turns as newer ones do, or only says which message ends one, or
//! not even that; what it cannot bear is a line in the middle of a turn.
//!
//! It asks only where one person writes: typing names a chat and not a conversation, so in a
//! chat of several nobody can tell whose question it is. And what it asked on a socket that has
//! ended is not known to the next one.

mod agenda;
mod conversations;
mod gateway;
mod jobs;
mod judge;
mod people;
mod session;
mod store;
mod world;

use angelia_core::inbox::Seq;
use std::fmt;

/// What is simulated: the real thing, or one that is known to be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As it is.
    Sound,
    /// A turn is over as soon as its last sign is there.
    EndsAtTheSign,
    /// Lines that go together are pushed before that is written down.
    JoinsUncommitted,
    /// A conversation is free as soon as what was found of it was pushed, whatever came meanwhile.
    NoSecondLook,
    /// What waits is waited for by everything behind it.
    HeadOfLine,
}

/// A line that somebody wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineId(pub u64);

/// What must never be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A line was pushed into a turn that had not asked for it.
    IntoATurn(Seq),
    /// A line reached the model after a later one of its conversation.
    OutOfOrder(LineId),
    /// A line reached the model twice.
    Twice(LineId),
    /// An entry was pushed twice on one socket.
    PushedTwice(Seq),
    /// What was pushed once was pushed again with other lines in it.
    Changed(Seq),
    /// More is held, or went together, than may be.
    TooMuch(&'static str),
    /// A line whose conversation was quiet waited for others.
    Waited(LineId),
    /// A line reached nobody.
    Lost(LineId),
    /// A turn stayed open, or a conversation held, long after everything was over.
    Open,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IntoATurn(seq) => write!(f, "{} was pushed into a turn", seq.buffer_id()),
            Self::OutOfOrder(line) => write!(f, "line {} came after a later one", line.0),
            Self::Twice(line) => write!(f, "line {} reached the model twice", line.0),
            Self::PushedTwice(seq) => write!(f, "{} was pushed twice on one socket", seq.buffer_id()),
            Self::Changed(seq) => write!(f, "{} was pushed again with other lines in it", seq.buffer_id()),
            Self::TooMuch(what) => write!(f, "too many {what}"),
            Self::Waited(line) => write!(f, "line {} waited for another conversation", line.0),
            Self::Lost(line) => write!(f, "line {} reached nobody", line.0),
            Self::Open => write!(f, "a turn is open or a conversation held, and nobody works"),
        }
    }
}

/// Lets so many things happen, then lets everything settle. Answers how many
/// things happened, or what was wrong.
pub fn run(seed: u64, steps: usize, variant: Variant) -> Result<u64, Violation> {
    world::World::new(seed, variant, false).run(steps)
}

/// The same, with the story of what happened.
pub fn replay(seed: u64, steps: usize, variant: Variant) -> (Result<u64, Violation>, Vec<String>) {
    let mut world = world::World::new(seed, variant, true);
    let outcome = world.run(steps);
    (outcome, world.trace.take())
}
