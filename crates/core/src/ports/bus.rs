//! The bus: tells servers of what was committed, here or elsewhere, and what nodes say to
//! each other.
//!
//! It may lose, double and reorder everything at any time. A hint says how far a log
//! is and brings the entry along as a gift; whoever misses one reads the store, at the
//! next hint or at the next look (decision 0002). A node hears of what it follows
//! (decision 0044).

use super::ActionId;
use crate::clock::UnixMillis;
use crate::directory::BotKey;
use crate::inbox::{Entry, Epoch, InstanceId, Mark, Seq};
use crate::store::Line;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a log hint tells of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HintKind {
    /// It is at the end of the queue.
    Appended,
    /// It is ahead of all the others.
    Ahead,
    /// It is a dead letter that is ahead again, under the number it had.
    Redriven,
}

/// What a hint is about, and what somebody may want to hear of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// An instance: the node with its socket follows it.
    Instance(InstanceId),
    /// A room of the web chat: every node with a reader follows it.
    Room(String),
    /// What is asked of a bot: the node that holds it follows it.
    Bot(BotKey),
    /// What is answered to a node: that one follows it.
    Node(String),
    /// What nodes say to each other. All follow it, always.
    Control,
}

/// Something that was committed, or said.
#[derive(Clone, Debug)]
pub enum Hint {
    /// An entry came, and the log of its instance is there now.
    Log {
        /// The instance.
        instance: InstanceId,
        /// How far its log is.
        mark: Mark,
        /// The entry.
        entry: Entry,
        /// Where it is in the queue.
        kind: HintKind,
    },
    /// The log of an instance is there now; the entry that made it so is too large to come along.
    Reached {
        /// The instance.
        instance: InstanceId,
        /// How far its log is.
        mark: Mark,
    },
    /// Entries left an inbox other than by settling.
    Removed {
        /// The instance.
        instance: InstanceId,
        /// Which.
        seqs: Vec<Seq>,
    },
    /// What a waiting entry says was replaced.
    Revised {
        /// The instance.
        instance: InstanceId,
        /// The entry as it is now.
        entry: Entry,
    },
    /// A web-chat line was written or changed.
    Line(Line),
    /// Something happened in a room that is written nowhere: somebody types, the room closes.
    Room {
        /// The room.
        room: String,
        /// What, as JSON text that is the web chat's own.
        event: String,
    },
    /// One node says something to others.
    Control(Control),
    /// Hints of this topic may have been lost, or of any: whoever counts on them reads the store.
    /// Told whenever the bus comes to be connected, when a topic that is followed anew begins to
    /// come, and when it is known that something was left out.
    Missed(Option<Topic>),
}

/// What one node says to others. Each may get lost without harm: whoever waits for it looks
/// for itself after a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// An instance was claimed: whoever drains it under an older epoch stops. Its own topic.
    Claimed {
        /// The instance.
        instance: InstanceId,
        /// Under which epoch.
        epoch: Epoch,
        /// By which node.
        node: String,
    },
    /// A socket that was replaced is gone, and what was acknowledged on it is durable. Its
    /// own topic.
    Left {
        /// The instance.
        instance: InstanceId,
        /// Under which epoch it drained.
        epoch: Epoch,
    },
    /// The end of what runs in a session is asked for. The instance's topic. Whoever could
    /// write to the bus could say it again, and end a later turn: it counts once, and only
    /// while it is fresh.
    Interrupt {
        /// Whose session.
        instance: InstanceId,
        /// The epoch its socket had: one that is older has been replaced.
        epoch: Epoch,
        /// The key, as whoever asks spells it.
        session_key: String,
        /// The chat.
        chat_id: String,
        /// Which of all interrupts it is, and when it was asked for by the store's clock.
        said: Said,
    },
    /// A socket was replaced by another process that uses the same gateway id. It counts once,
    /// and while it is fresh.
    TookOver {
        /// The instance.
        instance: InstanceId,
        /// Under which epoch the replaced socket drained it.
        epoch: Epoch,
        /// When, by the store's clock.
        at: UnixMillis,
    },
    /// An action of an instance has ended. The instance's topic.
    Done {
        /// Which action.
        action: ActionId,
        /// Whose.
        instance: InstanceId,
        /// What came of it, as JSON text.
        result: String,
    },
    /// The change feed has a line with this number.
    Changed {
        /// The number.
        id: i64,
    },
    /// Actions wait in the ledger for the node that holds this bot. The bot's topic.
    Waiting {
        /// The bot.
        bot: BotKey,
    },
    /// A lease was given back: whoever waits for it may take it.
    Freed {
        /// Its name.
        lease: String,
    },
    /// Something is asked of the node that holds a bot. The bot's topic.
    Call {
        /// The bot.
        bot: BotKey,
        /// The number under which it is answered.
        id: u64,
        /// Who asks.
        node: String,
        /// What, as JSON text.
        body: String,
    },
    /// Something is asked of all nodes.
    Inquiry {
        /// The number under which it is answered.
        id: u64,
        /// Who asks.
        node: String,
        /// What, as JSON text.
        body: String,
    },
    /// The answer to a call, or to an inquiry. The topic of whoever asked.
    Answer {
        /// Who asked.
        node: String,
        /// The number of the call.
        id: u64,
        /// The answer, as JSON text.
        body: String,
    },
}

/// What makes one thing that was said differ from all others, so that it counts once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Said {
    /// By which node.
    pub node: String,
    /// The how-manieth of that node.
    pub number: u64,
    /// When, by the store's clock.
    pub at: UnixMillis,
}

impl Hint {
    /// What it is about: it reaches the nodes that follow that.
    pub fn topic(&self) -> Topic {
        match self {
            Self::Log { instance, .. }
            | Self::Reached { instance, .. }
            | Self::Removed { instance, .. }
            | Self::Revised { instance, .. } => Topic::Instance(*instance),
            Self::Line(line) => Topic::Room(line.room.clone()),
            Self::Room { room, .. } => Topic::Room(room.clone()),
            Self::Control(control) => control.topic(),
            Self::Missed(of) => of.clone().unwrap_or(Topic::Control),
        }
    }
}

impl Control {
    /// Where it is said: what concerns one instance only where its socket is, and what
    /// concerns a bot only where that is held.
    pub fn topic(&self) -> Topic {
        match self {
            Self::Claimed { instance, .. }
            | Self::Left { instance, .. }
            | Self::Interrupt { instance, .. }
            | Self::Done { instance, .. } => Topic::Instance(*instance),
            Self::Waiting { bot } | Self::Call { bot, .. } => Topic::Bot(bot.clone()),
            Self::Answer { node, .. } => Topic::Node(node.clone()),
            // Every node turns away whoever has taken a socket too often.
            Self::TookOver { .. } | Self::Changed { .. } | Self::Freed { .. } | Self::Inquiry { .. } => {
                Topic::Control
            }
        }
    }
}

/// Who is told. On the thread that publishes, or on the one that reads from the other nodes:
/// it must not wait.
pub type Listener = Arc<dyn Fn(Hint) + Send + Sync>;

/// Where hints go.
pub trait Bus: Send + Sync {
    /// Tells everybody, if it can, and never waits. Who listens on this node is told here and now,
    /// once. Engines publish in the order of their commits.
    fn publish(&self, hint: Hint);

    /// Has somebody told from now on: of what this node publishes, of what it follows, and of
    /// what was missed.
    fn subscribe(&self, listener: Listener);

    /// From now on hints of this topic are brought to this node from the others, until it is
    /// unfollowed as often as it was followed. [`Hint::Missed`] says when they begin to come.
    /// Of a bus within one process everything is heard anyway.
    fn follow(&self, _topic: Topic) {}

    /// Takes a [`follow`](Self::follow) back.
    fn unfollow(&self, _topic: &Topic) {}

    /// Whether hints come and go. While they do not, whoever counts on them looks more often.
    fn is_connected(&self) -> bool {
        true
    }

    /// What was counted since the start, where hints leave the process.
    fn stats(&self) -> Option<BusStats> {
        None
    }
}

/// What the bus of a node has counted since it was started, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusStats {
    /// Messages the server took.
    pub sent: u64,
    /// Messages the server brought, whoever wrote them.
    pub received: u64,
    /// Hints that were not sent: there was no server, no room, or they were too long.
    pub dropped: u64,
    /// Messages nobody listens to, because no node of the cluster wrote them.
    pub forged: u64,
    /// Messages of other nodes that this one cannot read.
    pub unreadable: u64,
    /// How often the server was there again after it was gone.
    pub reconnects: u64,
    /// Hints that wait to be sent now.
    pub waiting: usize,
    /// Their bytes, about.
    pub waiting_bytes: usize,
}

/// Following a topic, for as long as this lives.
pub struct Following {
    bus: Arc<dyn Bus>,
    topic: Topic,
}

impl Following {
    /// Follows `topic` from now on.
    pub fn new(bus: &Arc<dyn Bus>, topic: Topic) -> Self {
        bus.follow(topic.clone());
        Self { bus: bus.clone(), topic }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.bus.unfollow(&self.topic);
    }
}
