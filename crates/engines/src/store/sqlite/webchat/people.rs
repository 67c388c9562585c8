//! Who has keys of rooms, as every request asks.

use super::super::txn::{Txn, now};
use angelia_core::store::{Guest, Person};
use rusqlite::{Connection, OptionalExtension, params};

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
