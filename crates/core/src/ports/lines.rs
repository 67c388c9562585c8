//! The web chat's own memory: people and lines. It is a platform, so its
//! history belongs to it and outlives the inbox entry of a line.

use super::log::{NewEntry, Revised, Revision};
use super::{ActionId, BoxFuture};
use crate::admission::DropReason;
use crate::clock::UnixMillis;
use crate::error::Result;
use crate::media::{FileId, MediaKind};
use crate::prompts::{Choice, Press};
use crate::store::{Page, PageSize};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// The name under which the connector itself writes. Agents do not change its lines.
pub const CONNECTOR: &str = "angelia";

/// Somebody invited to a room.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Person {
    /// The room they were invited to.
    pub room: String,
    /// Their name there.
    pub user: String,
}

/// Somebody whose key was recognised, and how they stand in their room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Who it is.
    pub person: Person,
    /// Whether nobody else has a key of the room.
    pub alone: bool,
    /// Whether they were the first who was invited there.
    pub first: bool,
    /// Whether nobody invited them: they let themselves into an open room, for a while.
    pub visiting: bool,
}

/// Somebody who has a key of a room.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Invited {
    /// The room.
    pub room: String,
    /// Their name there.
    pub user: String,
    /// How many keys they have: each invitation makes one.
    pub keys: u64,
    /// When they were first let in.
    pub since: UnixMillis,
    /// Until when they may stay, if they let themselves in.
    pub until: Option<UnixMillis>,
}

/// A file that came with a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomFile {
    /// By what readers of the room ask for it; `None` of one that was only named, in lines of
    /// earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<FileId>,
    /// What it is called.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its media type.
    #[serde(rename = "type", default)]
    pub mime: String,
    /// As what a page shows it; a document is never shown in place.
    #[serde(default = "document")]
    pub kind: MediaKind,
    /// What it shows, in its sender's words, for who does not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alt: Option<String>,
}

fn document() -> MediaKind {
    MediaKind::Document
}

/// A line to be written.
#[derive(Clone, Debug, Default)]
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
    /// Files that come with it.
    pub files: Vec<RoomFile>,
    /// Why no agent gets it.
    pub undelivered: Option<DropReason>,
    /// The buttons below it.
    pub buttons: Option<Box<Buttons>>,
    /// The thread it is said in: the id of the line that opened it.
    pub thread: Option<String>,
    /// What the thread is called that it opens.
    pub thread_name: Option<String>,
    /// When it was written.
    pub at: UnixMillis,
}

/// The buttons of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buttons {
    /// The question. Nobody is shown it: it counts what all agents do.
    pub prompt: ActionId,
    /// What stands on them.
    pub choices: Vec<Choice>,
}

#[allow(clippy::ref_option, reason = "it is what serde hands over")]
fn choices<S: Serializer>(buttons: &Option<Box<Buttons>>, to: S) -> std::result::Result<S::Ok, S::Error> {
    buttons.as_ref().map(|buttons| &buttons.choices).serialize(to)
}

/// A line as it stands. One without text and files is gone: it is told of once more
/// to whoever saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Line {
    /// Grows by one with every line and every change of one in the room; where a reader continues.
    pub id: i64,
    /// Where it stands among the others; an edit keeps it.
    pub place: i64,
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
    /// The id its writer gave it, by which they know it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Files that came with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RoomFile>,
    /// Why no agent got it.
    #[serde(skip)]
    pub undelivered: Option<DropReason>,
    /// The buttons below it, while nobody has pressed one.
    #[serde(serialize_with = "choices", skip_serializing_if = "Option::is_none")]
    pub buttons: Option<Box<Buttons>>,
    /// What agents marked it with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
    /// The thread it was said in: the id of the line that opened it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// What the thread is called that it opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_name: Option<String>,
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

/// An agent's mark on a line, its own or a person's.
#[derive(Clone, Debug)]
pub struct LineMark {
    /// The room.
    pub room: String,
    /// Which line.
    pub message_id: String,
    /// The mark.
    pub emoji: String,
    /// Whether it is taken away.
    pub remove: bool,
}

/// A thread to be opened.
#[derive(Clone, Debug)]
pub struct NewThread {
    /// The line that opens it, if none is there for it, under the name of the thread.
    pub line: NewLine,
    /// The line that is there and opens it.
    pub on: Option<String>,
}

/// Another name for a thread.
#[derive(Clone, Debug)]
pub struct ThreadName {
    /// The room.
    pub room: String,
    /// The thread.
    pub thread: String,
    /// What it is called now.
    pub name: String,
    /// Only if it is called so until then.
    pub only_if: Option<String>,
}

/// A person's change of their own line.
#[derive(Clone, Debug)]
pub struct LineRevision {
    /// The room.
    pub room: String,
    /// Which line.
    pub message_id: String,
    /// Who changes it; must have written it.
    pub author: String,
    /// What it says now.
    pub text: String,
    /// What it says to the agent, if it is admitted to one as it is now.
    pub entry: Option<Revision>,
}

/// A person's answer to a question.
#[derive(Clone, Debug)]
pub struct LineAnswer {
    /// The room.
    pub room: String,
    /// The line that asks.
    pub message_id: String,
    /// Who answers.
    pub author: String,
    /// What the line shows below the question from now on.
    pub shown: String,
    /// What is noted of the question.
    pub press: Press,
    /// What carries the answer to whoever asked.
    pub entry: NewEntry,
}

/// What became of a post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The line's id; that of the first post if it was a repetition.
    pub message_id: String,
    /// Whether it was new.
    pub new: bool,
    /// Whether the instance it was for is gone: there is a line, and no entry.
    pub no_instance: bool,
    /// Whether it came into an inbox; of a repetition, whether the first post did.
    /// One that is older than the journal is taken for delivered.
    pub entered: bool,
}

/// A post that was made before under the same id of its writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// The line's id.
    pub message_id: String,
    /// What the connector itself answered to it.
    pub answer: Option<String>,
}

/// Rooms, people, lines.
pub trait Lines: Send + Sync {
    /// Writes a person's line and, in the same commit, the inbox entry it makes.
    /// Unauthorized if nobody of that name is in the room any more. Unavailable, and
    /// nothing is written, if the inbox is full and the entry is to be refused then.
    fn post_line(&self, line: NewLine, entry: Option<NewEntry>) -> BoxFuture<'_, Result<Posted>>;

    /// Writes a person's line and the connector's own answer to it. Unauthorized
    /// if nobody of that name is in the room any more.
    fn post_answered(&self, line: NewLine, answer: NewLine) -> BoxFuture<'_, Result<Posted>>;

    /// What a person posted before under an id of their own.
    fn earlier(&self, person: &Person, client_id: &str) -> BoxFuture<'_, Result<Option<Earlier>>>;

    /// Changes a person's line and, in the same commit, what still waits of it.
    /// Not found without such a line, forbidden if somebody else wrote it, unavailable
    /// if what waits would outgrow a full inbox.
    fn revise_line(&self, revision: LineRevision) -> BoxFuture<'_, Result<Revised>>;

    /// Answers a question: its line shows the answer and no buttons any more, and in the same
    /// commit whoever asked gets it. `false`, and nothing is written, if it is not open any more; the
    /// same answer of the same person once more changes nothing and is `true`.
    /// Unauthorized if nobody of that name is in the room any more, unavailable if the inbox is
    /// full, not found if nobody serves whoever asked.
    fn answer_line(&self, answer: LineAnswer) -> BoxFuture<'_, Result<bool>>;

    /// A line of a room.
    fn line(&self, room: &str, message_id: &str) -> BoxFuture<'_, Result<Option<Line>>>;

    /// Writes an agent's lines and, in the same commit, finishes the action they
    /// came from. Lines that are there already are not written twice. Not found
    /// if the action or its instance is gone.
    fn say_lines(&self, lines: Vec<NewLine>, action: ActionId) -> BoxFuture<'_, Result<()>>;

    /// Changes an agent's line and finishes the action; `false` if there is no such line.
    fn edit_line(&self, edit: LineEdit, action: ActionId) -> BoxFuture<'_, Result<bool>>;

    /// Puts an agent's mark on a line, or takes it away; `false` if there is no such line, or
    /// nothing changes.
    fn mark_line(&self, mark: LineMark) -> BoxFuture<'_, Result<bool>>;

    /// Opens a thread and finishes the action; answers its id. On a line that has opened one before it
    /// is that one. `None` if there is no line that could open it.
    fn open_thread(&self, thread: NewThread, action: ActionId) -> BoxFuture<'_, Result<Option<String>>>;

    /// Gives a thread another name and finishes the action; `false` if there is no such thread, or
    /// it is called otherwise.
    fn name_thread(&self, name: ThreadName, action: ActionId) -> BoxFuture<'_, Result<bool>>;

    /// Lines and edits after `after`, oldest first.
    fn lines(&self, room: &str, after: i64, size: PageSize) -> BoxFuture<'_, Result<Page<Line>>>;

    /// How far rooms are, in their order: the number of the newest line or edit, zero where there
    /// is none. What finds a line that nobody told of.
    fn reached(&self, rooms: Vec<String>) -> BoxFuture<'_, Result<Vec<i64>>>;

    /// Every room with people or lines in it.
    fn rooms(&self) -> BoxFuture<'_, Result<Vec<String>>>;

    /// Who holds the key with this fingerprint. Asked for every request, so it
    /// tells at once what else a request needs to know of them.
    fn person(&self, key_fingerprint: [u8; 32]) -> BoxFuture<'_, Result<Option<Guest>>>;
}
