//! Who has keys of rooms, as every request asks.

use super::super::writer::{Txn, now};
use angelia_core::clock::UnixMillis;
use angelia_core::rooms::Recognised;
use angelia_core::store::{Guest, Person};
use rusqlite::{Connection, OptionalExtension, params};

pub(super) fn recognise(db: &Connection, key_fingerprint: [u8; 32]) -> rusqlite::Result<Option<Guest>> {
    let now = now();
    let found = db
        .prepare_cached(
            "SELECT room, user, visits_until,
                 EXISTS (SELECT 1 FROM webchat_people o WHERE o.room = p.room AND o.user <> p.user
                         AND coalesce(o.visits_until, ?2) >= ?2),
                 (SELECT user FROM webchat_people o WHERE o.room = p.room AND o.visits_until IS NULL
                  ORDER BY created_at LIMIT 1)
             FROM webchat_people p WHERE key_fingerprint = ?1",
        )?
        .query_row(params![key_fingerprint, now], |row| {
            Ok(Recognised {
                person: Person { room: row.get(0)?, user: row.get(1)? },
                visits_until: row.get::<_, Option<i64>>(2)?.map(UnixMillis),
                others: row.get(3)?,
                first_invited: row.get(4)?,
            })
        })
        .optional()?;
    Ok(found.and_then(|found| found.guest(UnixMillis(now))))
}

/// Whether somebody has a key of a room.
pub(super) fn is_in_room(txn: &Txn<'_>, room: &str, user: &str) -> rusqlite::Result<bool> {
    txn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM webchat_people
                        WHERE room = ?1 AND user = ?2 AND coalesce(visits_until, ?3) >= ?3)",
    )?
    .query_row(params![room, user, now()], |row| row.get(0))
}
