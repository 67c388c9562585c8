//! Taking in what bots receive: what they learn of chats, an entry with its number and its
//! place in line, and how far they have read. All of an intake is one write; what its parts
//! mean is said where [`Intake`] is.

use super::footprint;
use super::inbox::{enforce_disk, enforce_quota, revise, withdraw};
use super::queue::Owner;
use super::writer::{Txn, now};
use super::{Sqlite, records, tenant_bytes, vault};
use angelia_core::directory::{BotKey, Chat};
use angelia_core::error::Result;
use angelia_core::identity::instances::NAMELESS;
use angelia_core::inbox::refusal::{self, Arrival};
use angelia_core::inbox::{CONVERSATION_REFRESH, Entry, InstanceId, Mark, Seq};
use angelia_core::lease;
use angelia_core::ports::{Hint, HintKind, LeaseToken};
use angelia_core::quarantine;
use angelia_core::store::{
    Appended, BoxFuture, Cursor, Ingest, Intake, NewEntry, NewQuarantined, Taken, Traffic,
};
use angelia_core::turns::WhileBusy;
use angelia_core::vault::NewCapability;
use rusqlite::{OptionalExtension, params};

impl Ingest for Sqlite {
    fn take_in(
        &self,
        bot: &BotKey,
        under: Option<LeaseToken>,
        intakes: Vec<Intake>,
    ) -> BoxFuture<'_, Result<Vec<Taken>>> {
        if intakes.iter().any(|intake| intake.entry.is_some()) {
            angelia_core::fail::point("before_append");
        }
        let owner = Owner::bot(bot);
        let bytes = intakes.iter().filter_map(|intake| intake.entry.as_ref()).map(|it| it.body.len()).sum();
        let bot = bot.clone();
        let advances = under.is_some() || intakes.iter().any(|intake| intake.cursor.is_some());
        self.writer.try_write_for(owner, bytes, "take in what a bot received", move |txn| {
            if advances && let Err(lost) = lease::may_advance(under, holder(txn, &bot)?) {
                return Ok(Err(lost));
            }
            let taken = intakes.into_iter().map(|intake| take_in(txn, &bot, intake)).collect();
            txn.taken_in();
            Result::map(taken, Ok)
        })
    }
}

/// The token of whoever reads a bot's streams.
fn holder(txn: &Txn<'_>, bot: &BotKey) -> rusqlite::Result<Option<LeaseToken>> {
    txn.prepare_cached("SELECT token FROM leases WHERE name = ?")?
        .query_row([lease::of_bot(bot)], |row| row.get(0).map(LeaseToken))
        .optional()
}

/// Writes everything of one intake, without its entry if nobody waits for that any
/// more. Chats come first: what follows is noted on their rows.
fn take_in(txn: &mut Txn<'_>, bot: &BotKey, intake: Intake) -> rusqlite::Result<Taken> {
    if let Some(entry) = &intake.entry
        && has_room(txn, entry)?.is_err()
    {
        return Ok(Taken { full: true, ..Taken::default() });
    }
    let Intake {
        chats,
        traffic,
        entry,
        capability,
        patience,
        revision,
        withdrawals,
        engaged,
        quarantined,
        cursor,
    } = intake;
    for chat in &chats {
        learn(txn, bot, chat)?;
    }
    for traffic in &traffic {
        note_traffic(txn, bot, traffic)?;
    }
    if let Some((chat_id, instance)) = engaged {
        engage(txn, bot, &chat_id, instance)?;
    }
    if let Some(unreadable) = quarantined {
        set_aside(txn, bot, unreadable)?;
    }
    let given_up = patience.is_some_and(|patience| !patience.begin());
    let mut taken = Taken { given_up, ..Taken::default() };
    if let Some(revision) = &revision {
        taken.revised = Some(revise(txn, revision)?);
    }
    for withdrawal in &withdrawals {
        withdraw(txn, withdrawal)?;
    }
    if let Some(entry) = entry.filter(|_| !given_up) {
        if takes_messages(txn, entry.instance)? {
            taken.appended = Some(append_with(txn, bot, entry, capability.as_ref())?)
        } else {
            taken.no_instance = true
        }
    }
    if let Some(cursor) = &cursor {
        advance(txn, bot, cursor)?;
    }
    Ok(taken)
}

/// Puts into quarantine what could not be read. That rule refuses nothing.
fn set_aside(txn: &mut Txn<'_>, bot: &BotKey, unreadable: NewQuarantined) -> rusqlite::Result<()> {
    let bot = bot.clone();
    let kept = records::run(txn, Box::new(move |view| quarantine::add(view, &bot, &unreadable)))?;
    kept.map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// Appends an entry and keeps what its answer may use, unless it was seen before.
fn append_with(
    txn: &mut Txn<'_>,
    bot: &BotKey,
    entry: NewEntry,
    capability: Option<&NewCapability>,
) -> rusqlite::Result<Appended> {
    let kept = capability.map(|it| (it, entry.tenant.clone(), entry.instance));
    let appended = append(txn, entry)?;
    if let (Appended::New(_), Some((capability, tenant, instance))) = (appended, kept) {
        vault::keep(txn, bot, (&tenant, instance), capability)?;
    }
    Ok(appended)
}

/// Whether what is for an instance may wait there: a gateway that is not revoked
/// serves it, or it has no name yet and waits for its tenant's first one. Whoever
/// was admitted to it asks in the transaction that writes: its gateway may have
/// moved or gone since, and nobody would fetch the message.
pub(super) fn takes_messages(txn: &Txn<'_>, instance: InstanceId) -> rusqlite::Result<bool> {
    txn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM gateways WHERE instance = ?1 AND revoked_at IS NULL)
             OR EXISTS (SELECT 1 FROM instances WHERE instance = ?1 AND name = ?2)",
    )?
    .query_row(params![instance.0, NAMELESS], |row| row.get(0))
}

/// Whether an entry is taken: there is room, or room is made for it, or it came before.
/// If it is not, what whoever sent it is told.
pub(super) fn has_room(txn: &mut Txn<'_>, new: &NewEntry) -> rusqlite::Result<Result<()>> {
    let (quota, (waiting, journal)) = (*txn.quota, footprint::new_entry(new));
    let admits = quota.admits(txn.held(new.instance), &new.chat_id, new.body.len());
    let fits = quota.fits_disk(txn.counted.stored.of(&new.tenant), waiting + journal);
    if (Arrival { when_full: new.when_full, admits, fits }).is_taken() || seen(txn, new)?.is_some() {
        return Ok(Ok(()));
    }
    let fits = admits && tenant_bytes::make_room(txn, &new.tenant, waiting + journal)?;
    Ok(refusal::judge(admits, fits))
}

/// Where an entry is that came before, by the key under which it is seen once.
fn seen(txn: &Txn<'_>, new: &NewEntry) -> rusqlite::Result<Option<Seq>> {
    txn.prepare_cached(
        "SELECT seq FROM journal
         WHERE message_id = ? AND chat_id = ? AND platform = ? AND bot = ? AND kind = ?",
    )?
    .query_row(params![new.message_id, new.chat_id, new.platform, new.bot, new.kind.as_str()], |row| {
        row.get(0).map(Seq)
    })
    .optional()
}

/// Appends one entry in the open transaction, for an instance that is there.
pub(super) fn append(txn: &mut Txn<'_>, new: NewEntry) -> rusqlite::Result<Appended> {
    let appended_at = now();
    let before = txn.mark(new.instance)?;
    let seq = Seq(before.tail.0 + 1);
    let inserted = txn
        .prepare_cached(
            "INSERT INTO journal
                 (message_id, kind, platform, bot, chat_id, tenant, instance, received_at, appended_at, seq)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            new.message_id,
            new.kind.as_str(),
            new.platform,
            new.bot,
            new.chat_id,
            new.tenant,
            new.instance.0,
            new.received_at.0,
            appended_at,
            seq.0
        ])?;
    if inserted == 0 {
        return seen(txn, &new)?.map(Appended::Seen).ok_or(rusqlite::Error::QueryReturnedNoRows);
    }
    let mark = Mark { tail: seq, ..before };
    txn.set_mark(new.instance, mark);
    insert_waiting(txn, seq, txn.last_insert_rowid(), &new)?;
    remember_conversation(txn, &new, appended_at)?;
    txn.count(new.instance, |held| held.add(&new.chat_id, new.body.len()));
    let kept = txn.counted.stored.of(&new.tenant);
    let (waiting, journal) = footprint::new_entry(&new);
    txn.counted.stored.appended(&new.tenant, new.instance, waiting + journal);
    let chat = new.chat_id.clone();
    let entry = Entry {
        seq,
        kind: new.kind,
        platform: new.platform,
        bot: new.bot,
        chat_id: new.chat_id,
        session_key: new.session_key,
        body: new.body,
        revision: 0,
        while_busy: new.while_busy,
    };
    let kind = if new.ahead { HintKind::Ahead } else { HintKind::Appended };
    txn.tell(Hint::Log { instance: new.instance, mark, entry, kind });
    enforce_quota(txn, new.instance, &chat)?;
    enforce_disk(txn, &new.tenant, new.instance, &chat, kept)?;
    Ok(Appended::New(seq))
}

fn insert_waiting(txn: &Txn<'_>, seq: Seq, journal: i64, new: &NewEntry) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "INSERT INTO inbox (instance, seq, kind, platform, bot, chat_id, message_id, session_key, ahead,
                            received_at, body, journal, while_busy)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        new.instance.0,
        seq.0,
        new.kind.as_str(),
        new.platform,
        new.bot,
        new.chat_id,
        new.message_id,
        new.session_key,
        new.ahead,
        new.received_at.0,
        new.body.as_ref(),
        journal,
        new.while_busy.map(WhileBusy::as_str)
    ])?;
    Ok(())
}

fn remember_conversation(txn: &Txn<'_>, new: &NewEntry, at: i64) -> rusqlite::Result<()> {
    let refresh = CONVERSATION_REFRESH.as_millis() as i64;
    txn.prepare_cached(
        "INSERT INTO conversations (tenant, session_key, instance, chat_id, last_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (tenant, session_key) DO UPDATE
         SET instance = ?3, chat_id = ?4, last_at = ?5
         WHERE instance <> ?3 OR chat_id <> ?4 OR last_at < ?5 - ?6",
    )?
    .execute(params![new.tenant, new.session_key, new.instance.0, new.chat_id, at, refresh])?;
    Ok(())
}

/// Keeps what a provider says of a chat now. What was seen there stays, and so does its
/// language where nothing is said of that; nothing is written where nothing differs.
fn learn(txn: &Txn<'_>, bot: &BotKey, chat: &Chat) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "INSERT INTO chats (platform, bot, chat_id, kind, parent, scope, name, topic, person, roles, language)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (platform, bot, chat_id) DO UPDATE
         SET kind = excluded.kind, parent = excluded.parent, scope = excluded.scope, name = excluded.name,
             topic = excluded.topic, person = excluded.person, roles = excluded.roles,
             language = coalesce(excluded.language, language)
         WHERE (kind, parent, scope, name, topic, person, roles, language) IS NOT
               (excluded.kind, excluded.parent, excluded.scope, excluded.name, excluded.topic,
                excluded.person, excluded.roles, coalesce(excluded.language, language))",
    )?
    .execute(params![
        bot.platform,
        bot.bot,
        chat.chat_id,
        chat.kind.as_str(),
        chat.parent,
        chat.scope,
        chat.name,
        chat.topic,
        chat.person,
        serde_json::json!(chat.roles).to_string(),
        chat.language.map(|it| it.as_str())
    ])?;
    Ok(())
}

/// Notes the newest message of a chat that is known: of another one nobody knows what it is.
fn note_traffic(txn: &Txn<'_>, bot: &BotKey, traffic: &Traffic) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "UPDATE chats SET last_message = ?1, last_at = ?2
         WHERE platform = ?3 AND bot = ?4 AND chat_id = ?5 AND coalesce(last_at <= ?2, 1)",
    )?
    .execute(params![traffic.message_id, traffic.at.0, bot.platform, bot.bot, traffic.chat_id])?;
    Ok(())
}

/// Notes which instance was addressed in a chat.
fn engage(txn: &Txn<'_>, bot: &BotKey, chat_id: &str, instance: InstanceId) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "UPDATE chats SET engaged = ?1
         WHERE platform = ?2 AND bot = ?3 AND chat_id = ?4 AND engaged IS NOT ?1",
    )?
    .execute(params![instance.0, bot.platform, bot.bot, chat_id])?;
    Ok(())
}

/// Notes how far a stream was read.
fn advance(txn: &Txn<'_>, bot: &BotKey, cursor: &Cursor) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "INSERT INTO cursors (platform, bot, stream, position, at) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (platform, bot, stream) DO UPDATE SET position = excluded.position, at = excluded.at
         WHERE position <> excluded.position",
    )?
    .execute(params![bot.platform, bot.bot, cursor.stream, cursor.position, now()])?;
    Ok(())
}
