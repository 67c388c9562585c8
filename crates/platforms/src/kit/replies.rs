//! The connector's own words to people: few, and never waited for.

use super::Account;
use angelia_core::clock;
use angelia_core::limit::{GcraOf, Rate};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Answers on their way at once. What is more than that is not said.
const UNDER_WAY: usize = 8;
/// Answers that wait until their chats may be told something more. What is more than that
/// is not said.
const WAITING: usize = 64;

/// People remembered as told: each is told once a minute, however often it is posted.
const MAX_TOLD_FULL: usize = 1_000;

/// What bounds the connector's own words.
pub(crate) struct Replies {
    under_way: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    told_full: Mutex<GcraOf<String>>,
    /// Messages with commands that were done, the newest last.
    pub(super) settled: tokio::sync::Mutex<VecDeque<String>>,
}

impl Default for Replies {
    fn default() -> Self {
        let [under_way, waiting] = [UNDER_WAY, WAITING].map(|most| Arc::new(Semaphore::new(most)));
        let told_full = Mutex::new(GcraOf::new(MAX_TOLD_FULL));
        Self { under_way, waiting, told_full, settled: Default::default() }
    }
}

impl Replies {
    /// Whether to tell somebody that their agent's inbox is full: not if they were told just now.
    pub(crate) fn may_tell_full(&self, person: &str) -> bool {
        self.told_full.lock().take(person, Rate::a_minute(1, 1), clock::mono()).is_ok()
    }
}

impl Account {
    /// Has something of the connector's own said beside everything else; where that fails, or
    /// too much is on its way already, it is not said.
    pub(crate) fn reply<E: Display>(&self, said: impl Future<Output = Result<(), E>> + Send + 'static) {
        self.reply_after(Duration::ZERO, said);
    }

    /// The same after a while.
    pub(crate) fn reply_after<E: Display>(
        &self,
        wait: Duration,
        said: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let line = if wait.is_zero() { &self.replies.under_way } else { &self.replies.waiting };
        let Ok(place) = line.clone().try_acquire_owned() else {
            self.health.count("unanswered");
            tracing::warn!(bot = %self.name, "too many answers of the connector are on their way");
            return;
        };
        let name = self.name.clone();
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            if let Err(why) = said.await {
                tracing::warn!(bot = %name, %why, "an answer of the connector was not sent");
            }
            drop(place);
        });
    }
}
