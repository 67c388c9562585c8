//! Telling chats that messages of theirs were dropped because too much waited.
//! Agents see the same as a gap of their inbox.

use super::Notifier;
use angelia_core::directory::BotKey;
use angelia_core::egress::{Sender, Target};
use angelia_core::error::Result;
use angelia_core::inbox::InstanceId;
use angelia_core::store::{NoticeKind, NoticeStore, Untold};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Chats told in one go; the others in the next.
const PAGE: usize = 64;

impl Notifier {
    /// Tells whoever lost something.
    pub(crate) async fn watch_losses(self: Arc<Self>) {
        let mut told = BTreeSet::new();
        match self.ports.records.noticed().await {
            Ok(noticed) => told.extend(noticed),
            Err(error) => tracing::warn!(%error, "earlier notices are not known"),
        }
        loop {
            tokio::time::sleep(self.look_every()).await;
            if let Err(error) = self.tell_losses(&mut told).await {
                tracing::debug!(%error, "who lost messages could not be told");
            }
        }
    }

    async fn tell_losses(&self, told: &mut BTreeSet<InstanceId>) -> Result<()> {
        for untold in self.ports.records.untold(PAGE).await? {
            if self.tell_loss(&untold).await? {
                told.insert(untold.instance);
            }
            self.ports.records.told(&untold).await?;
        }
        // An inbox that was emptied since is another story: the next loss is told again.
        for instance in told.clone() {
            if self.ports.log.usage(instance).await?.entries == 0 {
                self.ports.records.end_notices(instance).await?;
                told.remove(&instance);
            }
        }
        Ok(())
    }

    /// Answers whether the chat was told now: only the first time.
    async fn tell_loss(&self, untold: &Untold) -> Result<bool> {
        let Untold { instance, platform, bot, chat_id, thread_id, message_id } = untold;
        let bot = &BotKey::new(platform, bot);
        let tenant = self.identities.now().tenant_of(*instance);
        let (Some(tenant), Some(position)) = (tenant, self.bots.position(bot)) else { return Ok(false) };
        if !self.ports.records.notice(NoticeKind::Lost, bot, chat_id, Some(*instance)).await? {
            return Ok(false);
        }
        let target = Target { chat_id: chat_id.clone(), thread_id: thread_id.clone() };
        let owner = Sender { tenant: &tenant, instance: *instance };
        self.egress.say(owner, position, target, self.notices.lost_text.clone(), message_id.clone());
        Ok(true)
    }
}
