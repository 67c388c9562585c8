//! What is left to drain to one socket: the entries that wait for it, in order, a
//! short stretch of them in memory, the rest in the log.
//!
//! A hint says how far the log goes, with the entry as a gift. Numbers are dense,
//! so a hint that follows the last one is all there is to know; any other means
//! that some never came, and the log is read from where this socket is
//! (docs/decisions/0032).

use super::revisions::Revisions;
use super::{Entry, Mark, Seq};
use crate::ports::log::Stretch;
use crate::store::PageSize;
use std::collections::VecDeque;

angelia_contract::limits! {
    /// Enough for a socket to go on while the next are read; the rest stays in the store.
    const PAGE_ENTRIES: usize = 64, count "waiting entries read for a socket at once";
    /// Set aside before it is read, so that a thousand sockets that come back at once take turns. One entry is read whatever its size.
    const PAGE_BYTES: usize = 128 * 1024, bytes "of waiting entries read for a socket at once";
    /// Twice a page. Beyond it a socket reads what is appended from the store, in its turn.
    const MAX_READY: usize = 128, count "waiting entries in memory for a socket";
    /// The same in bytes, so that large entries are no way round it.
    const MAX_READY_BYTES: usize = 1024 * 1024, bytes "of waiting entries in memory for a socket";
}

/// Memory that is set aside for a page before it is read.
pub const PAGE_MEMORY: usize = PAGE_BYTES + PAGE_ENTRIES * 256;
/// What is read from the log at once.
pub const PAGE: PageSize = PageSize { count: PAGE_ENTRIES, bytes: PAGE_BYTES };
/// With fewer in memory the next page is read, unless they are large.
const LOW: usize = 16;
const LOW_BYTES: usize = PAGE_BYTES / 2;

/// What waits for one socket.
#[derive(Debug, Default)]
pub struct Backlog {
    ahead: VecDeque<Entry>,
    ready: VecDeque<Entry>,
    /// Up to here everything was taken into `ready`, goes ahead, or is gone.
    read_to: Seq,
    /// How far the log is known to go.
    known: Mark,
    loading: bool,
    /// Whether the log may have more that goes ahead than `ahead` shows.
    ahead_behind: bool,
    ahead_loading: bool,
    /// Whether there is more behind a page of entries that are all under way.
    ahead_beyond: bool,
    /// Whether something settled while such a page is being read.
    ahead_stale: bool,
    /// What changed while pages are being read, which may still show it as it was.
    revised: Revisions,
    /// Bytes of the entries in `ahead` and `ready`.
    held: usize,
}

impl Backlog {
    /// The instance is ours from here on, and so many entries wait.
    pub fn claimed(&mut self, mark: Mark, waiting: u64) {
        if waiting == 0 {
            self.read_to = self.read_to.max(mark.tail);
        }
        self.ahead_behind |= waiting > 0;
        self.known = Mark { tail: self.known.tail.max(mark.tail), ..mark };
    }

    /// An entry was appended and the log goes to `mark` with it, to be passed over. It is read
    /// with its conversation.
    pub fn passed_over(&mut self, mark: Mark) {
        let follows = self.follows(mark);
        let caught_up = follows && self.read_to == self.known.tail && !self.loading;
        if follows {
            self.known = mark;
        } else {
            self.told(mark);
        }
        self.read_to = if caught_up { mark.tail } else { self.read_to };
    }

    /// Whether nothing was appended between what is known and `mark`.
    fn follows(&self, mark: Mark) -> bool {
        mark.tail.0 == self.known.tail.0 + 1 && mark.redrives == self.known.redrives
    }

    /// An entry was appended and the log goes to `mark` with it; it may have come along.
    pub fn appended(&mut self, mark: Mark, gift: Option<Entry>, ahead: bool) {
        let follows = self.follows(mark);
        let caught_up = follows && self.read_to == self.known.tail && !self.loading;
        if follows {
            self.known = mark;
        } else {
            self.told(mark);
        }
        match gift {
            Some(entry) if ahead => {
                self.put_ahead(entry);
                self.read_to = if caught_up { mark.tail } else { self.read_to };
            }
            // Whoever is behind reads it from the log in its turn.
            Some(entry) if caught_up && self.has_room_for(&entry) => self.put_ready(entry),
            Some(_) => {}
            None => self.ahead_behind |= ahead,
        }
    }

    /// A dead letter is in line again, ahead of the others, under the number it had.
    pub fn redriven(&mut self, mark: Mark, gift: Option<Entry>) {
        let follows = mark.tail <= self.known.tail && mark.redrives == self.known.redrives + 1;
        match gift {
            Some(entry) if follows => {
                self.known.redrives = mark.redrives;
                self.put_ahead(entry);
            }
            _ => self.told(mark),
        }
    }

    /// The log goes to `mark`, and what is between is not at hand.
    pub fn told(&mut self, mark: Mark) {
        // Some of what is new may go ahead.
        self.ahead_behind |= mark.tail > self.known.tail || mark.redrives > self.known.redrives;
        self.known =
            Mark { tail: self.known.tail.max(mark.tail), redrives: self.known.redrives.max(mark.redrives) };
    }

    /// Entries say something else now.
    pub fn revise(&mut self, revised: &mut Revisions) {
        if revised.is_empty() {
            return;
        }
        self.ready.iter_mut().chain(&mut self.ahead).for_each(|entry| revised.apply(entry));
        self.held = self.ready.iter().chain(&self.ahead).map(size).sum();
        if self.loading || self.ahead_loading {
            revised.drain().for_each(|entry| self.revised.put(entry));
        }
    }

    /// Brings a page that was just read up to date.
    fn freshen(&mut self, page: &mut [Entry]) {
        page.iter_mut().for_each(|entry| self.revised.apply(entry));
        if !self.loading && !self.ahead_loading {
            self.revised.clear();
        }
    }

    fn has_room_for(&self, entry: &Entry) -> bool {
        let fits = self.ready.is_empty() || self.ready_bytes() + entry.body.len() <= MAX_READY_BYTES;
        fits && self.ready.len() < MAX_READY
    }

    fn ready_bytes(&self) -> usize {
        self.ready.iter().map(|entry| entry.body.len()).sum()
    }

    /// Leaves entries in line to the log, from where they are read with their conversation; `left`
    /// hears of each.
    pub fn leave(&mut self, passed_over: impl Fn(&Entry) -> bool, left: impl FnMut(&Entry)) {
        self.ready.iter().filter(|entry| passed_over(entry)).for_each(left);
        self.ready.retain(|entry| !passed_over(entry));
        self.held = self.ready.iter().chain(&self.ahead).map(size).sum();
    }

    /// The entries in line, in order.
    pub fn waiting(&self) -> impl Iterator<Item = &Entry> {
        self.ready.iter()
    }

    /// Forgets an entry that is done or gone.
    pub fn remove(&mut self, seq: Seq) {
        let mut held = self.held;
        let mut stays = |entry: &Entry| {
            let stays = entry.seq != seq;
            held -= if stays { 0 } else { size(entry) };
            stays
        };
        self.ready.retain(&mut stays);
        self.ahead.retain(&mut stays);
        self.held = held;
    }

    /// Whether the log goes further than what was read of it.
    fn is_behind(&self) -> bool {
        self.known.tail > self.read_to
    }

    /// Where to read on in the log, if it is time to.
    pub fn wants_page(&mut self) -> Option<Seq> {
        let low = self.ready.len() < LOW && self.ready_bytes() < LOW_BYTES;
        let wants = self.is_behind() && !self.loading && low;
        self.loading |= wants;
        wants.then_some(self.read_to)
    }

    /// Whether a page is being read.
    pub fn is_loading(&self) -> bool {
        self.loading
    }

    /// Takes a page; a failed read is tried again.
    pub fn loaded(&mut self, read: Option<Stretch>) {
        self.loading = false;
        let Some(Stretch { mut page, mark }) = read else { return };
        self.freshen(&mut page.items);
        let last = page.last().map_or(self.read_to, |entry| entry.seq);
        let through = if page.more { last } else { mark.tail.max(last) };
        self.told(Mark { tail: mark.tail.max(last), ..mark });
        for entry in page {
            self.put_ready(entry);
        }
        self.read_to = self.read_to.max(through);
    }

    fn put_ready(&mut self, entry: Entry) {
        if entry.seq > self.read_to {
            self.read_to = entry.seq;
            self.held += size(&entry);
            self.ready.push_back(entry);
        }
    }

    /// Memory that is set aside for the pages being read.
    pub fn reserved(&self) -> usize {
        PAGE_MEMORY * (usize::from(self.loading) + usize::from(self.ahead_loading))
    }

    /// Bytes of the entries in memory.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Whether it is time to read the log.
    pub fn is_low(&self) -> bool {
        let ready = self.is_behind() && !self.loading && self.ready.len() < LOW;
        ready || self.ahead_behind && !self.ahead_loading && self.ahead.len() < LOW
    }

    /// Whether the entries that go ahead are to be read from the log.
    pub fn wants_ahead(&mut self) -> bool {
        let wants = self.ahead_behind && !self.ahead_loading && self.ahead.len() < LOW;
        if wants {
            self.ahead_loading = true;
            self.ahead_behind = false;
        }
        wants
    }

    /// Takes the entries that go ahead, as found in the log, but for those
    /// that are `known` to be under way, or to be read with their conversation.
    pub fn loaded_ahead(&mut self, read: Option<Stretch>, known: impl Fn(&Entry) -> bool) {
        self.ahead_loading = false;
        let Some(Stretch { mut page, mark }) = read else {
            self.ahead_behind = true;
            return;
        };
        self.freshen(&mut page.items);
        self.known.redrives = self.known.redrives.max(mark.redrives);
        let full = page.more;
        let at_hand =
            |entry: &Entry| known(entry) || self.ahead.binary_search_by_key(&entry.seq, |it| it.seq).is_ok();
        let new: Vec<Entry> = page.into_iter().filter(|entry| !at_hand(entry)).collect();
        // A full page that brought nothing hides what is behind it until some of it settled.
        let again = std::mem::take(&mut self.ahead_stale) || !new.is_empty();
        self.ahead_behind |= full && again;
        self.ahead_beyond |= full && !again;
        for entry in new {
            self.put_ahead(entry);
        }
    }

    /// Something settled: there may be room to see further.
    pub fn look_ahead_again(&mut self) {
        self.ahead_behind |= std::mem::take(&mut self.ahead_beyond);
        self.ahead_stale |= self.ahead_loading;
    }

    /// Whether it is known what goes ahead next: nothing else may be pushed before.
    pub fn knows_ahead(&self) -> bool {
        !self.ahead_loading && (!self.ahead_behind || !self.ahead.is_empty())
    }

    /// Has everything read anew, for a gateway that comes back on the same socket.
    pub fn renew(&mut self) {
        self.ahead_behind = true;
    }

    fn put_ahead(&mut self, entry: Entry) {
        if let Err(place) = self.ahead.binary_search_by_key(&entry.seq, |known| known.seq) {
            self.held += size(&entry);
            self.ahead.insert(place, entry);
        }
    }

    /// The next entry that goes ahead.
    pub fn front_ahead(&self) -> Option<&Entry> {
        self.ahead.front()
    }

    /// Takes it.
    pub fn pop_ahead(&mut self) -> Option<Entry> {
        let entry = self.ahead.pop_front();
        self.held -= entry.as_ref().map_or(0, size);
        entry
    }

    /// The first entry of a chat that is not `held`, and its place.
    pub fn first(&self, held: impl Fn(&Entry) -> bool) -> Option<(usize, &Entry)> {
        self.ready.iter().enumerate().find(|(_, entry)| !held(entry))
    }

    /// Takes the entry at a place.
    pub fn take_at(&mut self, place: usize) -> Option<Entry> {
        let entry = self.ready.remove(place);
        self.held -= entry.as_ref().map_or(0, size);
        entry
    }
}

/// What an entry takes in memory, nearly.
pub fn size(entry: &Entry) -> usize {
    /// Its fixed parts.
    const FIXED: usize = 128;
    FIXED + entry.body.len() + entry.session_key.len() + entry.chat_id.len()
}

#[cfg(test)]
#[path = "backlog_tests.rs"]
mod tests;
