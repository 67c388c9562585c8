//! What goes on beside everything else: dropping what is past its time, looking
//! after the disk, and trying a store that failed.

use crate::server::Server;
use crate::telemetry::Counter;
use angelia_core::clock;
use angelia_core::error::Result;
use angelia_core::store::{IdentityStore, Pruned};
use std::sync::Arc;
use std::time::Duration;

/// How often the store is asked to drop what is past its time.
const PRUNE_EVERY: Duration = Duration::from_secs(600);
/// How often the disk is looked after.
const TEND_EVERY: Duration = Duration::from_secs(10);
/// How often a store that failed is tried again.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Drops what is past its time, in the store and in memory.
async fn prune(server: &Arc<Server>) -> Result<()> {
    // What is dropped is dropped by a time that the next start knows.
    server.ports.upkeep.keep_clock().await?;
    let Pruned { forgotten, overaged } = server.ports.upkeep.prune().await?;
    server.metrics.add(Counter::Overaged, overaged);
    if overaged > 0 {
        tracing::warn!(
            count = overaged,
            "messages that waited longer than inbox.max_age were dropped; angelia inbox list says whose"
        );
    }
    if forgotten.is_empty() {
        return Ok(());
    }
    let forget = |server: Arc<Server>| async move {
        for (tenant, gateway_id) in &forgotten {
            server.identities.forget(tenant, gateway_id);
            if let Ok(default) = server.ports.records.default_instance(tenant).await {
                server.identities.set_default(tenant, default);
            }
        }
        Ok(())
    };
    server.change(forget).await
}

/// Prunes now and then, and tries a failed store until it works again.
pub(crate) async fn prune_now_and_then(server: Arc<Server>) {
    let mut prune_at = clock::mono();
    loop {
        if !server.ports.upkeep.healthy() {
            let _ = server.ports.upkeep.probe().await;
        }
        server.tell_refusals().await;
        let now = clock::mono();
        if now >= prune_at {
            prune_at = now + PRUNE_EVERY;
            if let Err(error) = prune(&server).await {
                tracing::warn!(%error, "what is past its time could not be dropped");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PROBE_EVERY) => {}
            () = server.stopped() => return,
        }
    }
}

/// Looks after the disk, beside the rest: deleting a large tenant takes a while.
pub(crate) async fn tend(server: Arc<Server>) {
    let mut was_well = true;
    loop {
        let tended = server.ports.upkeep.tend().await;
        if let Err(error) = &tended
            && was_well
        {
            tracing::warn!(%error, "the disk could not be looked after; trying again");
        }
        was_well = tended.is_ok();
        let pause = if server.ports.upkeep.healthy() { TEND_EVERY } else { PROBE_EVERY };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = server.stopped() => return,
        }
    }
}
