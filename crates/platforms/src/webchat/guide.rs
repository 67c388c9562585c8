//! What the page shows to whoever wants to go on in a terminal of their own.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Lines to paste, by room. They may hold a gateway's secret, and everybody in
/// the room can read them: they are for rooms of one person on their own machine.
#[derive(Default)]
pub struct Guides {
    lines: Mutex<HashMap<String, Vec<String>>>,
    explain: OnceLock<String>,
}

impl Guides {
    /// Shows these lines in a room.
    pub fn show(&self, room: &str, lines: Vec<String>) {
        self.lines.lock().insert(room.to_owned(), lines);
    }

    /// Shows, in every room, this command before the id of a message it tells of.
    /// The first one counts.
    pub fn explain_by(&self, command: String) {
        let _ = self.explain.set(command);
    }

    /// The lines of a room.
    pub(super) fn of(&self, room: &str) -> Option<Vec<String>> {
        self.lines.lock().get(room).cloned()
    }

    /// The command that tells of a message.
    pub(super) fn explain(&self) -> Option<&str> {
        self.explain.get().map(String::as_str)
    }
}
