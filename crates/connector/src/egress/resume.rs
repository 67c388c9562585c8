//! Performing what a crash left unfinished, each chat in its order.
//!
//! A start reads who asked for what and where it goes, page by page; the texts
//! stay in the store until their turn comes. However much was left behind, and
//! by whom, a start costs little and every other tenant goes on.

use super::answer::Reply;
use super::aside;
use super::capability::Claims;
use super::errand::{Errand, FOLLOW_UP, Origin};
use super::lanes::{self, Begun, Lane, Owed, Resumed, Work};
use crate::server::Server;
use angelia_contract::action::Action;
use angelia_core::clock::{self, UnixMillis};
use angelia_core::directory::BotKey;
use angelia_core::egress::{ActionState, NO_CAPABILITY, Resume, Target, after_crash, is_suspect};
use angelia_core::error::Result;
use angelia_core::memory::HeldBytes;
use angelia_core::store::{Accepted, ActionId, ActionOutcome, StoredAction};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Unfinished actions read at once.
const PAGE: usize = 256;

const STOPPED_WHILE_SENDING: &str = "the connector stopped while it was sending";
const SET_ASIDE: &str = "set aside: it was under way at two crashes";
const GONE_BOT: &str = "its bot is not configured any more";
const TOO_OLD: &str = "it could not be sent in the time it is kept for: the connector was stopped";

/// Takes up the ledger where the last process left it.
pub(crate) async fn resume(server: &Arc<Server>) -> Result<()> {
    let (mut after, mut count, mut to_start) = (ActionId(0), 0, HashSet::new());
    loop {
        let page = server.store.unfinished_actions(after, PAGE).await?;
        let Some(last) = page.last().map(|stored| stored.id) else { break };
        (after, count) = (last, count + page.len());
        to_start.extend(take_up(server, page).await);
    }
    if count > 0 {
        tracing::info!(count, "finishing actions that were under way");
    }
    // Only now: an edit that a later one overtakes is not even begun.
    for lane in to_start {
        tokio::spawn(lanes::perform(server.clone(), lane));
    }
    Ok(())
}

/// Queues what goes on from here and ends what does not; tells whose workers have to be started.
async fn take_up(server: &Arc<Server>, page: Vec<StoredAction>) -> Vec<Lane> {
    let under_way = page.iter().filter(|stored| stored.state == ActionState::Sending);
    // Not durable: the next start counts one crash less.
    let _ = server.store.note_crash(under_way.map(|stored| stored.id).collect()).await;
    let (mut ends, mut to_start) = (Vec::new(), Vec::new());
    for stored in page {
        match judge(server, &stored) {
            Ok(bot) => {
                let target = Target { chat_id: stored.chat_id.clone(), thread_id: stored.thread_id.clone() };
                let lane = Lane::of(server, stored.instance, bot, &target);
                let work = Work::Resumed(Box::new(Resumed { stored, target, superseded: false }));
                let (overtaken, start) = server.egress.lanes.ready(&lane, vec![work]);
                lanes::supersede(server, &lane, overtaken).await;
                to_start.extend(start.then_some(lane));
            }
            Err((state, why)) => {
                ends.push((
                    stored.id,
                    ActionOutcome { state, message_id: None, error: Some(why.to_owned()) },
                ));
            }
        }
    }
    if !ends.is_empty() {
        // Not durable: the next start comes to the same end.
        let _ = server.store.finish_actions(ends).await;
    }
    to_start
}

/// The bot that an action goes on with, or how it ends.
fn judge(server: &Server, stored: &StoredAction) -> Result<usize, (ActionState, &'static str)> {
    let Some(bot) = server.position(&BotKey::new(&stored.platform, &stored.bot)) else {
        // It cannot be asked what it has.
        return Err(match stored.state {
            ActionState::Sending => (ActionState::Ambiguous, STOPPED_WHILE_SENDING),
            _ => (ActionState::Failed, GONE_BOT),
        });
    };
    if stored.op == FOLLOW_UP && stored.uses.is_none() {
        return Err((ActionState::Failed, NO_CAPABILITY));
    }
    if is_suspect(stored.state, stored.crashes + 1) {
        let (tenant, gateway) = (&stored.tenant, stored.gateway_id.as_deref().unwrap_or("unknown"));
        tracing::warn!(%tenant, gateway, action = stored.id.0, bytes = stored.bytes, "{SET_ASIDE}");
        return Err((ActionState::Ambiguous, SET_ASIDE));
    }
    let old = server.store.age(stored.received_at).at_least > server.egress.timings.queued_for;
    match stored.state {
        // It was not begun, and nobody wants it any more: not even its text is read.
        ActionState::Accepted if old && stored.uses.is_none() && !server.platforms()[bot].is_own() => {
            Err((ActionState::Failed, TOO_OLD))
        }
        _ => Ok(bot),
    }
}

/// Performs an action whose turn has come.
pub(super) async fn carry(server: &Arc<Server>, lane: &Lane, resumed: Resumed) {
    let Resumed { stored, superseded, .. } = resumed;
    if superseded {
        // Its end may not be durable yet; it is the same one now.
        let outcome =
            ActionOutcome { state: ActionState::Superseded, message_id: stored.edits.clone(), error: None };
        let _ = server.store.finish_action(stored.id, outcome).await;
        return;
    }
    let Some(held) = room(server, &stored).await else { return };
    let body = match server.store.action_body(stored.id).await {
        Ok(Some(body)) => body,
        // It ended meanwhile, or the next start finds it again.
        Ok(None) | Err(_) => return,
    };
    match owed(server, lane, &stored, &body, held) {
        Ok(owed) => aside::carry(server, lane, owed).await,
        Err((state, why)) => {
            let outcome = ActionOutcome { state, message_id: None, error: Some(why.to_owned()) };
            let _ = server.store.finish_action(stored.id, outcome).await;
        }
    }
}

/// Waits until there is memory for the action's text; `None` once the server stops.
async fn room(server: &Server, stored: &StoredAction) -> Option<HeldBytes> {
    let share = server.memory.instance(&stored.tenant, stored.instance);
    let bytes = usize::try_from(stored.bytes).unwrap_or(usize::MAX).saturating_mul(2);
    // What earlier releases took in may be larger than everything there is.
    let bytes = bytes.min(share.limit() / 2);
    loop {
        if let Some(held) = share.hold(bytes) {
            return Some(held);
        }
        tokio::select! {
            () = tokio::time::sleep(server.egress.timings.again) => {}
            () = server.stopped() => return None,
        }
    }
}

/// An action as it goes on from here, or how it ends.
fn owed(
    server: &Server,
    lane: &Lane,
    stored: &StoredAction,
    body: &[u8],
    held: HeldBytes,
) -> Result<Owed, (ActionState, &'static str)> {
    let action = serde_json::from_slice::<Action>(body).ok();
    let Some((action, target)) = action.and_then(|action| Target::of(&action).map(|target| (action, target)))
    else {
        return Err((ActionState::Failed, "it cannot be read"));
    };
    // What it claimed when it was accepted stays claimed.
    let claims = match (stored.op == FOLLOW_UP, stored.uses) {
        (true, Some(used)) => Claims::Named(used.capability),
        _ => Claims::Nothing,
    };
    let age = |at: UnixMillis| server.store.age(at);
    // Where the clock leapt, the worst is assumed: what may be too long ago is not relied on.
    let since_begun = stored.begun_at.map_or(Duration::MAX, |at| age(at).at_most);
    let dedupe = server.platforms()[lane.bot].dedupe(&action, stored.uses.map(|it| it.way));
    if after_crash(stored.state, dedupe, since_begun) == Resume::ShowAmbiguous {
        return Err((ActionState::Ambiguous, STOPPED_WHILE_SENDING));
    }
    let origin = Origin {
        tenant: stored.tenant.clone(),
        instance: stored.instance,
        gateway_id: stored.gateway_id.clone(),
    };
    let reply = Reply::default();
    let errand = Errand { origin, bot: lane.bot, target, action, claims, reply, _held: Some(held) };
    let left = server.egress.timings.queued_for.saturating_sub(age(stored.received_at).at_least);
    let until = clock::mono() + left;
    let perhaps_sent = stored.state == ActionState::Sending;
    let begun = stored.begun_at.map(|at| Begun::ago(age(at).at_most));
    let accepted = Accepted { id: stored.id, uses: stored.uses, uses_until: stored.uses_until };
    Ok(Owed { resumed: true, perhaps_sent, begun, ..Owed::new(accepted, Arc::new(errand), until) })
}
