//! Lines that people post, in however many rooms. What they say to an agent is appended with all
//! other events; here is when that may be, and the line itself.

use super::HotWrite;
use super::given::{Given, numbers, signed, some_text, text, texts};
use crate::store::webchat;
use crate::store::webchat::people::has_key;
use angelia_core::admission::DropReason;
use angelia_core::ports::NewLine;
use angelia_core::ports::log::NewEntry;
use angelia_core::rooms::RoomSize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// What a room may hold before it is looked through for lines that have to go: what takes it
/// further is left.
const MOST: RoomSize = RoomSize { lines: 2_100, bytes: 8 * 1024 * 1024 };

/// When the statement began: a clock that moves on would find a key without an end over, in the
/// millisecond between two looks at it.
const BEGUN: &str = "CAST(extract(epoch FROM statement_timestamp()) * 1000 AS BIGINT)";

/// Takes the rows of rooms, in one order whoever does it. A room without one is new: its first
/// line is left.
pub(super) const LOCK_ROOMS: &str =
    "SELECT 1 FROM webchat_rooms WHERE room = ANY($1) ORDER BY room FOR NO KEY UPDATE";

/// Whether a post is usual: its author has a key of a room that stays within its size, and did
/// not post it before.
pub(super) static IS_USUAL: LazyLock<String> = LazyLock::new(|| {
    let RoomSize { lines, bytes } = MOST;
    let in_room = has_key("g.room", "g.author", BEGUN);
    format!(
        "EXISTS (SELECT 1 FROM webchat_rooms r WHERE r.room = g.room
                 AND r.lines + g.room_lines <= {lines} AND r.bytes + g.room_bytes <= {bytes})
         AND {in_room}
         AND NOT EXISTS (SELECT 1 FROM webchat_lines l WHERE l.message_id = g.line)
         AND NOT EXISTS (SELECT 1 FROM webchat_lines l
                         WHERE l.room = g.room AND l.author = g.author AND l.client_id = g.client_id)"
    )
});

/// Writes lines in rooms that are locked, under their next numbers. What makes an entry is
/// written if that was appended just now, and left if it was not.
pub(super) static POST: LazyLock<String> = LazyLock::new(|| {
    let is_usual = &*IS_USUAL;
    format!(
        "WITH given AS (
             SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
             WITH ORDINALITY AS g (line, room, author, client_id, room_lines, room_bytes, from_agent, text, bytes,
                                   reply_to, at, files, undelivered, thread, kind, platform, bot, chat_id, message_id, ord)
         ), fresh AS (
             SELECT g.*, r.seq + row_number() OVER (PARTITION BY g.room ORDER BY g.ord) AS seq
             FROM given g JOIN webchat_rooms r ON r.room = g.room
             WHERE CASE WHEN g.message_id IS NULL THEN {is_usual} ELSE EXISTS (
                 SELECT 1 FROM journal j WHERE j.message_id = g.message_id AND j.chat_id = g.chat_id
                 AND j.platform = g.platform AND j.bot = g.bot AND j.kind = g.kind
                 AND j.xmin = CAST(pg_current_xact_id() AS xid)) END
         ), written AS (
             INSERT INTO webchat_lines (seq, place, room, message_id, author, from_agent, text, reply_to,
                                        client_id, at, files, undelivered, thread)
             SELECT seq, seq, room, line, author, from_agent, text, reply_to, client_id, at, files, undelivered,
                    thread
             FROM fresh ORDER BY ord
         ), grown AS (
             UPDATE webchat_rooms r SET seq = r.seq + f.lines, lines = r.lines + f.lines, bytes = r.bytes + f.bytes
             FROM (SELECT room, count(*) AS lines, sum(bytes) AS bytes FROM fresh GROUP BY room) f
             WHERE r.room = f.room
         )
         SELECT ord - 1, seq FROM fresh"
    )
});

/// What is known of the posts of a batch before they are put into columns.
#[derive(Default)]
pub(super) struct Posts<'a> {
    /// How much each room grows, if all of them are written.
    grows: BTreeMap<&'a str, RoomSize>,
    /// Those that repeat another one of the same batch, by their place: they are left.
    repeats: BTreeSet<usize>,
}

impl<'a> Posts<'a> {
    pub(super) fn of(batch: &'a [HotWrite]) -> Self {
        let (mut posts, mut once, mut ids) = (Self::default(), BTreeSet::new(), BTreeSet::new());
        for (place, write) in batch.iter().enumerate() {
            let HotWrite::Post(line, ..) = write else { continue };
            let own = line.client_id.as_deref().map(|id| (text(&line.room), text(&line.author), text(id)));
            let again = own.is_some_and(|own| !once.insert(own));
            if again || !ids.insert(text(&line.message_id)) {
                posts.repeats.insert(place);
                continue;
            }
            posts.grows.entry(&line.room).or_default().grow(1, webchat::bytes(line));
        }
        posts
    }

    /// The rooms, in the order in which they are locked.
    pub(super) fn rooms(&self) -> Vec<Cow<'a, str>> {
        self.grows.keys().map(|room| text(room)).collect()
    }

    /// What has to be so for a post at this place; `None` if it is left.
    pub(super) fn post(&self, place: usize, line: &'a NewLine) -> Option<Post<'a>> {
        let grows = self.grows.get(line.room.as_str()).copied().unwrap_or_default();
        (!self.repeats.contains(&place)).then_some(Post { line, grows })
    }
}

/// A line, and how much its room grows with it and with the others of the batch.
#[derive(Clone, Copy)]
pub(super) struct Post<'a> {
    line: &'a NewLine,
    grows: RoomSize,
}

/// What is asked of posts, column by column; nothing where an event is none.
#[derive(Default)]
pub(super) struct Asked<'a> {
    lines: Vec<Option<Cow<'a, str>>>,
    rooms: Vec<Option<Cow<'a, str>>>,
    authors: Vec<Option<Cow<'a, str>>>,
    client_ids: Vec<Option<Cow<'a, str>>>,
    room_lines: Vec<Option<i64>>,
    room_bytes: Vec<Option<i64>>,
}

impl<'a> Asked<'a> {
    pub(super) fn push(&mut self, post: Option<Post<'a>>) {
        let line = post.map(|post| post.line);
        self.lines.push(line.map(|line| text(&line.message_id)));
        self.rooms.push(line.map(|line| text(&line.room)));
        self.authors.push(line.map(|line| text(&line.author)));
        self.client_ids.push(line.and_then(|line| some_text(line.client_id.as_deref())));
        self.room_lines.push(post.map(|post| signed(post.grows.lines)));
        self.room_bytes.push(post.map(|post| signed(post.grows.bytes)));
    }

    pub(super) fn given(&self) -> [Given<'_>; 6] {
        [
            texts(&self.lines),
            texts(&self.rooms),
            texts(&self.authors),
            texts(&self.client_ids),
            numbers(&self.room_lines),
            numbers(&self.room_bytes),
        ]
    }
}

/// Lines, column by column.
#[derive(Default)]
pub(super) struct Columns<'a> {
    asked: Asked<'a>,
    from_agent: Vec<i64>,
    texts: Vec<Cow<'a, str>>,
    bytes: Vec<i64>,
    replies: Vec<Option<Cow<'a, str>>>,
    at: Vec<i64>,
    files: Vec<String>,
    undelivered: Vec<Option<&'static str>>,
    threads: Vec<Option<Cow<'a, str>>>,
    /// What names the entries that they make.
    kinds: Vec<Option<&'static str>>,
    keys: [Vec<Option<Cow<'a, str>>>; 4],
}

impl<'a> Columns<'a> {
    pub(super) fn push(&mut self, post: Post<'a>, entry: Option<&'a NewEntry>) {
        let line = post.line;
        self.asked.push(Some(post));
        self.from_agent.push(line.from_agent.into());
        self.texts.push(text(&line.text));
        self.bytes.push(signed(webchat::bytes(line)));
        self.replies.push(some_text(line.reply_to.as_deref()));
        self.at.push(line.at.0);
        self.files.push(webchat::files(&line.files));
        self.undelivered.push(line.undelivered.map(DropReason::as_str));
        self.threads.push(some_text(line.thread.as_deref()));
        self.kinds.push(entry.map(|entry| entry.kind.as_str()));
        let key = [
            entry.map(|entry| text(&entry.platform)),
            entry.map(|entry| text(&entry.bot)),
            entry.map(|entry| text(&entry.chat_id)),
            entry.map(|entry| text(&entry.message_id)),
        ];
        self.keys.iter_mut().zip(key).for_each(|(column, value)| column.push(value));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    pub(super) fn given(&self) -> Vec<Given<'_>> {
        let mut given = Vec::from(self.asked.given());
        given.extend([
            numbers(&self.from_agent),
            texts(&self.texts),
            numbers(&self.bytes),
            texts(&self.replies),
            numbers(&self.at),
            texts(&self.files),
            texts(&self.undelivered),
            texts(&self.threads),
            texts(&self.kinds),
        ]);
        given.extend(self.keys.iter().map(texts));
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_looked_through_exactly_when_a_post_is_left() {
        let RoomSize { lines, bytes } = MOST;
        assert!(!MOST.is_too_much());
        assert!(RoomSize { lines: lines + 1, bytes }.is_too_much());
        assert!(RoomSize { lines, bytes: bytes + 1 }.is_too_much());
    }
}
