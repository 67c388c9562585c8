//! How much may wait for one instance, and who gives way when that is too much.
//!
//! Where the sender can be told, a full inbox refuses what is new: nothing that was
//! acknowledged goes. Where it cannot, because a bot's stream brings everybody's
//! messages and must go on, the chat that holds most of the inbox loses its oldest
//! entry (docs/decisions/0023).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

angelia_contract::limits! {
    /// What waits, what is remembered of it, and actions, as they lie on the disk; an eighth of a
    /// smaller disk than 8 GiB. Beyond it what can be forgotten goes, and then the tenant is refused,
    /// and nobody else. Set by `limits.tenant_disk`.
    pub const TENANT_DISK: u64 = 1024 * 1024 * 1024, bytes "kept on the disk of one tenant";
    /// An agent that was away for longer has nothing to answer. What is older goes, as a counted gap.
    /// Set by `inbox.max_age`.
    const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600), time "that a message waits for its agent";
    /// Days of a busy chat. Beyond it new messages are refused where their sender can be told, and
    /// elsewhere the chat that holds most loses its oldest. Set by `inbox.max_entries`.
    const MAX_ENTRIES: u64 = 10_000, count "messages that wait for one agent";
    /// The same in bytes. Set by `inbox.max_bytes`.
    const MAX_BYTES: u64 = 64 * 1024 * 1024, bytes "in messages that wait for one agent";
}

/// The part of an inbox that is left for chats that hold less than that of it: one
/// chat whose agent is away, or that floods, does not shut the others out.
const SMALL_SHARE: u64 = 8;

/// The part of a tenant's share of the disk that is freed at a time.
const SPARE_PART: u64 = 64;

/// What becomes of something new for an inbox that is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is refused: its sender is told, or sends it again.
    Refuse,
    /// Room is made for it: it came with others, which must not wait for it.
    #[default]
    MakeRoom,
}

/// The bounds of one inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Longest time an entry waits.
    pub age: Duration,
    /// Most entries waiting.
    pub entries: u64,
    /// Most bytes waiting.
    pub bytes: u64,
    /// Most bytes kept on disk of one tenant, all its inboxes and its ledger together.
    pub tenant_bytes: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self { age: MAX_AGE, entries: MAX_ENTRIES, bytes: MAX_BYTES, tenant_bytes: TENANT_DISK }
    }
}

/// What waits for one instance now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Entries waiting.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Usage {
    /// Counts one entry more.
    pub fn add(&mut self, bytes: usize) {
        self.entries += 1;
        self.bytes += bytes as u64;
    }

    /// Counts one entry less.
    pub fn remove(&mut self, bytes: usize) {
        self.entries = self.entries.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes as u64);
    }

    /// Whether something has to go.
    pub fn exceeds(&self, quota: &Quota) -> bool {
        self.entries > quota.entries || self.bytes > quota.bytes
    }
}

impl Quota {
    /// Whether something new that may be refused is taken: there is room for it, and
    /// what is left is not the share of chats that hold little.
    pub fn admits(&self, held: &Held, chat: &str, bytes: usize) -> bool {
        self.admits_among(held.all, held.of(chat), bytes)
    }

    /// The same, of something that takes the place of so many bytes of its chat. What is
    /// not longer than before is always taken.
    pub fn admits_change(&self, held: &Held, chat: &str, before: usize, bytes: usize) -> bool {
        let (mut all, mut own) = (held.all, held.of(chat));
        all.remove(before);
        own.remove(before);
        bytes <= before || self.admits_among(all, own, bytes)
    }

    fn admits_among(&self, all: Usage, own: Usage, bytes: usize) -> bool {
        let (mut after, mut own) = (all, own);
        after.add(bytes);
        own.add(bytes);
        let small = Self { entries: self.entries / SMALL_SHARE, bytes: self.bytes / SMALL_SHARE, ..*self };
        let most = Self { entries: self.entries - small.entries, bytes: self.bytes - small.bytes, ..*self };
        !after.exceeds(self) && (!after.exceeds(&most) || !own.exceeds(&small))
    }

    /// Whether so many bytes more of a tenant are within its share of the disk.
    pub fn fits_disk(&self, stored: u64, bytes: u64) -> bool {
        stored.saturating_add(bytes) <= self.tenant_bytes
    }

    /// How much is to be free of a tenant's share for so many bytes, once something is
    /// forgotten for them, so that the next ones do not have to forget again.
    pub fn spared_for(&self, bytes: u64) -> u64 {
        bytes.saturating_add(self.tenant_bytes / SPARE_PART)
    }

    /// The chat that loses its oldest entry, if the tenant is beyond its share of the disk,
    /// and further than `before` something was written: the one that holds most.
    pub fn who_pays_for_disk<'a>(
        &self,
        stored: u64,
        before: u64,
        held: &'a Held,
        writer: &'a str,
    ) -> Option<&'a str> {
        (stored > before.max(self.tenant_bytes)).then(|| held.largest(writer, false)).flatten()
    }

    /// The chat that loses its oldest entry, if there is too much: the one that holds
    /// most of what there is too much of. Among equals it is the one that wrote last,
    /// so that nobody is displaced by somebody who holds as much.
    pub fn who_pays<'a>(&self, held: &'a Held, writer: &'a str) -> Option<&'a str> {
        let too_many = held.all.entries > self.entries;
        held.all.exceeds(self).then(|| held.largest(writer, too_many)).flatten()
    }
}

/// What waits for one instance now, chat by chat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    all: Usage,
    /// Only chats of which something waits: never more than entries.
    chats: HashMap<Arc<str>, Usage>,
}

impl Held {
    /// So much in all, of which one chat holds so much; of the others nothing is told.
    pub fn with(all: Usage, chat: &str, own: Usage) -> Self {
        let chats = if own.entries > 0 { HashMap::from([(chat.into(), own)]) } else { HashMap::new() };
        Self { all, chats }
    }

    /// What waits in all.
    pub fn all(&self) -> Usage {
        self.all
    }

    /// What waits of one chat.
    pub fn of(&self, chat: &str) -> Usage {
        self.chats.get(chat).copied().unwrap_or_default()
    }

    /// The chat of which most waits, by number or by bytes; among equals `writer`.
    pub fn largest<'a>(&'a self, writer: &'a str, by_number: bool) -> Option<&'a str> {
        let share = |usage: Usage| if by_number { usage.entries } else { usage.bytes };
        let largest = self.chats.iter().max_by_key(|(chat, usage)| (share(**usage), &***chat))?;
        let by_writer = share(self.of(writer)) >= share(*largest.1);
        Some(if by_writer { writer } else { largest.0 })
    }

    /// Counts one entry more.
    pub fn add(&mut self, chat: &Arc<str>, bytes: usize) {
        self.put(chat.clone(), Usage { entries: 1, bytes: bytes as u64 });
    }

    /// Counts what waits of a chat.
    pub fn put(&mut self, chat: Arc<str>, usage: Usage) {
        let of_chat = self.chats.entry(chat).or_default();
        for total in [&mut self.all, of_chat] {
            total.entries += usage.entries;
            total.bytes += usage.bytes;
        }
    }

    /// Counts one entry less.
    pub fn remove(&mut self, chat: &str, bytes: usize) {
        self.all.remove(bytes);
        if let Some(of_chat) = self.chats.get_mut(chat) {
            of_chat.remove(bytes);
            if of_chat.entries == 0 {
                self.chats.remove(chat);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTA: Quota = Quota { age: Duration::ZERO, entries: 80, bytes: 8_000, tenant_bytes: TENANT_DISK };

    fn held(chats: &[(&str, u64, u64)]) -> Held {
        let mut held = Held::default();
        chats.iter().for_each(|(chat, entries, bytes)| {
            held.put((*chat).into(), Usage { entries: *entries, bytes: *bytes });
        });
        held
    }

    #[test]
    fn a_full_inbox_refuses_and_the_last_of_it_is_for_chats_that_hold_little() {
        let flooded = held(&[("flood", 69, 690), ("other", 1, 10)]);
        assert!(!QUOTA.admits(&flooded, "flood", 10), "the last eighth is not for it");
        assert!(QUOTA.admits(&flooded, "other", 10) && QUOTA.admits(&flooded, "new", 10));
        assert!(QUOTA.admits(&held(&[("flood", 69, 690)]), "flood", 10));
        assert!(!QUOTA.admits(&held(&[("flood", 70, 700), ("other", 10, 100)]), "new", 10), "full");
        let by_bytes = held(&[("flood", 1, 6_995)]);
        assert!(!QUOTA.admits(&by_bytes, "flood", 10));
        assert!(QUOTA.admits(&by_bytes, "other", 1_000) && !QUOTA.admits(&by_bytes, "other", 1_006));
        let tiny = Quota { entries: 2, ..QUOTA };
        assert!(tiny.admits(&held(&[("a", 1, 1)]), "a", 1), "too little to be divided");
        assert!(!tiny.admits(&held(&[("a", 2, 2)]), "b", 1));
    }

    #[test]
    fn a_change_is_judged_by_what_it_adds() {
        let full = held(&[("a", 80, 7_990), ("b", 0, 0)]);
        assert!(!QUOTA.admits(&full, "a", 1), "full");
        assert!(QUOTA.admits_change(&full, "a", 100, 100), "it takes no more than before");
        assert!(!QUOTA.admits_change(&full, "a", 100, 101), "the last of it is for chats that hold little");
        let some = held(&[("a", 10, 6_000)]);
        assert!(QUOTA.admits_change(&some, "a", 1_000, 2_000));
        assert!(!QUOTA.admits_change(&some, "a", 1_000, 2_001));
    }

    #[test]
    fn a_tenant_beyond_its_share_pays_for_what_it_wrote() {
        let quota = Quota { tenant_bytes: 6_400, ..QUOTA };
        assert!(quota.fits_disk(6_000, 400) && !quota.fits_disk(6_000, 401));
        assert_eq!(quota.spared_for(10), 110);
        let held = held(&[("a", 2, 10), ("b", 1, 90)]);
        assert_eq!(quota.who_pays_for_disk(6_400, 0, &held, "a"), None);
        assert_eq!(quota.who_pays_for_disk(6_401, 0, &held, "a"), Some("b"));
        assert_eq!(quota.who_pays_for_disk(7_000, 7_000, &held, "a"), None, "it was beyond it before");
    }

    #[test]
    fn the_chat_that_holds_most_pays() {
        assert_eq!(QUOTA.who_pays(&held(&[("a", 80, 10)]), "a"), None, "as much as there may be");
        let many = held(&[("a", 50, 10), ("b", 31, 9_000)]);
        assert_eq!(QUOTA.who_pays(&many, "b"), Some("a"), "there are too many, and a has most");
        let large = held(&[("a", 50, 10), ("b", 3, 9_000)]);
        assert_eq!(QUOTA.who_pays(&large, "a"), Some("b"), "there is too much, and most of it is b's");
        let equal = held(&[("a", 27, 1), ("b", 27, 1), ("c", 27, 1)]);
        for writer in ["a", "b", "c"] {
            assert_eq!(QUOTA.who_pays(&equal, writer), Some(writer), "nobody displaces an equal");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_counted_is_what_is_held(steps in proptest::collection::vec((0u8..4, 0usize..50, proptest::bool::ANY), 0..200)) {
            let (mut held, mut really) = (Held::default(), Vec::<(Arc<str>, usize)>::new());
            for (chat, bytes, goes) in steps {
                if goes && !really.is_empty() {
                    let (chat, bytes) = really.remove(bytes % really.len());
                    held.remove(&chat, bytes);
                } else {
                    let chat: Arc<str> = chat.to_string().into();
                    held.add(&chat, bytes);
                    really.push((chat, bytes));
                }
                let mut again = Held::default();
                really.iter().for_each(|(chat, bytes)| again.add(chat, *bytes));
                proptest::prop_assert_eq!(&held, &again);
            }
            for (chat, bytes) in really {
                held.remove(&chat, bytes);
            }
            proptest::prop_assert_eq!(held, Held::default());
        }

        #[test]
        fn a_chat_that_behaves_never_pays_for_one_that_floods(behaved in 1u64..20, others in 1usize..4) {
            let mut inbox = Held::default();
            for chat in 0..others {
                inbox.put(format!("quiet-{chat}").into(), Usage { entries: behaved.min(15), bytes: 10 });
            }
            let before = inbox.clone();
            let flood: Arc<str> = "flood".into();
            for _ in 0..500 {
                inbox.add(&flood, 10);
                while let Some(payer) = QUOTA.who_pays(&inbox, &flood) {
                    proptest::prop_assert_eq!(payer, &*flood);
                    inbox.remove(&flood, 10);
                }
            }
            for chat in before.chats.keys() {
                proptest::prop_assert_eq!(inbox.of(chat), before.of(chat));
            }
        }
    }
}
