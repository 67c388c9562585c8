//! Who has keys of rooms, as every request asks.

use super::super::db::{Ask, Db, Row, Sql, values};
use super::super::txn::Txn;
use angelia_core::clock::UnixMillis;
use angelia_core::rooms::Recognised;
use angelia_core::store::{Guest, Person};

/// What is known of whoever holds a key (`p`), at `$1`.
pub(in super::super) const RECOGNISED: &str = "p.room, p.\"user\", p.visits_until,
    EXISTS (SELECT 1 FROM webchat_people o WHERE o.room = p.room AND o.\"user\" <> p.\"user\"
            AND coalesce(o.visits_until, $1) >= $1),
    (SELECT \"user\" FROM webchat_people o WHERE o.room = p.room AND o.visits_until IS NULL
     ORDER BY created_at LIMIT 1)";
/// How many columns that is.
pub(in super::super) const RECOGNISED_WIDTH: usize = 5;

/// Reads it.
pub(in super::super) fn recognised(row: Row<'_>) -> Sql<Recognised> {
    Ok(Recognised {
        person: Person { room: row.get(0)?, user: row.get(1)? },
        visits_until: row.get::<Option<i64>>(2)?.map(UnixMillis),
        others: row.get(3)?,
        first_invited: row.get(4)?,
    })
}

/// Whose a key is.
pub(in super::super) fn recognise(
    db: &mut dyn Db,
    key_fingerprint: [u8; 32],
    now: UnixMillis,
) -> Sql<Option<Guest>> {
    let whose = format!("SELECT {RECOGNISED} FROM webchat_people p WHERE p.key_fingerprint = $2");
    let found = db.first(&whose, values![now, key_fingerprint], recognised)?;
    Ok(found.and_then(|found| found.guest(now)))
}

/// Whether somebody has a key of a room that is good, as a statement says it.
pub(in super::super) fn has_key(room: &str, user: &str, now: &str) -> String {
    format!(
        "EXISTS (SELECT 1 FROM webchat_people p
                 WHERE p.room = {room} AND p.\"user\" = {user} AND coalesce(p.visits_until, {now}) >= {now})"
    )
}

/// Whether somebody has a key of a room.
pub(super) fn is_in_room(txn: &mut dyn Txn, room: &str, user: &str) -> Sql<bool> {
    let now = txn.now();
    txn.says(&format!("SELECT {}", has_key("$1", "$2", "$3")), values![room, user, now])
}
