//! Performing what a crash left unfinished, each chat in its order.

use super::answer::Reply;
use super::capability::Claims;
use super::errand::{Errand, FOLLOW_UP, Origin};
use super::lanes::{self, Begun, Owed, Work};
use crate::server::Server;
use angelia_contract::action::Action;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::directory::BotKey;
use angelia_core::egress::{ActionState, NO_CAPABILITY, Resume, Target, after_crash};
use angelia_core::error::Result;
use angelia_core::store::{Accepted, ActionOutcome, StoredAction};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

const STOPPED_WHILE_SENDING: &str = "the connector stopped while it was sending";

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
                let lane = owed.errand.lane(server);
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
    let Some(bot) = server.position(&BotKey::new(&stored.action.platform, &stored.action.bot)) else {
        // It cannot be asked what it has.
        return Err(match stored.state {
            ActionState::Sending => end(ActionState::Ambiguous, STOPPED_WHILE_SENDING),
            _ => end(ActionState::Failed, "its bot is not configured any more"),
        });
    };
    let action = serde_json::from_slice::<Action>(&stored.action.body).ok();
    let Some((action, target)) = action.and_then(|action| Target::of(&action).map(|target| (action, target)))
    else {
        return Err(end(ActionState::Failed, "it cannot be read"));
    };
    // What it claimed when it was accepted stays claimed.
    let claims = match (stored.action.op == FOLLOW_UP, stored.uses) {
        (false, _) => Claims::Nothing,
        (true, Some(used)) => Claims::Named(used.capability),
        (true, None) => return Err(end(ActionState::Failed, NO_CAPABILITY)),
    };
    let since_begun = stored.begun_at.map_or(Duration::MAX, age);
    let dedupe = server.platforms()[bot].dedupe(&action, stored.uses.map(|it| it.way));
    if after_crash(stored.state, dedupe, since_begun) == Resume::ShowAmbiguous {
        return Err(end(ActionState::Ambiguous, STOPPED_WHILE_SENDING));
    }
    let origin =
        Origin { tenant: stored.action.tenant.clone(), instance: stored.action.instance, gateway_id: None };
    let errand = Errand { origin, bot, target, action, claims, reply: Reply::default() };
    let left = server.egress.timings.queued_for.saturating_sub(age(stored.action.received_at));
    let until = clock::mono() + left;
    let perhaps_sent = stored.state == ActionState::Sending;
    let begun = stored.begun_at.map(|at| Begun::ago(age(at)));
    let accepted = Accepted { id: stored.id, uses: stored.uses, uses_until: stored.uses_until };
    Ok(Owed { resumed: true, perhaps_sent, begun, ..Owed::new(accepted, Arc::new(errand), until) })
}

/// How long ago something was, by the wall clock.
fn age(at: UnixMillis) -> Duration {
    let age = clock::wall().0.saturating_sub(at.0);
    // What seems to lie ahead was written by a clock that went wrong: too long ago to rely on.
    u64::try_from(age).map_or(Duration::MAX, Duration::from_millis)
}
