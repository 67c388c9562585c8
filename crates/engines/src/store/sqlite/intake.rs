//! Taking in what bots receive.

use super::queue::Owner;
use super::txn::{Txn, now};
use super::{Sqlite, directory, inbox, quarantine, vault};
use angelia_core::audit::Actor;
use angelia_core::directory::BotKey;
use angelia_core::lease;
use angelia_core::ports::Token;
use angelia_core::space::Class;
use angelia_core::store::{
    Appended, Cursor, Intake, IntakeStore, Later, Missed, NewEntry, Quarantined, Taken,
};
use angelia_core::vault::NewCapability;
use rusqlite::{OptionalExtension, params};

impl IntakeStore for Sqlite {
    fn take_in(&self, bot: &BotKey, under: Option<Token>, intakes: Vec<Intake>) -> Later<'_, Vec<Taken>> {
        if intakes.iter().any(|intake| intake.entry.is_some()) {
            angelia_core::fail::point("before_append");
        }
        let owner = Owner::Bot(format!("{}/{}", bot.platform, bot.bot).into());
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

    fn cursors(&self, bot: &BotKey) -> Later<'_, Vec<Cursor>> {
        let bot = bot.clone();
        self.readers.read("read how far a bot has read", move |db| {
            db.prepare_cached(
                "SELECT stream, position FROM cursors WHERE platform = ? AND bot = ? ORDER BY stream",
            )?
            .query_map([&bot.platform, &bot.bot], |row| {
                Ok(Cursor { stream: row.get(0)?, position: row.get(1)? })
            })?
            .collect()
        })
    }

    fn note_missed(&self, bot: &BotKey, missed: Vec<Missed>) -> Later<'_, ()> {
        let bot = bot.clone();
        self.writer.write("note what was missed", move |txn| {
            missed.iter().try_for_each(|missed| quarantine::miss(txn, &bot, missed))
        })
    }

    fn missed(&self, bot: &BotKey, limit: usize) -> Later<'_, Vec<Missed>> {
        let bot = bot.clone();
        self.readers.read("read what was missed", move |db| quarantine::missed(db, &bot, limit))
    }

    fn quarantine(&self, bot: Option<&BotKey>, limit: usize) -> Later<'_, Vec<Quarantined>> {
        let bot = bot.cloned();
        self.readers.read("list the quarantine", move |db| quarantine::list(db, bot.as_ref(), limit))
    }

    fn quarantined(&self, id: i64) -> Later<'_, Option<(Quarantined, Vec<u8>)>> {
        self.readers.read("find what is in quarantine", move |db| quarantine::find(db, id))
    }

    fn purge_quarantine(&self, id: Option<i64>, by: &Actor) -> Later<'_, u64> {
        let by = by.clone();
        Box::pin(async move {
            let mut purged = 0;
            loop {
                let by = by.clone();
                let step = move |txn: &mut Txn<'_>| {
                    let gone = quarantine::purge(txn, id, &by)?;
                    txn.then_make_room();
                    Ok(Ok(gone))
                };
                let (count, more) =
                    self.writer.write_as(Class::Operator, "purge the quarantine", step).await?;
                purged += count;
                if !more {
                    return Ok(purged);
                }
            }
        })
    }
}

/// The token of whoever reads a bot's streams.
fn holder(txn: &Txn<'_>, bot: &BotKey) -> rusqlite::Result<Option<Token>> {
    txn.prepare_cached("SELECT token FROM leases WHERE name = ?")?
        .query_row([lease::of_bot(bot)], |row| row.get(0).map(Token))
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
    if let Some(unreadable) = &quarantined {
        quarantine::add(txn, bot, unreadable)?;
    }
    let given_up = patience.is_some_and(|patience| !patience.begin());
    let mut taken = Taken { given_up, ..Taken::default() };
    if let Some(revision) = &revision {
        taken.revised = Some(inbox::revise(txn, revision)?);
    }
    if let Some(entry) = entry.filter(|_| !given_up) {
        match inbox::is_served(txn, entry.instance)? {
            true => taken.appended = Some(append(txn, bot, entry, capability.as_ref())?),
            false => taken.no_instance = true,
        }
    }
    if let Some(cursor) = &cursor {
        advance(txn, bot, cursor)?;
    }
    Ok(taken)
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
