//! How long things are kept, and when an entry is given up.

use std::time::Duration;

/// How long a seen key, and with it the journal, is kept: the longest any
/// provider repeats itself, with room to spare.
pub const SEEN_FOR: Duration = Duration::from_secs(72 * 3600);
/// Conversations are kept as long as somebody may want to interrupt one.
pub const CONVERSATIONS_FOR: Duration = Duration::from_secs(30 * 24 * 3600);
/// Where a conversation was last is written anew at most this often; it only has to be
/// roughly recent.
pub const CONVERSATION_REFRESH: Duration = Duration::from_secs(3600);
/// Turns that nobody ended are forgotten: no gateway comes back to one so late.
pub const TURNS_FOR: Duration = Duration::from_secs(24 * 3600);
/// Gaps are shown for as long as somebody may wonder about them.
pub const GAPS_FOR: Duration = Duration::from_secs(30 * 24 * 3600);
/// Sockets in a row that may end on an entry without any acknowledgement
/// before it is taken out of the way of those behind it.
const STRIKES_UNTIL_DEAD: u32 = 3;

/// Whether an entry with that many strikes is a dead letter.
pub fn is_dead(strikes: u32) -> bool {
    strikes >= STRIKES_UNTIL_DEAD
}
