//! Threads of rooms. What may open one, and what it is called, is [`rooms`]' to say.

use super::super::db::{Sql, values};
use super::super::ledger;
use super::super::txn::Txn;
use super::{insert, is_owed, line, room_size};
use angelia_core::error::Result;
use angelia_core::rooms;
use angelia_core::store::{ActionId, Line, NewThread, ThreadName};

/// Opens a thread by a line that is there, or by one of its own.
pub(super) fn open(txn: &mut dyn Txn, thread: &NewThread, action: ActionId) -> Sql<Result<Option<String>>> {
    txn.lock_action(action)?;
    if let Err(gone) = rooms::can_say(is_owed(txn, action)?) {
        return Ok(Err(gone));
    }
    let new = &thread.line;
    txn.lock_room(&new.room)?;
    let id = match &thread.on {
        None => {
            insert(txn, new)?;
            Some(new.message_id.clone())
        }
        Some(on) => match line(txn, &new.room, on)?.filter(rooms::may_open) {
            Some(line) => {
                if line.thread_name.is_none() {
                    name(txn, line, new.thread_name.clone().unwrap_or_default())?;
                }
                Some(on.clone())
            }
            None => None,
        },
    };
    ledger::finish(txn, action, &rooms::threaded(id.as_deref()))?;
    Ok(Ok(id))
}

/// Gives a thread another name, if it is to have one.
pub(super) fn rename(txn: &mut dyn Txn, wanted: &ThreadName, action: ActionId) -> Sql<bool> {
    txn.lock_action(action)?;
    txn.lock_room(&wanted.room)?;
    let opens = line(txn, &wanted.room, &wanted.thread)?;
    let Some(line) = opens.filter(|line| rooms::may_rename(line, wanted.only_if.as_deref())) else {
        ledger::finish(txn, action, &rooms::not_renamed())?;
        return Ok(false);
    };
    if line.thread_name.as_deref() != Some(wanted.name.as_str()) {
        name(txn, line, wanted.name.clone())?;
    }
    ledger::finish(txn, action, &rooms::threaded(Some(&wanted.thread)))?;
    Ok(true)
}

/// Has a line open a thread of this name, under the next number of its room.
fn name(txn: &mut dyn Txn, line: Line, name: String) -> Sql<()> {
    let (room, bytes) = (line.room.clone(), name.len());
    let line = line.with_thread(txn.next_line_number(&room)?, name);
    txn.execute(
        "UPDATE webchat_lines SET seq = $1, text = $2, thread_name = $3 WHERE message_id = $4",
        values![line.id, line.text, line.thread_name, line.message_id],
    )?;
    room_size::bound(txn, &room, 0, bytes)?;
    txn.line(line);
    Ok(())
}
