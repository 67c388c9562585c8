//! The web chat's own memory: people and lines. It is a platform, so its
//! history belongs to it and outlives the inbox entry of a line.

use super::{ActionId, Later, NewEntry};
use crate::clock::UnixMillis;

/// Somebody invited to a room.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Person {
    /// The room they were invited to.
    pub room: String,
    /// Their name there.
    pub user: String,
}

/// A line to be written.
#[derive(Clone, Debug)]
pub struct NewLine {
    /// The room.
    pub room: String,
    /// The id the line gets.
    pub message_id: String,
    /// Who wrote it.
    pub author: String,
    /// Whether an agent wrote it.
    pub from_agent: bool,
    /// What they wrote.
    pub text: String,
    /// The line it answers.
    pub reply_to: Option<String>,
    /// The writer's own id: a repeated post is the same line.
    pub client_id: Option<String>,
    /// When it was written.
    pub at: UnixMillis,
}

/// A line as it stands.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Line {
    /// Grows with every line and every edit; where a reader continues.
    pub id: i64,
    /// The room.
    pub room: String,
    /// The line's own id; an edit keeps it.
    pub message_id: String,
    /// Who wrote it.
    pub author: String,
    /// Whether an agent wrote it.
    pub from_agent: bool,
    /// What it says now.
    pub text: String,
    /// The line it answers.
    pub reply_to: Option<String>,
    /// When it was written.
    pub at: UnixMillis,
    /// Whether it was edited.
    pub edited: bool,
}

/// A change of an agent's line.
#[derive(Clone, Debug)]
pub struct LineEdit {
    /// The room.
    pub room: String,
    /// Which line.
    pub message_id: String,
    /// What it says now, cut to size; further parts become lines of their own.
    pub parts: Vec<String>,
}

/// What became of a post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The line's id; that of the first post if it was a repetition.
    pub message_id: String,
    /// Whether it was new.
    pub new: bool,
}

/// Rooms, people, lines.
pub trait WebchatStore: Send + Sync {
    /// Writes a person's line and, in the same commit, the inbox entry it makes.
    fn post_line(&self, line: NewLine, entry: Option<NewEntry>) -> Later<'_, Posted>;

    /// Writes an agent's lines and, in the same commit, finishes the action they
    /// came from. Lines that are there already are not written twice.
    fn say_lines(&self, lines: Vec<NewLine>, action: ActionId) -> Later<'_, ()>;

    /// Changes an agent's line and finishes the action; `false` if there is no such line.
    fn edit_line(&self, edit: LineEdit, action: ActionId) -> Later<'_, bool>;

    /// Lines and edits after `after`, oldest first.
    fn lines(&self, room: &str, after: i64, limit: usize) -> Later<'_, Vec<Line>>;

    /// Lets in whoever holds the key with this fingerprint.
    fn invite(&self, person: Person, key_fingerprint: [u8; 32]) -> Later<'_, ()>;

    /// Who holds the key with this fingerprint.
    fn person(&self, key_fingerprint: [u8; 32]) -> Later<'_, Option<Person>>;
}
