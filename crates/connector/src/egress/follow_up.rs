//! `follow_up`: an answer that names its conversation instead of a chat. The
//! vault knows where that is; from there on it is a `send` like any other.

use super::Egress;
use super::action::{Origin, OutboundAction, failed};
use super::capability::Claims;
use super::chats;
use super::target_lookup::Waiting;
use angelia_contract::action::Action;
use angelia_core::clock;
use angelia_core::egress::{Goal, NO_CAPABILITY, Target, may_write};
use angelia_core::error::Result;
use angelia_core::store::VaultStore;
use angelia_core::vault::{CapabilityId, choose_for_key};
use std::sync::Arc;

/// Where a conversation is, and what it is answered with.
pub(super) struct Found {
    goal: Goal,
    capability: CapabilityId,
}

/// Finds what an action's conversation is answered with, among what its sender
/// holds and may still write to. Nothing found is not told from nothing allowed.
pub(super) async fn find(egress: &Egress, waits: &Waiting) -> Result<Option<Found>> {
    let Action::FollowUp { session_key, kind, .. } = &waits.outbound.action else { return Ok(None) };
    let (record, now) = (&waits.record, clock::wall());
    let mut held = egress.records.capabilities(record.instance, now).await?;
    held.retain(|it| it.tenant == record.tenant);
    let Some(chosen) = choose_for_key(&held, kind, session_key, now) else { return Ok(None) };
    let Some(bot) = egress.bots.position(&chosen.bot_key()) else { return Ok(None) };
    let (platform, target) = (&egress.bots[bot], Target::chat(&chosen.chat_id));
    let may = || may_write(egress.identities.now().routes(), &**platform, waits.sender(), &target);
    if may().is_none() {
        platform.recall(&target).await?;
    }
    let found = |target| Found { goal: Goal { bot, target }, capability: chosen.id };
    Ok((may() == Some(true)).then(|| found(target.clone())))
}

/// Sends it on its way.
pub(super) fn perform(egress: &Arc<Egress>, waits: Waiting, found: Found) {
    let Waiting { record, reply, outbound, held } = waits;
    let origin = Origin::of(&record);
    let Action::FollowUp { content, mut metadata, .. } = outbound.action else { return };
    if origin.is_revoked(&egress.identities.now()) {
        return reply.give(failed(NO_CAPABILITY));
    }
    // Where it goes is settled; the ledger must not read another place out of it.
    metadata.remove("thread_id");
    let Found { goal, capability } = found;
    let action = Action::Send { chat_id: goal.target.chat_id.clone(), content, reply_to: None, metadata };
    let claims = Claims::Named(capability);
    chats::enter(egress, OutboundAction::new(origin, goal, action, claims, reply, Some(held)));
}
