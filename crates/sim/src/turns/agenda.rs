//! What is about to happen, and when.

use super::gateway::{Down, Timer, Up};
use super::jobs::{Answer, Job};
use super::people::Writes;
use angelia_core::clock::Mono;
use angelia_core::ports::Hint;
use std::collections::BTreeMap;
use std::time::Duration;

/// Which socket; they are numbered.
pub(crate) type SocketId = u64;

/// Something that happens.
#[derive(Debug)]
pub(crate) enum Event {
    /// Somebody begins to write, of their own accord.
    Talk,
    /// Somebody writes a line.
    Writes(Writes),
    /// The author of some line changes it.
    Edits,
    /// A hint reaches the node.
    Hint(Hint),
    /// The node looks how far the log is.
    Looks,
    /// Time passes for a socket.
    Wakes(SocketId),
    /// The log does what a socket asked for.
    Runs(SocketId, Job),
    /// What the log said reaches the socket.
    Answered(SocketId, Answer),
    /// What the gateway asked for was done, or not.
    Performed(SocketId, u64, bool),
    /// A frame reaches the gateway.
    ToGateway(SocketId, Down),
    /// A frame reaches the node.
    ToNode(SocketId, Up),
    /// The gateway works on.
    Gateway(Timer),
    /// The gateway dials.
    Dials,
    /// Something breaks.
    Fault,
}

/// What is about to happen, in order.
#[derive(Default)]
pub(crate) struct Agenda {
    events: BTreeMap<(Mono, u64), Event>,
    count: u64,
    pub(crate) now: Mono,
}

impl Agenda {
    pub(crate) fn at(&mut self, at: Mono, event: Event) {
        self.count += 1;
        self.events.insert((at.max(self.now), self.count), event);
    }

    pub(crate) fn after(&mut self, span: Duration, event: Event) {
        self.at(self.now + span, event);
    }

    /// The next thing that happens; time passes until then.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let ((at, _), event) = self.events.pop_first()?;
        self.now = at;
        Some(event)
    }
}
