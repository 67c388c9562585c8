//! The ledger. Who may do what to an action is [`ActionRow`]'s to say; here are
//! its rows.

use super::footprint::{self, ACTION_LENGTHS, REMAINS_LENGTHS};
use super::queue;
use super::writer::{Txn, now};
use super::{Sqlite, tenant_bytes, vault};
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::egress::{ActionRow, ActionState, Owner};
use angelia_core::error::Result;
use angelia_core::inbox::InstanceId;
use angelia_core::ports::{
    Accepted, ActionId, ActionOutcome, BoxFuture, Ledger, LeftOpen, NewAction, StoredAction, owner_replaced,
};
use angelia_core::vault::{CapabilityId, Use, Way};
use rusqlite::{OptionalExtension, Row, params};
use std::sync::LazyLock;

impl Ledger for Sqlite {
    fn new_owner(&self) -> BoxFuture<'_, Result<Owner>> {
        self.writer.write_for(queue::Owner::Server, 0, "count owners of actions", |txn| {
            txn.query_row(
                "INSERT INTO notes VALUES ('ledger_owner', 1)
                 ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value",
                [],
                |row| row.get(0).map(Owner),
            )
        })
    }

    fn adopt(&self, by: Owner, whose: Option<Owner>) -> BoxFuture<'_, Result<ActionId>> {
        self.writer.try_write_for(queue::Owner::Server, 0, "adopt actions", move |txn| {
            if is_replaced(txn, by)? {
                return Ok(Err(owner_replaced()));
            }
            replace(txn, by, whose)?;
            // As `ActionRow::adopt` says.
            txn.execute(
                "INSERT INTO adoptions (action, owner, crashes)
                 SELECT id, ?1, crashes + (state = 'sending' AND begun_by = owner) FROM unfinished
                 WHERE owner <> ?1 AND (?2 IS NULL OR owner = ?2)
                 ON CONFLICT (action) DO UPDATE SET owner = excluded.owner, crashes = excluded.crashes",
                params![by.0, whose.map(|it| it.0)],
            )?;
            txn.query_row("SELECT coalesce(max(id), 0) FROM actions", [], |row| row.get(0).map(ActionId))
                .map(Ok)
        })
    }

    fn accept(&self, by: Owner, actions: Vec<NewAction>) -> BoxFuture<'_, Result<Vec<Accepted>>> {
        // They are of one chat, and so of one tenant.
        let first = actions.first();
        let owner = first.map_or(queue::Owner::Server, |it| queue::Owner::Tenant(it.tenant.as_str().into()));
        let bytes = actions.iter().map(|action| action.body.len()).sum();
        self.writer.try_write_for(owner, bytes, "accept actions", move |txn| {
            if is_replaced(txn, by)? {
                return Ok(Err(owner_replaced()));
            }
            if let Err(full) = tenant_bytes::make_room_for(txn, &actions)? {
                return Ok(Err(full));
            }
            actions.into_iter().map(|action| accept(txn, by, action)).collect::<rusqlite::Result<_>>().map(Ok)
        })
    }

    fn begin(&self, by: Owner, id: ActionId) -> BoxFuture<'_, Result<bool>> {
        self.writer.write_for(self.owners.of_action(id), 0, "begin an action", move |txn| {
            let begun = row(txn, id)?.and_then(|row| row.begin(by, UnixMillis(now())));
            begun.map(|row| put(txn, id, row)).transpose().map(|begun| begun.is_some())
        })
    }

    fn postpone(&self, by: Owner, id: ActionId) -> BoxFuture<'_, Result<()>> {
        self.writer.write_for(self.owners.of_action(id), 0, "postpone an action", move |txn| {
            match row(txn, id)?.and_then(|row| row.postpone(by)) {
                Some(row) => put(txn, id, row),
                None => Ok(()),
            }
        })
    }

    fn finish(
        &self,
        by: Owner,
        ends: Vec<(ActionId, ActionOutcome)>,
    ) -> BoxFuture<'_, Result<Vec<ActionId>>> {
        let owner = self.owners.of_actions(ends.iter().map(|(id, _)| *id));
        self.writer.write_for(owner, 0, "finish actions", move |txn| {
            let mut others = Vec::new();
            for (id, outcome) in &ends {
                match ending(txn, *id)? {
                    Some(ending) if ending.row.owner != by => others.push(*id),
                    Some(ending) => end(txn, *id, &ending, outcome)?,
                    None => {}
                }
            }
            Ok(others)
        })
    }

    fn leave_open(
        &self,
        by: Owner,
        id: ActionId,
        outcome: ActionOutcome,
        remark: NewAction,
    ) -> BoxFuture<'_, Result<LeftOpen>> {
        let (owner, bytes) = (self.owners.of_action(id), remark.body.len());
        self.writer.write_for(owner, bytes, "leave an action open", move |txn| match ending(txn, id)? {
            Some(ending) if ending.row.owner != by => Ok(LeftOpen::NotOurs),
            Some(ending) if ending.row.finish(by, outcome.state).is_some() => {
                end(txn, id, &ending, &outcome)?;
                accept(txn, by, remark).map(|accepted| LeftOpen::Remarked(accepted.id))
            }
            _ => Ok(LeftOpen::Before),
        })
    }

    fn unfinished(
        &self,
        by: Owner,
        after: ActionId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredAction>>> {
        self.readers.read("read the ledger", move |db| {
            db.prepare_cached(
                "SELECT id, tenant, instance, gateway_id, platform, bot, chat_id, thread_id, op, edits,
                        coalesce(length(body), 0), received_at, state, begun_at, crashes, capability, way,
                        (SELECT expires_at FROM capabilities WHERE capabilities.id = unfinished.capability)
                 FROM unfinished WHERE owner = ? AND id > ? ORDER BY id LIMIT ?",
            )?
            .query_map(params![by.0, after.0, limit as i64], stored)?
            .collect()
        })
    }

    fn body(&self, id: ActionId) -> BoxFuture<'_, Result<Option<Vec<u8>>>> {
        self.readers.read("read an action", move |db| {
            db.prepare_cached("SELECT body FROM actions WHERE id = ?")?
                .query_row([id.0], |row| row.get(0))
                .optional()
                .map(Option::flatten)
        })
    }

    fn note_receipt(&self, bot: &BotKey, message_id: &str, receipt: &str) -> BoxFuture<'_, Result<bool>> {
        let (bot, message_id, receipt) = (bot.clone(), message_id.to_owned(), receipt.to_owned());
        let owner = queue::Owner::bot(&bot);
        self.writer.write_for(owner, 0, "note a receipt", move |txn| {
            let noted = txn
                .prepare_cached(
                    "UPDATE actions SET receipt = ? WHERE message_id = ? AND platform = ? AND bot = ?",
                )?
                .execute(params![receipt, message_id, bot.platform, bot.bot])?;
            Ok(noted > 0)
        })
    }
}

/// Notes who is replaced, as `Owner::is_replaced` says: everybody before the first
/// owner there is, and each after it that has a row.
fn replace(txn: &Txn<'_>, by: Owner, whose: Option<Owner>) -> rusqlite::Result<()> {
    match whose {
        Some(whose) if whose == by => Ok(0),
        Some(whose) => {
            txn.execute("INSERT INTO replaced_owners VALUES (?) ON CONFLICT DO NOTHING", [whose.0])
        }
        None => {
            txn.execute("DELETE FROM replaced_owners WHERE owner < ?", [by.0])?;
            txn.execute(
                "INSERT INTO notes VALUES ('ledger_first_owner', ?)
                 ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)",
                [by.0],
            )
        }
    }
    .map(drop)
}

fn is_replaced(txn: &Txn<'_>, owner: Owner) -> rusqlite::Result<bool> {
    txn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM replaced_owners WHERE owner = ?1)
             OR ?1 < coalesce((SELECT value FROM notes WHERE name = 'ledger_first_owner'), 0)",
    )?
    .query_row([owner.0], |row| row.get(0))
}

fn accept(txn: &mut Txn<'_>, by: Owner, action: NewAction) -> rusqlite::Result<Accepted> {
    let row = ActionRow::accepted(by);
    let mut bytes = footprint::new_action(&action);
    txn.prepare_cached(
        "INSERT INTO actions (tenant, instance, gateway_id, platform, bot, chat_id, thread_id, op, edits,
                              reply_to, state, owner, received_at, body)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
        row.state.as_str(),
        row.owner.0,
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
        bytes = txn
            .prepare_cached(&format!("SELECT {ACTION_LENGTHS} FROM actions WHERE id = ?"))?
            .query_row([id.0], |row| footprint::action(row, 0))?;
    }
    txn.counted.stored.accepted(id.0, &action.tenant, bytes);
    let uses_until = claimed.as_ref().map(|(_, used)| used.expires_at);
    Ok(Accepted { id, uses: claimed.map(|(uses, _)| uses), uses_until })
}

/// What decides who may change an action, of a row and of who took it up.
const DECIDES: &str = "state, coalesce(adoptions.owner, actions.owner), begun_at, begun_by,
    coalesce(adoptions.crashes, actions.crashes)";
const DECIDES_COLUMNS: usize = 5;

/// The same; `None` if there is no such action.
fn row(txn: &Txn<'_>, id: ActionId) -> rusqlite::Result<Option<ActionRow>> {
    static QUERY: LazyLock<String> = LazyLock::new(|| {
        format!("SELECT {DECIDES} FROM actions LEFT JOIN adoptions ON action = id WHERE id = ?")
    });
    txn.prepare_cached(&QUERY)?.query_row([id.0], decides).optional()
}

fn decides(row: &Row<'_>) -> rusqlite::Result<ActionRow> {
    Ok(ActionRow {
        state: state(row.get_ref(0)?.as_str()?),
        owner: Owner(row.get(1)?),
        begun_at: row.get::<_, Option<i64>>(2)?.map(UnixMillis),
        begun_by: Owner(row.get(3)?),
        crashes: row.get(4)?,
    })
}

fn put(txn: &Txn<'_>, id: ActionId, row: ActionRow) -> rusqlite::Result<()> {
    txn.prepare_cached("UPDATE actions SET state = ?, begun_at = ?, begun_by = ? WHERE id = ?")?
        .execute(params![row.state.as_str(), row.begun_at.map(|at| at.0), row.begun_by.0, id.0])
        .map(drop)
}

/// Notes the end of an action in the open transaction, whoever works on it; its text goes.
pub(super) fn finish(txn: &mut Txn<'_>, id: ActionId, outcome: &ActionOutcome) -> rusqlite::Result<()> {
    match ending(txn, id)? {
        Some(ending) => end(txn, id, &ending, outcome),
        None => Ok(()),
    }
}

/// An action that may end, with all that its end depends on: every action comes here
/// once, and most have neither been taken up nor answer with anything.
struct Ending {
    row: ActionRow,
    taken_up: bool,
    answers: bool,
    remains: footprint::Remains,
}

fn ending(txn: &Txn<'_>, id: ActionId) -> rusqlite::Result<Option<Ending>> {
    static QUERY: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {DECIDES}, action IS NOT NULL, capability IS NOT NULL, {REMAINS_LENGTHS}
             FROM actions LEFT JOIN adoptions ON action = id WHERE id = ?"
        )
    });
    txn.prepare_cached(&QUERY)?
        .query_row([id.0], |row| {
            Ok(Ending {
                row: decides(row)?,
                taken_up: row.get(DECIDES_COLUMNS)?,
                answers: row.get(DECIDES_COLUMNS + 1)?,
                remains: footprint::Remains::read(row, DECIDES_COLUMNS + 2)?,
            })
        })
        .optional()
}

fn end(txn: &mut Txn<'_>, id: ActionId, ending: &Ending, outcome: &ActionOutcome) -> rusqlite::Result<()> {
    let Some(row) = ending.row.finish(ending.row.owner, outcome.state) else { return Ok(()) };
    txn.prepare_cached(
        "UPDATE actions SET state = ?, message_id = ?, error = ?, finished_at = ?, body = NULL WHERE id = ?",
    )?
    .execute(params![row.state.as_str(), outcome.message_id, outcome.error, now(), id.0])?;
    if ending.taken_up {
        txn.prepare_cached("DELETE FROM adoptions WHERE action = ?")?.execute([id.0])?;
    }
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let bytes = ending.remains.of_action(length(&outcome.message_id), length(&outcome.error));
    txn.counted.stored.finished(id.0, bytes);
    if ending.answers { vault::release(txn, id, row.state) } else { Ok(()) }
}

/// What is not known is taken for something that has not begun.
fn state(word: &str) -> ActionState {
    ActionState::parse(word).unwrap_or(ActionState::Accepted)
}

fn stored(row: &Row<'_>) -> rusqlite::Result<StoredAction> {
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
        state: state(row.get_ref(12)?.as_str()?),
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
