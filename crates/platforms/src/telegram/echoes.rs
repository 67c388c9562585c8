//! What bots wrote where everybody writes in the chat's name: in a channel each bot sees the others'
//! posts, and must not answer them. Those of this process are remembered; where other nodes have
//! bots too, what each bot wrote last is beside the cursors, one row for each bot in a channel.

use super::sent_messages::echoes;
use super::{NAME, Telegram};
use angelia_core::clock::{self, UnixMillis};
use angelia_core::directory::{BotKey, ChatKind};
use angelia_core::error::Result;
use angelia_core::secret::fingerprint;
use angelia_core::store::{Cursor, Intake, StreamStore};
use hashlink::LruCache;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::Mutex;

/// How long after it was written a text may come back as somebody's post. Clocks of nodes differ
/// by much less.
const ECHO_WITHIN: Duration = Duration::from_secs(60);
/// Texts kept of one bot in one channel: Telegram lets it write some twenty a minute there.
const KEPT: usize = 64;
/// Channels a bot remembers what it wrote in.
const CHANNELS: usize = 1_000;

/// What a bot wrote, for bots on other nodes.
pub(super) struct SharedEchoes(Mutex<LruCache<String, Written>>);

impl Default for SharedEchoes {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(CHANNELS)))
    }
}

/// What one bot wrote in one channel, oldest first: a print of each text, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Written(VecDeque<(String, UnixMillis)>);

impl Written {
    fn note(&mut self, text: &str, now: UnixMillis) {
        self.0.retain(|(_, at)| at.after(ECHO_WITHIN) > now);
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back((print(text), now));
    }

    fn has(&self, text: &str, now: UnixMillis) -> bool {
        let print = print(text);
        self.0.iter().any(|(written, at)| *written == print && at.after(ECHO_WITHIN) > now)
    }
}

/// A text, recognised and not kept.
fn print(text: &str) -> String {
    fingerprint(text.trim()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// What the rows of a channel are found by: no bot is called so.
fn key(chat_id: &str) -> BotKey {
    BotKey::new(NAME, &format!("echoes in {chat_id}"))
}

impl Telegram {
    /// A text is about to be written. It may come back before it is known to be written.
    pub(crate) async fn about_to_write(&self, chat_id: &str, text: &str) {
        echoes().note(chat_id, text, clock::mono());
        if !self.ports.shared || !self.may_be_channel(chat_id) {
            return;
        }
        // Held until it is kept: of two texts the later row has both.
        let mut all = self.echoes.0.lock().await;
        let mut written = all.get(chat_id).cloned().unwrap_or_default();
        written.note(text, clock::wall());
        let position = serde_json::to_string(&written).unwrap_or_default();
        all.insert(chat_id.to_owned(), written);
        let cursor = Some(Cursor { stream: self.config.id.clone(), position });
        let intake = Intake { cursor, ..Intake::default() };
        if let Err(error) = self.ports.ingest.take_in(&key(chat_id), None, vec![intake]).await {
            tracing::warn!(bot = %self.config.name, %error, "bots on other nodes may take a post for somebody's");
        }
    }

    /// Whether a bot wrote a channel's post, on whichever node.
    pub(crate) async fn is_echo(&self, chat_id: &str, text: &str) -> Result<bool> {
        if echoes().knows(chat_id, text, clock::mono()) {
            return Ok(true);
        }
        if !self.ports.shared {
            return Ok(false);
        }
        let kept = self.ports.records.cursors(&key(chat_id)).await?;
        let mut kept = kept.iter().filter_map(|row| serde_json::from_str::<Written>(&row.position).ok());
        Ok(kept.any(|written| written.has(text, clock::wall())))
    }

    /// Channels have such ids, and nobody else but supergroups.
    fn may_be_channel(&self, chat_id: &str) -> bool {
        let known = self.account.directory.at_hand(chat_id);
        chat_id.starts_with("-100") && known.is_none_or(|known| known.chat.kind == ChatKind::Channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_known_for_a_while() {
        let (mut written, now) = (Written::default(), UnixMillis(1_000_000));
        written.note("news ", now);
        let over = now.after(ECHO_WITHIN);
        assert!(written.has("news", now) && !written.has("other news", now));
        assert!(!written.has("news", over), "by then it is somebody's own");
        let kept: Written = serde_json::from_str(&serde_json::to_string(&written).unwrap()).unwrap();
        assert_eq!(kept, written);
        (0..2 * KEPT).for_each(|n| written.note(&n.to_string(), over));
        assert_eq!(written.0.len(), KEPT);
        assert!(!written.has("0", over) && written.has(&(2 * KEPT - 1).to_string(), over));
    }
}
