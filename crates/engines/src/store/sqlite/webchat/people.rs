//! Who has keys of rooms: those who were invited, and those who let themselves in.

use super::super::clock::is_old;
use super::super::records::audit;
use super::super::removal::is_being_emptied;
use super::super::txn::{Txn, now};
use angelia_core::audit::{Actor, Deed};
use angelia_core::clock::UnixMillis;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::store::{Guest, Invited, Person};
use rusqlite::{Connection, OptionalExtension, params};
use std::time::Duration;

angelia_contract::limits! {
    /// More than anybody could talk with, few enough for the table. Then whoever has been silent
    /// for ten minutes gives way, or nobody more comes in.
    const VISITORS_PER_ROOM: i64 = 500, count "visitors of one open room";
}

/// How long a visitor may be silent while others wait for a seat.
const SILENT_FOR: Duration = Duration::from_secs(600);

pub(super) fn invite(
    txn: &mut Txn<'_>,
    person: &Person,
    key_fingerprint: [u8; 32],
    by: &Actor,
) -> rusqlite::Result<Result<()>> {
    if is_being_emptied(txn, &person.room)? {
        return Ok(Err(being_emptied()));
    }
    // Who was first stays so, whatever the clock says of the second.
    txn.execute(
        "INSERT INTO webchat_people (key_fingerprint, room, user, created_at) VALUES (?1, ?2, ?3,
         max(?4, coalesce((SELECT max(created_at) + 1 FROM webchat_people WHERE room = ?2), 0)))",
        params![key_fingerprint, person.room, person.user, now()],
    )?;
    audit(txn, &Deed::done(by, "webchat.invite", "", &person.room).with(&person.user)).map(Ok)
}

fn being_emptied() -> Error {
    let why = "what was said in this room before, by a tenant that was removed, is still being deleted; \
               try again in a minute";
    Error::conflict(why)
}

pub(super) fn visit(
    txn: &mut Txn<'_>,
    person: &Person,
    key_fingerprint: [u8; 32],
    until: UnixMillis,
) -> rusqlite::Result<Result<()>> {
    if is_being_emptied(txn, &person.room)? {
        return Ok(Err(being_emptied()));
    }
    if is_taken(txn, person)? {
        return Ok(Err(Error::conflict(format!("somebody here is called {:?}", person.user))));
    }
    let visitors: i64 = txn.query_row(
        "SELECT count(*) FROM webchat_people WHERE room = ? AND visits_until >= ?",
        params![person.room, now()],
        |row| row.get(0),
    )?;
    if visitors >= VISITORS_PER_ROOM && !makes_way(txn, &person.room)? {
        let full = "the room is full; try again later, or ask the operator for an invitation";
        return Ok(Err(Error::new(Kind::TooMany, full)));
    }
    // No line in the audit log: it is kept for a year, and strangers may come often.
    txn.execute(
        "INSERT INTO webchat_people (key_fingerprint, room, user, created_at, visits_until)
         VALUES (?, ?, ?, ?, ?)",
        params![key_fingerprint, person.room, person.user, now(), until.0],
    )?;
    Ok(Ok(()))
}

/// Lets the visitor go who came longest ago and said nothing; `false` if all have
/// something to say, or came just now.
fn makes_way(txn: &mut Txn<'_>, room: &str) -> rusqlite::Result<bool> {
    if txn.clock.has_leapt() {
        return Ok(false);
    }
    let came_long_ago = is_old("created_at", &txn.clock.older_than(SILENT_FOR));
    let silent = txn.execute(
        &format!(
            "DELETE FROM webchat_people WHERE key_fingerprint = (
             SELECT key_fingerprint FROM webchat_people
             WHERE room = ?1 AND visits_until IS NOT NULL AND {came_long_ago}
                 AND user NOT IN (SELECT author FROM webchat_lines WHERE room = ?1)
             ORDER BY created_at LIMIT 1)"
        ),
        params![room],
    )?;
    Ok(silent > 0)
}

pub(super) fn list(db: &Connection, room: Option<String>) -> rusqlite::Result<Vec<Invited>> {
    db.prepare_cached(
        "SELECT room, user, count(*), min(created_at), max(visits_until) FROM webchat_people
         WHERE coalesce(?1, room) = room AND coalesce(visits_until, ?2) >= ?2
         GROUP BY room, user ORDER BY room, min(created_at)",
    )?
    .query_map(params![room, now()], |row| {
        Ok(Invited {
            room: row.get(0)?,
            user: row.get(1)?,
            keys: row.get(2)?,
            since: UnixMillis(row.get(3)?),
            until: row.get::<_, Option<i64>>(4)?.map(UnixMillis),
        })
    })?
    .collect()
}

pub(super) fn uninvite(txn: &mut Txn<'_>, person: &Person, by: &Actor) -> rusqlite::Result<Result<()>> {
    let keys =
        txn.execute("DELETE FROM webchat_people WHERE room = ? AND user = ?", [&person.room, &person.user])?;
    if keys == 0 {
        return Ok(Err(Error::not_found(format!(
            "nobody called {:?} has a key of room {:?}; see angelia webchat list",
            person.user, person.room
        ))));
    }
    audit(txn, &Deed::done(by, "webchat.revoke", "", &person.room).with(&person.user)).map(Ok)
}

pub(super) fn recognise(db: &Connection, key_fingerprint: [u8; 32]) -> rusqlite::Result<Option<Guest>> {
    db.prepare_cached(
        "SELECT room, user,
             NOT EXISTS (SELECT 1 FROM webchat_people o WHERE o.room = p.room AND o.user <> p.user
                         AND coalesce(o.visits_until, ?2) >= ?2),
             visits_until IS NULL AND user = (SELECT user FROM webchat_people o WHERE o.room = p.room AND o.visits_until IS NULL
                     ORDER BY created_at LIMIT 1),
             visits_until IS NOT NULL
         FROM webchat_people p WHERE key_fingerprint = ?1 AND coalesce(visits_until, ?2) >= ?2",
    )?
    .query_row(params![key_fingerprint, now()], |row| {
        let person = Person { room: row.get(0)?, user: row.get(1)? };
        // Where there are visitors only, nobody was the first to be invited.
        let first = row.get::<_, Option<bool>>(3)?.unwrap_or_default();
        Ok(Guest { person, alone: row.get(2)?, first, visiting: row.get(4)? })
    })
    .optional()
}

/// Whether somebody has a key of a room.
pub(super) fn is_in_room(txn: &Txn<'_>, room: &str, user: &str) -> rusqlite::Result<bool> {
    txn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM webchat_people
                        WHERE room = ?1 AND user = ?2 AND coalesce(visits_until, ?3) >= ?3)",
    )?
    .query_row(params![room, user, now()], |row| row.get(0))
}

/// Whether somebody has a name in a room, or wrote a line there under it.
fn is_taken(txn: &Txn<'_>, person: &Person) -> rusqlite::Result<bool> {
    txn.query_row(
        "SELECT EXISTS (SELECT 1 FROM webchat_people WHERE room = ?1 AND user = ?2 COLLATE NOCASE)
             OR EXISTS (SELECT 1 FROM webchat_lines WHERE room = ?1 AND author = ?2 COLLATE NOCASE)",
        [&person.room, &person.user],
        |row| row.get(0),
    )
}
