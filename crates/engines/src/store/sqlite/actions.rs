//! The ledger.

use super::footprint::{self, ACTION_LENGTHS};
use super::queue::Owner;
use super::writer::{Txn, now};
use super::{Sqlite, room, vault};
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::egress::ActionState;
use angelia_core::inbox::InstanceId;
use angelia_core::store::{Accepted, ActionId, ActionOutcome, ActionStore, Later, NewAction, StoredAction};
use angelia_core::vault::{CapabilityId, Use, Way};
use rusqlite::{OptionalExtension, Row, params};

impl ActionStore for Sqlite {
    fn accept_actions(&self, actions: Vec<NewAction>) -> Later<'_, Vec<Accepted>> {
        // They are of one chat, and so of one tenant.
        let owner = actions.first().map_or(Owner::Server, |it| Owner::Tenant(it.tenant.as_str().into()));
        let bytes = actions.iter().map(|action| action.body.len()).sum();
        self.writer.try_write_for(owner, bytes, "accept actions", move |txn| {
            if let Err(full) = room::for_actions(txn, &actions)? {
                return Ok(Err(full));
            }
            actions.into_iter().map(|action| accept(txn, action)).collect::<rusqlite::Result<_>>().map(Ok)
        })
    }

    fn begin_action(&self, id: ActionId) -> Later<'_, ()> {
        self.writer.write_for(self.owners.of_action(id), 0, "begin an action", move |txn| {
            change(txn, id, ActionState::Accepted, ActionState::Sending, Some(now()))
        })
    }

    fn postpone_action(&self, id: ActionId) -> Later<'_, ()> {
        self.writer.write_for(self.owners.of_action(id), 0, "postpone an action", move |txn| {
            change(txn, id, ActionState::Sending, ActionState::Accepted, None)
        })
    }

    fn finish_action(&self, id: ActionId, outcome: ActionOutcome) -> Later<'_, ()> {
        let owner = self.owners.of_action(id);
        self.writer.write_for(owner, 0, "finish an action", move |txn| finish(txn, id, &outcome))
    }

    fn note_receipt(&self, bot: &BotKey, message_id: &str, receipt: &str) -> Later<'_, bool> {
        let (bot, message_id, receipt) = (bot.clone(), message_id.to_owned(), receipt.to_owned());
        let owner = Owner::Bot(format!("{}/{}", bot.platform, bot.bot).into());
        self.writer.write_for(owner, 0, "note a receipt", move |txn| {
            let noted = txn
                .prepare_cached(
                    "UPDATE actions SET receipt = ? WHERE message_id = ? AND platform = ? AND bot = ?",
                )?
                .execute(params![receipt, message_id, bot.platform, bot.bot])?;
            Ok(noted > 0)
        })
    }

    fn finish_actions(&self, ends: Vec<(ActionId, ActionOutcome)>) -> Later<'_, ()> {
        let owner = self.owners.of_actions(ends.iter().map(|(id, _)| *id));
        self.writer.write_for(owner, 0, "finish actions", move |txn| {
            ends.iter().try_for_each(|(id, outcome)| finish(txn, *id, outcome))
        })
    }

    fn unfinished_actions(&self, after: ActionId, limit: usize) -> Later<'_, Vec<StoredAction>> {
        self.readers.read("read the ledger", move |db| {
            db.prepare_cached(
                "SELECT id, tenant, instance, gateway_id, platform, bot, chat_id, thread_id, op, edits,
                        coalesce(length(body), 0), received_at, state, begun_at, crashes, capability, way,
                        (SELECT expires_at FROM capabilities WHERE capabilities.id = actions.capability)
                 FROM actions WHERE state IN ('accepted', 'sending') AND id > ? ORDER BY id LIMIT ?",
            )?
            .query_map(params![after.0, limit as i64], stored)?
            .collect()
        })
    }

    fn note_crash(&self, found: Vec<ActionId>) -> Later<'_, ()> {
        self.writer.write("note what was under way", move |txn| {
            let mut note = txn.prepare_cached("UPDATE actions SET crashes = crashes + 1 WHERE id = ?")?;
            found.iter().try_for_each(|id| note.execute([id.0]).map(drop))
        })
    }

    fn action_body(&self, id: ActionId) -> Later<'_, Option<Vec<u8>>> {
        self.readers.read("read an action", move |db| {
            db.prepare_cached("SELECT body FROM actions WHERE id = ?")?
                .query_row([id.0], |row| row.get(0))
                .optional()
                .map(Option::flatten)
        })
    }
}

fn accept(txn: &mut Txn<'_>, action: NewAction) -> rusqlite::Result<Accepted> {
    txn.prepare_cached(
        "INSERT INTO actions (tenant, instance, gateway_id, platform, bot, chat_id, thread_id, op, edits,
                              reply_to, state, received_at, body)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
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
    let bytes = txn
        .prepare_cached(&format!("SELECT {ACTION_LENGTHS} FROM actions WHERE id = ?"))?
        .query_row([id.0], |row| footprint::action(row, 0))?;
    txn.stored().1.accepted(id.0, &action.tenant, bytes);
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
pub(super) fn finish(txn: &mut Txn<'_>, id: ActionId, outcome: &ActionOutcome) -> rusqlite::Result<()> {
    let ended = params![outcome.state.as_str(), outcome.message_id, outcome.error, now(), id.0];
    let bytes = txn
        .prepare_cached(&format!(
            "UPDATE actions SET state = ?, message_id = ?, error = ?, finished_at = ?, body = NULL
             WHERE id = ? AND state IN ('accepted', 'sending') RETURNING {ACTION_LENGTHS}"
        ))?
        .query_row(ended, |row| footprint::action(row, 0))
        .optional()?;
    if let Some(bytes) = bytes {
        txn.stored().1.finished(id.0, bytes);
    }
    vault::release(txn, id, outcome.state)
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredAction> {
    let state: String = row.get(12)?;
    Ok(StoredAction {
        id: ActionId(row.get(0)?),
        tenant: row.get(1)?,
        instance: InstanceId(row.get(2)?),
        gateway_id: row.get(3)?,
        platform: row.get(4)?,
        bot: row.get(5)?,
        chat_id: row.get(6)?,
        thread_id: row.get(7)?,
        op: row.get(8)?,
        edits: row.get(9)?,
        bytes: row.get(10)?,
        received_at: UnixMillis(row.get(11)?),
        state: ActionState::parse(&state).unwrap_or(ActionState::Accepted),
        begun_at: row.get::<_, Option<i64>>(13)?.map(UnixMillis),
        crashes: row.get(14)?,
        uses: uses(row)?,
        uses_until: row.get::<_, Option<i64>>(17)?.map(UnixMillis),
    })
}

fn uses(row: &Row<'_>) -> rusqlite::Result<Option<Use>> {
    let (capability, way): (Option<i64>, Option<String>) = (row.get(15)?, row.get(16)?);
    let way = way.as_deref().and_then(Way::parse);
    Ok(capability.zip(way).map(|(capability, way)| Use { capability: CapabilityId(capability), way }))
}
