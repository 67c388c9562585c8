//! The open transaction, as changes see it: the database, what is counted beside
//! it, and what is to be told once it is durable.

use super::clock::Clock;
use super::space::Space;
use super::stored::Stored;
use super::webchat::{LineIds, RoomSizes};
use angelia_core::clock;
use angelia_core::inbox::{Entry, Held, InstanceId, Mark, Quota, Seq};
use angelia_core::ports::{Hint, HintKind};
use angelia_core::records::Erased;
use angelia_core::store::Line;
use rusqlite::{Connection, params};
use std::collections::HashMap;
use std::ops::Deref;

/// The open transaction, with what is to be told after its commit.
pub(super) struct Txn<'a> {
    pub(super) connection: &'a Connection,
    pub(super) quota: &'a Quota,
    /// By which rows grow old.
    pub(super) clock: &'a Clock,
    /// The disk this is written to.
    pub(super) space: &'a Space,
    pub(super) held: &'a mut HashMap<InstanceId, Held>,
    pub(super) marks: &'a mut HashMap<InstanceId, Mark>,
    pub(super) stored: &'a mut Stored,
    pub(super) rooms: &'a mut RoomSizes,
    pub(super) line_ids: &'a mut LineIds,
    /// Whether so much was taken away at once that it is easier to count anew.
    pub(super) recount: bool,
    pub(super) touched: Vec<InstanceId>,
    pub(super) news: Vec<News>,
}

/// What is told after a commit.
pub(super) enum News {
    Hint(Hint),
    TakenIn,
    EmptyLog(Erased),
}

impl Deref for Txn<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl Txn<'_> {
    /// What waits for an instance, this transaction included.
    pub(super) fn held(&mut self, instance: InstanceId) -> &Held {
        self.held.entry(instance).or_default()
    }

    /// Counts an entry in or out of what waits for an instance.
    pub(super) fn count(&mut self, instance: InstanceId, change: impl FnOnce(&mut Held)) {
        change(self.held.entry(instance).or_default());
        self.touched.push(instance);
    }

    /// Where the log of an instance is, this transaction included.
    pub(super) fn mark(&mut self, instance: InstanceId) -> rusqlite::Result<Mark> {
        if let Some(mark) = self.marks.get(&instance) {
            return Ok(*mark);
        }
        let mark = super::inbox::mark(self.connection, instance)?.unwrap_or_default();
        self.marks.insert(instance, mark);
        Ok(mark)
    }

    /// Moves the log of an instance on.
    pub(super) fn set_mark(&mut self, instance: InstanceId, mark: Mark) {
        self.marks.insert(instance, mark);
        self.touched.push(instance);
    }

    /// Writes where the logs are that this transaction touched, and what waits there:
    /// once for each, however much of it there was. And the last id of a line.
    pub(super) fn write_counters(&mut self) -> rusqlite::Result<()> {
        self.line_ids.write(self.connection)?;
        self.touched.sort_unstable();
        self.touched.dedup();
        for instance in std::mem::take(&mut self.touched) {
            let (mark, usage) = (self.mark(instance)?, self.held(instance).all());
            self.connection
                .prepare_cached(
                    "UPDATE instances SET tail = ?, redrives = ?, waiting = ?, bytes = ? WHERE instance = ?",
                )?
                .execute(params![mark.tail.0, mark.redrives, usage.entries, usage.bytes, instance.0])?;
        }
        Ok(())
    }

    /// What is kept on disk of each tenant, this transaction included.
    pub(super) fn stored(&mut self) -> (&Connection, &mut Stored) {
        (self.connection, self.stored)
    }

    /// What is kept of a tenant.
    pub(super) fn stored_of(&self, tenant: &str) -> u64 {
        self.stored.of(tenant)
    }

    /// What rooms of the web chat hold.
    pub(super) fn rooms(&mut self) -> &mut RoomSizes {
        self.rooms
    }

    /// Has what is kept counted anew after this transaction.
    pub(super) fn recount(&mut self) {
        self.recount = true;
    }

    fn tell(&mut self, hint: Hint) {
        self.news.push(News::Hint(hint));
    }

    /// Tells of an appended entry once it is durable.
    pub(super) fn appended(&mut self, instance: InstanceId, mark: Mark, entry: Entry, ahead: bool) {
        let kind = if ahead { HintKind::Ahead } else { HintKind::Appended };
        self.tell(Hint::Log { instance, mark, entry, kind });
    }

    /// Tells of a dead letter that is in line again, once that is durable.
    pub(super) fn redriven(&mut self, instance: InstanceId, mark: Mark, entry: Entry) {
        self.tell(Hint::Log { instance, mark, entry, kind: HintKind::Redriven });
    }

    /// Tells of removed entries once that is durable.
    pub(super) fn removed(&mut self, instance: InstanceId, seqs: Vec<Seq>) {
        self.tell(Hint::Removed { instance, seqs });
    }

    /// Tells of an entry that says something else, once that is durable.
    pub(super) fn revised(&mut self, instance: InstanceId, entry: Entry) {
        self.tell(Hint::Revised { instance, entry });
    }

    /// Tells of a web-chat line once it is durable.
    pub(super) fn line(&mut self, line: Line) {
        self.tell(Hint::Line(line));
    }

    /// Marks the transaction as one that moves a bot's place in what it reads.
    pub(super) fn taken_in(&mut self) {
        self.news.push(News::TakenIn);
    }

    /// Empties the log after the commit while space is short, so that the next step has room.
    pub(super) fn then_make_room(&mut self) {
        if self.space.is_short() {
            self.then_empty_log(Erased::default());
        }
    }

    /// Empties the log after the commit, so that what this transaction replaced
    /// is gone from the disk; tells whether that went through.
    pub(super) fn then_empty_log(&mut self, erased: Erased) {
        self.news.push(News::EmptyLog(erased));
    }
}

/// The time written into rows of this transaction.
pub(super) fn now() -> i64 {
    clock::wall().0
}
