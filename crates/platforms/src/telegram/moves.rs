//! Chats that get another id. At this moment their routes move and what is at
//! hand of them changes, one after the other; who looks in between finds both
//! ids. Afterwards agents may go on using the old one for a while.

use super::Telegram;
use angelia_core::error::{Error, Result};
use hashlink::LruCache;
use parking_lot::Mutex as Short;
use std::sync::{Arc, Weak};
use tokio::sync::{Mutex, MutexGuard};

/// Messages remembered that were sent by a chat's old id. Agents change what
/// they have just written, and soon learn the new id.
const SENT_SINCE: usize = 1_000;

/// From where to where.
type Move = (String, String);

/// The move under way, if any: there is one at a time.
pub(super) struct Moves {
    turn: Mutex<()>,
    /// Known for as long as whoever makes it holds it.
    now: Short<Weak<Move>>,
    /// What was sent since a move by the chat's old id: that id, and the
    /// message's at the new one.
    sent_since: Short<LruCache<(String, String), ()>>,
}

impl Default for Moves {
    fn default() -> Self {
        let sent_since = Short::new(LruCache::new(SENT_SINCE));
        Self { turn: Mutex::default(), now: Short::default(), sent_since }
    }
}

impl Moves {
    /// A chat begins to move, when no other does; it moves until this is dropped.
    async fn begin(&self, from: &str, to: &str) -> (Arc<Move>, MutexGuard<'_, ()>) {
        let turn = self.turn.lock().await;
        let moving = Arc::new((from.to_owned(), to.to_owned()));
        *self.now.lock() = Arc::downgrade(&moving);
        (moving, turn)
    }

    /// Where a chat is moving to right now.
    pub(super) fn of(&self, chat_id: &str) -> Option<String> {
        let now = self.now.lock().upgrade()?;
        (now.0 == chat_id).then(|| now.1.clone())
    }

    /// A message was sent to where a chat has moved, by the id it had before.
    pub(super) fn sent(&self, from: &str, message_id: &str) {
        self.sent_since.lock().insert((from.to_owned(), message_id.to_owned()), ());
    }

    /// Whether a message is known to be sent so: its id is one of the new chat.
    /// All others stayed with the old one.
    pub(super) fn was_sent(&self, from: &str, message_id: &str) -> bool {
        self.sent_since.lock().contains_key(&(from.to_owned(), message_id.to_owned()))
    }
}

impl Telegram {
    /// A group has a new id: its routes and what is known of it move, durably,
    /// before anything else happens there.
    pub(super) async fn move_chat(&self, from: &str, to: &str) -> Result<()> {
        let admission = self
            .admission
            .get()
            .ok_or_else(|| Error::unavailable("the bot has not started to listen yet"))?;
        let _moving = self.moves.begin(from, to).await;
        admission.moved(&self.account.key, from, to).await?;
        self.account.directory.change(from, |known| known.moved_to = Some(to.to_owned()));
        tracing::info!(bot = %self.config.name, from, to, "a group became a supergroup");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_move_is_known_as_long_as_it_lasts() {
        let moves = Moves::default();
        let moving = moves.begin("-5", "-1005").await;
        assert_eq!((moves.of("-5").as_deref(), moves.of("-6")), (Some("-1005"), None));
        assert!(moves.begin("-6", "-1006").now_or_never().is_none(), "one at a time");
        drop(moving);
        assert_eq!(moves.of("-5"), None);
        assert!(moves.begin("-6", "-1006").now_or_never().is_some());
    }

    #[test]
    fn what_was_sent_since_a_move_is_known_for_a_while() {
        let moves = Moves::default();
        moves.sent("-5", "7");
        assert!(moves.was_sent("-5", "7"));
        assert!(!moves.was_sent("-5", "8") && !moves.was_sent("-6", "7"));
        for n in 0..SENT_SINCE {
            moves.sent("-6", &n.to_string());
        }
        assert!(!moves.was_sent("-5", "7") && moves.was_sent("-6", "0"), "the oldest went");
        assert_eq!(moves.sent_since.lock().len(), SENT_SINCE);
    }
}
