//! `get_chat_info`: telling of a chat. Not written down, and authorized like
//! everything else.

use super::action::{OutboundAction, failed, never_sent, perhaps_sent};
use super::{Egress, asked};
use angelia_contract::action::ActionResult;
use angelia_core::egress::ANSWER_WITHIN;
use angelia_core::error::{Kind, Result};
use std::sync::Arc;

/// Asks for a chat's name and type, beside whatever happens in the chat.
pub(super) fn chat_info(egress: &Arc<Egress>, action: Arc<OutboundAction>) {
    if egress.is_elsewhere(action.bot) {
        return asked::chat_info(egress, action);
    }
    let egress = egress.clone();
    tokio::spawn(async move {
        let asked = tokio::time::timeout(ANSWER_WITHIN, ask_chat_info(&egress, &action)).await;
        if asked.is_err() {
            action.reply.give(perhaps_sent("the platform did not tell in time"));
        }
    });
}

async fn ask_chat_info(egress: &Arc<Egress>, action: &OutboundAction) {
    let tenant = &action.origin.tenant;
    let Some(slot) = egress.refusals.slot(tenant).await else {
        return action.reply.give(failed("the platform refused too much of this tenant in the last minute"));
    };
    let permit = action.rate_limit(egress).turn(tenant).await;
    if let Err(error) = action.recall(egress).await {
        return action.reply.give(answer(Err(error)));
    }
    if !action.is_allowed(egress) {
        return action.reply.decline(egress);
    }
    if !egress.may_call_now(action.bot) {
        return action.reply.give(never_sent("the bot went to another node"));
    }
    permit.made();
    let told = action.platform(egress).chat_info(&action.target).await;
    slot.over(is_refusal(&told));
    action.reply.give(answer(told));
}

/// Whether the provider refused, as far as its refusals are counted.
pub(super) fn is_refusal(outcome: &Result<ActionResult>) -> bool {
    match outcome {
        Ok(result) => !result.success,
        Err(error) => matches!(error.kind(), Kind::Forbidden | Kind::NotFound | Kind::Invalid),
    }
}

/// What a look at a chat is answered with.
pub(super) fn answer(outcome: Result<ActionResult>) -> ActionResult {
    match outcome {
        Ok(result) => result,
        Err(error) if error.kind() == Kind::Unavailable => never_sent(&error.to_string()),
        Err(error) => failed(&error.to_string()),
    }
}
