//! The entries that wait for one socket, in order: a short stretch in memory,
//! the rest in the store.

use super::mailbox::Mail;
use angelia_core::inbox::{Entry, Seq};
use std::collections::VecDeque;

/// Entries read from the store at once.
pub(super) const PAGE: usize = 64;
/// With fewer in memory the next page is read.
const LOW: usize = 16;
/// Entries kept in memory at the most.
const MAX_READY: usize = 128;

/// What waits for one socket.
#[derive(Debug)]
pub(super) struct Backlog {
    ahead: VecDeque<Entry>,
    ready: VecDeque<Entry>,
    /// The last entry that was taken into `ready`.
    read_to: Seq,
    /// Whether the store has more than `ready` shows.
    behind: bool,
    loading: bool,
}

impl Default for Backlog {
    fn default() -> Self {
        Self { ahead: VecDeque::new(), ready: VecDeque::new(), read_to: Seq(0), behind: true, loading: false }
    }
}

impl Backlog {
    /// Takes what the mailbox brought.
    pub(super) fn take(&mut self, mail: &mut Mail) {
        self.ahead.extend(mail.ahead.drain(..));
        for entry in mail.fresh.drain(..) {
            // Whoever is behind reads them from the store in their turn.
            if !self.behind && !self.loading && self.ready.len() < MAX_READY {
                if entry.seq > self.read_to {
                    self.read_to = entry.seq;
                    self.ready.push_back(entry);
                }
            } else {
                self.behind = true;
            }
        }
        self.behind |= mail.missed;
        for seq in mail.removed.drain(..) {
            self.remove(seq);
        }
    }

    /// Forgets an entry that is done or gone.
    pub(super) fn remove(&mut self, seq: Seq) {
        self.ready.retain(|entry| entry.seq != seq);
        self.ahead.retain(|entry| entry.seq != seq);
    }

    /// Where to read on in the store, if it is time to.
    pub(super) fn wants_page(&mut self) -> Option<Seq> {
        let wants = self.behind && !self.loading && self.ready.len() < LOW;
        if wants {
            self.loading = true;
            // What is appended while the page is read sets this again.
            self.behind = false;
        }
        wants.then_some(self.read_to)
    }

    /// Takes a page; a failed read is tried again.
    pub(super) fn loaded(&mut self, page: Option<Vec<Entry>>) {
        self.loading = false;
        let Some(page) = page else {
            self.behind = true;
            return;
        };
        self.behind |= page.len() == PAGE;
        for entry in page {
            if entry.seq > self.read_to {
                self.read_to = entry.seq;
                self.ready.push_back(entry);
            }
        }
    }

    /// Takes the entries that go ahead, as found in the store.
    pub(super) fn loaded_ahead(&mut self, page: Vec<Entry>) {
        for entry in page {
            if !self.ahead.iter().any(|known| known.seq == entry.seq) {
                self.ahead.push_back(entry);
            }
        }
    }

    pub(super) fn front_ahead(&self) -> Option<&Entry> {
        self.ahead.front()
    }

    pub(super) fn pop_ahead(&mut self) -> Option<Entry> {
        self.ahead.pop_front()
    }

    pub(super) fn front(&self) -> Option<&Entry> {
        self.ready.front()
    }

    pub(super) fn pop(&mut self) -> Option<Entry> {
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::inbox::EntryKind;

    fn entry(seq: i64) -> Entry {
        Entry {
            seq: Seq(seq),
            kind: EntryKind::Message,
            platform: "webchat".into(),
            bot: "webchat".into(),
            chat_id: "web-a".into(),
            session_key: "k".into(),
            body: bytes::Bytes::new(),
        }
    }

    fn mail(seqs: &[i64]) -> Mail {
        Mail { fresh: seqs.iter().map(|seq| entry(*seq)).collect(), ..Mail::default() }
    }

    fn drain(backlog: &mut Backlog) -> Vec<i64> {
        std::iter::from_fn(|| backlog.pop()).map(|entry| entry.seq.0).collect()
    }

    #[test]
    fn mail_never_overtakes_what_the_store_still_has() {
        let mut backlog = Backlog::default();
        assert_eq!(backlog.wants_page(), Some(Seq(0)));
        backlog.take(&mut mail(&[70, 71]));
        let page: Vec<Entry> = (1..=PAGE as i64).map(entry).collect();
        backlog.loaded(Some(page));
        assert_eq!(drain(&mut backlog), (1..=PAGE as i64).collect::<Vec<_>>());
        assert_eq!(backlog.wants_page(), Some(Seq(PAGE as i64)));
        backlog.loaded(Some((65..=71).map(entry).collect()));
        assert_eq!(backlog.wants_page(), None, "it has caught up");
        backlog.take(&mut mail(&[71, 72]));
        assert_eq!(drain(&mut backlog), [65, 66, 67, 68, 69, 70, 71, 72]);
    }

    #[test]
    fn a_failed_read_is_tried_again_and_missed_mail_is_read() {
        let mut backlog = Backlog::default();
        assert!(backlog.wants_page().is_some());
        backlog.loaded(None);
        assert!(backlog.wants_page().is_some());
        backlog.loaded(Some(vec![]));
        assert!(backlog.wants_page().is_none());
        backlog.take(&mut Mail { missed: true, ..mail(&[5]) });
        assert!(backlog.wants_page().is_some());
    }
}
