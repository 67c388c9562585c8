//! How a stand-in behaves where gateways differ.

use std::time::Duration;

/// What a message must contain for the agent to want an approval in mid-turn.
pub const NEEDS_APPROVAL: &str = "needs-approval";

/// What a message must contain for the agent to ask something back in mid-turn, in words.
pub const ASKS_BACK: &str = "asks-back";

/// What a message must contain for the agent to use what else a connector may offer: words while it
/// works, a thread, a note that it takes back.
pub const USES_EVERYTHING: &str = "uses-everything";

/// What a message must contain for the agent to send a picture.
pub const DRAWS: &str = "draws-something";

/// The platforms it says hello for, and what its operator and its version made of it.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(super) identities: Vec<(String, String)>,
    pub(super) turn: Duration,
    pub(super) reacts: bool,
    pub(super) marks_interrupted: bool,
    pub(super) notifies: bool,
    pub(super) types: bool,
    pub(super) shares_sessions: bool,
    pub(super) starts_for: Duration,
    pub(super) streams: bool,
}

impl Default for Settings {
    /// One that was given an address, an id and a secret, and nothing else.
    fn default() -> Self {
        Self {
            identities: vec![("relay".to_owned(), String::new())],
            turn: Duration::from_secs(6),
            reacts: true,
            marks_interrupted: true,
            notifies: true,
            types: true,
            shares_sessions: false,
            starts_for: Duration::ZERO,
            streams: false,
        }
    }
}

impl Settings {
    /// Says hello for these platforms and bots, the first being the primary one.
    pub fn fronts(mut self, identities: &[(&str, &str)]) -> Self {
        self.identities =
            identities.iter().map(|(platform, bot)| ((*platform).to_owned(), (*bot).to_owned())).collect();
        self
    }

    /// How long the model needs for an answer.
    pub fn turn(mut self, length: Duration) -> Self {
        self.turn = length;
        self
    }

    /// Marks no turn, whatever the connector offers.
    pub fn never_reacts(mut self) -> Self {
        self.reacts = false;
        self
    }

    /// Takes 👀 away from an interrupted turn and leaves no ✅, as when it is cancelled.
    pub fn leaves_interrupted_unmarked(mut self) -> Self {
        self.marks_interrupted = false;
        self
    }

    /// Does not tell its final answer from any other line.
    pub fn never_notifies(mut self) -> Self {
        self.notifies = false;
        self
    }

    /// Shows nobody that it is at work.
    pub fn never_types(mut self) -> Self {
        self.types = false;
        self
    }

    /// Has one conversation for all members of a group.
    pub fn shares_sessions(mut self) -> Self {
        self.shares_sessions = true;
        self
    }

    /// Shows its answers while they grow.
    pub fn streams(mut self) -> Self {
        self.streams = true;
        self
    }

    /// For so long it is a process that has just started: what comes is marked as begun and as
    /// done at once, and taken up, marks and all, when the time is over.
    pub fn starts_for(mut self, length: Duration) -> Self {
        self.starts_for = length;
        self
    }
}
