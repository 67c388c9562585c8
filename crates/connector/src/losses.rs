//! Telling chats that messages of theirs were dropped because too much waited.
//! Agents see the same as a gap of their inbox.

use crate::egress;
use crate::server::Server;
use angelia_core::egress::{Sender, Target};
use angelia_core::error::Result;
use angelia_core::inbox::InstanceId;
use angelia_core::store::{NoticeKind, NoticeStore, Untold};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked for such chats.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Chats told in one go; the others in the next.
const PAGE: usize = 64;

/// Tells whoever lost something, until the server stops.
pub(crate) async fn watch(server: Arc<Server>) {
    let mut told = BTreeSet::new();
    match server.ports.records.noticed().await {
        Ok(noticed) => told.extend(noticed),
        Err(error) => tracing::warn!(%error, "earlier notices are not known"),
    }
    let every = LOOK_EVERY.min(server.options.notices.away_after);
    loop {
        tokio::select! {
            () = server.stopped() => return,
            () = tokio::time::sleep(every) => {}
        }
        if let Err(error) = look(&server, &mut told).await {
            tracing::debug!(%error, "who lost messages could not be told");
        }
    }
}

async fn look(server: &Arc<Server>, told: &mut BTreeSet<InstanceId>) -> Result<()> {
    for untold in server.ports.records.untold(PAGE).await? {
        if tell(server, &untold).await? {
            told.insert(untold.instance);
        }
        server.ports.records.told(&untold).await?;
    }
    // An inbox that was emptied since is another story: the next loss is told again.
    for instance in told.clone() {
        if server.ports.log.usage(instance).await?.entries == 0 {
            server.ports.records.end_notices(instance).await?;
            told.remove(&instance);
        }
    }
    Ok(())
}

/// Answers whether the chat was told now: only the first time.
async fn tell(server: &Arc<Server>, untold: &Untold) -> Result<bool> {
    let Untold { instance, bot, chat_id, thread_id, message_id } = untold;
    let (Some(tenant), Some(position)) = (server.identities.tenant_of(*instance), server.position(bot))
    else {
        return Ok(false);
    };
    if !server.ports.records.notice(NoticeKind::Lost, bot, chat_id, Some(*instance)).await? {
        return Ok(false);
    }
    let target = Target { chat_id: chat_id.clone(), thread_id: thread_id.clone() };
    let text = server.options.notices.lost_text.clone();
    let owner = Sender { tenant: &tenant, instance: *instance };
    egress::say(server, owner, position, target, text, message_id.clone());
    Ok(true)
}
