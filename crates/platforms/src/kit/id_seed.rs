//! A few random characters that a store has for all of its life: what a bot's own
//! ids begin with, or are made with. Another store has others.

use angelia_core::directory::BotKey;
use angelia_core::error::Result;
use angelia_core::records::Records;
use angelia_core::store::StreamStore;
use tokio::sync::OnceCell;

/// What the ids of a bot are made with, once it was asked for.
#[derive(Debug, Default)]
pub(crate) struct IdSeed(OnceCell<String>);

impl IdSeed {
    /// What the store has under this name, or keeps from now on. It lies beside the bot's
    /// cursors, as the position of a stream that is none.
    pub(crate) async fn get(
        &self,
        records: &dyn Records,
        bot: &BotKey,
        name: &str,
        mint: fn() -> String,
    ) -> Result<&str> {
        let seed = self.0.get_or_try_init(|| async {
            let cursors = records.cursors(bot).await?;
            // Usually there is something, and nothing needs to be written.
            match cursors.into_iter().find(|cursor| cursor.stream == name) {
                Some(known) => Ok(known.position),
                None => records.mint(bot, name, mint()).await,
            }
        });
        seed.await.map(String::as_str)
    }
}
