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

/// Pieces of which is remembered that they went.
const MAX_GONE: usize = 4_096;

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

/// How often pieces of a text went, by its first message and the part: another in the
/// place of one that went is another message.
#[derive(Debug, Default)]
pub(super) struct GonePieces(Mutex<HashMap<(String, usize), u32>>);

impl GonePieces {
    /// A piece of the text that begins with `first` is not there any more.
    pub(super) fn note(&self, first: &str, part: usize) {
        let mut gone = self.0.lock();
        if gone.len() >= MAX_GONE {
            gone.clear();
        }
        *gone.entry((first.to_owned(), part)).or_default() += 1;
    }

    /// How often that happened.
    pub(super) fn times(&self, first: &str, part: usize) -> u32 {
        self.0.lock().get(&(first.to_owned(), part)).copied().unwrap_or_default()
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
