//! What the ledger says, and actions that are older than they are.

use super::{Inspect, millis};
use angelia_core::egress::ActionState;
use angelia_core::ports::{ActionId, NewAction};
use rusqlite::{Row, params};
use std::time::Duration;

const COLUMNS: &str = "SELECT id, op, state, message_id, error, body IS NOT NULL FROM actions";

/// An action as the ledger has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenAction {
    /// Its number.
    pub id: ActionId,
    /// The operation.
    pub op: String,
    /// How far it is.
    pub state: ActionState,
    /// The id the provider gave.
    pub message_id: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// Whether its text is still kept.
    pub has_body: bool,
}

impl Inspect {
    /// Every action there is, oldest first.
    pub fn actions(&self) -> Vec<SeenAction> {
        self.ask(&format!("{COLUMNS} ORDER BY id"), [], seen)
    }

    /// One of them.
    ///
    /// # Panics
    ///
    /// When there is none with this number.
    pub fn action(&self, id: ActionId) -> SeenAction {
        let found = self.ask(&format!("{COLUMNS} WHERE id = ?"), [id.0], seen).pop();
        found.unwrap_or_else(|| panic!("{id:?} is not in the ledger"))
    }

    /// Lets all that happened to actions have happened so much earlier.
    pub fn age_actions(&self, by: Duration) {
        let earlier = "UPDATE actions SET received_at = received_at - ?1, begun_at = begun_at - ?1";
        self.change(earlier, [millis(by)]);
    }

    /// Writes an action as accepted by nobody who is still there, whatever its tenant's
    /// share of the disk is: so a release left it that knew of no shares.
    pub fn leave_action(&self, action: &NewAction) {
        let accepted = ActionState::Accepted.as_str();
        self.change(
            "INSERT INTO actions (tenant, instance, gateway_id, platform, bot, chat_id, thread_id, op, edits, reply_to,
                                  body, received_at, state)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                action.tenant,
                action.instance.0,
                action.gateway_id,
                action.platform,
                action.bot,
                action.chat_id,
                action.thread_id,
                action.op,
                action.edits,
                action.reply_to,
                action.body,
                action.received_at.0,
                accepted
            ],
        );
    }
}

fn seen(row: &Row<'_>) -> rusqlite::Result<SeenAction> {
    let state: String = row.get(2)?;
    Ok(SeenAction {
        id: ActionId(row.get(0)?),
        op: row.get(1)?,
        state: ActionState::parse(&state).unwrap_or_else(|| panic!("an action is {state:?}")),
        message_id: row.get(3)?,
        error: row.get(4)?,
        has_body: row.get(5)?,
    })
}
