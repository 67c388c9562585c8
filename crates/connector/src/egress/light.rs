//! What is not written down: showing that the agent writes, telling of a chat.
//! It is authorized like everything else.

use super::answer::{failed, never_sent, perhaps_sent};
use super::errand::Errand;
use super::lanes;
use crate::server::Server;
use angelia_contract::action::ActionResult;
use angelia_core::egress::ANSWER_WITHIN;
use angelia_core::error::{Kind, Result};
use std::sync::Arc;
use std::time::Duration;

/// How long showing that the agent writes may hold up what it wrote.
const TYPING_WITHIN: Duration = Duration::from_secs(3);

/// Shows that the agent writes, in the chat's order. Where its messages are on
/// their way it is answered and left out: they show it better.
pub(super) fn typing(server: &Arc<Server>, errand: Arc<Errand>) {
    match server.egress.lanes.is_idle(&errand.lane(server)) {
        true => lanes::enter(server, errand),
        false => errand.reply.give(ActionResult::ok()),
    }
}

/// Makes the call, if there is one to spare: nobody waits for an ornament.
pub(super) async fn show_typing(server: &Arc<Server>, errand: &Errand) {
    let tenant = &errand.origin.tenant;
    if let Err(error) = errand.recall(server).await {
        return errand.reply.give(answer(Err(error)));
    }
    if !errand.is_allowed(server) {
        return errand.reply.decline(server);
    }
    let Some(slot) = server.egress.brake.slot_at_once(tenant) else {
        return errand.reply.give(ActionResult::ok());
    };
    if !errand.gate(server).spare(tenant, errand.paced(server)) {
        return errand.reply.give(ActionResult::ok());
    }
    let call = errand.platform(server).typing(&errand.target);
    let done = tokio::time::timeout(TYPING_WITHIN, call).await;
    slot.over(done.as_ref().is_ok_and(is_refusal));
    errand.reply.give(done.map_or_else(|_| ActionResult::ok(), answer));
}

/// Asks for a chat's name and type, beside whatever happens in the chat.
pub(super) fn chat_info(server: &Arc<Server>, errand: Arc<Errand>) {
    let server = server.clone();
    tokio::spawn(async move {
        let asked = tokio::time::timeout(ANSWER_WITHIN, ask_chat_info(&server, &errand)).await;
        if asked.is_err() {
            errand.reply.give(perhaps_sent("the platform did not tell in time"));
        }
    });
}

async fn ask_chat_info(server: &Arc<Server>, errand: &Errand) {
    let tenant = &errand.origin.tenant;
    let Some(slot) = server.egress.brake.slot(tenant).await else {
        return errand.reply.give(failed("the platform refused too much of this tenant in the last minute"));
    };
    let permit = errand.gate(server).turn(tenant).await;
    if let Err(error) = errand.recall(server).await {
        return errand.reply.give(answer(Err(error)));
    }
    if !errand.is_allowed(server) {
        return errand.reply.decline(server);
    }
    permit.made();
    let told = errand.platform(server).chat_info(&errand.target).await;
    slot.over(is_refusal(&told));
    errand.reply.give(answer(told));
}

fn is_refusal(outcome: &Result<ActionResult>) -> bool {
    match outcome {
        Ok(result) => !result.success,
        Err(error) => matches!(error.kind(), Kind::Forbidden | Kind::NotFound | Kind::Invalid),
    }
}

fn answer(outcome: Result<ActionResult>) -> ActionResult {
    match outcome {
        Ok(result) => result,
        Err(error) if error.kind() == Kind::Unavailable => never_sent(&error.to_string()),
        Err(error) => failed(&error.to_string()),
    }
}
