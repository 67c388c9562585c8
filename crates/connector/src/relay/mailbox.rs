//! What is on its way to one socket's task. Small when idle: ten thousand of
//! them must not be felt. And who hears on the bus what comes into it.

use super::Relay;
use super::sessions::Sessions;
use crate::cluster::Cluster;
use crate::egress::Egress;
use crate::identities::Identities;
use crate::upkeep::Waker;
use angelia_core::inbox::{Entry, InstanceId, Mark, Revisions, Seq};
use angelia_core::ports::{self as bus, Bus, Control, HintKind, Topic};
use angelia_platforms::webchat::Hub;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};
use tokio::sync::Notify;

/// Fresh entries kept for a socket; beyond them it reads the store.
const MAX_FRESH: usize = 64;
/// Their bytes, for the same reason.
const MAX_FRESH_BYTES: usize = 256 * 1024;
/// Removed entries a socket is told of.
const MAX_REMOVED: usize = 1_024;
/// Interrupts waiting to be written; a reader that stalls so long has no turn to stop.
const MAX_INTERRUPTS: usize = 64;

/// Why the server ends a socket; of two reasons the one further down counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// The server is about to stop: the socket ends as soon as no turn is open on it.
    WhenDone,
    /// A newer socket of the same instance took over.
    Replaced,
    /// The server is stopping, or the gateway has to dial again.
    Shutdown,
    /// The gateway was revoked.
    Revoked,
}

/// The end of what runs in a session is asked for.
#[derive(Debug)]
pub(crate) struct Interrupt {
    /// The key, as whoever asks spells it.
    pub(crate) session_key: String,
    /// The chat.
    pub(crate) chat_id: String,
}

/// An answer for a gateway's request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Which of the socket's pending requests.
    pub(crate) ticket: u64,
    /// The `outbound_result` line.
    pub(crate) line: String,
    /// Whether what was asked for was done.
    pub(crate) ok: bool,
}

/// How far the log is, and the entry that made it so.
#[derive(Debug)]
pub(crate) struct Hint {
    pub(crate) mark: Mark,
    pub(crate) entry: Entry,
    pub(crate) kind: HintKind,
}

/// Everything that waits for a socket's task.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    /// What is to end, ahead of everything.
    pub(crate) interrupts: VecDeque<Interrupt>,
    /// Answers to requests.
    pub(crate) answers: VecDeque<Answer>,
    /// Entries just appended, in order.
    pub(crate) hints: VecDeque<Hint>,
    hint_bytes: usize,
    /// How far the log is, if some were left out.
    pub(crate) told: Option<Mark>,
    /// Entries that left the inbox otherwise.
    pub(crate) removed: Vec<Seq>,
    /// Entries that say something else now, each in its newest form.
    pub(crate) revised: Revisions,
    /// Whether the socket has to end.
    pub(crate) ending: Option<Ending>,
}

/// The mailbox of one socket's task.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    mail: Mutex<Mail>,
    notify: Notify,
}

impl Mailbox {
    /// Takes everything that waits.
    pub(crate) fn take(&self) -> Mail {
        std::mem::take(&mut *self.mail.lock())
    }

    /// Resolves when something was put in since the last time.
    pub(crate) async fn arrival(&self) {
        self.notify.notified().await;
    }

    pub(crate) fn hint(&self, hint: Hint) {
        self.put(|mail| {
            let full = mail.hints.len() >= MAX_FRESH || mail.hint_bytes >= MAX_FRESH_BYTES;
            if full || mail.told.is_some() {
                mail.told = Some(mail.told.unwrap_or_default().newest(hint.mark));
            } else {
                mail.hint_bytes += hint.entry.body.len();
                mail.hints.push_back(hint);
            }
        });
    }

    /// Tells how far the log is, to whoever may have missed a hint.
    pub(crate) fn tell(&self, mark: Mark) {
        self.put(|mail| {
            // What is in line says so itself.
            if mail.hints.back().is_none_or(|hint| hint.mark.newest(mark) != hint.mark) {
                mail.told = Some(mail.told.unwrap_or_default().newest(mark));
            }
        });
    }

    pub(crate) fn remove(&self, seqs: &[Seq]) {
        self.put(|mail| {
            // Whoever is not told pushes an entry once more than needed; nothing worse.
            let room = MAX_REMOVED.saturating_sub(mail.removed.len());
            mail.removed.extend(seqs.iter().take(room));
        });
    }

    pub(crate) fn revise(&self, entry: Entry) {
        self.put(|mail| mail.revised.put(entry));
    }

    pub(crate) fn answer(&self, answer: Answer) {
        self.put(|mail| mail.answers.push_back(answer));
    }

    /// `false` if too many wait already.
    pub(crate) fn interrupt(&self, interrupt: Interrupt) -> bool {
        let mut mail = self.mail.lock();
        if mail.interrupts.len() >= MAX_INTERRUPTS {
            return false;
        }
        mail.interrupts.push_back(interrupt);
        drop(mail);
        self.notify.notify_one();
        true
    }

    pub(crate) fn end(&self, ending: Ending) {
        self.put(|mail| mail.ending = mail.ending.max(Some(ending)));
    }

    fn put(&self, change: impl FnOnce(&mut Mail)) {
        change(&mut self.mail.lock());
        self.notify.notify_one();
    }
}

/// Listens on the bus and takes what it hears to whoever waits for it. Made before
/// the store, which publishes, and told of everybody else after.
pub struct Subscriber {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) hub: Arc<Hub>,
    /// Weak: they read the store, which publishes to this.
    pub(crate) others: OnceLock<Others>,
}

/// Who else hears what comes over the bus.
pub(crate) struct Others {
    pub(crate) wake: Weak<Waker>,
    pub(crate) identities: Weak<Identities>,
    pub(crate) egress: Weak<Egress>,
    pub(crate) cluster: Weak<Cluster>,
    pub(crate) relay: Weak<Relay>,
}

impl Subscriber {
    /// One that listens on `bus`.
    pub fn on(bus: &Arc<dyn Bus>) -> Arc<Self> {
        let subscriber = Arc::new(Self {
            bus: bus.clone(),
            sessions: Sessions::on(bus.clone()),
            hub: Hub::on(bus.clone()),
            others: OnceLock::new(),
        });
        let listening = Arc::downgrade(&subscriber);
        bus.subscribe(Arc::new(move |hint| {
            if let Some(listening) = listening.upgrade() {
                listening.hear(hint);
            }
        }));
        subscriber
    }

    fn hear(&self, hint: bus::Hint) {
        match hint {
            bus::Hint::Log { instance, mark, entry, kind } => {
                if !self.sessions.hint(instance, Hint { mark, entry, kind }) {
                    self.waits(instance);
                }
            }
            bus::Hint::Reached { instance, mark } => {
                self.sessions.tell(instance, mark);
                if !self.sessions.is_live(instance) {
                    self.waits(instance);
                }
            }
            bus::Hint::Removed { instance, seqs } => self.sessions.remove(instance, &seqs),
            bus::Hint::Revised { instance, entry } => self.sessions.revise(instance, entry),
            bus::Hint::Line(line) => self.hub.line(&line),
            bus::Hint::Room { room, event } => self.hub.hear(&room, &event),
            bus::Hint::Control(control) => self.hear_control(control),
            bus::Hint::Missed(of) => self.missed(of.as_ref()),
        }
    }

    /// One node says something to others.
    fn hear_control(&self, control: Control) {
        match control {
            Control::Claimed { instance, epoch, .. } => self.sessions.claimed_elsewhere(instance, epoch),
            Control::Left { instance, epoch } => self.sessions.left_elsewhere(instance, epoch),
            Control::Interrupt { .. } | Control::TookOver { .. } => {
                if let Some(relay) = self.others.get().and_then(|others| others.relay.upgrade()) {
                    relay.hear(control);
                }
            }
            Control::Done { .. } | Control::Waiting { .. } => {
                if let Some(egress) = self.others.get().and_then(|others| others.egress.upgrade()) {
                    egress.hear(control);
                }
            }
            Control::Changed { .. } => {
                if let Some(identities) = self.others.get().and_then(|others| others.identities.upgrade()) {
                    identities.look_now();
                }
            }
            Control::Freed { .. }
            | Control::Call { .. }
            | Control::Inquiry { .. }
            | Control::Answer { .. } => {
                if let Some(cluster) = self.others.get().and_then(|others| others.cluster.upgrade()) {
                    cluster.hear(control);
                }
            }
        }
    }

    /// Hints may have been lost: whoever counts on them looks for themselves.
    fn missed(&self, of: Option<&Topic>) {
        let Some(others) = self.others.get() else { return };
        match of {
            Some(Topic::Instance(instance)) => self.sessions.look_at(*instance),
            Some(Topic::Room(room)) => self.hub.missed(Some(room)),
            Some(Topic::Bot(_)) => {
                if let Some(egress) = others.egress.upgrade() {
                    egress.look_now();
                }
            }
            // Whoever waits for an answer that got lost goes on without.
            Some(Topic::Node(_)) => {}
            None | Some(Topic::Control) => {
                self.hub.missed(None);
                self.sessions.look_at_all();
                if let Some(identities) = others.identities.upgrade() {
                    identities.look_now();
                }
                if let Some(egress) = others.egress.upgrade() {
                    egress.look_now();
                }
                if let Some(cluster) = others.cluster.upgrade() {
                    cluster.look_now();
                }
            }
        }
    }

    /// Something waits for an instance that has no socket here.
    fn waits(&self, instance: InstanceId) {
        if let Some(wake) = self.others.get().and_then(|others| others.wake.upgrade()) {
            wake.waits(instance);
        }
    }
}
