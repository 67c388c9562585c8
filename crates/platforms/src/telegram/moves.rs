//! Chats that get another id. At this moment their routes move and what is at
//! hand of them changes, one after the other; who looks in between finds both
//! ids. Afterwards agents may go on using the old one for a while.

use super::Telegram;
use angelia_core::error::{Error, Result};
use angelia_core::store::DirectoryStore;
use parking_lot::Mutex as Short;
use std::sync::{Arc, Weak};
use tokio::sync::{Mutex, MutexGuard};

/// From where to where.
type Move = (String, String);

/// The move under way, if any: there is one at a time.
#[derive(Default)]
pub(super) struct Moves {
    turn: Mutex<()>,
    /// Known for as long as whoever makes it holds it.
    now: Short<Weak<Move>>,
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
}

impl Telegram {
    /// A message was sent to where a chat has moved, by the id it had before. All that was kept of
    /// messages under that id went with the move, so whatever is kept there was sent since.
    pub(super) async fn sent_since(&self, from: &str, message_id: &str) {
        let pieces = [message_id.to_owned()];
        if !self.account.keep_pieces(&*self.ports.records, from, message_id, &pieces).await {
            tracing::error!(bot = %self.config.name, "a message sent by a chat's old id cannot be changed by it");
        }
    }

    /// Whether a message was sent so, by whichever node: its id is one of the new chat. All others
    /// stayed with the old one.
    pub(super) async fn was_sent_since(&self, from: &str, message_id: &str) -> Result<bool> {
        Ok(!self.ports.records.pieces(&self.account.key, from, message_id).await?.is_empty())
    }

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
}
