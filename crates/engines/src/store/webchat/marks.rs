//! Marks on lines. Which there may be is [`rooms`]' to say.

use super::super::db::{Sql, values};
use super::super::txn::Txn;
use super::{line, room_size};
use angelia_core::rooms;
use angelia_core::store::{Line, LineMark};

/// Marks a line, under the next number of its room: whoever was away reads it with all else.
pub(super) fn mark(txn: &mut dyn Txn, wanted: &LineMark) -> Sql<bool> {
    let LineMark { room, message_id, emoji, remove } = wanted;
    txn.lock_room(room)?;
    let Some(line) = line(txn, room, message_id)?.filter(Line::is_there) else { return Ok(false) };
    let Some(marks) = rooms::marked(&line.marks, emoji, *remove) else { return Ok(false) };
    let line = line.with_marks(txn.next_line_number(room)?, marks);
    txn.execute(
        "UPDATE webchat_lines SET seq = $1, marks = $2 WHERE message_id = $3",
        values![line.id, kept(&line.marks), line.message_id],
    )?;
    room_size::bound(txn, room, 0, emoji.len())?;
    txn.line(line);
    Ok(true)
}

/// The marks of a line, as they are kept.
fn kept(marks: &[String]) -> String {
    serde_json::to_string(marks).unwrap_or_else(|_| "[]".into())
}
