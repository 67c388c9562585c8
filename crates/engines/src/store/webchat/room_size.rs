//! What rooms hold. How much that may be is [`rooms`]' to say.

use super::super::db::{Ask, Sql, values};
use super::super::txn::Txn;
use angelia_core::rooms;

/// Notes a new line, or a changed one, and cuts the room to its size.
pub(super) fn bound(txn: &mut dyn Txn, room: &str, lines: u64, bytes: usize) -> Sql<()> {
    if !txn.room_grows(room, lines, bytes)?.is_too_much() {
        return Ok(());
    }
    let newest_first: Vec<(i64, u64)> = txn.all(
        "SELECT seq, CAST(octet_length(text) + coalesce(octet_length(buttons), 0) + octet_length(marks) - 2
             + octet_length(files) - 2 + coalesce(octet_length(thread_name), 0) AS BIGINT)
         FROM webchat_lines WHERE room = $1 ORDER BY seq DESC",
        values![room],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let (left, goes_to) = rooms::cut(newest_first);
    if let Some(goes_to) = goes_to {
        txn.execute("DELETE FROM webchat_lines WHERE room = $1 AND seq <= $2", values![room, goes_to])?;
    }
    txn.set_room_size(room, left)
}
