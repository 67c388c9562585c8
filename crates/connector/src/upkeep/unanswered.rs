//! Who waits for an answer that does not come is told so, before what could
//! tell them ends.

use super::Notifier;
use angelia_core::clock;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::store::VaultStore;
use angelia_core::vault::{Capability, CapabilityId, Deferral, NOTICE_BEFORE, Use, Way};
use futures_util::stream::{self, StreamExt};
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked for people to tell. A read of an index, and an outage
/// of the provider leaves a dozen attempts.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// People looked at in one go.
const PAGE: usize = 256;
/// People told at the same time: thousands may have asked in one second, and
/// all of them have to be told within [`NOTICE_BEFORE`].
const AT_ONCE: usize = 64;
/// How long a provider gets. Others wait behind it.
const TOLD_WITHIN: Duration = Duration::from_secs(5);

impl Notifier {
    /// Tells people whose command or press nobody answers. What is due is in the store, so
    /// that a restart forgets nobody.
    pub(crate) async fn watch_unanswered(self: Arc<Self>) {
        loop {
            if let Err(error) = self.tell_unanswered().await {
                tracing::debug!(%error, "interactions nobody answered could not be looked for");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Tells everybody whose time is nearly over, once; who cannot be told is tried
    /// again when it is looked the next time.
    async fn tell_unanswered(&self) -> Result<()> {
        let mut after = CapabilityId(0);
        loop {
            let now = clock::wall();
            let due = self.ports.records.unanswered(after, now, now.after(NOTICE_BEFORE), PAGE).await?;
            let (count, last) = (due.len(), due.last().map(|it| it.id));
            stream::iter(due).for_each_concurrent(AT_ONCE, |capability| self.settle(capability)).await;
            match last {
                Some(last) if count == PAGE => after = last,
                _ => return Ok(()),
            }
        }
    }

    async fn settle(&self, capability: Capability) {
        if let Err(error) = self.tell_one(&capability).await {
            tracing::debug!(%error, bot = %capability.bot, "somebody who waits could not be told");
        }
    }

    async fn tell_one(&self, capability: &Capability) -> Result<()> {
        // An answer that is accepted from here on is a message of its own.
        if !self.ports.records.begin_notice(capability.id).await? {
            return Ok(());
        }
        let way = match capability.deferral {
            Deferral::Message => Way::Original,
            Deferral::Update => Way::Further,
        };
        let used = Use { capability: capability.id, way };
        let (answer, bot) =
            (self.egress.open(used, |_| true).await?, self.bots.position(&capability.bot_key()));
        if let (Some(answer), Some(bot)) = (answer, bot) {
            let call = self.bots[bot].tell_waiting(&answer, &self.notices.unanswered_text);
            let told = match tokio::time::timeout(TOLD_WITHIN, call).await {
                Ok(told) => told,
                // The same words in the same place do no harm; as messages they would come twice.
                Err(_) if way == Way::Original => {
                    Err(Error::unavailable("the platform did not answer in time"))
                }
                Err(_) => Ok(()),
            };
            match told {
                Err(error) if error.kind() == Kind::Unavailable => return Err(error),
                // What the provider refuses it would refuse again.
                Err(error) => tracing::debug!(%error, "somebody who waits was not told"),
                Ok(()) => {}
            }
        }
        self.ports.records.end_notice(capability.id).await
    }
}
