//! `prompt`: a question is written down before it is shown, so that its press is understood,
//! whoever gets it and whenever that is.

use super::Egress;
use super::action::OutboundAction;
use angelia_contract::action::Action;
use angelia_core::ports::ActionId;
use angelia_core::prompts::{NewPrompt, PromptStore};
use angelia_platforms::{Outcome, Reach};

const NOT_KEPT: &str = "the connector's store does not commit; the question was not shown";

/// Keeps the question that an action asks, if it asks one; else what becomes of the action.
pub(super) async fn write_down(
    egress: &Egress,
    action: &OutboundAction,
    number: ActionId,
) -> Result<(), Outcome> {
    if !is_asked(action) {
        return Ok(());
    }
    let whose = (&*action.origin.tenant, action.origin.instance);
    let place = (egress.bot_key(action.bot), action.platform(egress).chat_key(&action.target));
    let Some(asked) = NewPrompt::of(&action.action, number, whose, place) else { return Ok(()) };
    let asked = asked.map_err(|why| Outcome::Refused { why: why.to_owned() })?;
    egress.records.ask(asked).await.map_err(|_| Outcome::Later {
        after: egress.timings.again,
        reach: Reach::Action,
        why: NOT_KEPT.to_owned(),
    })
}

/// A question that its platform did not take is not open: what people say next is no answer to it.
pub(super) async fn took(egress: &Egress, action: &OutboundAction, number: ActionId, outcome: &Outcome) {
    if is_asked(action) && matches!(outcome, Outcome::Refused { .. }) {
        // If that fails, it ends by itself.
        let _ = egress.records.unask(number).await;
    }
}

fn is_asked(action: &OutboundAction) -> bool {
    matches!(action.action, Action::Prompt { .. })
}
