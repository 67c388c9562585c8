//! The ledger.

use super::Sqlite;
use super::writer::{Txn, now};
use angelia_core::clock::UnixMillis;
use angelia_core::egress::ActionState;
use angelia_core::inbox::InstanceId;
use angelia_core::store::{ActionId, ActionOutcome, ActionStore, Later, NewAction, StoredAction};
use rusqlite::{Row, params};

impl ActionStore for Sqlite {
    fn accept_actions(&self, actions: Vec<NewAction>) -> Later<'_, Vec<ActionId>> {
        self.writer.write("accept actions", move |txn| {
            actions.into_iter().map(|action| accept(txn, action)).collect()
        })
    }

    fn begin_action(&self, id: ActionId) -> Later<'_, ()> {
        self.writer.write("begin an action", move |txn| {
            change(txn, id, ActionState::Accepted, ActionState::Sending, Some(now()))
        })
    }

    fn postpone_action(&self, id: ActionId) -> Later<'_, ()> {
        self.writer.write("postpone an action", move |txn| {
            change(txn, id, ActionState::Sending, ActionState::Accepted, None)
        })
    }

    fn finish_action(&self, id: ActionId, outcome: ActionOutcome) -> Later<'_, ()> {
        self.writer.write("finish an action", move |txn| finish(txn, id, &outcome))
    }

    fn unfinished_actions(&self) -> Later<'_, Vec<StoredAction>> {
        self.readers.read("read the ledger", |db| {
            db.prepare(
                "SELECT id, tenant, instance, platform, bot, chat_id, op, reply_to, body, received_at, state,
                        begun_at
                 FROM actions WHERE state IN ('accepted', 'sending') ORDER BY id",
            )?
            .query_map([], stored)?
            .collect()
        })
    }
}

fn accept(txn: &Txn<'_>, action: NewAction) -> rusqlite::Result<ActionId> {
    txn.prepare_cached(
        "INSERT INTO actions (tenant, instance, platform, bot, chat_id, op, reply_to, state, received_at, body)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        action.tenant,
        action.instance.0,
        action.platform,
        action.bot,
        action.chat_id,
        action.op,
        action.reply_to,
        ActionState::Accepted.as_str(),
        action.received_at.0,
        action.body
    ])?;
    Ok(ActionId(txn.last_insert_rowid()))
}

/// Moves an action on, or back, if it is where it is thought to be.
fn change(
    txn: &Txn<'_>,
    id: ActionId,
    from: ActionState,
    to: ActionState,
    begun_at: Option<i64>,
) -> rusqlite::Result<()> {
    txn.prepare_cached("UPDATE actions SET state = ?, begun_at = ? WHERE id = ? AND state = ?")?
        .execute(params![to.as_str(), begun_at, id.0, from.as_str()])?;
    Ok(())
}

/// Notes the end of an action in the open transaction; its text goes.
pub(super) fn finish(txn: &Txn<'_>, id: ActionId, outcome: &ActionOutcome) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "UPDATE actions SET state = ?, message_id = ?, error = ?, finished_at = ?, body = NULL
         WHERE id = ? AND state IN ('accepted', 'sending')",
    )?
    .execute(params![outcome.state.as_str(), outcome.message_id, outcome.error, now(), id.0])?;
    Ok(())
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredAction> {
    let state: String = row.get(10)?;
    Ok(StoredAction {
        id: ActionId(row.get(0)?),
        action: NewAction {
            tenant: row.get(1)?,
            instance: InstanceId(row.get(2)?),
            platform: row.get(3)?,
            bot: row.get(4)?,
            chat_id: row.get(5)?,
            op: row.get(6)?,
            reply_to: row.get(7)?,
            body: row.get::<_, Option<Vec<u8>>>(8)?.unwrap_or_default(),
            received_at: UnixMillis(row.get(9)?),
        },
        state: ActionState::parse(&state).unwrap_or(ActionState::Accepted),
        begun_at: row.get::<_, Option<i64>>(11)?.map(UnixMillis),
    })
}
