//! How much a room keeps: its newest lines, by number and by bytes. The oldest
//! go in the commit that brings one too many.

use super::super::txn::Txn;
use rusqlite::{Connection, params};
use std::collections::HashMap;

angelia_contract::limits! {
    /// A chat page shows fewer. The oldest lines go.
    pub(in super::super) const KEPT_PER_ROOM: u64 = 2_000, count "lines kept of a room of the web chat";
    /// Thousands of ordinary lines. The oldest go.
    const ROOM_BYTES: u64 = 8 * 1024 * 1024, bytes "of text kept of a room of the web chat";
}

/// Lines that may be too many before they are looked for: looking costs a walk through the room.
const SLACK: u64 = 100;
/// What is left of a room that was too large, so that the next line is not too much again.
const LEFT: u64 = ROOM_BYTES / 8 * 7;

/// What rooms hold, never less than they really do.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct RoomSizes(HashMap<String, Size>);

#[derive(Clone, Copy, Debug, Default)]
struct Size {
    lines: u64,
    bytes: u64,
}

impl RoomSizes {
    /// Looks at every room.
    pub(in super::super) fn read(db: &Connection) -> rusqlite::Result<Self> {
        let rooms = db
            .prepare("SELECT room, count(*), coalesce(sum(length(CAST(text AS BLOB))), 0) FROM webchat_lines GROUP BY room")?
            .query_map([], |row| Ok((row.get(0)?, Size { lines: row.get(1)?, bytes: row.get(2)? })))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self(rooms))
    }

    fn grew(&mut self, room: &str, lines: u64, bytes: usize) -> Size {
        let size = self.0.entry(room.to_owned()).or_default();
        size.lines += lines;
        size.bytes += bytes as u64;
        *size
    }
}

/// Notes a new line, or a changed one, and cuts the room to its size. What a
/// line held before a change is not taken off: the next walk finds out.
pub(super) fn bound(txn: &mut Txn<'_>, room: &str, lines: u64, bytes: usize) -> rusqlite::Result<()> {
    let size = txn.rooms().grew(room, lines, bytes);
    if size.lines <= KEPT_PER_ROOM + SLACK && size.bytes <= ROOM_BYTES {
        return Ok(());
    }
    txn.prepare_cached(
        "DELETE FROM webchat_lines WHERE room = ?1 AND seq <= (
             SELECT max(seq) FROM (
                 SELECT seq, row_number() OVER newest AS n, sum(length(CAST(text AS BLOB))) OVER newest AS bytes
                 FROM webchat_lines WHERE room = ?1 WINDOW newest AS (ORDER BY seq DESC))
             WHERE n > ?2 OR (bytes > ?3 AND n > 1))",
    )?
    .execute(params![room, KEPT_PER_ROOM, LEFT])?;
    let left = txn
        .prepare_cached(
            "SELECT count(*), coalesce(sum(length(CAST(text AS BLOB))), 0) FROM webchat_lines WHERE room = ?",
        )?
        .query_row([room], |row| Ok(Size { lines: row.get(0)?, bytes: row.get(1)? }))?;
    match left.lines {
        0 => drop(txn.rooms().0.remove(room)),
        _ => drop(txn.rooms().0.insert(room.to_owned(), left)),
    }
    Ok(())
}
