//! What is on its way to one socket's task. Small when idle: ten thousand of
//! them must not be felt.

use angelia_core::inbox::{Entry, Seq};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Fresh entries kept for a socket; beyond them it reads the store.
const MAX_FRESH: usize = 64;
/// Their bytes, for the same reason.
const MAX_FRESH_BYTES: usize = 256 * 1024;
/// Removed entries a socket is told of.
const MAX_REMOVED: usize = 1_024;
/// Changed entries a socket is told of: more than it keeps in memory.
const MAX_REVISED: usize = 256;
/// Interrupts waiting to be written; a reader that stalls so long has no turn to stop.
const MAX_INTERRUPTS: usize = 64;

/// Why the server ends a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// A newer socket of the same instance took over.
    Replaced,
    /// The server is stopping.
    Shutdown,
    /// The gateway was revoked.
    Revoked,
}

/// An answer for a gateway's request.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Which of the socket's pending requests.
    pub(crate) ticket: u64,
    /// The `outbound_result` line.
    pub(crate) line: String,
}

/// Everything that waits for a socket's task.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    /// Lines that overtake everything.
    pub(crate) interrupts: VecDeque<String>,
    /// Answers to requests.
    pub(crate) answers: VecDeque<Answer>,
    /// Entries just appended, in order.
    pub(crate) fresh: VecDeque<Entry>,
    pub(super) fresh_bytes: usize,
    /// Entries that go ahead of the queue.
    pub(crate) ahead: VecDeque<Entry>,
    /// Whether some that go ahead were left out.
    pub(crate) missed_ahead: bool,
    /// Entries that left the inbox otherwise.
    pub(crate) removed: Vec<Seq>,
    /// Entries that say something else now, each in its newest form.
    pub(crate) revised: Revisions,
    /// Whether entries were left out: the store has more.
    pub(crate) missed: bool,
    /// Whether the socket has to end.
    pub(crate) ending: Option<Ending>,
}

/// Changed entries, each in its newest form.
#[derive(Debug, Default)]
pub(crate) struct Revisions(Vec<Entry>);

impl Revisions {
    /// Takes a changed entry. Beyond a limit it is left out: whoever changes so
    /// much at once may be too late with some of it, and nothing worse.
    pub(crate) fn put(&mut self, entry: Entry) {
        if let Some(known) = self.0.iter_mut().find(|known| known.seq == entry.seq) {
            if known.revision < entry.revision {
                *known = entry;
            }
        } else if self.0.len() < MAX_REVISED {
            self.0.push(entry);
        }
    }

    /// Brings a copy of an entry up to date.
    pub(crate) fn apply(&self, entry: &mut Entry) {
        let newer = self.0.iter().find(|known| known.seq == entry.seq && known.revision > entry.revision);
        if let Some(newer) = newer {
            *entry = newer.clone();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0 = Vec::new();
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Entry> {
        std::mem::take(&mut self.0).into_iter()
    }
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
        std::mem::take(&mut *self.mail())
    }

    /// Resolves when something was put in since the last time.
    pub(crate) async fn arrival(&self) {
        self.notify.notified().await;
    }

    pub(crate) fn append(&self, entry: Entry, ahead: bool) {
        let mut mail = self.mail();
        if ahead && mail.ahead.len() >= MAX_FRESH {
            mail.missed_ahead = true;
        } else if ahead {
            mail.ahead.push_back(entry);
        } else if mail.missed || mail.fresh.len() >= MAX_FRESH || mail.fresh_bytes >= MAX_FRESH_BYTES {
            mail.missed = true;
        } else {
            mail.fresh_bytes += entry.body.len();
            mail.fresh.push_back(entry);
        }
        drop(mail);
        self.notify.notify_one();
    }

    pub(crate) fn remove(&self, seqs: &[Seq]) {
        let mut mail = self.mail();
        // Whoever is not told pushes an entry once more than needed; nothing worse.
        let room = MAX_REMOVED.saturating_sub(mail.removed.len());
        mail.removed.extend(seqs.iter().take(room));
        drop(mail);
        self.notify.notify_one();
    }

    pub(crate) fn revise(&self, entry: Entry) {
        self.mail().revised.put(entry);
        self.notify.notify_one();
    }

    pub(crate) fn answer(&self, answer: Answer) {
        self.mail().answers.push_back(answer);
        self.notify.notify_one();
    }

    /// `false` if too many wait already.
    pub(crate) fn interrupt(&self, line: String) -> bool {
        let mut mail = self.mail();
        if mail.interrupts.len() >= MAX_INTERRUPTS {
            return false;
        }
        mail.interrupts.push_back(line);
        drop(mail);
        self.notify.notify_one();
        true
    }

    pub(crate) fn end(&self, ending: Ending) {
        let mut mail = self.mail();
        // A revocation is the last word, whatever else was about to happen.
        if mail.ending.is_none() || ending == Ending::Revoked {
            mail.ending = Some(ending);
        }
        drop(mail);
        self.notify.notify_one();
    }

    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
