//! A text that takes several messages: what an edit does to each of them, and the
//! keys by which Discord knows one that it was given before.

use super::descriptor::MAX_MESSAGE_CHARS;
use super::{Discord, address};
use angelia_contract::length::Unit;
use angelia_contract::split::split;
use angelia_core::error::Result;
use angelia_core::secret::random_hex;
use angelia_core::store::ActionId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Messages of which is remembered what they show, in each half of the memory.
/// A stream edits a few; 16 bytes and an id each.
const HALF: usize = 4_096;

/// A text, cut into messages.
pub(super) fn parts(text: &str) -> Vec<String> {
    let parts = split(text, MAX_MESSAGE_CHARS as usize, Unit::Chars).unwrap_or_default();
    parts.into_iter().map(|part| part.text).collect()
}

/// One thing an edit does, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The `part`-th message says this now.
    Edit { part: usize, message_id: String, text: String },
    /// There is a `part`-th message now.
    Post { part: usize, text: String },
    /// There is one less.
    Delete { part: usize, message_id: String },
}

/// What makes a message and its further pieces show `parts`.
pub(super) fn plan(message_id: &str, pieces: &[String], parts: Vec<String>) -> Vec<Step> {
    let messages = [message_id.to_owned()].into_iter().chain(pieces.iter().cloned());
    let surplus = messages.clone().enumerate().skip(parts.len());
    let surplus = surplus.map(|(part, message_id)| Step::Delete { part, message_id });
    let mut there = messages;
    let shown = parts.into_iter().enumerate().map(|(part, text)| match there.next() {
        Some(message_id) => Step::Edit { part, message_id, text },
        None => Step::Post { part, text },
    });
    let mut steps: Vec<Step> = shown.collect();
    steps.extend(surplus);
    steps
}

/// What the bot's messages show, as far as it is remembered: an edit of a long
/// text changes its last messages, and a call for each of the others is spared.
#[derive(Debug, Default)]
pub(super) struct Shown {
    hasher: RandomState,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    young: HashMap<String, u64>,
    old: HashMap<String, u64>,
    /// How often pieces of a text went, by its first message and the part.
    gone: HashMap<(String, usize), u32>,
}

impl Shown {
    /// A message shows this.
    pub(super) fn put(&self, message_id: &str, text: &str) {
        let hash = self.hasher.hash_one(text);
        let mut memory = self.memory.lock();
        if memory.young.len() >= HALF {
            memory.old = std::mem::take(&mut memory.young);
        }
        memory.young.insert(message_id.to_owned(), hash);
    }

    /// Whether a message shows this already.
    pub(super) fn is(&self, message_id: &str, text: &str) -> bool {
        let memory = self.memory.lock();
        let shown = memory.young.get(message_id).or_else(|| memory.old.get(message_id));
        shown == Some(&self.hasher.hash_one(text))
    }

    /// A piece of the text that begins with `first` is not there any more: another
    /// in its place is another message.
    pub(super) fn gone(&self, first: &str, part: usize) {
        let mut memory = self.memory.lock();
        if memory.gone.len() >= HALF {
            memory.gone.clear();
        }
        *memory.gone.entry((first.to_owned(), part)).or_default() += 1;
    }

    /// How often that happened.
    pub(super) fn times_gone(&self, first: &str, part: usize) -> u32 {
        let memory = self.memory.lock();
        memory.gone.get(&(first.to_owned(), part)).copied().unwrap_or_default()
    }

    /// It is not known any more what a message shows.
    pub(super) fn forget(&self, message_id: &str) {
        let mut memory = self.memory.lock();
        memory.young.remove(message_id);
        memory.old.remove(message_id);
    }
}

/// Where the store keeps what its nonces begin with, beside the positions of streams.
const NONCE: &str = "nonce";

impl Discord {
    /// What nonces begin with: the same for all of a store's life, another for
    /// every store. One that was made anew counts its actions from the start
    /// while Discord still remembers what the old one said.
    pub(super) async fn nonce_prefix(&self) -> Result<&str> {
        self.nonce.get(&*self.ports.records, &self.account.key, NONCE, random_hex::<4>).await
    }
}

/// The key of an action's message, 25 characters at most: the store's prefix, the action.
pub(super) fn nonce(prefix: &str, id: ActionId) -> String {
    format!("{prefix}{:x}", id.0 & 0xff_ffff_ffff)
}

/// The key of a further piece, whichever action posts it: the message that the
/// text begins with, the part, and how often one was there and went. No action's
/// key begins with this letter.
pub(super) fn piece_nonce(first: &str, part: usize, gone: u32) -> String {
    format!("p{:x}.{:x}.{:x}", address::snowflake(first).unwrap_or_default(), part & 0xfff, gone & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(pieces: &[&str], parts: &[&str]) -> Vec<String> {
        let owned = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        plan("1", &owned(pieces), owned(parts))
            .into_iter()
            .map(|step| match step {
                Step::Edit { part, message_id, text } => format!("edit {message_id} {part} {text}"),
                Step::Post { part, text } => format!("post {part} {text}"),
                Step::Delete { message_id, .. } => format!("delete {message_id}"),
            })
            .collect()
    }

    #[test]
    fn an_edit_grows_and_shrinks() {
        assert_eq!(steps(&[], &["a"]), ["edit 1 0 a"]);
        assert_eq!(steps(&[], &["a", "b", "c"]), ["edit 1 0 a", "post 1 b", "post 2 c"]);
        assert_eq!(steps(&["2"], &["a", "b", "c"]), ["edit 1 0 a", "edit 2 1 b", "post 2 c"]);
        assert_eq!(steps(&["2", "3"], &["a"]), ["edit 1 0 a", "delete 2", "delete 3"]);
        assert_eq!(steps(&["2", "3"], &["a", "b"]), ["edit 1 0 a", "edit 2 1 b", "delete 3"]);
    }

    #[test]
    fn parts_are_counted_in_code_points() {
        assert_eq!(parts(&"🎮".repeat(2_000)).len(), 1);
        let two = parts(&"é".repeat(2_001));
        assert_eq!(two.iter().map(|part| part.chars().count()).collect::<Vec<_>>(), [2_000, 1]);
        assert!(parts("").is_empty());
    }

    #[test]
    fn what_a_message_shows_is_remembered_for_a_while() {
        let shown = Shown::default();
        shown.put("1", "a");
        assert!(shown.is("1", "a") && !shown.is("1", "b") && !shown.is("2", "a"));
        for other in 0..HALF {
            shown.put(&format!("other {other}"), "x");
        }
        assert!(shown.is("1", "a"), "the older half is still there");
        shown.put("1", "b");
        assert!(shown.is("1", "b"));
        shown.forget("1");
        assert!(!shown.is("1", "a") && !shown.is("1", "b"));
        for other in 0..2 * HALF {
            shown.put(&format!("later {other}"), "x");
        }
        let memory = shown.memory.lock();
        assert!(memory.young.len() + memory.old.len() <= 2 * HALF);
    }

    #[test]
    fn a_nonce_is_short_and_one_of_its_own() {
        let longest =
            [nonce("12345678", ActionId(i64::MAX)), piece_nonce(&u64::MAX.to_string(), 0xfff, 0xff)];
        assert!(longest.iter().all(|nonce| nonce.len() <= 25), "{longest:?}");
        let made = [
            nonce("ab", ActionId(1)),
            nonce("ab", ActionId(0x11)),
            nonce("ac", ActionId(1)),
            piece_nonce("17", 1, 0),
            piece_nonce("17", 1, 1),
            piece_nonce("17", 0x11, 0),
            piece_nonce("18", 1, 0),
        ];
        assert_eq!(made.iter().collect::<std::collections::HashSet<_>>().len(), made.len());
    }
}
