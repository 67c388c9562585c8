//! What rooms hold, counted by the one thread that writes. How much that may be is
//! [`rooms`]' to say.

use super::super::writer::Txn;
use angelia_core::rooms::{self, RoomSize};
use rusqlite::{Connection, params};
use std::collections::HashMap;

/// What rooms hold, never less than they really do.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct RoomSizes(HashMap<String, RoomSize>);

impl RoomSizes {
    /// Looks at every room.
    pub(in super::super) fn read(db: &Connection) -> rusqlite::Result<Self> {
        let rooms = db
            .prepare("SELECT room, count(*), coalesce(sum(length(CAST(text AS BLOB))), 0) FROM webchat_lines GROUP BY room")?
            .query_map([], |row| Ok((row.get(0)?, RoomSize { lines: row.get(1)?, bytes: row.get(2)? })))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self(rooms))
    }

    fn grew(&mut self, room: &str, lines: u64, bytes: usize) -> RoomSize {
        let size = self.0.entry(room.to_owned()).or_default();
        size.grow(lines, bytes);
        *size
    }
}

/// Notes a new line, or a changed one, and cuts the room to its size.
pub(super) fn bound(txn: &mut Txn<'_>, room: &str, lines: u64, bytes: usize) -> rusqlite::Result<()> {
    if !txn.counted.rooms.grew(room, lines, bytes).is_too_much() {
        return Ok(());
    }
    let newest_first: Vec<(i64, u64)> = txn
        .prepare_cached(
            "SELECT seq, length(CAST(text AS BLOB)) FROM webchat_lines WHERE room = ? ORDER BY seq DESC",
        )?
        .query_map([room], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let (left, goes_to) = rooms::cut(newest_first);
    if let Some(goes_to) = goes_to {
        txn.prepare_cached("DELETE FROM webchat_lines WHERE room = ? AND seq <= ?")?
            .execute(params![room, goes_to])?;
    }
    match left.lines {
        0 => drop(txn.counted.rooms.0.remove(room)),
        _ => drop(txn.counted.rooms.0.insert(room.to_owned(), left)),
    }
    Ok(())
}
