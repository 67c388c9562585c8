//! The ledger. Who may do what to an action is [`ActionRow`]'s to say; here are
//! its rows.

use super::db::{Ask, Row, Sql, values};
use super::engine::{self, Engine, Store};
use super::footprint::{self, ACTION_LENGTHS, REMAINS_LENGTHS};
use super::txn::Txn;
use super::{outbox, tenant_bytes, vault};
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::egress::{ActionRow, ActionState, Owner};
use angelia_core::error::Result;
use angelia_core::inbox::InstanceId;
use angelia_core::ports::{
    Accepted, ActionId, ActionOutcome, BoxFuture, LeaseToken, Ledger, LeftOpen, NewAction, StoredAction,
    owner_replaced,
};
use angelia_core::vault::{CapabilityId, Use, Way};
use std::sync::LazyLock;

/// The last owner there was.
const LAST_OWNER: &str = "ledger_owner";
/// The first that is not replaced.
const FIRST_OWNER: &str = "ledger_first_owner";

impl<E: Engine> Ledger for Store<E> {
    fn new_owner(&self) -> BoxFuture<'_, Result<Owner>> {
        self.0.write_all(engine::Owner::Server, 0, "count owners of actions", new_owner)
    }

    fn adopt(&self, by: Owner, whose: Option<Owner>) -> BoxFuture<'_, Result<ActionId>> {
        self.0.write(engine::Owner::Server, 0, "adopt actions", move |txn| {
            // Whatever its owner is at is done before this, or finds itself replaced.
            txn.lock_owners(whose.map(|whose| whose.0))?;
            if is_replaced(txn, by)? {
                return Ok(Err(owner_replaced()));
            }
            replace(txn, by, whose)?;
            let theirs = adopting("$2 IS NULL OR owner = $2");
            txn.execute(&theirs, values![by.0, whose.map(|it| it.0)])?;
            txn.says("SELECT coalesce(max(id), 0) FROM actions", &[]).map(|last| Ok(ActionId(last)))
        })
    }

    fn take_over(&self, bot: &BotKey, under: LeaseToken) -> BoxFuture<'_, Result<Owner>> {
        let bot = bot.clone();
        self.0.write(engine::Owner::Server, 0, "take over what a bot has to do", move |txn| {
            outbox::take_over(txn, &bot, under)
        })
    }

    fn outbox(&self, bot: &BotKey) -> BoxFuture<'_, Result<Option<Owner>>> {
        let bot = bot.clone();
        self.0.read("ask who works for a bot", move |db| outbox::owner(db, &bot))
    }

    fn owners(&self, bot: &BotKey) -> BoxFuture<'_, Result<Vec<Owner>>> {
        let bot = bot.clone();
        self.0.read("ask who has actions of a bot", move |db| outbox::owners(db, &bot))
    }

    fn outcomes(&self, ids: Vec<ActionId>) -> BoxFuture<'_, Result<Vec<(ActionId, ActionOutcome)>>> {
        self.0.read("ask how actions ended", move |db| outbox::outcomes(db, &ids))
    }

    fn accept(&self, by: Owner, actions: Vec<NewAction>) -> BoxFuture<'_, Result<Vec<Accepted>>> {
        self.0.accept(by, actions)
    }

    fn begin(&self, by: Owner, id: ActionId) -> BoxFuture<'_, Result<bool>> {
        self.0.begin(by, id)
    }

    fn postpone(&self, by: Owner, id: ActionId) -> BoxFuture<'_, Result<()>> {
        self.0.write_all(self.0.line_of_actions(&[id]), 0, "postpone an action", move |txn| {
            txn.share_owner(by.0)?;
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
        self.0.finish(by, ends)
    }

    fn leave_open(
        &self,
        by: Owner,
        id: ActionId,
        outcome: ActionOutcome,
        remark: NewAction,
    ) -> BoxFuture<'_, Result<LeftOpen>> {
        let (owner, bytes) = (self.0.line_of_actions(&[id]), remark.body.len());
        self.0.write_all(owner, bytes, "leave an action open", move |txn| {
            txn.share_owner(by.0)?;
            match ending(txn, id)? {
                Some(ending) if ending.row.owner != by => Ok(LeftOpen::NotOurs),
                Some(ending) if ending.row.finish(by, outcome.state).is_some() => {
                    end(txn, id, &ending, &outcome)?;
                    accept(txn, by, &remark).map(|accepted| LeftOpen::Remarked(accepted.id))
                }
                _ => Ok(LeftOpen::Before),
            }
        })
    }

    fn unfinished(
        &self,
        by: Owner,
        after: ActionId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<StoredAction>>> {
        self.0.read("read the ledger", move |db| {
            db.all(
                "SELECT id, tenant, instance, gateway_id, platform, bot, chat_id, thread_id, op, edits,
                        coalesce(length(body), 0), received_at, state, begun_at, crashes, capability, way,
                        (SELECT expires_at FROM capabilities WHERE capabilities.id = unfinished.capability)
                 FROM unfinished WHERE owner = $1 AND id > $2 ORDER BY id LIMIT $3",
                values![by.0, after, limit],
                stored,
            )
        })
    }

    fn body(&self, id: ActionId) -> BoxFuture<'_, Result<Option<Vec<u8>>>> {
        self.0.read("read an action", move |db| {
            let body = db.first("SELECT body FROM actions WHERE id = $1", values![id], |row| row.get(0));
            body.map(Option::flatten)
        })
    }

    fn note_receipt(
        &self,
        bot: &BotKey,
        message_id: &str,
        before: Option<&str>,
        receipt: &str,
    ) -> BoxFuture<'_, Result<bool>> {
        let (bot, message_id, receipt) = (bot.clone(), message_id.to_owned(), receipt.to_owned());
        let before = before.map(str::to_owned);
        self.0.write_all(engine::Owner::bot(&bot), 0, "note a receipt", move |txn| {
            let noted = txn.execute(
                "UPDATE actions SET receipt = $1 WHERE message_id = $2 AND platform = $3 AND bot = $4
                     AND receipt IS NOT DISTINCT FROM $5",
                values![receipt, message_id, bot.platform, bot.bot, before],
            )?;
            Ok(noted > 0)
        })
    }
}

pub(super) fn new_owner(txn: &mut dyn Txn) -> Sql<Owner> {
    let owner = txn.count_up(LAST_OWNER)?;
    txn.new_owner(owner)?;
    Ok(Owner(owner))
}

/// Makes actions the owner's `$1`, as `ActionRow::adopt` says.
pub(super) fn adopting(which: &str) -> String {
    format!(
        "INSERT INTO adoptions (action, owner, crashes)
         SELECT id, $1, crashes + CASE WHEN state = 'sending' AND begun_by = owner THEN 1 ELSE 0 END
         FROM unfinished WHERE owner <> $1 AND ({which})
         ON CONFLICT (action) DO UPDATE SET owner = excluded.owner, crashes = excluded.crashes"
    )
}

/// Notes who is replaced, as `Owner::is_replaced` says: everybody before the first
/// owner there is, and each after it that has a row.
pub(super) fn replace(txn: &mut dyn Txn, by: Owner, whose: Option<Owner>) -> Sql<()> {
    match whose {
        Some(whose) if whose == by => Ok(()),
        Some(whose) => txn
            .execute("INSERT INTO replaced_owners VALUES ($1) ON CONFLICT DO NOTHING", values![whose.0])
            .map(drop),
        None => {
            txn.execute("DELETE FROM replaced_owners WHERE owner < $1", values![by.0])?;
            txn.raise(FIRST_OWNER, by.0)
        }
    }
}

fn is_replaced(txn: &mut dyn Txn, owner: Owner) -> Sql<bool> {
    if owner.0 < txn.counter(FIRST_OWNER)? {
        return Ok(true);
    }
    txn.says("SELECT EXISTS (SELECT 1 FROM replaced_owners WHERE owner = $1)", values![owner.0])
}

/// Writes down all actions of one chat, if there is room for them.
pub(super) fn accept_all(txn: &mut dyn Txn, by: Owner, actions: &[NewAction]) -> Sql<Result<Vec<Accepted>>> {
    txn.share_owner(by.0)?;
    if is_replaced(txn, by)? {
        return Ok(Err(owner_replaced()));
    }
    if let Err(full) = tenant_bytes::make_room_for(txn, actions)? {
        return Ok(Err(full));
    }
    actions.iter().map(|action| accept(txn, by, action)).collect::<Sql<_>>().map(Ok)
}

fn accept(txn: &mut dyn Txn, by: Owner, action: &NewAction) -> Sql<Accepted> {
    let row = ActionRow::accepted(by);
    let mut bytes = footprint::new_action(action);
    let id = txn.insert(
        "INSERT INTO actions (tenant, instance, gateway_id, platform, bot, chat_id, thread_id, op, edits,
                              reply_to, state, owner, received_at, body)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        values![
            action.tenant,
            action.instance,
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
            action.received_at,
            action.body
        ],
    )?;
    let id = ActionId(id.unwrap_or_default());
    let claimed = vault::claim(txn, id, action)?;
    if let Some((Use { capability, way }, used)) = &claimed {
        // Whoever asks what became of the interaction is shown what answered it.
        txn.execute(
            "UPDATE actions SET capability = $1, way = $2, reply_to = coalesce(reply_to, $3), chat_id = $4
             WHERE id = $5",
            values![capability.0, way.as_str(), used.interaction_id, used.chat_id, id],
        )?;
        let lengths = format!("SELECT {ACTION_LENGTHS} FROM actions WHERE id = $1");
        bytes = txn.one(&lengths, values![id], |row| footprint::action(&row, 0))?;
    }
    txn.store(&action.tenant, bytes, 0);
    txn.accepted(id, &action.tenant);
    let uses_until = claimed.as_ref().map(|(_, used)| used.expires_at);
    Ok(Accepted { id, uses: claimed.map(|(uses, _)| uses), uses_until })
}

/// What decides who may change an action, of a row and of who took it up.
const DECIDES: &str = "state, coalesce(adoptions.owner, actions.owner), begun_at, begun_by,
    coalesce(adoptions.crashes, actions.crashes)";
const DECIDES_COLUMNS: usize = 5;

/// The same; `None` if there is no such action. Nobody else changes it from now on.
fn row(txn: &mut dyn Txn, id: ActionId) -> Sql<Option<ActionRow>> {
    static QUERY: LazyLock<String> = LazyLock::new(|| {
        format!("SELECT {DECIDES} FROM actions LEFT JOIN adoptions ON action = id WHERE id = $1")
    });
    txn.lock_action(id)?;
    txn.first(&QUERY, values![id], |row| decides(&row))
}

fn decides(row: &Row<'_>) -> Sql<ActionRow> {
    Ok(ActionRow {
        state: state(&row.get::<String>(0)?),
        owner: Owner(row.get(1)?),
        begun_at: row.get::<Option<i64>>(2)?.map(UnixMillis),
        begun_by: Owner(row.get(3)?),
        crashes: row.get(4)?,
    })
}

fn put(txn: &mut dyn Txn, id: ActionId, row: ActionRow) -> Sql<()> {
    txn.execute(
        "UPDATE actions SET state = $1, begun_at = $2, begun_by = $3 WHERE id = $4",
        values![row.state.as_str(), row.begun_at, row.begun_by.0, id],
    )
    .map(drop)
}

/// Notes that a provider is about to be called.
pub(super) fn begin(txn: &mut dyn Txn, by: Owner, id: ActionId) -> Sql<bool> {
    let now = UnixMillis(txn.now());
    txn.share_owner(by.0)?;
    let begun = row(txn, id)?.and_then(|row| row.begin(by, now));
    begun.map(|row| put(txn, id, row)).transpose().map(|begun| begun.is_some())
}

/// Notes how actions ended; answers those that are not `by`'s any more.
pub(super) fn finish_all(
    txn: &mut dyn Txn,
    by: Owner,
    ends: &[(ActionId, ActionOutcome)],
) -> Sql<Vec<ActionId>> {
    let mut others = Vec::new();
    txn.share_owner(by.0)?;
    for (id, outcome) in ends {
        match ending(txn, *id)? {
            Some(ending) if ending.row.owner != by => others.push(*id),
            Some(ending) => end(txn, *id, &ending, outcome)?,
            None => {}
        }
    }
    Ok(others)
}

/// Notes the end of an action in the open transaction, whoever works on it; its text goes.
pub(super) fn finish(txn: &mut dyn Txn, id: ActionId, outcome: &ActionOutcome) -> Sql<()> {
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
    tenant: String,
    /// What it takes as it is.
    before: u64,
    remains: footprint::Remains,
}

fn ending(txn: &mut dyn Txn, id: ActionId) -> Sql<Option<Ending>> {
    const REST: usize = DECIDES_COLUMNS + 3;
    static QUERY: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {DECIDES}, action IS NOT NULL, capability IS NOT NULL, tenant, {ACTION_LENGTHS},
                    {REMAINS_LENGTHS}
             FROM actions LEFT JOIN adoptions ON action = id WHERE id = $1"
        )
    });
    txn.lock_action(id)?;
    txn.first(&QUERY, values![id], |row| {
        Ok(Ending {
            row: decides(&row)?,
            taken_up: row.get(DECIDES_COLUMNS)?,
            answers: row.get(DECIDES_COLUMNS + 1)?,
            tenant: row.get(DECIDES_COLUMNS + 2)?,
            before: footprint::action(&row, REST)?,
            remains: footprint::Remains::read(&row, REST + 4)?,
        })
    })
}

fn end(txn: &mut dyn Txn, id: ActionId, ending: &Ending, outcome: &ActionOutcome) -> Sql<()> {
    let Some(row) = ending.row.finish(ending.row.owner, outcome.state) else { return Ok(()) };
    let now = txn.now();
    txn.execute(
        "UPDATE actions SET state = $1, message_id = $2, error = $3, finished_at = $4, body = NULL WHERE id = $5",
        values![row.state.as_str(), outcome.message_id, outcome.error, now, id],
    )?;
    if ending.taken_up {
        txn.execute("DELETE FROM adoptions WHERE action = $1", values![id])?;
    }
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let bytes = ending.remains.of_action(length(&outcome.message_id), length(&outcome.error));
    txn.store(&ending.tenant, bytes, ending.before);
    txn.finished(id);
    if ending.answers { vault::release(txn, id, row.state) } else { Ok(()) }
}

/// What is not known is taken for something that has not begun.
pub(super) fn state(word: &str) -> ActionState {
    ActionState::parse(word).unwrap_or(ActionState::Accepted)
}

fn stored(row: Row<'_>) -> Sql<StoredAction> {
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
        state: state(&row.get::<String>(12)?),
        begun_at: row.get::<Option<i64>>(13)?.map(UnixMillis),
        crashes: row.get(14)?,
        uses: uses(&row)?,
        uses_until: row.get::<Option<i64>>(17)?.map(UnixMillis),
    })
}

fn uses(row: &Row<'_>) -> Sql<Option<Use>> {
    let (capability, way): (Option<i64>, Option<String>) = (row.get(15)?, row.get(16)?);
    let way = way.as_deref().and_then(Way::parse);
    Ok(capability.zip(way).map(|(capability, way)| Use { capability: CapabilityId(capability), way }))
}
