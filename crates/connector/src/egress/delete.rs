//! `delete`: an instance takes back what it sent, and nothing else.

use super::Egress;
use super::action::OutboundAction;
use angelia_contract::action::Action;
use angelia_core::store::JournalStore;
use angelia_platforms::{Outcome, Reach};

const NOT_YOURS: &str = "there is no such message of yours in this chat";
const NOT_KNOWN: &str = "the connector's store does not answer; nothing was deleted";

/// Whether a message that an action deletes, if it deletes one, is its sender's; else what becomes of
/// the action. What is older than the ledger is nobody's.
pub(super) async fn check(egress: &Egress, action: &OutboundAction) -> Result<(), Outcome> {
    let Action::Delete { message_id, .. } = &action.action else { return Ok(()) };
    let bot = egress.bot_key(action.bot);
    let sender = egress.records.sender(&bot, &action.target.chat_id, message_id).await;
    match sender {
        Ok(Some(sender)) if sender == action.origin.instance => Ok(()),
        Ok(_) => Err(Outcome::Refused { why: NOT_YOURS.to_owned() }),
        Err(_) => {
            let (after, reach) = (egress.timings.again, Reach::Action);
            Err(Outcome::Later { after, reach, why: NOT_KNOWN.to_owned() })
        }
    }
}
