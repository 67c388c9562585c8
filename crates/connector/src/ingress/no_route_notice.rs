//! Telling a place, once, why nothing answers there, if the operator wants that.

use super::Bots;
use angelia_core::admission::{DropReason, Observed};
use angelia_core::directory::BotKey;
use angelia_core::egress::Target;
use angelia_core::error::{Kind, Result};
use angelia_core::records::Records;
use angelia_core::store::{NoticeKind, NoticeStore};
use angelia_platforms::Which;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Hints being given at the same time; more are left for the next occasion.
const AT_ONCE: usize = 4;

/// Gives hints where the bot answers nobody.
pub(super) struct NoRouteNotices {
    records: Arc<dyn Records>,
    bots: Arc<Bots>,
    /// What is said; `None`: nothing.
    text: Option<String>,
    turns: Arc<Semaphore>,
}

impl NoRouteNotices {
    pub(super) fn new(records: Arc<dyn Records>, bots: Arc<Bots>, text: Option<String>) -> Arc<Self> {
        Arc::new(Self { records, bots, text, turns: Arc::new(Semaphore::new(AT_ONCE)) })
    }

    /// Tells a place once why nothing answers, if somebody was waiting for an answer.
    pub(super) fn give(self: &Arc<Self>, observed: Observed<'_>, which: Which<'_>, reason: DropReason) {
        let Some(text) = self.text.clone() else { return };
        let expected = (observed.private || observed.addressed) && !observed.author_is_bot;
        let puzzling =
            matches!(reason, DropReason::NoRoute | DropReason::AuthorNotAllowed | DropReason::NoInstance);
        let Ok(turn) = self.turns.clone().try_acquire_owned() else { return };
        if !expected || !puzzling {
            return;
        }
        let bot = BotKey::new(observed.platform, observed.bot);
        let target =
            Target { chat_id: which.chat_id.to_owned(), thread_id: which.thread_id.map(str::to_owned) };
        let hints = self.clone();
        tokio::spawn(async move {
            let _turn = turn;
            if let Err(error) = hints.hint(&bot, &target, &text).await {
                tracing::debug!(%error, "a hint could not be given");
            }
        });
    }

    async fn hint(&self, bot: &BotKey, target: &Target, text: &str) -> Result<()> {
        let Some(position) = self.bots.position_of_others(bot) else { return Ok(()) };
        if self.records.notice(NoticeKind::Hint, bot, &target.chat_id, None).await? {
            let told = self.bots[position].tell(target, text).await;
            // What the provider refuses it would refuse again.
            if told.as_ref().is_err_and(|error| error.kind() == Kind::Unavailable) {
                self.records.clear_notice(NoticeKind::Hint, bot, &target.chat_id).await?;
            }
            return told;
        }
        Ok(())
    }
}
