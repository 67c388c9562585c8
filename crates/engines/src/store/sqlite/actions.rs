//! The ledger.

use super::writer::{Txn, now};
use super::{Sqlite, vault};
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::egress::ActionState;
use angelia_core::inbox::InstanceId;
use angelia_core::store::{Accepted, ActionId, ActionOutcome, ActionStore, Later, NewAction, StoredAction};
use angelia_core::vault::{CapabilityId, Use, Way};
use rusqlite::{Row, params};

impl ActionStore for Sqlite {
    fn accept_actions(&self, actions: Vec<NewAction>) -> Later<'_, Vec<Accepted>> {
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

    fn note_receipt(&self, bot: &BotKey, message_id: &str, receipt: &str) -> Later<'_, bool> {
        let (bot, message_id, receipt) = (bot.clone(), message_id.to_owned(), receipt.to_owned());
        self.writer.write("note a receipt", move |txn| {
            let noted = txn
                .prepare_cached(
                    "UPDATE actions SET receipt = ? WHERE message_id = ? AND platform = ? AND bot = ?",
                )?
                .execute(params![receipt, message_id, bot.platform, bot.bot])?;
            Ok(noted > 0)
        })
    }

    fn unfinished_actions(&self) -> Later<'_, Vec<StoredAction>> {
        self.readers.read("read the ledger", |db| {
            db.prepare(
                "SELECT id, tenant, instance, platform, bot, chat_id, op, reply_to, body, received_at, state,
                        begun_at, capability, way,
                        (SELECT expires_at FROM capabilities WHERE capabilities.id = actions.capability)
                 FROM actions WHERE state IN ('accepted', 'sending') ORDER BY id",
            )?
            .query_map([], stored)?
            .collect()
        })
    }
}

fn accept(txn: &Txn<'_>, action: NewAction) -> rusqlite::Result<Accepted> {
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
    let id = ActionId(txn.last_insert_rowid());
    let claimed = vault::claim(txn, id, &action)?;
    if let Some((Use { capability, way }, used)) = &claimed {
        // Whoever asks what became of the interaction is shown what answered it.
        txn.prepare_cached(
            "UPDATE actions SET capability = ?, way = ?, reply_to = coalesce(reply_to, ?), chat_id = ? WHERE id = ?",
        )?
        .execute(params![capability.0, way.as_str(), used.interaction_id, used.chat_id, id.0])?;
    }
    let uses_until = claimed.as_ref().map(|(_, used)| used.expires_at);
    Ok(Accepted { id, uses: claimed.map(|(uses, _)| uses), uses_until })
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
    vault::release(txn, id, outcome.state)
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
            answering: None,
            received_at: UnixMillis(row.get(9)?),
        },
        uses: uses(row)?,
        uses_until: row.get::<_, Option<i64>>(14)?.map(UnixMillis),
        state: ActionState::parse(&state).unwrap_or(ActionState::Accepted),
        begun_at: row.get::<_, Option<i64>>(11)?.map(UnixMillis),
    })
}

fn uses(row: &Row<'_>) -> rusqlite::Result<Option<Use>> {
    let (capability, way): (Option<i64>, Option<String>) = (row.get(12)?, row.get(13)?);
    let way = way.as_deref().and_then(Way::parse);
    Ok(capability.zip(way).map(|(capability, way)| Use { capability: CapabilityId(capability), way }))
}
