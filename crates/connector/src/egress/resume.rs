//! Performing what a crash left unfinished, each chat in its order.

use super::answer::Reply;
use super::errand::{Errand, Origin};
use super::lanes::{self, Owed, Work};
use crate::server::Server;
use angelia_contract::action::Action;
use angelia_core::clock;
use angelia_core::egress::{ActionState, Dedupe, Resume, Target, after_crash};
use angelia_core::error::Result;
use angelia_core::store::{ActionOutcome, StoredAction};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Takes up the ledger where the last process left it.
pub(crate) async fn resume(server: &Arc<Server>) -> Result<()> {
    let unfinished = server.store.unfinished_actions().await?;
    if !unfinished.is_empty() {
        tracing::info!(count = unfinished.len(), "finishing actions that were under way");
    }
    let mut to_start = HashSet::new();
    for stored in unfinished {
        match take_up(server, &stored) {
            Ok(owed) => {
                let lane = owed.errand.lane();
                if server.egress.lanes.ready(&lane, vec![Work::Owed(owed)]).1 {
                    to_start.insert(lane);
                }
            }
            Err(outcome) => {
                // Not durable: the next start comes to the same end.
                let _ = server.store.finish_action(stored.id, outcome).await;
            }
        }
    }
    // Only now: an edit that a later one overtakes is not even begun.
    for lane in to_start {
        tokio::spawn(lanes::perform(server.clone(), lane));
    }
    Ok(())
}

/// An action as it goes on from here, or how it ends.
fn take_up(server: &Server, stored: &StoredAction) -> Result<Owed, ActionOutcome> {
    let end = |state, why: &str| ActionOutcome { state, message_id: None, error: Some(why.to_owned()) };
    let named = |bot: &Arc<dyn angelia_platforms::Platform>| {
        bot.platform() == stored.action.platform && bot.id() == stored.action.bot
    };
    let bot = server.platforms().iter().position(named);
    let dedupe = bot.map_or(Dedupe::No, |bot| server.platforms()[bot].dedupe());
    if after_crash(stored.state, dedupe) == Resume::ShowAmbiguous {
        return Err(end(ActionState::Ambiguous, "the connector stopped while it was sending"));
    }
    let Some(bot) = bot else {
        return Err(end(ActionState::Failed, "its bot is not configured any more"));
    };
    let action = serde_json::from_slice::<Action>(&stored.action.body).ok();
    let Some((action, target)) = action.and_then(|action| Target::of(&action).map(|target| (action, target)))
    else {
        return Err(end(ActionState::Failed, "it cannot be read"));
    };
    let origin =
        Origin { tenant: stored.action.tenant.clone(), instance: stored.action.instance, gateway_id: None };
    let errand = Errand { origin, bot, target, action, reply: Reply::default() };
    let age = clock::wall().0.saturating_sub(stored.action.received_at.0);
    let age = Duration::from_millis(u64::try_from(age).unwrap_or_default());
    let until = clock::mono() + server.egress.timings.queued_for.saturating_sub(age);
    let perhaps_sent = stored.state == ActionState::Sending;
    Ok(Owed { resumed: true, perhaps_sent, ..Owed::new(stored.id, Arc::new(errand), until) })
}
