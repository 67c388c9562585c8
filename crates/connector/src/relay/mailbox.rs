//! What is on its way to one socket's task. Small when idle: ten thousand of
//! them must not be felt.

use angelia_core::inbox::{Entry, Mark, Revisions, Seq};
use angelia_core::ports::HintKind;
use parking_lot::Mutex;
use std::collections::VecDeque;
use tokio::sync::Notify;

/// Fresh entries kept for a socket; beyond them it reads the store.
const MAX_FRESH: usize = 64;
/// Their bytes, for the same reason.
const MAX_FRESH_BYTES: usize = 256 * 1024;
/// Removed entries a socket is told of.
const MAX_REMOVED: usize = 1_024;
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
    /// Lines that overtake everything.
    pub(crate) interrupts: VecDeque<String>,
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
        let mut mail = self.mail.lock();
        let full = mail.hints.len() >= MAX_FRESH || mail.hint_bytes >= MAX_FRESH_BYTES;
        if full || mail.told.is_some() {
            mail.told = Some(hint.mark);
        } else {
            mail.hint_bytes += hint.entry.body.len();
            mail.hints.push_back(hint);
        }
        drop(mail);
        self.notify.notify_one();
    }

    /// Tells how far the log is, to whoever may have missed a hint.
    pub(crate) fn tell(&self, mark: Mark) {
        let mut mail = self.mail.lock();
        // What is in line says so itself.
        if mail.hints.back().is_none_or(|hint| hint.mark != mark) {
            mail.told = Some(mark);
        }
        drop(mail);
        self.notify.notify_one();
    }

    pub(crate) fn remove(&self, seqs: &[Seq]) {
        let mut mail = self.mail.lock();
        // Whoever is not told pushes an entry once more than needed; nothing worse.
        let room = MAX_REMOVED.saturating_sub(mail.removed.len());
        mail.removed.extend(seqs.iter().take(room));
        drop(mail);
        self.notify.notify_one();
    }

    pub(crate) fn revise(&self, entry: Entry) {
        self.mail.lock().revised.put(entry);
        self.notify.notify_one();
    }

    pub(crate) fn answer(&self, answer: Answer) {
        self.mail.lock().answers.push_back(answer);
        self.notify.notify_one();
    }

    /// `false` if too many wait already.
    pub(crate) fn interrupt(&self, line: String) -> bool {
        let mut mail = self.mail.lock();
        if mail.interrupts.len() >= MAX_INTERRUPTS {
            return false;
        }
        mail.interrupts.push_back(line);
        drop(mail);
        self.notify.notify_one();
        true
    }

    pub(crate) fn end(&self, ending: Ending) {
        let mut mail = self.mail.lock();
        // A revocation is the last word, whatever else was about to happen.
        if mail.ending.is_none() || ending == Ending::Revoked {
            mail.ending = Some(ending);
        }
        drop(mail);
        self.notify.notify_one();
    }
}
