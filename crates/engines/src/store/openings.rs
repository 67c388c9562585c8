//! Messages that wait for a thread of their own: kept apart from the log, under the key by which
//! they are seen once, until they are released into it.

use super::db::{Ask, Db, Row, Sql, values};
use super::engine::{Engine, Owner, Store};
use super::footprint;
use super::intake;
use super::txn::Txn;
use angelia_core::admission::DropReason;
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::error::Result;
use angelia_core::inbox::outcome::WITHDRAWN;
use angelia_core::inbox::{EntryKind, InstanceId, WhenFull};
use angelia_core::ports::log::{NewEntry, Revised, Revision, Withdrawal};
use angelia_core::ports::{Begun, BoxFuture, Intake, Opening, Openings, Released};
use angelia_core::threads::{MAX_OPENINGS, Moved};
use angelia_core::turns::WhileBusy;
use bytes::Bytes;
use std::time::Duration;

/// Openings read at once. What is left is found with the next look.
const PAGE: i64 = 256;

const ENTRY: &str =
    "tenant, instance, platform, bot, chat_id, message_id, session_key, body, while_busy, received_at";

/// Which of them a provider's message is.
const BY_MESSAGE: &str = "message_id = $1 AND chat_id = $2 AND platform = $3 AND bot = $4";

/// For what a message is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// A thread of its own.
    Thread,
    /// Others of its conversation that wait for one.
    Others,
}

/// As often as a thread was opened, by the row, for what gets none.
const NEVER: u32 = u32::MAX / 2;

/// Whether what was received is kept apart: it opens a thread, or follows what does and may yet
/// stay in the same conversation, or is said in the thread already: one that is a chat has the id of
/// the message that opened it. What overtakes the log overtakes those as well.
pub(super) fn waits(txn: &mut dyn Txn, intake: &Intake) -> Sql<Option<WaitsFor>> {
    let Some(entry) = &intake.entry else { return Ok(None) };
    if intake.opens {
        return Ok(Some(WaitsFor::Thread));
    }
    if !intake.follows || entry.ahead || entry.kind != EntryKind::Message {
        return Ok(None);
    }
    let others: bool = txn.says(
        "SELECT EXISTS (SELECT 1 FROM openings WHERE instance = $1 AND
             (session_key = $2 OR (message_id = $3 AND platform = $4 AND bot = $5)))",
        values![entry.instance, entry.session_key, entry.chat_id, entry.platform, entry.bot],
    )?;
    Ok(others.then_some(WaitsFor::Others))
}

/// Keeps a message apart; the oldest of its instance goes on without a thread where there are
/// too many. One that is kept already stays as it is.
pub(super) fn hold(txn: &mut dyn Txn, new: &NewEntry, waits_for: WaitsFor) -> Sql<()> {
    let held_at = txn.now();
    let tries = if waits_for == WaitsFor::Thread { 0 } else { NEVER };
    txn.insert(
        "INSERT INTO openings (tenant, instance, platform, bot, chat_id, message_id, session_key, body,
                               while_busy, received_at, held_at, tries)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING",
        values![
            new.tenant,
            new.instance,
            new.platform,
            new.bot,
            new.chat_id,
            new.message_id,
            new.session_key,
            new.body,
            new.while_busy.map(WhileBusy::as_str),
            new.received_at,
            held_at,
            tries
        ],
    )?;
    let surplus = "SELECT id FROM openings WHERE instance = $1 ORDER BY id DESC LIMIT 1 OFFSET $2";
    let surplus: Option<i64> = txn.first(surplus, values![new.instance, MAX_OPENINGS], |row| row.get(0))?;
    match surplus {
        Some(oldest) => release(txn, oldest, None).map(drop),
        None => Ok(()),
    }
}

/// Puts a message into the log, where it moved to or as it was.
fn release(txn: &mut dyn Txn, id: i64, moved: Option<&Moved>) -> Sql<Released> {
    let instance = "SELECT instance FROM openings WHERE id = $1";
    let Some(instance) = txn.first(instance, values![id], |row| row.get(0).map(InstanceId))? else {
        return Ok(Released::Gone);
    };
    txn.lock(instance)?;
    let held = format!("SELECT {ENTRY} FROM openings WHERE id = $1");
    let Some(mut entry) = txn.first(&held, values![id], entry)? else { return Ok(Released::Gone) };
    txn.execute("DELETE FROM openings WHERE id = $1", values![id])?;
    if !intake::takes_messages(txn, instance)? {
        note_end(txn, &entry, DropReason::NoInstance.as_str())?;
        return Ok(Released::NoInstance);
    }
    let written_in = entry.chat_id.clone();
    if let Some(there) = moved.and_then(|moved| moved.apply(&entry.body)) {
        (entry.chat_id, entry.session_key, entry.body) = (there.chat_id, there.session_key, there.body);
    }
    intake::append_from(txn, &entry, &written_in)?;
    Ok(Released::InLog)
}

/// Replaces what a message says that waits for its thread; `None` if it does not. One that is a
/// command by now opens none, and waits in the log.
pub(super) fn revise(txn: &mut dyn Txn, new: &Revision) -> Sql<Option<Revised>> {
    let key = values![new.message_id, new.chat_id, new.platform, new.bot];
    let found = format!("SELECT instance, id FROM openings WHERE {BY_MESSAGE}");
    let Some((waits_for, id)) = txn.first(&found, key, |row| Ok((InstanceId(row.get(0)?), row.get(1)?)))?
    else {
        return Ok(None);
    };
    let revised = Revised::of(Some(waits_for), new.instance);
    if revised != Revised::Replaced {
        return Ok(Some(revised));
    }
    txn.lock(waits_for)?;
    if new.kind != EntryKind::Message {
        release(txn, id, None)?;
        return Ok(None);
    }
    let changed = txn.execute("UPDATE openings SET body = $1 WHERE id = $2", values![new.body, id])?;
    Ok((changed > 0).then_some(revised))
}

/// Takes out a message that was deleted where it was written; `false` if it does not wait for a
/// thread. It is never in the log: there it could take the place of others.
pub(super) fn withdraw(txn: &mut dyn Txn, gone: &Withdrawal) -> Sql<bool> {
    let key = values![gone.message_id, gone.chat_id, gone.platform, gone.bot];
    let found = format!("SELECT {ENTRY} FROM openings WHERE {BY_MESSAGE}");
    let Some(instance) = txn.first(&found, key, entry)?.map(|entry| entry.instance) else { return Ok(false) };
    // Looked at again once nobody else changes it.
    txn.lock(instance)?;
    let Some(entry) = txn.first(&found, key, entry)? else { return Ok(false) };
    txn.execute(&format!("DELETE FROM openings WHERE {BY_MESSAGE}"), key)?;
    note_end(txn, &entry, WITHDRAWN)?;
    Ok(true)
}

/// Notes in the journal what became of a message that got no number in the log.
fn note_end(txn: &mut dyn Txn, of: &NewEntry, outcome: &str) -> Sql<()> {
    let now = txn.now();
    let noted = txn.insert(
        "INSERT INTO journal
             (message_id, kind, platform, bot, chat_id, tenant, instance, received_at, appended_at,
              settled_at, outcome)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10) ON CONFLICT DO NOTHING",
        values![
            of.message_id,
            of.kind.as_str(),
            of.platform,
            of.bot,
            of.chat_id,
            of.tenant,
            of.instance,
            of.received_at,
            now,
            outcome
        ],
    )?;
    if noted.is_some() {
        let (_, journal) = footprint::new_entry(of);
        txn.store(&of.tenant, journal, 0);
    }
    Ok(())
}

fn entry(row: Row<'_>) -> Sql<NewEntry> {
    Ok(NewEntry {
        tenant: row.get(0)?,
        instance: InstanceId(row.get(1)?),
        kind: EntryKind::Message,
        platform: row.get(2)?,
        bot: row.get(3)?,
        chat_id: row.get(4)?,
        message_id: row.get(5)?,
        session_key: row.get(6)?,
        body: Bytes::from(row.get::<Vec<u8>>(7)?),
        ahead: false,
        while_busy: row.get::<Option<String>>(8)?.and_then(|word| WhileBusy::parse(&word)),
        when_full: WhenFull::MakeRoom,
        received_at: UnixMillis(row.get(9)?),
    })
}

fn opening(row: Row<'_>, now: i64) -> Sql<Opening> {
    let (platform, bot): (String, String) = (row.get(3)?, row.get(4)?);
    Ok(Opening {
        id: row.get(0)?,
        tenant: row.get(1)?,
        instance: InstanceId(row.get(2)?),
        bot: BotKey::new(&platform, &bot),
        chat_id: row.get(5)?,
        message_id: row.get(6)?,
        body: Bytes::from(row.get::<Vec<u8>>(7)?),
        begun: row.get::<Option<i64>>(8)?.map(|at| Duration::from_millis((now - at).try_into().unwrap_or(0))),
    })
}

const OPENING: &str =
    "SELECT id, tenant, instance, platform, bot, chat_id, message_id, body, tried_at FROM openings";

fn find(db: &mut dyn Db, which: &Openings, now: i64) -> Sql<Vec<Opening>> {
    let opening = |row: Row<'_>| opening(row, now);
    match which {
        Openings::OfChat(bot, chat_id) => db.all(
            &format!("{OPENING} WHERE platform = $1 AND bot = $2 AND chat_id = $3 ORDER BY id LIMIT {PAGE}"),
            values![bot.platform, bot.bot, chat_id],
            opening,
        ),
        Openings::One(bot, chat_id, message_id) => db.all(
            &format!("{OPENING} WHERE {BY_MESSAGE}"),
            values![message_id, chat_id, bot.platform, bot.bot],
            opening,
        ),
        Openings::OlderThan(age) => db.all(
            &format!("{OPENING} WHERE held_at <= $1 ORDER BY id LIMIT {PAGE}"),
            values![before(now, *age)],
            opening,
        ),
    }
}

/// What was noted further ahead than `within` was noted by a clock that was set back since.
fn begin(txn: &mut dyn Txn, id: i64, within: Duration) -> Sql<Begun> {
    let now = txn.now();
    let begun = "UPDATE openings SET tries = tries + 1, tried_at = $1
                 WHERE id = $2 AND (tried_at IS NULL OR tried_at <= $3 OR tried_at > $4)
                 AND NOT EXISTS (SELECT 1 FROM openings o WHERE o.message_id = openings.chat_id
                     AND o.platform = openings.platform AND o.bot = openings.bot
                     AND o.instance = openings.instance)
                 RETURNING tries";
    let ahead = now.saturating_add(millis(within));
    let tries = txn.first(begun, values![now, id, before(now, within), ahead], |row| row.get(0))?;
    if let Some(tries) = tries {
        return Ok(Begun::Try(tries));
    }
    let waits: bool = txn.says("SELECT EXISTS (SELECT 1 FROM openings WHERE id = $1)", values![id])?;
    Ok(if waits { Begun::NotYet } else { Begun::Gone })
}

/// Until when something is so old; whatever its stamp says, if it need not be old at all.
fn before(now: i64, age: Duration) -> i64 {
    if age.is_zero() { i64::MAX } else { now.saturating_sub(millis(age)) }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// [`Ingest::openings`](angelia_core::ports::Ingest::openings).
pub(super) fn openings<E: Engine>(store: &Store<E>, which: Openings) -> BoxFuture<'_, Result<Vec<Opening>>> {
    let now = store.0.clock().now();
    store.0.read("find what waits for threads", move |db| find(db, &which, now.0))
}

/// [`Ingest::begin_opening`](angelia_core::ports::Ingest::begin_opening).
pub(super) fn begin_one<E: Engine>(
    store: &Store<E>,
    id: i64,
    within: Duration,
) -> BoxFuture<'_, Result<Begun>> {
    store.0.write_all(Owner::Server, 0, "note that a thread is opened", move |txn| begin(txn, id, within))
}

/// [`Ingest::release`](angelia_core::ports::Ingest::release).
pub(super) fn release_one<E: Engine>(
    store: &Store<E>,
    id: i64,
    moved: Option<Moved>,
) -> BoxFuture<'_, Result<Released>> {
    store.0.write_all(Owner::Server, 0, "release a message", move |txn| release(txn, id, moved.as_ref()))
}
