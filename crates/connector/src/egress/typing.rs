//! `typing`: showing that the agent writes, in the chat's order. Not written
//! down, and authorized like everything else.

use super::Egress;
use super::action::OutboundAction;
use super::chat_info::{answer, is_refusal};
use angelia_contract::action::{Action, ActionResult};
use std::time::Duration;

/// How long showing that the agent writes may hold up what it wrote.
const TYPING_WITHIN: Duration = Duration::from_secs(3);

/// Makes the call, if there is one to spare: nobody waits for an ornament.
pub(super) async fn show(egress: &Egress, action: &OutboundAction) {
    let tenant = &action.origin.tenant;
    if let Err(error) = action.recall(egress).await {
        return action.reply.give(answer(Err(error)));
    }
    if !action.is_allowed(egress) {
        return action.reply.decline(egress);
    }
    if !egress.may_call_now(action.bot) {
        return action.reply.give(ActionResult::ok());
    }
    let Some(slot) = egress.refusals.slot_at_once(tenant) else {
        return action.reply.give(ActionResult::ok());
    };
    if !action.rate_limit(egress).spare(tenant, action.paced(egress)) {
        return action.reply.give(ActionResult::ok());
    }
    let words = match &action.action {
        Action::Typing { content, .. } => content.as_deref(),
        _ => None,
    };
    let call = action.platform(egress).typing(&action.target, words);
    let done = tokio::time::timeout(TYPING_WITHIN, call).await;
    slot.over(done.as_ref().is_ok_and(is_refusal));
    action.reply.give(done.map_or_else(|_| ActionResult::ok(), answer));
}
