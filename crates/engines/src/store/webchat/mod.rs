//! The web chat's people and lines. What may be written and changed there, and what
//! becomes of it, is [`rooms`]' to say; here are its rows.

mod marks;
pub(super) mod people;
mod room_size;
mod threads;

use super::db::{Ask, Db, Param, Row, Sql, values};
use super::engine::{Engine, Owner, Store};
use super::inbox::page;
use super::txn::Txn;
use super::{inbox, intake, ledger};
use angelia_core::admission::DropReason;
use angelia_core::clock::UnixMillis;
use angelia_core::error::Result;
use angelia_core::inbox::{SEEN_FOR, refusal};
use angelia_core::prompts::Answered;
use angelia_core::rooms::{self, Post, Posting};
use angelia_core::store::{
    ActionId, BoxFuture, Buttons, CONNECTOR, Earlier, Guest, Line, LineAnswer, LineEdit, LineMark,
    LineRevision, Lines, NewEntry, NewLine, NewThread, Page, PageSize, Person, Posted, Revised, RoomFile,
    ThreadName,
};

/// How no files at all are kept.
const NO_FILES: &str = "[]";
const LINE_COLUMNS: &str = "seq, room, message_id, author, from_agent, text, reply_to, at, edited, place, client_id, files, undelivered, buttons, marks, thread, thread_name";

impl<E: Engine> Lines for Store<E> {
    fn post_line(&self, line: NewLine, entry: Option<NewEntry>) -> BoxFuture<'_, Result<Posted>> {
        angelia_core::fail::point("before_append");
        self.0.post(line, entry)
    }

    fn post_answered(&self, line: NewLine, answer: NewLine) -> BoxFuture<'_, Result<Posted>> {
        let owner = Owner::Bot(format!("webchat/{}", line.room).into());
        let bytes = line.text.len() + answer.text.len();
        self.0.write(owner, bytes, "post a line and its answer", move |txn| {
            let posted = post(txn, &line, None)?;
            if posted.as_ref().is_ok_and(|posted| posted.new) {
                insert(txn, &answer)?;
            }
            Ok(posted)
        })
    }

    fn earlier(&self, person: &Person, client_id: &str) -> BoxFuture<'_, Result<Option<Earlier>>> {
        let Person { room, user } = person.clone();
        let client_id = client_id.to_owned();
        self.0.read("look for an earlier post", move |db| {
            db.first(
                "SELECT message_id, (SELECT text FROM webchat_lines a WHERE a.room = l.room AND a.author = $1
                     AND a.from_agent = 1 AND a.reply_to = l.message_id ORDER BY a.id LIMIT 1)
                 FROM webchat_lines l WHERE room = $2 AND author = $3 AND client_id = $4",
                values![CONNECTOR, room, user, client_id],
                |row| Ok(Earlier { message_id: row.get(0)?, answer: row.get(1)? }),
            )
        })
    }

    fn revise_line(&self, revision: LineRevision) -> BoxFuture<'_, Result<Revised>> {
        let owner = match &revision.entry {
            Some(entry) => self.0.line_of(entry.instance),
            None => Owner::Bot(format!("webchat/{}", revision.room).into()),
        };
        let bytes = revision.text.len() + revision.entry.as_ref().map_or(0, |entry| entry.body.len());
        self.0.write(owner, bytes, "revise a line", move |txn| revise(txn, &revision))
    }

    fn answer_line(&self, answer: LineAnswer) -> BoxFuture<'_, Result<bool>> {
        angelia_core::fail::point("before_append");
        let owner = Owner::Tenant(answer.entry.tenant.as_str().into());
        let bytes = answer.shown.len() + answer.entry.body.len();
        self.0.write(owner, bytes, "answer a question", move |txn| self::answer(txn, &answer))
    }

    fn line(&self, room: &str, message_id: &str) -> BoxFuture<'_, Result<Option<Line>>> {
        let (room, message_id) = (room.to_owned(), message_id.to_owned());
        self.0.read("read a line", move |db| line(db, &room, &message_id))
    }

    fn say_lines(&self, lines: Vec<NewLine>, action: ActionId) -> BoxFuture<'_, Result<()>> {
        let room = lines.first().map(|line| line.room.as_str()).unwrap_or_default();
        let owner = Owner::Bot(format!("webchat/{room}").into());
        let bytes = lines.iter().map(bytes).sum();
        self.0.write(owner, bytes, "say a line", move |txn| {
            txn.lock_action(action)?;
            if let Err(gone) = rooms::can_say(is_owed(txn, action)?) {
                return Ok(Err(gone));
            }
            let outcome = rooms::said(lines.first().map(|line| line.message_id.clone()));
            for line in &lines {
                insert(txn, line)?;
            }
            ledger::finish(txn, action, &outcome).map(Ok)
        })
    }

    fn edit_line(&self, edit: LineEdit, action: ActionId) -> BoxFuture<'_, Result<bool>> {
        let owner = Owner::Bot(format!("webchat/{}", edit.room).into());
        let bytes = edit.parts.iter().map(String::len).sum();
        self.0.write_all(owner, bytes, "edit a line", move |txn| {
            txn.lock_action(action)?;
            txn.lock_room(&edit.room)?;
            let text = edit.parts.first().map(String::as_str).unwrap_or_default();
            let first = change_agents(txn, &edit.room, &edit.message_id, text)?;
            if let Some(first) = &first {
                change_rest(txn, &edit, first)?;
            }
            ledger::finish(txn, action, &rooms::edited(first.as_ref()))?;
            Ok(first.is_some())
        })
    }

    fn mark_line(&self, mark: LineMark) -> BoxFuture<'_, Result<bool>> {
        let owner = Owner::Bot(format!("webchat/{}", mark.room).into());
        self.0.write_all(owner, mark.emoji.len(), "mark a line", move |txn| marks::mark(txn, &mark))
    }

    fn open_thread(&self, thread: NewThread, action: ActionId) -> BoxFuture<'_, Result<Option<String>>> {
        let owner = Owner::Bot(format!("webchat/{}", thread.line.room).into());
        let bytes = thread.line.text.len();
        self.0.write(owner, bytes, "open a thread", move |txn| threads::open(txn, &thread, action))
    }

    fn name_thread(&self, name: ThreadName, action: ActionId) -> BoxFuture<'_, Result<bool>> {
        let owner = Owner::Bot(format!("webchat/{}", name.room).into());
        let bytes = name.name.len();
        self.0.write_all(owner, bytes, "rename a thread", move |txn| threads::rename(txn, &name, action))
    }

    fn lines(&self, room: &str, after: i64, size: PageSize) -> BoxFuture<'_, Result<Page<Line>>> {
        let room = room.to_owned();
        self.0.read("read lines", move |db| {
            let gone =
                if rooms::shows_what_is_gone(after) { "" } else { "AND (text <> '' OR files <> '[]')" };
            let lines = format!(
                "SELECT {LINE_COLUMNS} FROM webchat_lines WHERE room = $1 AND seq > $2 {gone}
                 ORDER BY seq LIMIT {}",
                size.count.saturating_add(1).min(1 << 30)
            );
            page(db, &lines, values![room, after], size, written_bytes, read)
        })
    }

    fn reached(&self, rooms: Vec<String>) -> BoxFuture<'_, Result<Vec<i64>>> {
        self.0.read("look how far rooms are", move |db| {
            let newest = |number: usize| {
                format!(
                    "SELECT {number} AS number,
                         (SELECT coalesce(max(seq), 0) FROM webchat_lines WHERE room = ${number}) AS reached"
                )
            };
            let each: Vec<String> = (1..=rooms.len()).map(newest).collect();
            if each.is_empty() {
                return Ok(Vec::new());
            }
            let given: Vec<Param> = rooms.iter().map(|room| Param::Text(Some(room))).collect();
            let all = format!("SELECT reached FROM ({}) AS rooms ORDER BY number", each.join(" UNION ALL "));
            db.all(&all, &given, |row| row.get(0))
        })
    }

    fn rooms(&self) -> BoxFuture<'_, Result<Vec<String>>> {
        self.0.read("read the rooms", |db| {
            let rooms = "SELECT room FROM webchat_people UNION SELECT room FROM webchat_lines";
            db.all(rooms, &[], |row| row.get(0))
        })
    }

    fn person(&self, key_fingerprint: [u8; 32]) -> BoxFuture<'_, Result<Option<Guest>>> {
        self.0.recognise(key_fingerprint)
    }
}

/// In whose line a post waits, and how many bytes it has.
pub(super) fn line_of_post(line: &NewLine, entry: Option<&NewEntry>) -> (Owner, usize) {
    let owner = match entry {
        Some(entry) => Owner::Tenant(entry.tenant.as_str().into()),
        None => Owner::Bot(format!("webchat/{}", line.room).into()),
    };
    (owner, bytes(line) + entry.map_or(0, |entry| entry.body.len()))
}

/// Writes a person's line and the entry it makes, unless [`Post::decide`] says otherwise.
pub(super) fn post(txn: &mut dyn Txn, line: &NewLine, entry: Option<&NewEntry>) -> Sql<Result<Posted>> {
    let taken = match entry {
        Some(entry) => {
            txn.lock(entry.instance)?;
            Some(intake::takes_messages(txn, entry.instance)?)
        }
        None => None,
    };
    txn.lock_room(&line.room)?;
    let in_room = people::is_in_room(txn, &line.room, &line.author)?;
    let earlier = earlier_post(txn, line)?;
    let post = Post { in_room, earlier, taken };
    if let Some(entry) = entry.filter(|_| post.needs_room())
        && let Err(full) = intake::has_room(txn, entry)?
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
        insert(txn, &NewLine { undelivered: Some(reason), ..line.clone() })?;
    } else {
        insert(txn, line)?;
    }
    if let Some(entry) = entry.filter(|_| posted.entered) {
        intake::append(txn, entry)?;
    }
    Ok(Ok(posted))
}

/// Whether a line came into an inbox when it was posted.
fn has_entered(txn: &mut dyn Txn, message_id: &str, posted_at: UnixMillis) -> Sql<bool> {
    let in_journal = txn.says(
        "SELECT EXISTS (SELECT 1 FROM journal WHERE message_id = $1 AND platform = 'webchat')",
        values![message_id],
    )?;
    Ok(rooms::has_entered(in_journal, posted_at, &txn.clock().older_than(SEEN_FOR)))
}

/// Whether an action is still somebody's: those of a removed tenant are not.
fn is_owed(txn: &mut dyn Txn, action: ActionId) -> Sql<bool> {
    txn.says(
        "SELECT EXISTS (SELECT 1 FROM actions a JOIN instances i ON i.instance = a.instance WHERE a.id = $1)",
        values![action],
    )
}

/// Changes a person's own line, and what still waits of it.
fn revise(txn: &mut dyn Txn, revision: &LineRevision) -> Sql<Result<Revised>> {
    let LineRevision { room, message_id, author, text, entry } = revision;
    if let Some(entry) = entry {
        txn.lock(entry.instance)?;
    }
    txn.lock_room(room)?;
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

/// Answers a question that is open, and has its line show that.
fn answer(txn: &mut dyn Txn, answer: &LineAnswer) -> Sql<Result<bool>> {
    let LineAnswer { room, message_id, author, shown, press, entry } = answer;
    txn.lock(entry.instance)?;
    txn.lock_room(room)?;
    if let Err(refused) = rooms::may_answer(people::is_in_room(txn, room, author)?) {
        return Ok(Err(refused));
    }
    if !intake::takes_messages(txn, entry.instance)? {
        return Ok(Err(refusal::instance_gone()));
    }
    if let Err(full) = intake::has_room(txn, entry)? {
        return Ok(Err(full));
    }
    let asks = |line: &Line| line.buttons.as_ref().is_some_and(|buttons| buttons.prompt == press.number);
    let Some(line) = line(txn, room, message_id)? else { return Ok(Ok(false)) };
    let is_asked = asks(&line);
    match intake::answer(txn, Some(press))? {
        Answered::Now => {}
        Answered::Before => return Ok(Ok(true)),
        Answered::Not => return Ok(Ok(false)),
    }
    // An agent that took its question back meanwhile hears the answer all the same.
    if is_asked {
        let text = rooms::answered_text(&line.text, shown);
        reword(txn, line.answered(), &text)?;
        room_size::bound(txn, room, 0, text.len())?;
    }
    intake::append(txn, entry)?;
    Ok(Ok(true))
}

/// The first post with the same client id, and when it was, if this one repeats it.
fn earlier_post(txn: &mut dyn Txn, line: &NewLine) -> Sql<Option<(String, UnixMillis)>> {
    let Some(client_id) = &line.client_id else { return Ok(None) };
    txn.first(
        "SELECT message_id, at FROM webchat_lines WHERE room = $1 AND author = $2 AND client_id = $3",
        values![line.room, line.author, client_id],
        |row| Ok((row.get(0)?, UnixMillis(row.get(1)?))),
    )
}

/// A line of a room.
pub(super) fn line(db: &mut dyn Db, room: &str, message_id: &str) -> Sql<Option<Line>> {
    let line = format!("SELECT {LINE_COLUMNS} FROM webchat_lines WHERE message_id = $1 AND room = $2");
    db.first(&line, values![message_id, room], read)
}

/// Has a line say something else, under the next number of its room.
fn reword(txn: &mut dyn Txn, line: Line, text: &str) -> Sql<Line> {
    let number = txn.next_line_number(&line.room)?;
    // There is nothing to press below what is gone.
    let line = if text.is_empty() { line.answered() } else { line };
    let line = line.reworded(number, text);
    txn.execute(
        "UPDATE webchat_lines SET seq = $1, text = $2, edited = $3, buttons = $4, files = $5 WHERE message_id = $6",
        values![
            line.id,
            line.text,
            line.edited,
            kept(line.buttons.as_deref()),
            files(&line.files),
            line.message_id
        ],
    )?;
    txn.line(line.clone());
    Ok(line)
}

fn insert(txn: &mut dyn Txn, new: &NewLine) -> Sql<()> {
    txn.lock_room(&new.room)?;
    let (id, seq) = (txn.next_line_id()?, txn.next_line_number(&new.room)?);
    let buttons = kept(new.buttons.as_deref());
    let inserted = txn.execute(
        "INSERT INTO webchat_lines
             (id, seq, place, room, message_id, author, from_agent, text, reply_to, client_id, at, files,
              undelivered, buttons, thread, thread_name)
         VALUES ($1, $2, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT (message_id) DO NOTHING",
        values![
            id,
            seq,
            new.room,
            new.message_id,
            new.author,
            new.from_agent,
            new.text,
            new.reply_to,
            new.client_id,
            new.at,
            files(&new.files),
            new.undelivered.map(DropReason::as_str),
            buttons,
            new.thread,
            new.thread_name
        ],
    )?;
    if inserted == 0 {
        return Ok(());
    }
    let bytes = bytes(new) + buttons.map_or(0, |buttons| buttons.len());
    room_size::bound(txn, &new.room, 1, bytes)?;
    txn.line(written(new, seq));
    Ok(())
}

/// A line once it is written, under its first number.
pub(super) fn written(new: &NewLine, number: i64) -> Line {
    Line {
        id: number,
        place: number,
        room: new.room.clone(),
        message_id: new.message_id.clone(),
        author: new.author.clone(),
        from_agent: new.from_agent,
        text: new.text.clone(),
        reply_to: new.reply_to.clone(),
        client_id: new.client_id.clone(),
        files: new.files.clone(),
        undelivered: new.undelivered,
        buttons: new.buttons.clone(),
        marks: Vec::new(),
        thread: new.thread.clone(),
        thread_name: new.thread_name.clone(),
        at: new.at,
        edited: false,
    }
}

/// The buttons of a line, as they are kept.
fn kept(buttons: Option<&Buttons>) -> Option<String> {
    buttons.and_then(|buttons| serde_json::to_string(buttons).ok())
}

/// The files of a line, as they are kept.
pub(super) fn files(files: &[RoomFile]) -> String {
    serde_json::to_string(files).unwrap_or_else(|_| NO_FILES.into())
}

/// What a new line takes of its room.
pub(super) fn bytes(new: &NewLine) -> usize {
    new.text.len() + files(&new.files).len() - NO_FILES.len()
}

/// Changes a line; `None` if there is none that agents may change.
fn change_agents(txn: &mut dyn Txn, room: &str, message_id: &str, text: &str) -> Sql<Option<Line>> {
    let Some(line) = line(txn, room, message_id)?.filter(Line::is_agents) else { return Ok(None) };
    let line = reword(txn, line, text)?;
    room_size::bound(txn, room, 0, text.len())?;
    Ok(Some(line))
}

/// Writes the parts that did not fit, and takes away those of an earlier, longer text.
fn change_rest(txn: &mut dyn Txn, edit: &LineEdit, first: &Line) -> Sql<()> {
    let now = UnixMillis(txn.now());
    for (index, text) in edit.parts.iter().enumerate().skip(1) {
        let id = rooms::part_id(&edit.message_id, index);
        if change_agents(txn, &edit.room, &id, text)?.is_none() {
            insert(txn, &rooms::continued(first, id, text.clone(), now))?;
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

fn read(row: Row<'_>) -> Sql<Line> {
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
        files: serde_json::from_str(&row.get::<String>(11)?).unwrap_or_default(),
        undelivered: row.get::<Option<String>>(12)?.and_then(|word| DropReason::parse(&word)),
        buttons: row.get::<Option<String>>(13)?.and_then(|text| serde_json::from_str(&text).ok()),
        marks: serde_json::from_str(&row.get::<String>(14)?).unwrap_or_default(),
        thread: row.get(15)?,
        thread_name: row.get(16)?,
    })
}

/// What people and agents wrote of a line: its text, the names of its files, its buttons and marks,
/// and what its thread is called.
fn written_bytes(row: &Row<'_>) -> Sql<usize> {
    Ok(row.length(5)? + row.length(11)? + row.length(13)? + row.length(14)? + row.length(16)?)
}
