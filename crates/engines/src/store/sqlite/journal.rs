//! What happened to a message.

use super::Sqlite;
use angelia_core::clock::UnixMillis;
use angelia_core::inbox::{InstanceId, Seq};
use angelia_core::store::{ActionId, ActionStory, Edits, JournalStore, Later, Story};
use rusqlite::{Connection, Params, Row, params};

const ACTION_COLUMNS: &str =
    "id, op, chat_id, reply_to, received_at, finished_at, state, message_id, error, receipt";
/// Actions shown of one message: more than anybody reads.
const MOST_ACTIONS: usize = 100;

impl JournalStore for Sqlite {
    fn explain(&self, message: &str) -> Later<'_, Vec<Story>> {
        let message = message.to_owned();
        self.readers.read("read the journal", move |db| {
            let (chat, within) = named(&message);
            let by_id = "message_id = ?1 OR (message_id = ?2 AND chat_id = ?3)";
            let mut stories = read(db, by_id, params![message, within, chat])?;
            if let Some(seq) = Seq::from_buffer_id(&message) {
                stories.extend(read(db, "seq = ?1", params![seq.0])?);
            }
            for story in &mut stories {
                story.replies = replies(db, story)?;
            }
            Ok(stories)
        })
    }

    fn ambiguous_actions(&self, limit: usize) -> Later<'_, Vec<ActionStory>> {
        self.readers.read("read the ledger", move |db| {
            db.prepare_cached(&format!(
                "SELECT {ACTION_COLUMNS} FROM actions WHERE state = 'ambiguous' ORDER BY id DESC LIMIT ?"
            ))?
            .query_map([limit as i64], action)?
            .collect()
        })
    }

    fn explain_action(&self, message: &str) -> Later<'_, Vec<ActionStory>> {
        let message = message.to_owned();
        self.readers.read("read the ledger", move |db| {
            let (chat, within) = named(&message);
            db.prepare_cached(&format!(
                "SELECT {ACTION_COLUMNS} FROM actions
                 WHERE message_id = ?1 OR (message_id = ?2 AND chat_id = ?3) ORDER BY id LIMIT {MOST_ACTIONS}"
            ))?
            .query_map(params![message, within, chat], action)?
            .collect()
        })
    }

    fn edits(&self, chat_id: &str, message_id: &str) -> Later<'_, Edits> {
        let (chat_id, message_id) = (chat_id.to_owned(), message_id.to_owned());
        self.readers.read("read the ledger", move |db| {
            db.prepare_cached(
                "SELECT count(*), max(finished_at) FROM actions
                 WHERE message_id = ? AND chat_id = ? AND op = 'edit' AND state = 'sent'",
            )?
            .query_row([message_id, chat_id], |row| {
                Ok(Edits { count: row.get(0)?, last_at: row.get::<_, Option<i64>>(1)?.map(UnixMillis) })
            })
        })
    }
}

/// The messages that a condition holds for, oldest first.
fn read(db: &Connection, condition: &str, of: impl Params) -> rusqlite::Result<Vec<Story>> {
    db.prepare_cached(&format!(
        "SELECT seq, kind, platform, bot, chat_id, message_id, j.tenant, j.instance, name,
                received_at, appended_at, pushed_at, pushes, settled_at, outcome
         FROM journal j LEFT JOIN instances USING (instance) WHERE {condition} ORDER BY id"
    ))?
    .query_map(of, story)?
    .collect()
}

/// A chat and a message of it, where somebody wrote `CHAT/MESSAGE`.
fn named(message: &str) -> (Option<&str>, Option<&str>) {
    message.rsplit_once('/').unzip()
}

/// What was written in answer to a message: its id may be another one elsewhere.
fn replies(db: &Connection, story: &Story) -> rusqlite::Result<Vec<ActionStory>> {
    db.prepare_cached(&format!(
        "SELECT {ACTION_COLUMNS} FROM actions
         WHERE reply_to = ? AND chat_id = ? AND platform = ? AND bot = ? ORDER BY id LIMIT {MOST_ACTIONS}"
    ))?
    .query_map([&story.message_id, &story.chat_id, &story.platform, &story.bot], action)?
    .collect()
}

fn story(row: &Row<'_>) -> rusqlite::Result<Story> {
    let moment = |column| row.get::<_, Option<i64>>(column).map(|at| at.map(UnixMillis));
    Ok(Story {
        seq: Seq(row.get(0)?),
        kind: row.get(1)?,
        platform: row.get(2)?,
        bot: row.get(3)?,
        chat_id: row.get(4)?,
        message_id: row.get(5)?,
        tenant: row.get(6)?,
        instance: InstanceId(row.get(7)?),
        instance_name: row.get::<_, Option<String>>(8)?.unwrap_or_default(),
        received_at: UnixMillis(row.get(9)?),
        appended_at: UnixMillis(row.get(10)?),
        pushed_at: moment(11)?,
        pushes: row.get(12)?,
        settled_at: moment(13)?,
        outcome: row.get(14)?,
        replies: Vec::new(),
    })
}

fn action(row: &Row<'_>) -> rusqlite::Result<ActionStory> {
    Ok(ActionStory {
        id: ActionId(row.get(0)?),
        op: row.get(1)?,
        chat_id: row.get(2)?,
        reply_to: row.get(3)?,
        accepted_at: UnixMillis(row.get(4)?),
        finished_at: row.get::<_, Option<i64>>(5)?.map(UnixMillis),
        state: row.get(6)?,
        message_id: row.get(7)?,
        error: row.get(8)?,
        receipt: row.get(9)?,
    })
}
