//! Writing down which turns of many instances are open.

use super::NOW;
use super::given::{Given, numbers, some_text, text, texts};
use angelia_core::inbox::{Epoch, InstanceId};
use angelia_core::ports::log::{OpenTurn, TurnNote};
use angelia_core::turns::ConversationKey;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Whether notes are done here: turns that begin and end. What is noted in the journal is left.
fn is_usual(notes: &[TurnNote]) -> bool {
    notes.iter().all(|note| matches!(note, TurnNote::Opened(_) | TurnNote::Closed(_)))
}

/// Opens turns of instances that are locked, where they are drained under the epoch that is given.
pub(super) static OPEN: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO turns (instance, chat_id, session_key, platform, bot, thread_id, seq, message_id, author, asks,
                            opened_at)
         SELECT g.instance, g.chat_id, g.session_key, g.platform, g.bot, g.thread_id, g.seq, g.message_id, g.author,
                g.asks, {NOW}
         FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS
              g (instance, epoch, chat_id, session_key, platform, bot, thread_id, seq, message_id, author, asks)
         JOIN instances i ON i.instance = g.instance AND i.epoch = g.epoch
         ON CONFLICT (instance, chat_id, session_key) DO UPDATE
         SET platform = excluded.platform, bot = excluded.bot, thread_id = excluded.thread_id, seq = excluded.seq,
             message_id = excluded.message_id, author = excluded.author, asks = excluded.asks,
             opened_at = excluded.opened_at"
    )
});

/// Closes turns likewise.
pub(super) const CLOSE: &str = "DELETE FROM turns t
    USING unnest($1, $2, $3, $4) AS g (instance, epoch, chat_id, session_key), instances i
    WHERE i.instance = g.instance AND i.epoch = g.epoch
      AND t.instance = g.instance AND t.chat_id = g.chat_id AND t.session_key = g.session_key";

/// What names the row of a turn, and under which epoch it is written.
type Key<'a> = (i64, i64, Cow<'a, str>, Cow<'a, str>);

/// Turns that open and close; of each row the last word.
#[derive(Default)]
pub(super) struct Turns<'a> {
    rows: BTreeMap<Key<'a>, Option<&'a OpenTurn>>,
    /// Whose notes are done here, by the place of their write.
    taken: BTreeSet<usize>,
    /// Instances of which something is left: so is what comes after it.
    left: BTreeSet<i64>,
}

impl<'a> Turns<'a> {
    pub(super) fn push(&mut self, place: usize, instance: InstanceId, epoch: Epoch, notes: &'a [TurnNote]) {
        if !is_usual(notes) || self.left.contains(&instance.0) {
            self.left.insert(instance.0);
            return;
        }
        self.taken.insert(place);
        for note in notes {
            let (key, turn): (&ConversationKey, _) = match note {
                TurnNote::Opened(turn) => (&turn.conversation, Some(turn)),
                TurnNote::Closed(key) => (key, None),
                TurnNote::Interrupted(_) | TurnNote::Held(_) => continue,
            };
            let session = text(key.session_key.as_deref().unwrap_or_default());
            self.rows.insert((instance.0, epoch.0, text(&key.chat_id), session), turn);
        }
    }

    /// Which writes are done here.
    pub(super) fn taken(&self) -> &BTreeSet<usize> {
        &self.taken
    }

    /// Column by column.
    pub(super) fn columns(&self) -> Columns<'_> {
        let mut columns = Columns::default();
        for (key, turn) in &self.rows {
            match turn {
                Some(turn) => columns.open(key, turn),
                None => columns.closed.push(key),
            }
        }
        columns
    }
}

/// Rows, column by column.
#[derive(Default)]
struct Rows<'a>(Vec<i64>, Vec<i64>, Vec<&'a str>, Vec<&'a str>);

impl<'a> Rows<'a> {
    fn push(&mut self, (instance, epoch, chat, session): &'a Key<'_>) {
        self.0.push(*instance);
        self.1.push(*epoch);
        self.2.push(chat);
        self.3.push(session);
    }

    fn given(&self) -> Vec<Given<'_>> {
        vec![numbers(&self.0), numbers(&self.1), texts(&self.2), texts(&self.3)]
    }
}

#[derive(Default)]
pub(super) struct Columns<'a> {
    closed: Rows<'a>,
    opened: Rows<'a>,
    platforms: Vec<Cow<'a, str>>,
    bots: Vec<Cow<'a, str>>,
    threads: Vec<Option<Cow<'a, str>>>,
    seqs: Vec<i64>,
    messages: Vec<Cow<'a, str>>,
    authors: Vec<Option<Cow<'a, str>>>,
    asks: Vec<i64>,
}

impl<'a> Columns<'a> {
    fn open(&mut self, key: &'a Key<'_>, turn: &'a OpenTurn) {
        self.opened.push(key);
        self.platforms.push(text(&turn.platform));
        self.bots.push(text(&turn.bot));
        self.threads.push(some_text(turn.thread_id.as_deref()));
        self.seqs.push(turn.seq.0);
        self.messages.push(text(&turn.message_id));
        self.authors.push(some_text(turn.author.as_deref()));
        self.asks.push(turn.asks.into());
    }

    /// The statements that there is something for, and what they are given.
    pub(super) fn statements(&self) -> Vec<(&str, Vec<Given<'_>>)> {
        let mut statements: Vec<(&str, Vec<Given<'_>>)> = Vec::new();
        if !self.closed.0.is_empty() {
            statements.push((CLOSE, self.closed.given()));
        }
        if !self.seqs.is_empty() {
            let mut given = self.opened.given();
            given.extend([
                texts(&self.platforms),
                texts(&self.bots),
                texts(&self.threads),
                numbers(&self.seqs),
                texts(&self.messages),
                texts(&self.authors),
                numbers(&self.asks),
            ]);
            statements.push((&OPEN, given));
        }
        statements
    }
}
