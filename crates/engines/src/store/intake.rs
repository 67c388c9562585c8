//! Taking in what bots receive: what they learn of chats, an entry with its number and its
//! place in line, and how far they have read. All of an intake is one write; what its parts
//! mean is said where [`Intake`] is.

use super::db::{Ask, Failure, Sql, values};
use super::engine::{Engine, Store};
use super::inbox::{enforce_disk, enforce_quota, revise, withdraw};
use super::txn::Txn;
use super::{footprint, openings, records, tenant_bytes, vault};
use angelia_core::directory::{BotKey, Chat};
use angelia_core::error::Result;
use angelia_core::identity::instances::NAMELESS;
use angelia_core::inbox::refusal::{self, Arrival};
use angelia_core::inbox::{CONVERSATION_REFRESH, Entry, InstanceId, Mark, Seq};
use angelia_core::lease;
use angelia_core::ports::{Begun, Hint, HintKind, LeaseToken, Opening, Openings, Released, Under};
use angelia_core::prompts::{self, Answered, Press};
use angelia_core::quarantine;
use angelia_core::store::{
    Appended, BoxFuture, Cursor, Ingest, Intake, NewEntry, NewQuarantined, Taken, Traffic,
};
use angelia_core::threads::Moved;
use angelia_core::turns::WhileBusy;
use angelia_core::vault::NewCapability;
use std::time::Duration;

impl<E: Engine> Ingest for Store<E> {
    fn take_in(
        &self,
        bot: &BotKey,
        under: Option<Under>,
        intakes: Vec<Intake>,
    ) -> BoxFuture<'_, Result<Vec<Taken>>> {
        if intakes.iter().any(|intake| intake.entry.is_some()) {
            angelia_core::fail::point("before_append");
        }
        self.0.take_in(bot, under, intakes)
    }

    fn openings(&self, which: Openings) -> BoxFuture<'_, Result<Vec<Opening>>> {
        openings::openings(self, which)
    }

    fn begin_opening(&self, id: i64, within: Duration) -> BoxFuture<'_, Result<Begun>> {
        openings::begin_one(self, id, within)
    }

    fn release(&self, id: i64, moved: Option<Moved>) -> BoxFuture<'_, Result<Released>> {
        openings::release_one(self, id, moved)
    }
}

/// Bytes of what waits from now on.
pub(super) fn bytes(intakes: &[Intake]) -> usize {
    intakes.iter().filter_map(|intake| intake.entry.as_ref()).map(|entry| entry.body.len()).sum()
}

/// Appends one event, unless nobody serves its instance or there is no room for it.
pub(super) fn append_one(txn: &mut dyn Txn, entry: &NewEntry) -> Sql<Result<Appended>> {
    txn.lock(entry.instance)?;
    if !takes_messages(txn, entry.instance)? {
        return Ok(Err(refusal::instance_gone()));
    }
    if let Err(full) = has_room(txn, entry)? {
        return Ok(Err(full));
    }
    append(txn, entry).map(Ok)
}

/// Writes everything of all intakes, if whoever says how far it has read may.
pub(super) fn take_in_all(
    txn: &mut dyn Txn,
    bot: &BotKey,
    under: Option<&Under>,
    intakes: &[Intake],
) -> Sql<Result<Vec<Taken>>> {
    let advances = under.is_some() || intakes.iter().any(|intake| intake.cursor.is_some());
    if advances {
        let lease = under.map_or_else(|| lease::of_bot(bot), |under| under.lease.clone());
        if let Err(lost) = lease::may_advance(under, holder(txn, lease)?) {
            return Ok(Err(lost));
        }
    }
    let mut instances: Vec<InstanceId> =
        intakes.iter().filter_map(|intake| intake.entry.as_ref()).map(|entry| entry.instance).collect();
    // Whoever takes several takes them in this order.
    instances.sort_unstable();
    instances.into_iter().try_for_each(|instance| txn.lock(instance))?;
    let taken = intakes.iter().map(|intake| take_in(txn, bot, intake)).collect::<Sql<_>>()?;
    txn.taken_in();
    Ok(Ok(taken))
}

/// The token of whoever has a lease, which nobody else gets until the end of this transaction.
fn holder(txn: &mut dyn Txn, name: String) -> Sql<Option<LeaseToken>> {
    txn.share_lease(&name)?;
    txn.first("SELECT token FROM leases WHERE name = $1", values![name], |row| row.get(0).map(LeaseToken))
}

/// Writes everything of one intake, without its entry if nobody waits for that any
/// more. Chats come first: what follows is noted on their rows.
fn take_in(txn: &mut dyn Txn, bot: &BotKey, intake: &Intake) -> Sql<Taken> {
    if let Some(entry) = &intake.entry
        && has_room(txn, entry)?.is_err()
    {
        return Ok(Taken { full: true, ..Taken::default() });
    }
    for chat in &intake.chats {
        learn(txn, bot, chat)?;
    }
    for traffic in &intake.traffic {
        note_traffic(txn, bot, traffic)?;
    }
    if let Some((chat_id, instance)) = &intake.engaged {
        engage(txn, bot, chat_id, *instance)?;
    }
    if let Some(unreadable) = &intake.quarantined {
        set_aside(txn, bot, unreadable.clone())?;
    }
    let given_up = intake.patience.as_ref().is_some_and(|patience| !patience.begin());
    let mut taken = Taken { given_up, ..Taken::default() };
    if let Some(revision) = &intake.revision {
        taken.revised = Some(revise(txn, revision)?);
    }
    for withdrawal in &intake.withdrawals {
        withdraw(txn, withdrawal)?;
    }
    if let Some(entry) = intake.entry.as_ref().filter(|_| !given_up) {
        if takes_messages(txn, entry.instance)? {
            // What came before answers nothing again, and no question that was asked since.
            let press = intake.press.as_ref();
            let waits = openings::waits(txn, intake)?;
            let seen = if press.is_some() || waits.is_some() { seen(txn, entry)? } else { None };
            match (seen, press) {
                (Some(seq), _) => taken.appended = Some(Appended::Seen(seq)),
                (None, None) if let Some(waits) = waits => {
                    openings::hold(txn, entry, waits)?;
                    taken.opens = true;
                }
                (None, press) => match answer(txn, press)? {
                    Answered::Now => {
                        let capability = intake.capability.as_ref();
                        taken.appended = Some(append_with(txn, bot, entry, capability)?);
                    }
                    Answered::Before => {}
                    Answered::Not => taken.not_open = true,
                },
            }
        } else {
            taken.no_instance = true
        }
    }
    if let Some(cursor) = &intake.cursor {
        advance(txn, bot, cursor)?;
    }
    Ok(taken)
}

/// Answers the question that an entry answers, if it answers one. Its instance is locked, so of two
/// presses one comes after the other.
pub(super) fn answer(txn: &mut dyn Txn, press: Option<&Press>) -> Sql<Answered> {
    let Some(press) = press else { return Ok(Answered::Now) };
    let mut answered = Answered::Not;
    let ran = records::run(txn, &mut |view| {
        answered = prompts::answer(view, press)?;
        Ok(())
    })?;
    ran.map_err(|error| Failure::of_rule(&error))?;
    Ok(answered)
}

/// Puts into quarantine what could not be read. That rule refuses nothing.
fn set_aside(txn: &mut dyn Txn, bot: &BotKey, unreadable: NewQuarantined) -> Sql<()> {
    let bot = bot.clone();
    let kept = records::run(txn, &mut |view| quarantine::add(view, &bot, &unreadable))?;
    kept.map_err(|error| Failure::of_rule(&error))
}

/// Appends an entry and keeps what its answer may use, unless it was seen before.
fn append_with(
    txn: &mut dyn Txn,
    bot: &BotKey,
    entry: &NewEntry,
    capability: Option<&NewCapability>,
) -> Sql<Appended> {
    let appended = append(txn, entry)?;
    if let (Appended::New(_), Some(capability)) = (appended, capability) {
        vault::keep(txn, bot, (&entry.tenant, entry.instance), capability)?;
    }
    Ok(appended)
}

/// Whether what is for an instance may wait there: a gateway that is not revoked
/// serves it, or it has no name yet and waits for its tenant's first one. Whoever
/// was admitted to it asks in the transaction that writes: its gateway may have
/// moved or gone since, and nobody would fetch the message.
pub(super) fn takes_messages(txn: &mut dyn Txn, instance: InstanceId) -> Sql<bool> {
    txn.says(
        "SELECT EXISTS (SELECT 1 FROM gateways WHERE instance = $1 AND revoked_at IS NULL)
             OR EXISTS (SELECT 1 FROM instances WHERE instance = $1 AND name = $2)",
        values![instance, NAMELESS],
    )
}

/// Whether an entry is taken: there is room, or room is made for it, or it came before.
/// If it is not, what whoever sent it is told.
pub(super) fn has_room(txn: &mut dyn Txn, new: &NewEntry) -> Sql<Result<()>> {
    let (quota, (waiting, journal)) = (txn.quota(), footprint::new_entry(new));
    let held = txn.held_with(new.instance, &new.chat_id)?;
    let admits = quota.admits(&held, &new.chat_id, new.body.len());
    let fits = quota.fits_disk(txn.stored(&new.tenant)?, waiting + journal);
    if (Arrival { when_full: new.when_full, admits, fits }).is_taken() || seen(txn, new)?.is_some() {
        return Ok(Ok(()));
    }
    let fits = admits && tenant_bytes::make_room(txn, &new.tenant, waiting + journal)?;
    Ok(refusal::judge(admits, fits))
}

/// Where an entry is that came before, by the key under which it is seen once.
fn seen(txn: &mut dyn Txn, new: &NewEntry) -> Sql<Option<Seq>> {
    txn.first(
        "SELECT seq FROM journal
         WHERE message_id = $1 AND chat_id = $2 AND platform = $3 AND bot = $4 AND kind = $5",
        values![new.message_id, new.chat_id, new.platform, new.bot, new.kind.as_str()],
        |row| row.get(0).map(Seq),
    )
}

/// Appends one entry in the open transaction, for an instance that is there and locked.
pub(super) fn append(txn: &mut dyn Txn, new: &NewEntry) -> Sql<Appended> {
    append_from(txn, new, &new.chat_id)
}

/// The same for one that goes on in another chat than it was written in, by which it is seen once.
pub(super) fn append_from(txn: &mut dyn Txn, new: &NewEntry, written_in: &str) -> Sql<Appended> {
    let appended_at = txn.now();
    txn.lock(new.instance)?;
    let before = txn.mark(new.instance)?;
    let seq = Seq(before.tail.0 + 1);
    let journal = txn.insert(
        "INSERT INTO journal
             (message_id, kind, platform, bot, chat_id, tenant, instance, received_at, appended_at, seq)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING",
        values![
            new.message_id,
            new.kind.as_str(),
            new.platform,
            new.bot,
            written_in,
            new.tenant,
            new.instance,
            new.received_at,
            appended_at,
            seq
        ],
    )?;
    let Some(journal) = journal else {
        let chat_id = written_in.into();
        let seen = seen(txn, &NewEntry { chat_id, ..new.clone() })?.map(Appended::Seen);
        return seen.ok_or_else(|| Failure::Damaged("what was seen is gone".into()));
    };
    let mark = Mark { tail: seq, ..before };
    txn.set_mark(new.instance, mark)?;
    insert_waiting(txn, seq, journal, new)?;
    remember_conversation(txn, new, appended_at)?;
    txn.count_in(new.instance, &new.chat_id, new.body.len())?;
    let kept = txn.stored(&new.tenant)?;
    let (waiting, journal) = footprint::new_entry(new);
    txn.store(&new.tenant, waiting + journal, 0);
    txn.serves(new.instance, &new.tenant);
    let entry = Entry {
        seq,
        kind: new.kind,
        platform: new.platform.clone(),
        bot: new.bot.clone(),
        chat_id: new.chat_id.clone(),
        session_key: new.session_key.clone(),
        body: new.body.clone(),
        revision: 0,
        while_busy: new.while_busy,
    };
    let kind = if new.ahead { HintKind::Ahead } else { HintKind::Appended };
    txn.tell(Hint::Log { instance: new.instance, mark, entry, kind });
    enforce_quota(txn, new.instance, &new.chat_id)?;
    enforce_disk(txn, &new.tenant, new.instance, &new.chat_id, kept)?;
    Ok(Appended::New(seq))
}

fn insert_waiting(txn: &mut dyn Txn, seq: Seq, journal: i64, new: &NewEntry) -> Sql<()> {
    txn.execute(
        "INSERT INTO inbox (instance, seq, kind, platform, bot, chat_id, message_id, session_key, ahead,
                            received_at, body, journal, while_busy)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        values![
            new.instance,
            seq,
            new.kind.as_str(),
            new.platform,
            new.bot,
            new.chat_id,
            new.message_id,
            new.session_key,
            new.ahead,
            new.received_at,
            new.body,
            journal,
            new.while_busy.map(WhileBusy::as_str)
        ],
    )?;
    Ok(())
}

fn remember_conversation(txn: &mut dyn Txn, new: &NewEntry, at: i64) -> Sql<()> {
    let refreshed = at - CONVERSATION_REFRESH.as_millis() as i64;
    txn.execute(
        "INSERT INTO conversations (tenant, session_key, instance, chat_id, last_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (tenant, session_key) DO UPDATE
         SET instance = excluded.instance, chat_id = excluded.chat_id, last_at = excluded.last_at
         WHERE conversations.instance <> excluded.instance OR conversations.chat_id <> excluded.chat_id
               OR conversations.last_at < $6",
        values![new.tenant, new.session_key, new.instance, new.chat_id, at, refreshed],
    )?;
    Ok(())
}

/// Keeps what a provider says of a chat now. What was seen there stays, and so does its
/// language where nothing is said of that; nothing is written where nothing differs.
fn learn(txn: &mut dyn Txn, bot: &BotKey, chat: &Chat) -> Sql<()> {
    txn.execute(
        "INSERT INTO chats (platform, bot, chat_id, kind, parent, scope, name, topic, person, roles, language)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (platform, bot, chat_id) DO UPDATE
         SET kind = excluded.kind, parent = excluded.parent, scope = excluded.scope, name = excluded.name,
             topic = excluded.topic, person = excluded.person, roles = excluded.roles,
             language = coalesce(excluded.language, chats.language)
         WHERE (chats.kind, chats.parent, chats.scope, chats.name, chats.topic, chats.person, chats.roles,
                chats.language) IS DISTINCT FROM
               (excluded.kind, excluded.parent, excluded.scope, excluded.name, excluded.topic,
                excluded.person, excluded.roles, coalesce(excluded.language, chats.language))",
        values![
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
        ],
    )?;
    Ok(())
}

/// Notes the newest message of a chat that is known: of another one nobody knows what it is.
fn note_traffic(txn: &mut dyn Txn, bot: &BotKey, traffic: &Traffic) -> Sql<()> {
    txn.execute(
        "UPDATE chats SET last_message = $1, last_at = $2
         WHERE platform = $3 AND bot = $4 AND chat_id = $5 AND (last_at IS NULL OR last_at <= $2)",
        values![traffic.message_id, traffic.at, bot.platform, bot.bot, traffic.chat_id],
    )?;
    Ok(())
}

/// Notes which instance was addressed in a chat.
fn engage(txn: &mut dyn Txn, bot: &BotKey, chat_id: &str, instance: InstanceId) -> Sql<()> {
    txn.execute(
        "UPDATE chats SET engaged = $1
         WHERE platform = $2 AND bot = $3 AND chat_id = $4 AND engaged IS DISTINCT FROM $1",
        values![instance, bot.platform, bot.bot, chat_id],
    )?;
    Ok(())
}

/// Notes how far a stream was read.
fn advance(txn: &mut dyn Txn, bot: &BotKey, cursor: &Cursor) -> Sql<()> {
    let now = txn.now();
    txn.execute(
        "INSERT INTO cursors (platform, bot, stream, position, at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (platform, bot, stream) DO UPDATE SET position = excluded.position, at = excluded.at
         WHERE cursors.position <> excluded.position",
        values![bot.platform, bot.bot, cursor.stream, cursor.position, now],
    )?;
    Ok(())
}
