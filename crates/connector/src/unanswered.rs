//! Who waits for an answer that does not come is told so, before what could
//! tell them ends.

use crate::egress;
use crate::server::Server;
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

/// Tells people, until the server stops. What is due is in the store, so that a
/// restart forgets nobody.
pub(crate) async fn watch(server: Arc<Server>) {
    loop {
        if let Err(error) = look(&server).await {
            tracing::debug!(%error, "interactions nobody answered could not be looked for");
        }
        tokio::select! {
            () = server.stopped() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Tells everybody whose time is nearly over, once; who cannot be told is tried
/// again when it is looked the next time.
async fn look(server: &Server) -> Result<()> {
    let mut after = CapabilityId(0);
    loop {
        let now = clock::wall();
        let due = server.ports.records.unanswered(after, now, now.after(NOTICE_BEFORE), PAGE).await?;
        let (count, last) = (due.len(), due.last().map(|it| it.id));
        stream::iter(due).for_each_concurrent(AT_ONCE, |capability| settle(server, capability)).await;
        match last {
            Some(last) if count == PAGE && !server.is_stopping() => after = last,
            _ => return Ok(()),
        }
    }
}

async fn settle(server: &Server, capability: Capability) {
    if let Err(error) = tell(server, &capability).await {
        tracing::debug!(%error, bot = %capability.bot.bot, "somebody who waits could not be told");
    }
}

async fn tell(server: &Server, capability: &Capability) -> Result<()> {
    // An answer that is accepted from here on is a message of its own.
    if !server.ports.records.begin_notice(capability.id).await? {
        return Ok(());
    }
    let way = match capability.deferral {
        Deferral::Message => Way::Original,
        Deferral::Update => Way::Further,
    };
    let used = Use { capability: capability.id, way };
    let (answer, bot) = (egress::open(server, used, |_| true).await?, server.position(&capability.bot));
    if let (Some(answer), Some(bot)) = (answer, bot) {
        let text = &server.options.notices.unanswered_text;
        let call = server.platforms()[bot].tell_waiting(&answer, text);
        let told = match tokio::time::timeout(TOLD_WITHIN, call).await {
            Ok(told) => told,
            // The same words in the same place do no harm; as messages they would come twice.
            Err(_) if way == Way::Original => Err(Error::unavailable("the platform did not answer in time")),
            Err(_) => Ok(()),
        };
        match told {
            Err(error) if error.kind() == Kind::Unavailable => return Err(error),
            // What the provider refuses it would refuse again.
            Err(error) => tracing::debug!(%error, "somebody who waits was not told"),
            Ok(()) => {}
        }
    }
    server.ports.records.end_notice(capability.id).await
}
