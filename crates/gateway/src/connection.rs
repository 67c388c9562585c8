//! `Link`: the one connection to the connector, as the rest of the crate sees it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// Lines that may wait for the socket; a full queue makes callers wait.
pub(crate) const QUEUE: usize = 256;

/// The queue in front of one socket.
pub(crate) type Wire = mpsc::Sender<Outgoing>;

/// Something for the socket's writer.
pub(crate) enum Outgoing {
    /// A frame, newline included.
    Line {
        line: Utf8Bytes,
        /// Raised when the line is handed to the socket.
        written: Option<Arc<AtomicBool>>,
    },
    /// End the connection, after everything queued before.
    Close,
}

impl Outgoing {
    pub(crate) fn line(line: String) -> Self {
        Self::Line { line: line.into(), written: None }
    }
}

/// Where the connection stands.
#[derive(Clone)]
pub(crate) enum Link {
    /// Not connected: a dial is under way or due, or the descriptor is.
    Down,
    /// Connected and greeted.
    Up(Wire),
    /// Closed on request, and not dialing.
    Idle {
        /// Whether the connector confirmed it.
        acked: bool,
    },
    /// Closed for good.
    Over {
        /// Whether the connector confirmed it.
        acked: bool,
    },
}

impl Link {
    /// The queue of the connection, if there is one.
    pub(crate) fn wire(&self) -> Option<&Wire> {
        match self {
            Self::Up(wire) => Some(wire),
            _ => None,
        }
    }
}

/// What the owner of a gateway wants of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Be connected.
    Run,
    /// Be quiet until told otherwise.
    Idle,
    /// End.
    Stop,
}
