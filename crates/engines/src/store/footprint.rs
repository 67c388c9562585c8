//! What rows take on the disk: their text and bodies, and what a database makes of
//! them, by the example of SQLite. A row is not cut before it is long: two that almost fill a page take two,
//! an index keeps its keys once more and a quarter of its pages empty, and a body
//! that does not fit takes whole pages. Whoever counts bytes alone is wrong by a
//! factor of five, for small rows with long ids as for many middling messages.

use super::db::{Row, Sql};
use angelia_core::store::{NewAction, NewEntry};

/// A page, and what of it is left for rows.
const PAGE: u64 = 4096;
const ROOM: u64 = PAGE - 8;
/// What an overflow page holds.
const OVERFLOW: u64 = PAGE - 4;
/// The longest row that a page of a table, and of an index, holds whole.
const WHOLE: u64 = 4061;
const WHOLE_IN_INDEX: u64 = 1002;
/// What stays in the page of a row that is not whole, at least.
const STUB: u64 = 489;
/// What each row has besides: its head, and its place in the page.
const CELL: u64 = 8;

/// A row of the ledger besides its text: numbers, times, the state.
const ACTION: u64 = 55;
/// The same of the journal, the outcome included.
const JOURNAL: u64 = 60;
/// The same of what waits, with the word of its route.
const ENTRY: u64 = 45;
/// A number in an index.
const KEY: u64 = 7;

/// The lengths of which [`action`] makes a footprint, as columns.
pub(crate) const ACTION_LENGTHS: &str = "octet_length(tenant), coalesce(octet_length(reply_to), 0),
    coalesce(octet_length(message_id), 0),
    octet_length(platform) + octet_length(bot) + octet_length(chat_id) + octet_length(op)
        + coalesce(octet_length(gateway_id), 0) + coalesce(octet_length(thread_id), 0)
        + coalesce(octet_length(edits), 0) + coalesce(octet_length(error), 0) + coalesce(octet_length(body), 0)";
/// The same for [`Remains`]: what of an action is there before its end, and after it.
pub(crate) const REMAINS_LENGTHS: &str = "octet_length(tenant), coalesce(octet_length(reply_to), 0),
    octet_length(platform) + octet_length(bot) + octet_length(chat_id) + octet_length(op)
        + coalesce(octet_length(gateway_id), 0) + coalesce(octet_length(thread_id), 0)
        + coalesce(octet_length(edits), 0)";
/// The same for [`journal`].
pub(crate) const JOURNAL_LENGTHS: &str = "octet_length(tenant),
    octet_length(message_id) + octet_length(chat_id) + octet_length(platform) + octet_length(bot)";
/// The same for [`entry`].
pub(crate) const ENTRY_LENGTHS: &str = "octet_length(chat_id),
    octet_length(platform) + octet_length(bot) + octet_length(message_id) + octet_length(session_key),
    octet_length(body)";

/// What an action takes, read from the columns after `first`.
pub(crate) fn action(row: &Row<'_>, first: usize) -> Sql<u64> {
    let length = |column| row.get::<u64>(first + column);
    Ok(action_of(length(0)?, length(1)?, length(2)?, length(3)?))
}

/// What an action is going to take.
pub(crate) fn new_action(new: &NewAction) -> u64 {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let rest = [&new.platform, &new.bot, &new.chat_id, &new.op].map(|text| text.len()).iter().sum::<usize>()
        + [&new.gateway_id, &new.thread_id, &new.edits].map(optional).iter().sum::<usize>()
        + new.body.len();
    action_of(new.tenant.len() as u64, optional(&new.reply_to) as u64, 0, rest as u64)
}

/// Lengths of what remains of an action when its text is gone.
pub(crate) struct Remains {
    tenant: u64,
    reply_to: u64,
    rest: u64,
}

impl Remains {
    /// Reads them from the columns after `first`.
    pub(crate) fn read(row: &Row<'_>, first: usize) -> Sql<Self> {
        Ok(Self { tenant: row.get(first)?, reply_to: row.get(first + 1)?, rest: row.get(first + 2)? })
    }

    /// What the action takes once it has an id at its provider, or an error, of such lengths.
    pub(crate) fn of_action(&self, message_id: usize, error: usize) -> u64 {
        action_of(self.tenant, self.reply_to, message_id as u64, self.rest + error as u64)
    }
}

/// What a row of the journal takes.
pub(crate) fn journal(row: &Row<'_>, first: usize) -> Sql<u64> {
    Ok(journal_of(row.get(first)?, row.get(first + 1)?))
}

/// What an entry that waits takes.
pub(crate) fn entry(row: &Row<'_>, first: usize) -> Sql<u64> {
    Ok(entry_of(row.get(first)?, row.get(first + 1)?, row.get(first + 2)?))
}

/// What an entry is going to take in its inbox, and in the journal.
pub(crate) fn new_entry(new: &NewEntry) -> (u64, u64) {
    let bot = (new.platform.len() + new.bot.len()) as u64;
    let (chat, message) = (new.chat_id.len() as u64, new.message_id.len() as u64);
    let waiting = entry_of(chat, bot + message + new.session_key.len() as u64, new.body.len() as u64);
    (waiting, journal_of(new.tenant.len() as u64, bot + chat + message))
}

/// What an entry takes more if its body is longer.
pub(crate) fn longer_body(was: usize, is: usize) -> u64 {
    (is.saturating_sub(was) as u64).div_ceil(OVERFLOW) * PAGE
}

fn action_of(tenant: u64, reply_to: u64, message_id: u64, rest: u64) -> u64 {
    let found_by = |text: u64| if text > 0 { in_index(text + KEY) } else { 0 };
    in_table(tenant + reply_to + message_id + rest + ACTION)
        + in_index(tenant + KEY)
        + found_by(reply_to)
        + found_by(message_id)
}

fn journal_of(tenant: u64, key: u64) -> u64 {
    // The key has the kind in it, too.
    in_table(tenant + key + JOURNAL) + in_index(key + 2 * KEY)
}

fn entry_of(chat: u64, rest: u64, body: u64) -> u64 {
    // The table is in the order of its key, and so laid out as an index is.
    in_index(chat + rest + body + ENTRY) + in_index(chat + KEY)
}

/// What a row takes in a table.
fn in_table(bytes: u64) -> u64 {
    let cell = bytes + CELL;
    if cell > WHOLE {
        return overflowing(cell, WHOLE);
    }
    PAGE / (ROOM / cell)
}

/// What a row takes in an index, of which a quarter is empty.
fn in_index(bytes: u64) -> u64 {
    let cell = bytes + CELL;
    if cell > WHOLE_IN_INDEX {
        return overflowing(cell, WHOLE_IN_INDEX);
    }
    cell * 4 / 3
}

/// What a row takes that does not fit its page: pages of its own, and what stays.
fn overflowing(cell: u64, whole: u64) -> u64 {
    let left = STUB + (cell - STUB) % OVERFLOW;
    let stays = if left <= whole { left } else { STUB };
    stays + (cell - stays).div_ceil(OVERFLOW) * PAGE
}
