//! The log: claiming an instance, draining what waits for it, and letting entries go that
//! were acknowledged, acknowledged late, or left behind by a socket.

mod dead;
mod evict;
mod list;
mod revise;
mod turns;
mod withdraw;

pub(super) use evict::{drop_as_gap, enforce_disk, enforce_quota};
pub(super) use revise::{has_room as has_room_for_revision, revise};
pub(super) use withdraw::withdraw;

use super::db::{Ask, Db, Param, Row, Sql, values};
use super::engine::{Engine, Owner, Store};
use super::footprint::{self, ENTRY_LENGTHS};
use super::txn::Txn;
use angelia_core::clock::UnixMillis;
use angelia_core::directory::BotKey;
use angelia_core::error::Result;
use angelia_core::inbox::outcome::{ACKNOWLEDGED_LATE, OVER_QUOTA};
use angelia_core::inbox::{
    AckHabit, Entry, EntryKind, Epoch, InstanceId, Mark, Seq, SettledBy, Usage, refusal,
};
use angelia_core::ports::log::{
    Appended, Claimed, Joined, Log, LogState, NewEntry, OpenTurn, Ownership, Returned, Revised, Revision,
    Settlement, Stretch, TurnNote, Withdrawal,
};
use angelia_core::store::{BoxFuture, Filling, Page, PageSize};
use angelia_core::turns::{ConversationKey, WhileBusy};
use bytes::Bytes;
use std::sync::LazyLock;

const ENTRY_COLUMNS: &str = "seq, kind, platform, bot, chat_id, session_key, body, revision, while_busy";
/// How many columns those are: what follows them in a row begins here.
const ENTRY_WIDTH: usize = 9;

impl<E: Engine> Log for Store<E> {
    fn append(&self, entry: NewEntry) -> BoxFuture<'_, Result<Appended>> {
        angelia_core::fail::point("before_append");
        self.0.append(entry)
    }

    fn revise(&self, revision: Revision) -> BoxFuture<'_, Result<Revised>> {
        let (owner, bytes) = (self.0.line_of(revision.instance), revision.body.len());
        self.0.write_all(owner, bytes, "revise an entry", move |txn| revise(txn, &revision))
    }

    fn withdraw(&self, withdrawal: Withdrawal) -> BoxFuture<'_, Result<bool>> {
        let owner = Owner::bot(&BotKey::new(&withdrawal.platform, &withdrawal.bot));
        self.0.write_all(owner, 0, "withdraw an entry", move |txn| withdraw(txn, &withdrawal))
    }

    fn claim(&self, instance: InstanceId, node: &str) -> BoxFuture<'_, Result<Claimed>> {
        let node = node.to_owned();
        self.0.write(self.0.line_of(instance), 0, "claim an instance", move |txn| {
            txn.lock(instance)?;
            let drains = "SELECT node FROM instances WHERE instance = $1";
            let former = txn.first(drains, values![instance], |row| row.get::<String>(0))?;
            let epoch: Option<i64> = txn.first(
                "UPDATE instances SET epoch = epoch + 1, node = $1, idle = 0 WHERE instance = $2 RETURNING epoch",
                values![node, instance],
                |row| row.get(0),
            )?;
            let Some(epoch) = epoch.map(Epoch) else {
                return Ok(Err(refusal::no_instance()));
            };
            let former = former.filter(|node| !node.is_empty());
            Ok(Ok(Claimed { epoch, mark: txn.mark(instance)?, usage: txn.usage(instance)?, former }))
        })
    }

    fn leave(&self, instance: InstanceId, epoch: Epoch) -> BoxFuture<'_, Result<Ownership>> {
        self.0.write_all(self.0.line_of(instance), 0, "leave an instance", move |txn| {
            let left = txn.execute(
                "UPDATE instances SET node = '' WHERE instance = $1 AND epoch = $2",
                values![instance, epoch.0],
            )?;
            Ok(if left > 0 { Ownership::Ours } else { Ownership::Lost })
        })
    }

    fn load(
        &self,
        instance: InstanceId,
        after: Seq,
        pass_over: &[ConversationKey],
        size: PageSize,
    ) -> BoxFuture<'_, Result<Stretch>> {
        let pass_over = pass_over.to_vec();
        self.0.read("read an inbox", move |db| {
            let (without, mut passed) = turns::without(&pass_over, 3);
            let mut of = vec![Param::Int(Some(instance.0)), Param::Int(Some(after.0))];
            of.append(&mut passed);
            stretch(db, instance, &format!("seq > $2 AND ahead = 0 {without}"), &of, size)
        })
    }

    fn load_conversation(
        &self,
        instance: InstanceId,
        conversation: &ConversationKey,
        size: PageSize,
    ) -> BoxFuture<'_, Result<Stretch>> {
        let ConversationKey { chat_id, session_key } = conversation.clone();
        self.0.read("read a conversation", move |db| match &session_key {
            Some(key) => {
                let such = "chat_id = $2 AND session_key = $3";
                stretch(db, instance, such, values![instance, chat_id, key], size)
            }
            None => stretch(db, instance, "chat_id = $2", values![instance, chat_id], size),
        })
    }

    fn join(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        joined: Joined,
    ) -> BoxFuture<'_, Result<Option<Entry>>> {
        let (owner, bytes) = (self.0.line_of(instance), joined.body.len());
        self.0.write_all(owner, bytes, "join lines", move |txn| turns::join(txn, instance, epoch, &joined))
    }

    fn note_turns(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        notes: Vec<TurnNote>,
    ) -> BoxFuture<'_, Result<Ownership>> {
        self.0.note_turns(instance, epoch, notes)
    }

    fn open_turns(&self, instance: InstanceId) -> BoxFuture<'_, Result<Vec<OpenTurn>>> {
        self.0.read("read open turns", move |db| turns::open(db, instance))
    }

    fn load_ahead(&self, instance: InstanceId, size: PageSize) -> BoxFuture<'_, Result<Stretch>> {
        self.0.read("read an inbox", move |db| stretch(db, instance, "ahead = 1", values![instance], size))
    }

    fn settle(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        settled: Vec<Settlement>,
    ) -> BoxFuture<'_, Result<Ownership>> {
        self.0.settle(instance, epoch, settled)
    }

    fn settle_late(&self, instance: InstanceId, seqs: Vec<Seq>) -> BoxFuture<'_, Result<Vec<Seq>>> {
        self.0.write_all(self.0.line_of(instance), 0, "settle late", move |txn| {
            let mut settled = Vec::new();
            for seq in &seqs {
                if settle_late(txn, instance, *seq)? {
                    settled.push(*seq);
                }
            }
            Ok(settled)
        })
    }

    fn note_pushed(&self, instance: InstanceId, pushed: Vec<(Seq, UnixMillis)>) -> BoxFuture<'_, Result<()>> {
        self.0.write_all(self.0.line_of(instance), 0, "note pushes", move |txn| {
            pushed.iter().try_for_each(|(seq, at)| note_push(txn, instance, *seq, *at, false))
        })
    }

    fn returned(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        returned: Returned,
    ) -> BoxFuture<'_, Result<Option<Seq>>> {
        self.0.write_all(self.0.line_of(instance), 0, "note returned entries", move |txn| {
            take_back(txn, instance, epoch, &returned)
        })
    }

    fn set_idle(&self, instance: InstanceId, epoch: Epoch, idle: bool) -> BoxFuture<'_, Result<Ownership>> {
        self.0.write_all(self.0.line_of(instance), 0, "flip an instance", move |txn| {
            let ownership = ownership(txn, instance, epoch)?;
            if ownership == Ownership::Ours {
                let flip = "UPDATE instances SET idle = $1 WHERE instance = $2 AND idle <> $1";
                txn.execute(flip, values![idle, instance])?;
            }
            Ok(ownership)
        })
    }

    fn set_habit(
        &self,
        instance: InstanceId,
        epoch: Epoch,
        habit: AckHabit,
    ) -> BoxFuture<'_, Result<Ownership>> {
        self.0.write_all(self.0.line_of(instance), 0, "remember a habit", move |txn| {
            let ownership = ownership(txn, instance, epoch)?;
            if ownership == Ownership::Ours {
                let remember = "UPDATE instances SET ack_habit = $1 WHERE instance = $2";
                txn.execute(remember, values![habit.as_str(), instance])?;
            }
            Ok(ownership)
        })
    }

    fn states(&self, instances: Vec<InstanceId>) -> BoxFuture<'_, Result<Vec<LogState>>> {
        self.0.read("look at the logs", move |db| {
            if instances.is_empty() {
                return Ok(Vec::new());
            }
            let given: Vec<String> = (1..=instances.len()).map(|number| format!("${number}")).collect();
            let states = format!(
                "SELECT instance, tail, redrives, epoch, node FROM instances WHERE instance IN ({}) ORDER BY instance",
                given.join(", ")
            );
            let params: Vec<Param> = instances.iter().map(|it| Param::Int(Some(it.0))).collect();
            db.all(&states, &params, |row| {
                Ok(LogState {
                    instance: InstanceId(row.get(0)?),
                    mark: Mark { tail: Seq(row.get(1)?), redrives: row.get(2)? },
                    epoch: Epoch(row.get(3)?),
                    node: Some(row.get::<String>(4)?).filter(|node| !node.is_empty()),
                })
            })
        })
    }

    fn usage(&self, instance: InstanceId) -> BoxFuture<'_, Result<Usage>> {
        self.0.read("count what waits", move |db| {
            let counted = "SELECT waiting, bytes FROM instances WHERE instance = $1";
            let usage = db.first(counted, values![instance], |row| {
                Ok(Usage { entries: row.get(0)?, bytes: row.get(1)? })
            });
            usage.map(Option::unwrap_or_default)
        })
    }

    fn waiting(&self) -> BoxFuture<'_, Result<Vec<InstanceId>>> {
        self.0
            .read("find what waits", |db| Ok(usages(db)?.into_iter().map(|(instance, _)| instance).collect()))
    }
}

/// Entries of an instance that wait and are `such`, in order. The instance is given first.
fn stretch(
    db: &mut dyn Db,
    instance: InstanceId,
    such: &str,
    of: &[Param<'_>],
    size: PageSize,
) -> Sql<Stretch> {
    // First: what is appended in between is in the page, or told of.
    let mark = mark(db, instance)?.unwrap_or_default();
    let waiting = format!(
        "SELECT {ENTRY_COLUMNS} FROM inbox WHERE instance = $1 AND dead_at IS NULL AND {such}
         ORDER BY seq LIMIT {}",
        size.count.saturating_add(1).min(1 << 30)
    );
    Ok(Stretch { page: page(db, &waiting, of, size, |row| row.length(6), entry)?, mark })
}

/// Reads rows until the page is full. `weigh` tells what a row holds before that is copied.
pub(super) fn page<T>(
    db: &mut dyn Db,
    statement: &str,
    given: &[Param<'_>],
    size: PageSize,
    weigh: impl Fn(&Row<'_>) -> Sql<usize>,
    read: impl Fn(Row<'_>) -> Sql<T>,
) -> Sql<Page<T>> {
    let (mut filling, mut page) = (Filling::new(size), Page::default());
    db.each(statement, given, &mut |row| {
        if !filling.takes(weigh(&row)?) {
            page.more = true;
            return Ok(false);
        }
        page.items.push(read(row)?);
        Ok(true)
    })?;
    Ok(page)
}

/// Where the log of an instance is; `None` if there is no such instance.
pub(super) fn mark(db: &mut dyn Db, instance: InstanceId) -> Sql<Option<Mark>> {
    let at = "SELECT tail, redrives FROM instances WHERE instance = $1";
    db.first(at, values![instance], |row| Ok(Mark { tail: Seq(row.get(0)?), redrives: row.get(1)? }))
}

/// What waits, for each instance for which something does.
pub(super) fn usages(db: &mut dyn Db) -> Sql<Vec<(InstanceId, Usage)>> {
    let waiting = "SELECT instance, waiting, bytes FROM instances WHERE waiting > 0 ORDER BY instance";
    db.all(waiting, &[], |row| {
        Ok((InstanceId(row.get(0)?), Usage { entries: row.get(1)?, bytes: row.get(2)? }))
    })
}

/// Deletes a waiting entry and its share of the usage; answers its row of the journal, or
/// `None` if it was gone.
fn remove(txn: &mut dyn Txn, instance: InstanceId, seq: Seq) -> Sql<Option<i64>> {
    // Read and then deleted: a statement that returns what it deletes keeps a table for
    // that, and costs SQLite more than two.
    static QUERY: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT length(body), dead_at IS NOT NULL, chat_id, journal, {ENTRY_LENGTHS}
             FROM inbox WHERE instance = $1 AND seq = $2"
        )
    });
    txn.lock(instance)?;
    let gone: Option<(usize, bool, String, i64, u64)> = txn.first(&QUERY, values![instance, seq], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, footprint::entry(&row, 4)?))
    })?;
    let Some((bytes, dead, chat, journal, footprint)) = gone else { return Ok(None) };
    txn.execute("DELETE FROM inbox WHERE instance = $1 AND seq = $2", values![instance, seq])?;
    if let Some(tenant) = txn.tenant_of(instance)? {
        txn.store(&tenant, 0, footprint);
    }
    if !dead {
        txn.count_out(instance, &chat, bytes)?;
    }
    Ok(Some(journal))
}

fn close_journal(txn: &mut dyn Txn, journal: i64, outcome: &str) -> Sql<()> {
    let now = txn.now();
    txn.execute(
        "UPDATE journal SET settled_at = $1, outcome = $2 WHERE id = $3",
        values![now, outcome, journal],
    )?;
    Ok(())
}

/// Whether an instance is drained under this epoch still; one that is gone is not.
fn ownership(txn: &mut dyn Txn, instance: InstanceId, epoch: Epoch) -> Sql<Ownership> {
    txn.lock(instance)?;
    let last = "SELECT epoch FROM instances WHERE instance = $1";
    let last: Option<Epoch> = txn.first(last, values![instance], |row| row.get(0).map(Epoch))?;
    Ok(Ownership::of(last, epoch))
}

/// Writes down what became of turns, if the instance is drained under this epoch still.
pub(super) fn note_turns(
    txn: &mut dyn Txn,
    instance: InstanceId,
    epoch: Epoch,
    notes: &[TurnNote],
) -> Sql<Ownership> {
    let ownership = ownership(txn, instance, epoch)?;
    if ownership == Ownership::Ours {
        notes.iter().try_for_each(|note| turns::note(txn, instance, note))?;
    }
    Ok(ownership)
}

/// Takes settled entries out; answers whose the instance is.
pub(super) fn settle_all(
    txn: &mut dyn Txn,
    instance: InstanceId,
    epoch: Epoch,
    settled: &[Settlement],
) -> Sql<Ownership> {
    for settlement in settled {
        settle(txn, instance, settlement)?;
    }
    ownership(txn, instance, epoch)
}

fn settle(txn: &mut dyn Txn, instance: InstanceId, settlement: &Settlement) -> Sql<()> {
    let Some(journal) = remove(txn, instance, settlement.seq)? else {
        withdraw::was_too_late(txn, instance, settlement)?;
        return restore_gap(txn, instance, settlement.seq, "");
    };
    let (now, outcome) = (txn.now(), settlement.by.as_str());
    txn.execute(
        "UPDATE journal SET settled_at = $1, outcome = $2, pushed_at = coalesce(pushed_at, $3),
         pushes = pushes + CASE WHEN $3 IS NULL THEN 0 ELSE 1 END WHERE id = $4",
        values![now, outcome, settlement.pushed_at, journal],
    )?;
    Ok(())
}

/// Settles an entry that an earlier socket pushed; `false` if there is none. Numbers
/// can be made up: what was never pushed is not done.
fn settle_late(txn: &mut dyn Txn, instance: InstanceId, seq: Seq) -> Sql<bool> {
    txn.lock(instance)?;
    let pushed: Option<bool> = txn.first(
        "SELECT pushed_at IS NOT NULL FROM inbox i JOIN journal j ON j.id = i.journal
         WHERE i.instance = $1 AND i.seq = $2",
        values![instance, seq],
        |row| row.get(0),
    )?;
    match pushed {
        None => restore_gap(txn, instance, seq, "AND pushed_at IS NOT NULL").map(|()| false),
        Some(false) => Ok(false),
        Some(true) => match remove(txn, instance, seq)? {
            Some(journal) => close_journal(txn, journal, ACKNOWLEDGED_LATE).map(|()| true),
            None => Ok(false),
        },
    }
}

/// An entry that went for the quota while it was in flight, and was
/// acknowledged after all, is not lost; if `pushed` holds.
fn restore_gap(txn: &mut dyn Txn, instance: InstanceId, seq: Seq, pushed: &str) -> Sql<()> {
    let chat: Option<String> = txn.first(
        &format!(
            "UPDATE journal SET outcome = $1
             WHERE instance = $2 AND seq = $3 AND outcome = '{OVER_QUOTA}' {pushed} RETURNING chat_id"
        ),
        values![SettledBy::Ack.as_str(), instance, seq],
        |row| row.get(0),
    )?;
    let Some(chat) = chat else { return Ok(()) };
    let of = values![instance, chat];
    txn.execute("UPDATE gaps SET lost = lost - 1 WHERE instance = $1 AND chat_id = $2", of)?;
    txn.execute("DELETE FROM gaps WHERE instance = $1 AND chat_id = $2 AND lost <= 0", of)?;
    txn.execute(
        "DELETE FROM untold_gaps WHERE instance = $1 AND chat_id = $2
         AND NOT EXISTS (SELECT 1 FROM gaps WHERE instance = $1 AND chat_id = $2)",
        of,
    )?;
    Ok(())
}

/// Notes what a socket left behind; answers the entry that became a dead letter.
fn take_back(txn: &mut dyn Txn, instance: InstanceId, epoch: Epoch, returned: &Returned) -> Sql<Option<Seq>> {
    for (seq, pushed_at) in &returned.entries {
        note_push(txn, instance, *seq, *pushed_at, true)?;
    }
    if ownership(txn, instance, epoch)? == Ownership::Lost {
        return Ok(None);
    }
    // Whoever was in flight and is not struck was not the obstacle this time.
    txn.execute(
        "UPDATE inbox SET strikes = 0 WHERE instance = $1 AND strikes > 0 AND seq <> $2",
        values![instance, returned.strike.map_or(0, |seq| seq.0)],
    )?;
    match returned.strike {
        Some(seq) => dead::strike(txn, instance, seq),
        None => Ok(None),
    }
}

/// Notes when an entry that waits was pushed; `counts` if a socket ended with it.
fn note_push(
    txn: &mut dyn Txn,
    instance: InstanceId,
    seq: Seq,
    pushed_at: UnixMillis,
    counts: bool,
) -> Sql<()> {
    txn.execute(
        "UPDATE journal SET pushed_at = coalesce(pushed_at, $1), pushes = pushes + $2
         WHERE id = (SELECT journal FROM inbox WHERE instance = $3 AND seq = $4)",
        values![pushed_at, counts, instance, seq],
    )?;
    Ok(())
}

pub(super) fn entry(row: Row<'_>) -> Sql<Entry> {
    let kind: String = row.get(1)?;
    Ok(Entry {
        seq: Seq(row.get(0)?),
        kind: EntryKind::parse(&kind).unwrap_or(EntryKind::Message),
        platform: row.get(2)?,
        bot: row.get(3)?,
        chat_id: row.get(4)?,
        session_key: row.get(5)?,
        body: Bytes::from(row.get::<Vec<u8>>(6)?),
        revision: row.get(7)?,
        while_busy: row.get::<Option<String>>(8)?.and_then(|word| WhileBusy::parse(&word)),
    })
}
