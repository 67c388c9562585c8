//! The web chat's people and lines. What may be written and changed there, and what
//! becomes of it, is [`rooms`]' to say; here are its rows.

mod line_ids;
mod people;
mod room_size;

pub(super) use line_ids::LineIds;
pub(super) use room_size::RoomSizes;

use super::queue::Owner;
use super::reader::page;
use super::writer::{Txn, now};
use super::{Sqlite, inbox, ledger};
use angelia_core::admission::DropReason;
use angelia_core::clock::UnixMillis;
use angelia_core::error::Result;
use angelia_core::inbox::SEEN_FOR;
use angelia_core::rooms::{self, Post, Posting};
use angelia_core::store::{
    ActionId, BoxFuture, CONNECTOR, Earlier, Guest, Line, LineEdit, LineRevision, Lines, NewEntry, NewLine,
    Page, PageSize, Person, Posted, Revised,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

const LINE_COLUMNS: &str = "seq, room, message_id, author, from_agent, text, reply_to, at, edited, place, client_id, files, undelivered";

impl Lines for Sqlite {
    fn post_line(&self, line: NewLine, entry: Option<NewEntry>) -> BoxFuture<'_, Result<Posted>> {
        angelia_core::fail::point("before_append");
        let owner = match &entry {
            Some(entry) => Owner::Tenant(entry.tenant.as_str().into()),
            None => Owner::Bot(format!("webchat/{}", line.room).into()),
        };
        let bytes = line.text.len() + entry.as_ref().map_or(0, |entry| entry.body.len());
        self.writer.try_write_for(owner, bytes, "post a line", move |txn| post(txn, line, entry))
    }

    fn post_answered(&self, line: NewLine, answer: NewLine) -> BoxFuture<'_, Result<Posted>> {
        let owner = Owner::Bot(format!("webchat/{}", line.room).into());
        let bytes = line.text.len() + answer.text.len();
        self.writer.try_write_for(owner, bytes, "post a line and its answer", move |txn| {
            let posted = post(txn, line, None)?;
            if posted.as_ref().is_ok_and(|posted| posted.new) {
                insert(txn, answer)?;
            }
            Ok(posted)
        })
    }

    fn earlier(&self, person: &Person, client_id: &str) -> BoxFuture<'_, Result<Option<Earlier>>> {
        let Person { room, user } = person.clone();
        let client_id = client_id.to_owned();
        self.readers.read("look for an earlier post", move |db| {
            db.prepare_cached(
                "SELECT message_id, (SELECT text FROM webchat_lines a WHERE a.room = l.room AND a.author = ?
                     AND a.from_agent = 1 AND a.reply_to = l.message_id ORDER BY a.id LIMIT 1)
                 FROM webchat_lines l WHERE room = ? AND author = ? AND client_id = ?",
            )?
            .query_row(params![CONNECTOR, room, user, client_id], |row| {
                Ok(Earlier { message_id: row.get(0)?, answer: row.get(1)? })
            })
            .optional()
        })
    }

    fn revise_line(&self, revision: LineRevision) -> BoxFuture<'_, Result<Revised>> {
        let owner = match &revision.entry {
            Some(entry) => self.owners.of_instance(entry.instance),
            None => Owner::Bot(format!("webchat/{}", revision.room).into()),
        };
        let bytes = revision.text.len() + revision.entry.as_ref().map_or(0, |entry| entry.body.len());
        self.writer.try_write_for(owner, bytes, "revise a line", move |txn| revise(txn, &revision))
    }

    fn line(&self, room: &str, message_id: &str) -> BoxFuture<'_, Result<Option<Line>>> {
        let (room, message_id) = (room.to_owned(), message_id.to_owned());
        self.readers.read("read a line", move |db| line(db, &room, &message_id))
    }

    fn say_lines(&self, lines: Vec<NewLine>, action: ActionId) -> BoxFuture<'_, Result<()>> {
        let room = lines.first().map(|line| line.room.as_str()).unwrap_or_default();
        let owner = Owner::Bot(format!("webchat/{room}").into());
        let bytes = lines.iter().map(|line| line.text.len()).sum();
        self.writer.try_write_for(owner, bytes, "say a line", move |txn| {
            if let Err(gone) = rooms::can_say(is_owed(txn, action)?) {
                return Ok(Err(gone));
            }
            let outcome = rooms::said(lines.first().map(|line| line.message_id.clone()));
            for line in lines {
                insert(txn, line)?;
            }
            ledger::finish(txn, action, &outcome).map(Ok)
        })
    }

    fn edit_line(&self, edit: LineEdit, action: ActionId) -> BoxFuture<'_, Result<bool>> {
        let owner = Owner::Bot(format!("webchat/{}", edit.room).into());
        let bytes = edit.parts.iter().map(String::len).sum();
        self.writer.write_for(owner, bytes, "edit a line", move |txn| {
            let text = edit.parts.first().map(String::as_str).unwrap_or_default();
            let first = change_agents(txn, &edit.room, &edit.message_id, text)?;
            if let Some(first) = &first {
                change_rest(txn, &edit, first)?;
            }
            ledger::finish(txn, action, &rooms::edited(first.as_ref()))?;
            Ok(first.is_some())
        })
    }

    fn lines(&self, room: &str, after: i64, size: PageSize) -> BoxFuture<'_, Result<Page<Line>>> {
        let room = room.to_owned();
        self.readers.read("read lines", move |db| {
            let mut lines = db.prepare_cached(&format!(
                "SELECT {LINE_COLUMNS} FROM webchat_lines
                 WHERE room = ?1 AND seq > ?2 AND (?3 OR text <> '' OR files <> '[]') ORDER BY seq"
            ))?;
            let gone = rooms::shows_what_is_gone(after);
            page(lines.query(params![room, after, gone])?, size, written_bytes, read)
        })
    }

    fn rooms(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        self.readers.read("read the rooms", |db| {
            db.prepare("SELECT room FROM webchat_people UNION SELECT room FROM webchat_lines")?
                .query_map([], |row| row.get(0))?
                .collect()
        })
    }

    fn person(&self, key_fingerprint: [u8; 32]) -> BoxFuture<'_, Result<Option<Guest>>> {
        self.readers.read("recognise a person", move |db| people::recognise(db, key_fingerprint))
    }
}

/// Writes a person's line and the entry it makes, unless [`Post::decide`] says otherwise.
fn post(txn: &mut Txn<'_>, mut line: NewLine, entry: Option<NewEntry>) -> rusqlite::Result<Result<Posted>> {
    let taken = match &entry {
        Some(entry) => Some(inbox::takes_messages(txn, entry.instance)?),
        None => None,
    };
    let in_room = people::is_in_room(txn, &line.room, &line.author)?;
    let earlier = earlier_post(txn, &line)?;
    let post = Post { in_room, earlier, taken };
    if let Some(entry) = entry.as_ref().filter(|_| post.needs_room())
        && let Err(full) = inbox::has_room(txn, entry)?
    {
        return Ok(Err(full));
    }
    let posting = match post.decide() {
        Ok(posting) => posting,
        Err(refused) => return Ok(Err(refused)),
    };
    if let Posting::Repeats(first, at) = posting {
        let entered = has_entered(txn, &first, at)?;
        return Ok(Ok(Posted::again(first, entered)));
    }
    let posted = Posted::anew(line.message_id.clone(), &posting);
    if let Posting::Stays(Some(reason)) = posting {
        line.undelivered = Some(reason);
    }
    insert(txn, line)?;
    if let Some(entry) = entry.filter(|_| posted.entered) {
        inbox::append(txn, entry)?;
    }
    Ok(Ok(posted))
}

/// Whether a line came into an inbox when it was posted.
fn has_entered(txn: &Txn<'_>, message_id: &str, posted_at: UnixMillis) -> rusqlite::Result<bool> {
    let in_journal = txn
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM journal WHERE message_id = ? AND platform = 'webchat')",
        )?
        .query_row([message_id], |row| row.get(0))?;
    Ok(rooms::has_entered(in_journal, posted_at, &txn.clock.older_than(SEEN_FOR)))
}

/// Whether an action is still somebody's: those of a removed tenant are not.
fn is_owed(txn: &Txn<'_>, action: ActionId) -> rusqlite::Result<bool> {
    txn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM actions a JOIN instances i ON i.instance = a.instance WHERE a.id = ?)",
    )?
    .query_row([action.0], |row| row.get(0))
}

/// Changes a person's own line, and what still waits of it.
fn revise(txn: &mut Txn<'_>, revision: &LineRevision) -> rusqlite::Result<Result<Revised>> {
    let LineRevision { room, message_id, author, text, entry } = revision;
    let line = line(txn, room, message_id)?;
    let in_room = people::is_in_room(txn, room, author)?;
    if let Err(refused) = rooms::may_revise(line.as_ref(), author, in_room) {
        return Ok(Err(refused));
    }
    if let Some(entry) = entry
        && let Err(full) = inbox::has_room_for_revision(txn, entry)?
    {
        return Ok(Err(full));
    }
    if let Some(line) = line {
        reword(txn, line, text)?;
        room_size::bound(txn, room, 0, text.len())?;
    }
    match entry {
        Some(entry) => inbox::revise(txn, entry).map(Ok),
        None => Ok(Ok(Revised::NotWaiting)),
    }
}

/// The first post with the same client id, and when it was, if this one repeats it.
fn earlier_post(txn: &Txn<'_>, line: &NewLine) -> rusqlite::Result<Option<(String, UnixMillis)>> {
    let Some(client_id) = &line.client_id else { return Ok(None) };
    txn.prepare_cached(
        "SELECT message_id, at FROM webchat_lines WHERE room = ? AND author = ? AND client_id = ?",
    )?
    .query_row([&line.room, &line.author, client_id], |row| Ok((row.get(0)?, UnixMillis(row.get(1)?))))
    .optional()
}

fn line(db: &Connection, room: &str, message_id: &str) -> rusqlite::Result<Option<Line>> {
    db.prepare_cached(&format!("SELECT {LINE_COLUMNS} FROM webchat_lines WHERE message_id = ? AND room = ?"))?
        .query_row([message_id, room], read)
        .optional()
}

/// Has a line say something else, under the next number of its room.
fn reword(txn: &mut Txn<'_>, line: Line, text: &str) -> rusqlite::Result<Line> {
    let number = next_seq(txn, &line.room)?;
    let line = line.reworded(number, text);
    txn.prepare_cached("UPDATE webchat_lines SET seq = ?, text = ?, edited = ? WHERE message_id = ?")?
        .execute(params![line.id, line.text, line.edited, line.message_id])?;
    txn.line(line.clone());
    Ok(line)
}

fn insert(txn: &mut Txn<'_>, new: NewLine) -> rusqlite::Result<()> {
    let (id, seq) = (next_id(txn)?, next_seq(txn, &new.room)?);
    let files = serde_json::to_string(&new.files).unwrap_or_else(|_| "[]".into());
    let inserted = txn
        .prepare_cached(
            "INSERT INTO webchat_lines
                 (id, seq, place, room, message_id, author, from_agent, text, reply_to, client_id, at, files,
                  undelivered)
             VALUES (?1, ?2, ?2, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (message_id) DO NOTHING",
        )?
        .execute(params![
            id,
            seq,
            new.room,
            new.message_id,
            new.author,
            new.from_agent,
            new.text,
            new.reply_to,
            new.client_id,
            new.at.0,
            files,
            new.undelivered.map(DropReason::as_str)
        ])?;
    if inserted == 0 {
        return Ok(());
    }
    room_size::bound(txn, &new.room, 1, new.text.len())?;
    txn.line(Line {
        id: seq,
        place: seq,
        room: new.room,
        message_id: new.message_id,
        author: new.author,
        from_agent: new.from_agent,
        text: new.text,
        reply_to: new.reply_to,
        client_id: new.client_id,
        files: new.files,
        undelivered: new.undelivered,
        at: new.at,
        edited: false,
    });
    Ok(())
}

/// One number for lines and edits, so that a reader continues after either. Each room counts for
/// itself: its people see these numbers, and are to learn nothing of other rooms from them. The
/// newest line of a room goes only with all of it, so no number is given twice.
fn next_seq(txn: &Txn<'_>, room: &str) -> rusqlite::Result<i64> {
    txn.prepare_cached("SELECT coalesce(max(seq), 0) + 1 FROM webchat_lines WHERE room = ?")?
        .query_row([room], |row| row.get(0))
}

/// The next row's own id, never given again: a removal goes by it. Nobody else sees it.
fn next_id(txn: &mut Txn<'_>) -> rusqlite::Result<i64> {
    txn.line_ids.next(txn.connection)
}

/// Changes a line; `None` if there is none that agents may change.
fn change_agents(
    txn: &mut Txn<'_>,
    room: &str,
    message_id: &str,
    text: &str,
) -> rusqlite::Result<Option<Line>> {
    let Some(line) = line(txn, room, message_id)?.filter(Line::is_agents) else { return Ok(None) };
    let line = reword(txn, line, text)?;
    room_size::bound(txn, room, 0, text.len())?;
    Ok(Some(line))
}

/// Writes the parts that did not fit, and takes away those of an earlier, longer text.
fn change_rest(txn: &mut Txn<'_>, edit: &LineEdit, first: &Line) -> rusqlite::Result<()> {
    for (index, text) in edit.parts.iter().enumerate().skip(1) {
        let id = rooms::part_id(&edit.message_id, index);
        if change_agents(txn, &edit.room, &id, text)?.is_none() {
            insert(txn, rooms::continued(first, id, text.clone(), UnixMillis(now())))?;
        }
    }
    let mut index = edit.parts.len().max(1);
    while let Some(part) =
        line(txn, &edit.room, &rooms::part_id(&edit.message_id, index))?.filter(rooms::is_left_over)
    {
        reword(txn, part, "")?;
        index += 1;
    }
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Line> {
    Ok(Line {
        id: row.get(0)?,
        room: row.get(1)?,
        message_id: row.get(2)?,
        author: row.get(3)?,
        from_agent: row.get(4)?,
        text: row.get(5)?,
        reply_to: row.get(6)?,
        at: UnixMillis(row.get(7)?),
        edited: row.get(8)?,
        place: row.get(9)?,
        client_id: row.get(10)?,
        files: serde_json::from_str(row.get_ref(11)?.as_str()?).unwrap_or_default(),
        undelivered: row.get::<_, Option<String>>(12)?.and_then(|word| DropReason::parse(&word)),
    })
}

/// What people and agents wrote of a line: its text, and the names of its files.
fn written_bytes(row: &Row<'_>) -> rusqlite::Result<usize> {
    Ok(row.get_ref(5)?.as_str()?.len() + row.get_ref(11)?.as_str()?.len())
}
