//! Taking in what bots receive.

use super::queue::Owner;
use super::writer::{Txn, now};
use super::{Sqlite, directory, inbox, records, vault};
use angelia_core::directory::BotKey;
use angelia_core::error::Result;
use angelia_core::lease;
use angelia_core::ports::LeaseToken;
use angelia_core::quarantine;
use angelia_core::store::{Appended, BoxFuture, Cursor, Ingest, Intake, NewEntry, NewQuarantined, Taken};
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
        && inbox::has_room(txn, entry)?.is_err()
    {
        return Ok(Taken { full: true, ..Taken::default() });
    }
    let Intake { chats, traffic, entry, capability, patience, revision, engaged, quarantined, cursor } =
        intake;
    for chat in &chats {
        directory::learn(txn, bot, chat)?;
    }
    for traffic in &traffic {
        directory::note_traffic(txn, bot, traffic)?;
    }
    if let Some((chat_id, instance)) = engaged {
        directory::engage(txn, bot, &chat_id, instance)?;
    }
    if let Some(unreadable) = quarantined {
        set_aside(txn, bot, unreadable)?;
    }
    let given_up = patience.is_some_and(|patience| !patience.begin());
    let mut taken = Taken { given_up, ..Taken::default() };
    if let Some(revision) = &revision {
        taken.revised = Some(inbox::revise(txn, revision)?);
    }
    if let Some(entry) = entry.filter(|_| !given_up) {
        match inbox::takes_messages(txn, entry.instance)? {
            true => taken.appended = Some(append(txn, bot, entry, capability.as_ref())?),
            false => taken.no_instance = true,
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
fn append(
    txn: &mut Txn<'_>,
    bot: &BotKey,
    entry: NewEntry,
    capability: Option<&NewCapability>,
) -> rusqlite::Result<Appended> {
    let (tenant, instance) = (entry.tenant.clone(), entry.instance);
    let appended = inbox::append(txn, entry)?;
    match (appended, capability) {
        (Appended::New(_), Some(capability)) => vault::keep(txn, bot, (&tenant, instance), capability)?,
        (Appended::New(_) | Appended::Seen(_), _) => {}
    }
    Ok(appended)
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
