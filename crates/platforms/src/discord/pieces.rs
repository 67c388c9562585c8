//! A text that takes several messages: those behind its first, and the keys by which
//! Discord knows one that it was given before.

use super::api::{Call, Method};
use super::api_error::{ApiError, code};
use super::descriptor::MAX_MESSAGE_CHARS;
use super::send::{PATIENCE, Work, post, posted};
use super::{Discord, address};
use angelia_contract::length::Unit;
use angelia_contract::split::split;
use angelia_core::clock::{self, Mono};
use angelia_core::store::ActionId;
use parking_lot::Mutex;
use std::collections::HashMap;

/// How often a piece is posted whose nonce Discord knows from one that is gone.
const MAX_ANEW: u32 = 3;

/// Pieces of which is remembered that they went.
const MAX_GONE: usize = 4_096;

/// A text, cut into messages.
pub(super) fn parts(text: &str) -> Vec<String> {
    let parts = split(text, MAX_MESSAGE_CHARS as usize, Unit::Chars).unwrap_or_default();
    parts.into_iter().map(|part| part.text).collect()
}

/// A text whose first message is there, and the messages behind it.
pub(super) struct Pieces<'a> {
    work: &'a Work<'a>,
    first: &'a str,
    /// Those that are there.
    ids: Vec<String>,
    /// How long they are tried for.
    until: Mono,
}

impl<'a> Pieces<'a> {
    /// The pieces behind `first`, of which these are there.
    pub(super) fn new(work: &'a Work<'a>, first: &'a str, ids: Vec<String>) -> Self {
        Self { work, first, ids, until: clock::mono() + PATIENCE }
    }

    /// How many are there.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Makes the `part`-th message show a text: what is there is edited, what somebody
    /// deleted is posted anew.
    pub(super) async fn show(&mut self, part: usize, text: &str) -> Result<(), ApiError> {
        let Discord { sent, gone, .. } = self.work.discord;
        let Some(piece) = self.ids.get(part - 1) else {
            let piece = self.post(part, text).await?;
            self.push(piece).await;
            return Ok(());
        };
        if sent.shows(piece, text) {
            return Ok(());
        }
        match self.work.show(piece, text, Some(self.until)).await {
            Err(lost) if lost.is(code::UNKNOWN_MESSAGE) => {
                gone.note(self.first, part);
                self.ids[part - 1] = self.post(part, text).await?;
                self.keep().await;
                Ok(())
            }
            done => done,
        }
    }

    /// Posts the `part`-th piece. One that an earlier attempt posted, of which nobody
    /// here knows, is found by its nonce and shows this text from then on.
    pub(super) async fn post(&self, part: usize, text: &str) -> Result<String, ApiError> {
        let Discord { sent, gone, .. } = self.work.discord;
        for _ in 0..MAX_ANEW {
            let nonce = piece_nonce(self.first, part, gone.times(self.first, part));
            let call = post(self.work.channel, text, Some(nonce), None);
            let posted = posted(&self.call(call).await?)?;
            if !posted.shows(text) {
                match self.work.show(&posted.id, text, Some(self.until)).await {
                    Err(lost) if lost.is(code::UNKNOWN_MESSAGE) => {
                        gone.note(self.first, part);
                        continue;
                    }
                    done => done?,
                }
            }
            sent.note(&*posted.id, text);
            return Ok(posted.id);
        }
        Err(ApiError::Unknown { why: "Discord names a message that is not there".into() })
    }

    /// Makes a call that follows the first one of the text.
    pub(super) async fn call(&self, call: Call) -> Result<Vec<u8>, ApiError> {
        self.work.call_patiently(call, self.until).await
    }

    /// One more is there; answers whether that is noted.
    pub(super) async fn push(&mut self, piece: String) -> bool {
        self.ids.push(piece);
        self.keep().await
    }

    /// Deletes those behind the first so many.
    pub(super) async fn truncate(&mut self, shown: usize) -> Result<(), ApiError> {
        let Discord { sent, gone, .. } = self.work.discord;
        for (at, piece) in self.ids.clone().iter().enumerate().skip(shown) {
            sent.forget(piece);
            match self.call(Call::new(Method::Delete, self.work.message_path(piece))).await {
                // It is gone, which is all that was wanted.
                Err(lost) if lost.is(code::UNKNOWN_MESSAGE) => {}
                done => drop(done?),
            }
            gone.note(self.first, at + 1);
            self.ids.retain(|known| known != piece);
            self.keep().await;
        }
        Ok(())
    }

    /// Notes the pieces. Should that fail, a later edit finds them by their nonces for as
    /// long as Discord knows those, and afterwards leaves them behind: `false`.
    async fn keep(&self) -> bool {
        let Work { discord: Discord { ports, account, .. }, channel, .. } = self.work;
        account.keep_pieces(&*ports.records, channel, self.first, &self.ids).await
    }
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
