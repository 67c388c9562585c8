//! The bus of several nodes: publish and subscribe on a Redis they share.
//!
//! A channel for each instance and each room, and one for what nodes say to each other; a
//! node hears of what it follows, and of nothing else (docs/decisions/0044). Nobody waits for
//! the server: without it hints are dropped and counted, and the store has everything.
//!
//! | Question | File |
//! |---|---|
//! | What does a message look like, and who may write one? | `wire.rs` |
//! | Which channel has a topic? | `channel.rs` |
//! | What is followed? | `interest.rs` |
//! | What waits to be sent, and what is dropped? | `outbox.rs` |
//! | Which commands are used, on a server and on a cluster? | `link.rs` |
//! | When is the server gone, and when is it back? | `serve.rs` |

mod channel;
mod interest;
mod link;
mod outbox;
mod serve;
mod wire;

use crate::local_bus::LocalBus;
use angelia_core::error::{Error, Result};
use angelia_core::ports::{Bus, BusStats, Hint, Listener, Topic};
use interest::Interest;
use link::Servers;
use outbox::Outbox;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::task::JoinHandle;
use wire::{Refused, Wire};

/// Where the bus is, and who is on it.
#[derive(Clone)]
pub struct Config {
    /// The server: `redis://` or `rediss://`, with user and password. Of a cluster several, with
    /// commas between: any of them tells of the others, as long as it is there.
    pub url: String,
    /// The certificates, as PEM, that have to have signed a server's own. Without them those count
    /// that the system trusts.
    pub authority: Option<Vec<u8>>,
    /// The cluster's own id, so that several can share a server: letters, digits, `-` and `_`.
    pub prefix: String,
    /// This node's own id: no other one has it, and none had before.
    pub node: String,
    /// What all nodes of the cluster know and nobody else does.
    pub key: [u8; 32],
}

impl fmt::Debug for Config {
    /// Without what has to stay secret.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url: _, authority: _, prefix, node, key: _ } = self;
        to.debug_struct("Config").field("prefix", prefix).field("node", node).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Counters {
    sent: AtomicU64,
    received: AtomicU64,
    dropped: AtomicU64,
    forged: AtomicU64,
    unreadable: AtomicU64,
    connects: AtomicU64,
}

/// The bus, as one node has it.
pub struct RedisBus {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    servers: Servers,
    prefix: String,
    wire: Wire,
    /// Who listens on this node.
    listeners: Listeners,
    interest: Interest,
    outbox: Outbox,
    connected: AtomicBool,
    counters: Counters,
    /// Whether it was said that the server is gone: it is said once.
    gone_told: Mutex<bool>,
}

/// Who listens on this node: to them it is a bus within the process.
#[derive(Default)]
struct Listeners(LocalBus);

impl Listeners {
    fn tell(&self, hint: Hint) {
        self.0.publish(hint);
    }
}

impl RedisBus {
    /// Joins the bus. It is connected in its own time, and again whenever the connection is
    /// lost; this waits for nothing, and fails only if the configuration can never work.
    /// Within a runtime, which it needs for as long as it lives.
    pub fn start(config: &Config) -> Result<Arc<Self>> {
        if !channel::is_prefix(&config.prefix) {
            return Err(Error::invalid("the prefix of the bus has to be 1 to 64 letters, digits, - and _"));
        }
        let servers = Servers::parse(&config.url, config.authority.clone())?;
        let shared = Arc::new(Shared {
            servers,
            prefix: config.prefix.clone(),
            wire: Wire::new(&config.node, &config.key),
            listeners: Listeners::default(),
            interest: Interest::default(),
            outbox: Outbox::default(),
            connected: AtomicBool::new(false),
            counters: Counters::default(),
            gone_told: Mutex::new(false),
        });
        let task = tokio::spawn(serve::run(shared.clone()));
        Ok(Arc::new(Self { shared, task }))
    }

    /// What was counted so far.
    pub fn stats(&self) -> BusStats {
        let Counters { sent, received, dropped, forged, unreadable, connects } = &self.shared.counters;
        let (waiting, waiting_bytes) = self.shared.outbox.waiting();
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        BusStats {
            sent: now(sent),
            received: now(received),
            dropped: now(dropped),
            forged: now(forged),
            unreadable: now(unreadable),
            reconnects: now(connects).saturating_sub(1),
            waiting,
            waiting_bytes,
        }
    }
}

impl Drop for RedisBus {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Bus for RedisBus {
    fn publish(&self, hint: Hint) {
        if self.shared.is_ours_alone(&hint) {
            return self.shared.listeners.tell(hint);
        }
        self.shared.listeners.tell(hint.clone());
        self.shared.send(hint);
    }

    fn subscribe(&self, listener: Listener) {
        self.shared.listeners.0.subscribe(listener);
    }

    fn follow(&self, topic: Topic) {
        if topic != Topic::Control {
            self.shared.interest.follow(topic);
        }
    }

    fn unfollow(&self, topic: &Topic) {
        // The socket may be on another node by now, which heard nothing of what was kept here.
        if self.shared.interest.unfollow(topic) {
            self.shared.send(Hint::Missed(Some(topic.clone())));
        }
    }

    fn is_connected(&self) -> bool {
        self.shared.connected.load(Ordering::Relaxed)
    }

    fn stats(&self) -> Option<BusStats> {
        Some(Self::stats(self))
    }
}

impl Shared {
    /// Whether a hint concerns nobody but this node: what is in an inbox concerns its socket, and
    /// that is here. A room may have readers everywhere, and what nodes say is meant for others.
    fn is_ours_alone(&self, hint: &Hint) -> bool {
        match hint {
            Hint::Log { .. } | Hint::Reached { .. } | Hint::Removed { .. } | Hint::Revised { .. } => {
                self.interest.keep(&hint.topic())
            }
            Hint::Line(_) | Hint::Room { .. } | Hint::Control(_) | Hint::Missed(_) => false,
        }
    }

    fn send(&self, hint: Hint) {
        if !self.outbox.put(hint) {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A message came.
    fn hear(&self, channel: &[u8], message: Vec<u8>) {
        self.counters.received.fetch_add(1, Ordering::Relaxed);
        match self.wire.read(channel, message) {
            Ok(Some(hint)) => self.listeners.tell(hint),
            Ok(None) => {}
            Err(Refused::Forged) => drop(self.counters.forged.fetch_add(1, Ordering::Relaxed)),
            Err(Refused::Unreadable) => {
                self.counters.unreadable.fetch_add(1, Ordering::Relaxed);
                // A newer node said something: the store knows what.
                if let Some(topic) = channel::topic(&self.prefix, channel) {
                    self.listeners.tell(Hint::Missed(Some(topic)));
                }
            }
        }
    }

    /// The server brings everything that is followed.
    fn came(&self) {
        let before = self.counters.connects.fetch_add(1, Ordering::Relaxed);
        self.connected.store(true, Ordering::Relaxed);
        self.outbox.open();
        *self.gone_told.lock() = false;
        let server = &self.servers;
        if before == 0 {
            tracing::info!(%server, "connected to the bus");
        } else {
            tracing::info!(%server, "the bus is back");
        }
        self.listeners.tell(Hint::Missed(None));
    }

    /// It does not, or does not any more.
    fn went(&self, why: &str) {
        let was_there = self.connected.swap(false, Ordering::Relaxed);
        let dropped = self.outbox.close();
        self.counters.dropped.fetch_add(dropped as u64, Ordering::Relaxed);
        if !std::mem::replace(&mut *self.gone_told.lock(), true) {
            let server = &self.servers;
            tracing::warn!(%server, %why, "the bus is gone: what other nodes do is seen late until it is back");
        }
        // Whoever waits for hints has to look for itself from now on, and not only once it has
        // waited as long as one does whom hints reach.
        if was_there {
            self.listeners.tell(Hint::Missed(None));
        }
    }
}
