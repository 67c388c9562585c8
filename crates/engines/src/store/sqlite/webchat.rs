//! The web chat's people and lines.

mod line_ids;
mod people;
mod room_size;

pub(super) use line_ids::LineIds;
pub(super) use room_size::{LIMITS, RoomSizes};

use super::clock::is_old;
use super::queue::Owner;
use super::reader::page;
use super::txn::{Txn, now};
use super::{Sqlite, inbox, ledger};
use angelia_core::admission::DropReason;
use angelia_core::clock::UnixMillis;
use angelia_core::egress::ActionState;
use angelia_core::error::{Error, Kind, Result};
use angelia_core::inbox::SEEN_FOR;
use angelia_core::store::{
    ActionId, ActionOutcome, CONNECTOR, Earlier, Guest, Later, Line, LineEdit, LineRevision, NewEntry,
    NewLine, Page, PageSize, Person, Posted, Revised, WebchatStore,
};
use rusqlite::{OptionalExtension, Row, params};

const LINE_COLUMNS: &str = "seq, room, message_id, author, from_agent, text, reply_to, at, edited, place, client_id, files, undelivered";

impl WebchatStore for Sqlite {
    fn post_line(&self, line: NewLine, entry: Option<NewEntry>) -> Later<'_, Posted> {
        angelia_core::fail::point("before_append");
        let owner = match &entry {
            Some(entry) => Owner::Tenant(entry.tenant.as_str().into()),
            None => Owner::Bot(format!("webchat/{}", line.room).into()),
        };
        let bytes = line.text.len() + entry.as_ref().map_or(0, |entry| entry.body.len());
        self.writer.try_write_for(owner, bytes, "post a line", move |txn| {
            let mut line = line;
            let no_instance = match &entry {
                Some(entry) => !inbox::is_served(txn, entry.instance)?,
                None => false,
            };
            if no_instance {
                line.undelivered = Some(DropReason::NoInstance);
            } else if let Some(entry) = &entry
                && earlier_post(txn, &line)?.is_none()
                && let Err(full) = inbox::has_room(txn, entry)?
            {
                return Ok(Err(full));
            }
            let mut posted = match post(txn, line)? {
                Ok(posted) => posted,
                Err(gone) => return Ok(Err(gone)),
            };
            if let Some(entry) = entry.filter(|_| posted.new) {
                posted.no_instance = no_instance;
                if !no_instance {
                    inbox::append(txn, entry)?;
                    posted.entered = true;
                }
            }
            Ok(Ok(posted))
        })
    }

    fn post_answered(&self, line: NewLine, answer: NewLine) -> Later<'_, Posted> {
        let owner = Owner::Bot(format!("webchat/{}", line.room).into());
        let bytes = line.text.len() + answer.text.len();
        self.writer.try_write_for(owner, bytes, "post a line and its answer", move |txn| {
            let posted = post(txn, line)?;
            if posted.as_ref().is_ok_and(|posted| posted.new) {
                insert(txn, answer)?;
            }
            Ok(posted)
        })
    }

    fn earlier(&self, person: &Person, client_id: &str) -> Later<'_, Option<Earlier>> {
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

    fn revise_line(&self, revision: LineRevision) -> Later<'_, Revised> {
        let owner = match &revision.entry {
            Some(entry) => self.owners.of_instance(entry.instance),
            None => Owner::Bot(format!("webchat/{}", revision.room).into()),
        };
        let bytes = revision.text.len() + revision.entry.as_ref().map_or(0, |entry| entry.body.len());
        self.writer.try_write_for(owner, bytes, "revise a line", move |txn| revise(txn, &revision))
    }

    fn line(&self, room: &str, message_id: &str) -> Later<'_, Option<Line>> {
        let (room, message_id) = (room.to_owned(), message_id.to_owned());
        self.readers.read("read a line", move |db| {
            db.prepare_cached(&format!(
                "SELECT {LINE_COLUMNS} FROM webchat_lines WHERE message_id = ? AND room = ?"
            ))?
            .query_row([message_id, room], read)
            .optional()
        })
    }

    fn say_lines(&self, lines: Vec<NewLine>, action: ActionId) -> Later<'_, ()> {
        let room = lines.first().map(|line| line.room.as_str()).unwrap_or_default();
        let owner = Owner::Bot(format!("webchat/{room}").into());
        let bytes = lines.iter().map(|line| line.text.len()).sum();
        self.writer.try_write_for(owner, bytes, "say a line", move |txn| {
            if !is_owed(txn, action)? {
                return Ok(Err(Error::not_found("whoever wanted to say this is gone: nothing was written")));
            }
            let outcome = sent(lines.first().map(|line| line.message_id.clone()));
            for line in lines {
                insert(txn, line)?;
            }
            ledger::finish(txn, action, &outcome).map(Ok)
        })
    }

    fn edit_line(&self, edit: LineEdit, action: ActionId) -> Later<'_, bool> {
        let owner = Owner::Bot(format!("webchat/{}", edit.room).into());
        let bytes = edit.parts.iter().map(String::len).sum();
        self.writer.write_for(owner, bytes, "edit a line", move |txn| {
            let Some(first) = change_first(txn, &edit)? else {
                let error = Some("there is no such line of an agent".to_owned());
                let outcome = ActionOutcome { state: ActionState::Failed, message_id: None, error };
                ledger::finish(txn, action, &outcome)?;
                return Ok(false);
            };
            change_rest(txn, &edit, &first)?;
            ledger::finish(txn, action, &sent(Some(first.message_id.clone())))?;
            Ok(true)
        })
    }

    fn lines(&self, room: &str, after: i64, size: PageSize) -> Later<'_, Page<Line>> {
        let room = room.to_owned();
        self.readers.read("read lines", move |db| {
            // What is gone is told of to those who may have seen it, not to whoever begins.
            let mut lines = db.prepare_cached(&format!(
                "SELECT {LINE_COLUMNS} FROM webchat_lines
                 WHERE room = ?1 AND seq > ?2 AND (?2 > 0 OR text <> '' OR files <> '[]') ORDER BY seq"
            ))?;
            page(lines.query(params![room, after])?, size, written_bytes, read)
        })
    }

    fn rooms(&self) -> Later<'_, Vec<String>> {
        self.readers.read("read the rooms", |db| {
            db.prepare("SELECT room FROM webchat_people UNION SELECT room FROM webchat_lines")?
                .query_map([], |row| row.get(0))?
                .collect()
        })
    }

    fn person(&self, key_fingerprint: [u8; 32]) -> Later<'_, Option<Guest>> {
        self.readers.read("recognise a person", move |db| people::recognise(db, key_fingerprint))
    }
}

/// Writes a person's line, unless it repeats an earlier one, or the room went
/// with its tenant since their key was looked at.
fn post(txn: &mut Txn<'_>, line: NewLine) -> rusqlite::Result<Result<Posted>> {
    if !people::is_in_room(txn, &line.room, &line.author)? {
        return Ok(Err(not_in_room()));
    }
    if let Some(first) = earlier_post(txn, &line)? {
        let entered = has_entered(txn, &first)?;
        return Ok(Ok(Posted { message_id: first, new: false, no_instance: false, entered }));
    }
    let message_id = line.message_id.clone();
    insert(txn, line)?;
    Ok(Ok(Posted { message_id, new: true, no_instance: false, entered: false }))
}

/// Their keys were made void while the request was under way.
fn not_in_room() -> Error {
    Error::new(
        Kind::Unauthorized,
        "this key does not open this room any more; ask the operator for an invitation",
    )
}

/// Whether a line came into an inbox when it was posted.
fn has_entered(txn: &Txn<'_>, message_id: &str) -> rusqlite::Result<bool> {
    let forgotten = is_old("at", &txn.clock.older_than(SEEN_FOR));
    txn.query_row(
        &format!(
            "SELECT EXISTS (SELECT 1 FROM journal WHERE message_id = ?1 AND platform = 'webchat')
             OR EXISTS (SELECT 1 FROM webchat_lines WHERE message_id = ?1 AND {forgotten})"
        ),
        params![message_id],
        |row| row.get(0),
    )
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
    let own: Option<bool> = txn
        .prepare_cached(
            "SELECT author = ? AND from_agent = 0 FROM webchat_lines WHERE message_id = ? AND room = ?",
        )?
        .query_row([author, message_id, room], |row| row.get(0))
        .optional()?;
    match own {
        None => return Ok(Err(Error::not_found("there is no such message in this room"))),
        Some(false) => {
            return Ok(Err(Error::new(Kind::Forbidden, "somebody else wrote this; only they can change it")));
        }
        Some(true) => {}
    }
    if !people::is_in_room(txn, room, author)? {
        return Ok(Err(not_in_room()));
    }
    if let Some(entry) = entry
        && let Err(full) = inbox::has_room_for_revision(txn, entry)?
    {
        return Ok(Err(full));
    }
    let seq = next_seq(txn, room)?;
    let line = txn
        .prepare_cached(&format!(
            "UPDATE webchat_lines SET seq = ?, text = ?, edited = 1 WHERE message_id = ? RETURNING {LINE_COLUMNS}"
        ))?
        .query_row(params![seq, text, message_id], read)?;
    room_size::bound(txn, room, 0, text.len())?;
    txn.line(line);
    match entry {
        Some(entry) => inbox::revise(txn, entry).map(Ok),
        None => Ok(Ok(Revised::NotWaiting)),
    }
}

/// The first post with the same client id, if this one repeats it.
fn earlier_post(txn: &Txn<'_>, line: &NewLine) -> rusqlite::Result<Option<String>> {
    let Some(client_id) = &line.client_id else { return Ok(None) };
    txn.prepare_cached(
        "SELECT message_id FROM webchat_lines WHERE room = ? AND author = ? AND client_id = ?",
    )?
    .query_row([&line.room, &line.author, client_id], |row| row.get(0))
    .optional()
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

/// Changes the line itself; `None` if there is none, or no agent wrote it.
fn change_first(txn: &mut Txn<'_>, edit: &LineEdit) -> rusqlite::Result<Option<Line>> {
    let next = next_seq(txn, &edit.room)?;
    let text = edit.parts.first().map(String::as_str).unwrap_or_default();
    let line = txn
        .prepare_cached(&format!(
            "UPDATE webchat_lines SET seq = ?, text = ?, edited = 1
             WHERE room = ? AND message_id = ? AND from_agent = 1 AND author <> ? RETURNING {LINE_COLUMNS}"
        ))?
        .query_row(params![next, text, edit.room, edit.message_id, CONNECTOR], read)
        .optional()?;
    if let Some(line) = &line {
        room_size::bound(txn, &edit.room, 0, text.len())?;
        txn.line(line.clone());
    }
    Ok(line)
}

/// Writes the parts that did not fit, and takes away those of an earlier, longer text.
fn change_rest(txn: &mut Txn<'_>, edit: &LineEdit, first: &Line) -> rusqlite::Result<()> {
    let rest = edit.parts.iter().enumerate().skip(1);
    for (index, text) in rest {
        let part = LineEdit {
            room: edit.room.clone(),
            message_id: format!("{}.{index}", edit.message_id),
            parts: vec![text.clone()],
        };
        if change_first(txn, &part)?.is_none() {
            let new = NewLine {
                room: part.room,
                message_id: part.message_id,
                author: first.author.clone(),
                from_agent: true,
                text: text.clone(),
                reply_to: None,
                client_id: None,
                files: Vec::new(),
                undelivered: None,
                at: UnixMillis(now()),
            };
            insert(txn, new)?;
        }
    }
    let mut index = edit.parts.len().max(1);
    loop {
        // Emptied, not deleted: whoever saw it and was away has to hear of it too.
        let gone = txn
            .prepare_cached(&format!(
                "UPDATE webchat_lines SET seq = ?, text = '', edited = 1
                 WHERE room = ? AND message_id = ? AND from_agent = 1 AND text <> '' RETURNING {LINE_COLUMNS}"
            ))?
            .query_row(
                params![next_seq(txn, &edit.room)?, edit.room, format!("{}.{index}", edit.message_id)],
                read,
            )
            .optional()?;
        let Some(line) = gone else { return Ok(()) };
        txn.line(line);
        index += 1;
    }
}

fn sent(message_id: Option<String>) -> ActionOutcome {
    ActionOutcome { state: ActionState::Sent, message_id, error: None }
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
        undelivered: row.get::<_, Option<String>>(12)?.and_then(|word| DropReason::from_word(&word)),
    })
}

/// What people and agents wrote of a line: its text, and the names of its files.
fn written_bytes(row: &Row<'_>) -> rusqlite::Result<usize> {
    Ok(row.get_ref(5)?.as_str()?.len() + row.get_ref(11)?.as_str()?.len())
}
