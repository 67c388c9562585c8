//! `react`: a mark on a message, shown where the platform can. Gateways mark by it where a turn
//! begins and ends and wait for the answer, so it is given at once; the mark itself is an
//! ornament, the first thing to go when calls are short.

use super::Egress;
use super::action::OutboundAction;
use super::chat_info::is_refusal;
use angelia_contract::action::Action;
use std::sync::Arc;
use std::time::Duration;

/// How long a provider gets.
const SHOWN_WITHIN: Duration = Duration::from_secs(5);

/// Shows a mark beside everything else, if there is a call to spare.
pub(super) fn show(egress: &Arc<Egress>, action: Arc<OutboundAction>) {
    let egress = egress.clone();
    tokio::spawn(async move {
        let Action::React { message_id, emoji, remove, .. } = &action.action else { return };
        let tenant = &action.origin.tenant;
        if action.recall(&egress).await.is_err() || !action.is_allowed(&egress) {
            return;
        }
        let Some(slot) = egress.refusals.slot_at_once(tenant) else { return };
        if !action.rate_limit(&egress).spare(tenant, action.paced(&egress)) {
            return;
        }
        let Some(call) = action.platform(&egress).react(&action.target, message_id, emoji, *remove) else {
            return;
        };
        let done = tokio::time::timeout(SHOWN_WITHIN, call).await;
        slot.over(done.as_ref().is_ok_and(is_refusal));
    });
}
