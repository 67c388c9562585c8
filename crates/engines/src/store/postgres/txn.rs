//! A transaction of PostgreSQL, as changes see it.
//!
//! The row of an instance is the lock of its log and its inbox: it is taken before either is
//! read, and what it counts is written back to it at the end. After the rows of instances come
//! those of actions, of rooms, of tenants and of counters, always in this order.

use super::connection::Waiting;
use crate::store::budget::Budget;
use crate::store::clock::Clock;
use crate::store::db::{Ask, Db, EachRow, Param, Sql, values};
use crate::store::footprint::{self, ACTION_LENGTHS, ENTRY_LENGTHS, JOURNAL_LENGTHS};
use crate::store::txn::Txn;
use angelia_core::inbox::{Held, InstanceId, Mark, Quota, Seq, Usage};
use angelia_core::ports::{ActionId, Hint};
use angelia_core::records::Erased;
use angelia_core::rooms::RoomSize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What one step of a long deletion may change: few enough to hold up nobody.
const STEP: u64 = 8 * 1024 * 1024;
/// The counter of the change feed.
const FEED: &str = "feed";
/// The part of an inbox below which it does not matter which chat holds how much.
const SMALL_PART: u64 = 2;

/// The row of an instance, which is ours until the end.
struct Locked {
    mark: Mark,
    usage: Usage,
    tenant: Arc<str>,
    changed: bool,
}

/// An open transaction.
pub(super) struct OpenTxn<'a> {
    db: Waiting<'a>,
    now: i64,
    quota: Quota,
    clock: &'a Arc<Clock>,
    instances: BTreeMap<InstanceId, Option<Locked>>,
    rooms: BTreeSet<String>,
    /// Bytes that tenants keep more, or less.
    stored: BTreeMap<String, i64>,
    hints: Vec<Hint>,
    taken_in: bool,
}

impl<'a> OpenTxn<'a> {
    pub(super) fn new(db: Waiting<'a>, now: i64, quota: Quota, clock: &'a Arc<Clock>) -> Self {
        Self {
            db,
            now,
            quota,
            clock,
            instances: BTreeMap::new(),
            rooms: BTreeSet::new(),
            stored: BTreeMap::new(),
            hints: Vec::new(),
            taken_in: false,
        }
    }

    /// What is to be told once it is durable, and whether it moves a bot's place in what it reads.
    pub(super) fn told(self) -> (Vec<Hint>, bool) {
        (self.hints, self.taken_in)
    }

    /// The row of an instance; `None` if there is none.
    fn row(&mut self, instance: InstanceId) -> Sql<Option<&mut Locked>> {
        if !self.instances.contains_key(&instance) {
            let row = self.db.first(
                "SELECT tail, redrives, waiting, bytes, tenant FROM instances WHERE instance = $1
                 FOR NO KEY UPDATE",
                values![instance],
                |row| {
                    Ok(Locked {
                        mark: Mark { tail: Seq(row.get(0)?), redrives: row.get(1)? },
                        usage: Usage { entries: row.get(2)?, bytes: row.get(3)? },
                        tenant: row.get(4)?,
                        changed: false,
                    })
                },
            )?;
            self.instances.insert(instance, row);
        }
        Ok(self.instances.get_mut(&instance).and_then(Option::as_mut))
    }

    fn change(&mut self, instance: InstanceId, change: impl FnOnce(&mut Locked)) -> Sql<()> {
        if let Some(row) = self.row(instance)? {
            change(row);
            row.changed = true;
        }
        Ok(())
    }

    /// What one chat has waiting.
    fn of_chat(&mut self, instance: InstanceId, chat: &str) -> Sql<Usage> {
        self.db.one(
            "SELECT count(*), CAST(coalesce(sum(length(body)), 0) AS BIGINT) FROM inbox
             WHERE instance = $1 AND chat_id = $2 AND dead_at IS NULL",
            values![instance, chat],
            |row| Ok(Usage { entries: row.get(0)?, bytes: row.get(1)? }),
        )
    }

    /// What is kept of a tenant, counted from the rows.
    fn counted(&mut self, tenant: &str) -> Sql<u64> {
        let waiting =
            format!("SELECT {ENTRY_LENGTHS} FROM inbox JOIN instances USING (instance) WHERE tenant = $1");
        let journal = format!("SELECT {JOURNAL_LENGTHS} FROM journal WHERE tenant = $1");
        let actions = format!("SELECT {ACTION_LENGTHS} FROM actions WHERE tenant = $1");
        let mut all = self.db.all(&waiting, values![tenant], |row| footprint::entry(&row, 0))?;
        all.extend(self.db.all(&journal, values![tenant], |row| footprint::journal(&row, 0))?);
        all.extend(self.db.all(&actions, values![tenant], |row| footprint::action(&row, 0))?);
        Ok(all.into_iter().sum())
    }
}

impl Db for OpenTxn<'_> {
    fn execute(&mut self, statement: &str, given: &[Param<'_>]) -> Sql<usize> {
        self.db.execute(statement, given)
    }

    fn each(&mut self, statement: &str, given: &[Param<'_>], row: EachRow<'_>) -> Sql<()> {
        self.db.each(statement, given, row)
    }

    fn insert(&mut self, statement: &str, given: &[Param<'_>]) -> Sql<Option<i64>> {
        self.db.insert(statement, given)
    }

    fn next_number(&mut self, table: &str, key: &str, given: i64) -> Sql<i64> {
        self.db.next_number(table, key, given)
    }
}

impl Txn for OpenTxn<'_> {
    fn now(&self) -> i64 {
        self.now
    }

    fn quota(&self) -> Quota {
        self.quota
    }

    fn clock(&self) -> &Arc<Clock> {
        self.clock
    }

    fn lock(&mut self, instance: InstanceId) -> Sql<()> {
        self.row(instance).map(drop)
    }

    fn share_owner(&mut self, owner: i64) -> Sql<()> {
        let share = "SELECT 1 FROM ledger_owners WHERE owner = $1 FOR SHARE";
        self.db.each(share, values![owner], &mut |_| Ok(true))
    }

    fn lock_owners(&mut self, owner: Option<i64>) -> Sql<()> {
        let lock = "SELECT 1 FROM ledger_owners WHERE $1 IS NULL OR owner = $1 ORDER BY owner FOR UPDATE";
        self.db.each(lock, values![owner], &mut |_| Ok(true))
    }

    fn new_owner(&mut self, owner: i64) -> Sql<()> {
        self.execute("INSERT INTO ledger_owners VALUES ($1) ON CONFLICT DO NOTHING", values![owner]).map(drop)
    }

    fn lock_gateway(&mut self, tenant: &str, gateway: &str, instance: InstanceId) -> Sql<()> {
        let lock = "SELECT 1 FROM instances WHERE instance = $1 OR instance IN (
                SELECT instance FROM gateways WHERE tenant = $2 AND gateway_id = $3)
            ORDER BY instance FOR NO KEY UPDATE";
        self.db.each(lock, values![instance, tenant, gateway], &mut |_| Ok(true))
    }

    fn lock_action(&mut self, action: ActionId) -> Sql<()> {
        let lock = "SELECT 1 FROM actions WHERE id = $1 FOR NO KEY UPDATE";
        self.db.each(lock, values![action], &mut |_| Ok(true))
    }

    fn lock_room(&mut self, room: &str) -> Sql<()> {
        if self.rooms.insert(room.to_owned()) {
            self.execute(
                "INSERT INTO webchat_rooms (room, seq, lines, bytes) VALUES ($1, 0, 0, 0)
                 ON CONFLICT (room) DO UPDATE SET seq = webchat_rooms.seq",
                values![room],
            )?;
        }
        Ok(())
    }

    fn share_lease(&mut self, name: &str) -> Sql<()> {
        let share = "SELECT 1 FROM leases WHERE name = $1 FOR SHARE";
        self.db.each(share, values![name], &mut |_| Ok(true))
    }

    fn lock_lease(&mut self, name: &str) -> Sql<()> {
        let lock = "SELECT 1 FROM leases WHERE name = $1 FOR NO KEY UPDATE";
        self.db.each(lock, values![name], &mut |_| Ok(true))
    }

    fn usage(&mut self, instance: InstanceId) -> Sql<Usage> {
        Ok(self.row(instance)?.map(|row| row.usage).unwrap_or_default())
    }

    fn with_held(&mut self, instance: InstanceId, look: &mut dyn FnMut(&Held)) -> Sql<()> {
        self.lock(instance)?;
        let mut held = Held::default();
        self.db.each(
            "SELECT chat_id, count(*), CAST(sum(length(body)) AS BIGINT) FROM inbox
             WHERE instance = $1 AND dead_at IS NULL GROUP BY chat_id",
            values![instance],
            &mut |row| {
                held.put(row.get(0)?, Usage { entries: row.get(1)?, bytes: row.get(2)? });
                Ok(true)
            },
        )?;
        look(&held);
        Ok(())
    }

    fn held_with(&mut self, instance: InstanceId, chat: &str) -> Sql<Held> {
        let (all, quota) = (self.usage(instance)?, self.quota);
        let small = all.entries < quota.entries / SMALL_PART && all.bytes < quota.bytes / SMALL_PART;
        let own = if small { Usage::default() } else { self.of_chat(instance, chat)? };
        Ok(Held::with(all, chat, own))
    }

    fn count_in(&mut self, instance: InstanceId, _chat: &Arc<str>, bytes: usize) -> Sql<()> {
        self.change(instance, |row| row.usage.add(bytes))
    }

    fn count_out(&mut self, instance: InstanceId, _chat: &str, bytes: usize) -> Sql<()> {
        self.change(instance, |row| row.usage.remove(bytes))
    }

    fn count_none(&mut self, instance: InstanceId) -> Sql<()> {
        self.change(instance, |row| row.usage = Usage::default())
    }

    fn mark(&mut self, instance: InstanceId) -> Sql<Mark> {
        Ok(self.row(instance)?.map(|row| row.mark).unwrap_or_default())
    }

    fn set_mark(&mut self, instance: InstanceId, mark: Mark) -> Sql<()> {
        self.change(instance, |row| row.mark = mark)
    }

    fn tenant_of(&mut self, instance: InstanceId) -> Sql<Option<Arc<str>>> {
        Ok(self.row(instance)?.map(|row| row.tenant.clone()))
    }

    fn stored(&mut self, tenant: &str) -> Sql<u64> {
        let kept = "SELECT bytes FROM tenant_usage WHERE tenant = $1";
        let kept: Option<i64> = self.db.first(kept, values![tenant], |row| row.get(0))?;
        let more = self.stored.get(tenant).copied().unwrap_or_default();
        Ok(u64::try_from(kept.unwrap_or_default() + more).unwrap_or_default())
    }

    fn store(&mut self, tenant: &str, more: u64, less: u64) {
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        *self.stored.entry(tenant.to_owned()).or_default() += signed(more) - signed(less);
    }

    fn write_counters(&mut self) -> Sql<()> {
        for (instance, row) in &mut self.instances {
            let Some(row) = row.as_mut().filter(|row| row.changed) else { continue };
            row.changed = false;
            self.db.execute(
                "UPDATE instances SET tail = $1, redrives = $2, waiting = $3, bytes = $4 WHERE instance = $5",
                values![row.mark.tail, row.mark.redrives, row.usage.entries, row.usage.bytes, instance],
            )?;
        }
        for (tenant, more) in std::mem::take(&mut self.stored) {
            if more != 0 {
                self.db.execute(
                    "INSERT INTO tenant_usage (tenant, bytes) VALUES ($1, greatest($2, 0))
                     ON CONFLICT (tenant) DO UPDATE SET bytes = greatest(tenant_usage.bytes + $2, 0)",
                    values![tenant, more],
                )?;
            }
        }
        Ok(())
    }

    fn recount(&mut self, tenant: &str) -> Sql<()> {
        // First: whoever counts meanwhile waits for this.
        self.db.execute("DELETE FROM tenant_usage WHERE tenant = $1", values![tenant])?;
        let bytes = self.counted(tenant)?;
        self.stored.remove(tenant);
        self.store(tenant, bytes, 0);
        Ok(())
    }

    fn room_grows(&mut self, room: &str, lines: u64, bytes: usize) -> Sql<RoomSize> {
        self.db.one(
            "UPDATE webchat_rooms SET lines = lines + $1, bytes = bytes + $2 WHERE room = $3
             RETURNING lines, bytes",
            values![lines, bytes, room],
            |row| Ok(RoomSize { lines: row.get(0)?, bytes: row.get(1)? }),
        )
    }

    fn room_is_empty(&mut self, room: &str) -> Sql<()> {
        self.lock_room(room)?;
        self.execute(
            "DELETE FROM webchat_rooms WHERE room = $1
             AND NOT EXISTS (SELECT 1 FROM webchat_lines WHERE webchat_lines.room = webchat_rooms.room)",
            values![room],
        )
        .map(drop)
    }

    fn set_room_size(&mut self, room: &str, size: RoomSize) -> Sql<()> {
        let set = "UPDATE webchat_rooms SET lines = $1, bytes = $2 WHERE room = $3";
        self.execute(set, values![size.lines, size.bytes, room]).map(drop)
    }

    fn next_line_number(&mut self, room: &str) -> Sql<i64> {
        self.lock_room(room)?;
        self.db.says("UPDATE webchat_rooms SET seq = seq + 1 WHERE room = $1 RETURNING seq", values![room])
    }

    fn next_line_id(&mut self) -> Sql<i64> {
        self.next_number("webchat_lines", "id", 0)
    }

    fn count_up(&mut self, counter: &str) -> Sql<i64> {
        self.db.says(
            "INSERT INTO counters (name, value) VALUES ($1, 1)
             ON CONFLICT (name) DO UPDATE SET value = counters.value + 1 RETURNING value",
            values![counter],
        )
    }

    fn raise(&mut self, counter: &str, to: i64) -> Sql<()> {
        self.execute(
            "INSERT INTO counters (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = greatest(counters.value, excluded.value)",
            values![counter, to],
        )
        .map(drop)
    }

    fn counter(&mut self, counter: &str) -> Sql<i64> {
        self.db.says("SELECT coalesce((SELECT value FROM counters WHERE name = $1), 0)", values![counter])
    }

    fn feed(&mut self, records: &str, key: &str) -> Sql<()> {
        let (id, now) = (self.count_up(FEED)?, self.now);
        self.execute(
            "INSERT INTO changes (id, records, key, at) VALUES ($1, $2, $3, $4)",
            values![id, records, key, now],
        )
        .map(drop)
    }

    fn tell(&mut self, hint: Hint) {
        self.hints.push(hint);
    }

    fn taken_in(&mut self) {
        self.taken_in = true;
    }

    fn budget(&self) -> Budget {
        Budget::new(STEP)
    }

    fn upkeep_budget(&self) -> Option<Budget> {
        None
    }

    /// What was replaced is overwritten when the table is vacuumed, and not before.
    fn then_erase(&mut self, erased: Erased) {
        erased.tell(false);
    }
}
