//! Rooms: private or shared, and who can be invited to them.

use super::NAME;
use angelia_core::admission::Place;
use angelia_core::error::{Error, Result};
use angelia_core::identity::check_name;
use angelia_core::media::{FileId, Holder};
use angelia_core::store::CONNECTOR;

/// Chat ids carry it, so that they are never mistaken for another platform's.
const CHAT: &str = "web-";

/// What the names of private rooms begin with, as their places do.
const PRIVATE: &str = "dm:";

/// What the names of those begin with who let themselves in: nobody takes them for
/// somebody who was invited.
pub(super) const VISITOR: &str = "guest-";

/// Longest id of a line.
const MAX_LINE_ID: usize = 64;

/// The name under which agents write.
pub(super) const AGENT: &str = "agent";

/// The room of one person and the agent.
pub fn private_room(user: &str) -> String {
    format!("{PRIVATE}{user}")
}

/// The one person of a private room; `None` for a room that people share.
pub fn person_of(room: &str) -> Option<&str> {
    room.strip_prefix(PRIVATE).filter(|user| !user.is_empty())
}

/// The chat id of a room.
pub fn chat_id(room: &str) -> String {
    format!("{CHAT}{room}")
}

/// The room behind a chat id.
pub fn room_of(chat_id: &str) -> Option<&str> {
    chat_id.strip_prefix(CHAT).filter(|room| !room.is_empty())
}

/// Where the log says that a file of a room is.
pub(super) fn place_of_file(room: &str, file: &FileId) -> String {
    format!("{file} {room}")
}

/// Which file of which room that is.
pub(super) fn file_at(at: &str) -> Option<(Holder, FileId)> {
    let (file, room) = at.split_once(' ')?;
    Some((Holder::Room(room.to_owned()), FileId::parse(file)?))
}

/// What tells the conversations of a room apart: itself, and its threads.
pub(super) fn conversation(room: &str, thread: Option<&str>) -> String {
    match thread {
        Some(thread) => format!("{CHAT}{room}/{thread}"),
        None => chat_id(room),
    }
}

/// Whether a thread may be called so: threads have the ids of lines.
pub(super) fn is_line_id(id: &str) -> bool {
    let begins = ["wa", "wp", "wc"].iter().any(|whose| id.starts_with(whose));
    begins && id.len() <= MAX_LINE_ID && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.')
}

/// The place of a room.
pub fn place(room: &str) -> Result<Place> {
    format!("{NAME}:{room}").parse()
}

/// Checks that `user` can be invited to `room`.
pub fn check_invitation(room: &str, user: &str) -> Result<()> {
    if user.starts_with(VISITOR) {
        return Err(Error::invalid(format!(
            "names that begin with {VISITOR:?} are those of visitors of open rooms; choose another"
        )));
    }
    check_person(room, user)
}

/// Checks that somebody can be called `user` in `room`.
pub(super) fn check_person(room: &str, user: &str) -> Result<()> {
    check_name("room", room)?;
    check_name("user", user)?;
    if [AGENT, CONNECTOR].iter().any(|taken| taken.eq_ignore_ascii_case(user)) {
        return Err(Error::invalid(format!("{user:?} is not a person's name here; choose another")));
    }
    match room.strip_prefix(PRIVATE) {
        Some(owner) if owner != user => Err(Error::invalid(format!(
            "{room:?} is private: only {owner:?} can be invited to it. \
             Leave the room out for {user:?}'s own, or name one they share"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_room_is_for_its_person() {
        assert_eq!(person_of(&private_room("ann")), Some("ann"));
        assert_eq!(person_of("lab"), None);
        assert_eq!(crate::PLACES.private_person(&place(&private_room("ann")).unwrap()), Some("ann"));
        for (room, user, may) in [
            ("lab", "ann", true),
            ("dm:ann", "ann", true),
            ("dm:ann", "bob", false),
            ("dm:", "ann", false),
            ("lab", "Agent", false),
            ("lab", "angelia", false),
            ("lab", "guest-ann", false),
            ("a b", "ann", false),
        ] {
            assert_eq!(check_invitation(room, user).is_ok(), may, "{user} to {room}");
        }
    }
}
