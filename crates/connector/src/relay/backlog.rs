//! The entries that wait for one socket, in order: a short stretch in memory,
//! the rest in the store.

use super::mailbox::{Mail, Revisions};
use angelia_core::inbox::{Entry, Seq};
use angelia_core::store::{Page, PageSize};
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
pub(super) const PAGE_MEMORY: usize = PAGE_BYTES + PAGE_ENTRIES * 256;
/// What is read from the store at once.
pub(super) const PAGE: PageSize = PageSize { count: PAGE_ENTRIES, bytes: PAGE_BYTES };
/// With fewer in memory the next page is read, unless they are large.
const LOW: usize = 16;
const LOW_BYTES: usize = PAGE_BYTES / 2;

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
    /// Whether the store has more that goes ahead than `ahead` shows.
    ahead_behind: bool,
    ahead_loading: bool,
    /// Whether there is more behind a page of entries that are all under way.
    ahead_beyond: bool,
    /// What changed while pages are being read, which may still show it as it was.
    revised: Revisions,
    /// Bytes of the entries in `ahead` and `ready`.
    held: usize,
}

impl Default for Backlog {
    fn default() -> Self {
        Self {
            ahead: VecDeque::new(),
            ready: VecDeque::new(),
            read_to: Seq(0),
            behind: true,
            loading: false,
            ahead_behind: true,
            ahead_loading: false,
            ahead_beyond: false,
            revised: Revisions::default(),
            held: 0,
        }
    }
}

impl Backlog {
    /// Takes what the mailbox brought.
    pub(super) fn take(&mut self, mail: &mut Mail) {
        for entry in mail.ahead.drain(..) {
            self.put_ahead(entry);
        }
        self.ahead_behind |= mail.missed_ahead;
        for entry in mail.fresh.drain(..) {
            // Whoever is behind reads them from the store in their turn.
            if !self.behind && !self.loading && self.has_room_for(&entry) {
                self.put_ready(entry);
            } else {
                self.behind = true;
            }
        }
        self.behind |= mail.missed;
        self.revise(&mut mail.revised);
        for seq in mail.removed.drain(..) {
            self.remove(seq);
        }
    }

    fn has_room_for(&self, entry: &Entry) -> bool {
        let fits = self.ready.is_empty() || self.ready_bytes() + entry.body.len() <= MAX_READY_BYTES;
        fits && self.ready.len() < MAX_READY
    }

    fn ready_bytes(&self) -> usize {
        self.ready.iter().map(|entry| entry.body.len()).sum()
    }

    /// Brings the copies in memory up to date.
    fn revise(&mut self, revised: &mut Revisions) {
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

    /// Forgets an entry that is done or gone.
    pub(super) fn remove(&mut self, seq: Seq) {
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

    /// Where to read on in the store, if it is time to.
    pub(super) fn wants_page(&mut self) -> Option<Seq> {
        let low = self.ready.len() < LOW && self.ready_bytes() < LOW_BYTES;
        let wants = self.behind && !self.loading && low;
        if wants {
            self.loading = true;
            // What is appended while the page is read sets this again.
            self.behind = false;
        }
        wants.then_some(self.read_to)
    }

    /// Takes a page; a failed read is tried again.
    pub(super) fn loaded(&mut self, page: Option<Page<Entry>>) {
        self.loading = false;
        let Some(mut page) = page else {
            self.behind = true;
            return;
        };
        self.freshen(&mut page.items);
        self.behind |= page.more;
        for entry in page {
            self.put_ready(entry);
        }
    }

    fn put_ready(&mut self, entry: Entry) {
        if entry.seq > self.read_to {
            self.read_to = entry.seq;
            self.held += size(&entry);
            self.ready.push_back(entry);
        }
    }

    /// Memory that is set aside for the pages being read.
    pub(super) fn reserved(&self) -> usize {
        PAGE_MEMORY * (usize::from(self.loading) + usize::from(self.ahead_loading))
    }

    /// Bytes of the entries in memory.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Whether it is time to read the store.
    pub(super) fn is_low(&self) -> bool {
        let ready = self.behind && !self.loading && self.ready.len() < LOW;
        ready || self.ahead_behind && !self.ahead_loading && self.ahead.len() < LOW
    }

    /// Whether the entries that go ahead are to be read from the store.
    pub(super) fn wants_ahead(&mut self) -> bool {
        let wants = self.ahead_behind && !self.ahead_loading && self.ahead.len() < LOW;
        if wants {
            self.ahead_loading = true;
            self.ahead_behind = false;
        }
        wants
    }

    /// Takes the entries that go ahead, as found in the store, but for those
    /// that are `known` to be under way.
    pub(super) fn loaded_ahead(&mut self, page: Option<Page<Entry>>, known: impl Fn(Seq) -> bool) {
        self.ahead_loading = false;
        let Some(mut page) = page else {
            self.ahead_behind = true;
            return;
        };
        self.freshen(&mut page.items);
        let full = page.more;
        let new: Vec<Entry> = page.into_iter().filter(|entry| !known(entry.seq)).collect();
        // A full page that brought nothing hides what is behind it until some of it settled.
        self.ahead_behind |= full && !new.is_empty();
        self.ahead_beyond |= full && new.is_empty();
        for entry in new {
            self.put_ahead(entry);
        }
    }

    /// Something settled: there may be room to see further.
    pub(super) fn look_ahead_again(&mut self) {
        self.ahead_behind |= std::mem::take(&mut self.ahead_beyond);
    }

    /// Whether it is known what goes ahead next: nothing else may be pushed before.
    pub(super) fn knows_ahead(&self) -> bool {
        !self.ahead_loading && (!self.ahead_behind || !self.ahead.is_empty())
    }

    /// Nothing waits in the store: all there is comes by mail.
    pub(super) fn is_empty_in_store(&mut self) {
        (self.behind, self.ahead_behind) = (false, false);
    }

    /// Has everything read anew, for a gateway that comes back on the same socket.
    pub(super) fn renew(&mut self) {
        self.ahead_behind = true;
    }

    fn put_ahead(&mut self, entry: Entry) {
        if let Err(place) = self.ahead.binary_search_by_key(&entry.seq, |known| known.seq) {
            self.held += size(&entry);
            self.ahead.insert(place, entry);
        }
    }

    /// The next entry that goes ahead.
    pub(super) fn front_ahead(&self) -> Option<&Entry> {
        self.ahead.front()
    }

    pub(super) fn pop_ahead(&mut self) -> Option<Entry> {
        let entry = self.ahead.pop_front();
        self.held -= entry.as_ref().map_or(0, size);
        entry
    }

    /// The first entry of a chat that is not `held`, and its place.
    pub(super) fn first(&self, held: impl Fn(&Entry) -> bool) -> Option<(usize, &Entry)> {
        self.ready.iter().enumerate().find(|(_, entry)| !held(entry))
    }

    pub(super) fn take_at(&mut self, place: usize) -> Option<Entry> {
        let entry = self.ready.remove(place);
        self.held -= entry.as_ref().map_or(0, size);
        entry
    }
}

/// What an entry takes in memory, nearly.
pub(super) fn size(entry: &Entry) -> usize {
    /// Its fixed parts.
    const FIXED: usize = 128;
    FIXED + entry.body.len() + entry.session_key.len() + entry.chat_id.len()
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
            revision: 0,
        }
    }

    fn mail(seqs: &[i64]) -> Mail {
        Mail { fresh: seqs.iter().map(|seq| entry(*seq)).collect(), ..Mail::default() }
    }

    /// A page; `more` says whether the store has more behind it.
    fn page(seqs: impl IntoIterator<Item = i64>, more: bool) -> Option<Page<Entry>> {
        Some(Page { items: seqs.into_iter().map(entry).collect(), more })
    }

    fn drain(backlog: &mut Backlog) -> Vec<i64> {
        std::iter::from_fn(|| backlog.take_at(0)).map(|entry| entry.seq.0).collect()
    }

    #[test]
    fn mail_never_overtakes_what_the_store_still_has() {
        let mut backlog = Backlog::default();
        assert_eq!(backlog.wants_page(), Some(Seq(0)));
        backlog.take(&mut mail(&[70, 71]));
        backlog.loaded(page(1..=64, true));
        assert_eq!(drain(&mut backlog), (1..=64).collect::<Vec<_>>());
        assert_eq!(backlog.wants_page(), Some(Seq(64)));
        backlog.loaded(page(65..=71, false));
        assert_eq!(backlog.wants_page(), None, "it has caught up");
        backlog.take(&mut mail(&[71, 72]));
        assert_eq!(drain(&mut backlog), [65, 66, 67, 68, 69, 70, 71, 72]);
    }

    #[test]
    fn mail_that_goes_ahead_does_not_keep_the_store_from_being_asked() {
        let mut backlog = Backlog::default();
        backlog.take(&mut Mail { ahead: [entry(5)].into(), ..Mail::default() });
        assert!(backlog.wants_ahead(), "earlier ones may wait in the store");
        assert!(!backlog.knows_ahead());
        backlog.loaded_ahead(page([3, 4, 5], false), |seq| seq == Seq(3));
        assert!(backlog.knows_ahead());
        let ahead: Vec<i64> = std::iter::from_fn(|| backlog.pop_ahead()).map(|e| e.seq.0).collect();
        assert_eq!(ahead, [4, 5], "each once, in order");
    }

    #[test]
    fn a_page_that_is_all_under_way_is_not_read_again_at_once() {
        let mut backlog = Backlog::default();
        assert!(backlog.wants_ahead());
        // Full by its bytes: a few large ones are enough.
        backlog.loaded_ahead(page([1, 2], true), |_| true);
        assert!(!backlog.wants_ahead() && backlog.knows_ahead(), "others are not held up");
        backlog.look_ahead_again();
        assert!(backlog.wants_ahead());
    }

    #[test]
    fn a_held_chat_is_skipped_and_keeps_its_order() {
        let mut backlog = Backlog::default();
        backlog.is_empty_in_store();
        let other = Entry { chat_id: "web-b".into(), ..entry(2) };
        let mut mail = Mail { fresh: [entry(1), other, entry(3)].into(), ..Mail::default() };
        backlog.take(&mut mail);
        let (place, next) = backlog.first(|entry| &*entry.chat_id == "web-a").unwrap();
        assert_eq!(next.seq, Seq(2));
        backlog.take_at(place);
        assert!(backlog.first(|entry| &*entry.chat_id == "web-a").is_none());
        assert_eq!(drain(&mut backlog), [1, 3]);
    }

    #[test]
    fn a_page_that_is_full_by_its_bytes_is_not_the_last_and_large_entries_do_not_pile_up() {
        let large = |seq| Entry { body: vec![0; 400 * 1024].into(), ..entry(seq) };
        let mut backlog = Backlog::default();
        assert_eq!(backlog.wants_page(), Some(Seq(0)));
        backlog.loaded(Some(Page { items: vec![large(1), large(2)], more: true }));
        assert_eq!(backlog.wants_page(), None, "there is enough in memory, though it is only two");
        backlog.take(&mut Mail { fresh: [large(9)].into(), ..Mail::default() });
        assert_eq!(drain(&mut backlog), [1, 2]);
        assert_eq!(backlog.wants_page(), Some(Seq(2)), "short pages are not taken for the end");
        backlog.loaded(Some(Page::last((3..=9).map(large).collect())));
        drain(&mut backlog);
        let mut many = Mail { fresh: (10..20).map(large).collect(), ..Mail::default() };
        backlog.take(&mut many);
        assert_eq!(drain(&mut backlog), [10, 11], "as many as fit");
        assert_eq!(backlog.wants_page(), Some(Seq(11)), "the others are read in their turn");
    }

    fn changed(seq: i64, revision: u32) -> Entry {
        Entry { revision, body: format!("r{revision}").into(), ..entry(seq) }
    }

    fn edits(entries: impl IntoIterator<Item = Entry>) -> Mail {
        let mut mail = Mail::default();
        entries.into_iter().for_each(|entry| mail.revised.put(entry));
        mail
    }

    fn bodies(backlog: &mut Backlog) -> Vec<String> {
        std::iter::from_fn(|| backlog.take_at(0))
            .map(|entry| String::from_utf8(entry.body.to_vec()).unwrap())
            .collect()
    }

    #[test]
    fn an_edit_reaches_the_copy_in_memory_and_only_a_newer_one() {
        let mut backlog = Backlog::default();
        backlog.is_empty_in_store();
        backlog.take(&mut Mail { ahead: [entry(4)].into(), ..mail(&[1, 2, 3]) });
        backlog.take(&mut edits([changed(2, 1), changed(9, 1)]));
        backlog.take(&mut edits([changed(2, 3), changed(2, 2), changed(4, 1)]));
        assert_eq!(bodies(&mut backlog), ["", "r3", ""]);
        assert_eq!(&backlog.pop_ahead().unwrap().body[..], b"r1");
    }

    #[test]
    fn an_edit_in_one_mail_with_its_entry_counts() {
        let mut backlog = Backlog::default();
        backlog.is_empty_in_store();
        let mut both = mail(&[1]);
        both.revised.put(changed(1, 1));
        backlog.take(&mut both);
        assert_eq!(bodies(&mut backlog), ["r1"]);
    }

    #[test]
    fn a_page_that_was_read_before_an_edit_does_not_undo_it() {
        let mut backlog = Backlog::default();
        assert!(backlog.wants_page().is_some() && backlog.wants_ahead());
        backlog.take(&mut edits([changed(1, 1), changed(2, 1), changed(5, 1)]));
        backlog.loaded_ahead(page([5], false), |_| false);
        // One page is older than the edit, of the other entry the store knows a later one.
        backlog.loaded(Some(Page::last(vec![entry(1), changed(2, 2)])));
        assert_eq!(bodies(&mut backlog), ["r1", "r2"]);
        assert_eq!(&backlog.pop_ahead().unwrap().body[..], b"r1");
        assert!(backlog.revised.is_empty(), "nothing is kept once nothing is being read");
    }

    #[test]
    fn a_failed_read_does_not_lose_an_edit_of_the_other() {
        let mut backlog = Backlog::default();
        assert!(backlog.wants_page().is_some() && backlog.wants_ahead());
        backlog.take(&mut edits([changed(1, 1)]));
        backlog.loaded_ahead(None, |_| false);
        backlog.loaded(page([1], false));
        assert_eq!(bodies(&mut backlog), ["r1"]);
    }

    #[test]
    fn a_failed_read_is_tried_again_and_missed_mail_is_read() {
        let mut backlog = Backlog::default();
        assert!(backlog.wants_page().is_some());
        backlog.loaded(None);
        assert!(backlog.wants_page().is_some());
        backlog.loaded(page([], false));
        assert!(backlog.wants_page().is_none());
        backlog.take(&mut Mail { missed: true, ..mail(&[5]) });
        assert!(backlog.wants_page().is_some());
    }
}
