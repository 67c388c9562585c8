//! What is kept on disk of each tenant: bodies to the byte, rows by what they
//! take. Counted in memory by the one thread that writes, and anew from the
//! tables at every start and after every transaction that failed.

use angelia_core::inbox::InstanceId;
use rusqlite::{Connection, OptionalExtension};
use std::collections::HashMap;
use std::sync::Arc;

/// What rows take besides bodies, indices included: measured with a hundred thousand of each.
const ENTRY_ROW: u64 = 400;
const JOURNAL_ROW: u64 = 350;
const ACTION_ROW: u64 = 450;

/// The counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stored {
    tenants: HashMap<Arc<str>, u64>,
    /// Whose an unfinished action is, and the bytes of its body.
    unfinished: HashMap<i64, (Arc<str>, u64)>,
    /// Whose an instance is.
    instances: HashMap<InstanceId, Arc<str>>,
}

impl Stored {
    /// Counts everything.
    pub(super) fn read(db: &Connection) -> rusqlite::Result<Self> {
        let mut stored = Self::default();
        let rows = [
            ("SELECT tenant, count(*), 0 FROM journal GROUP BY tenant", JOURNAL_ROW),
            ("SELECT tenant, count(*), 0 FROM actions GROUP BY tenant", ACTION_ROW),
            (
                "SELECT tenant, count(*), coalesce(sum(length(body)), 0) FROM inbox JOIN instances USING (instance)
                 GROUP BY tenant",
                ENTRY_ROW,
            ),
        ];
        for (query, each) in rows {
            let mut statement = db.prepare(query)?;
            let mut found = statement.query([])?;
            while let Some(row) = found.next()? {
                let (count, bytes): (u64, u64) = (row.get(1)?, row.get(2)?);
                stored.add(&row.get::<_, Arc<str>>(0)?, count * each + bytes);
            }
        }
        let mut statement = db.prepare(
            "SELECT id, tenant, coalesce(length(body), 0) FROM actions WHERE state IN ('accepted', 'sending')",
        )?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let (tenant, bytes): (Arc<str>, u64) = (row.get(1)?, row.get(2)?);
            stored.add(&tenant, bytes);
            stored.unfinished.insert(row.get(0)?, (tenant, bytes));
        }
        Ok(stored)
    }

    /// What is kept of a tenant.
    pub(super) fn of(&self, tenant: &str) -> u64 {
        self.tenants.get(tenant).copied().unwrap_or_default()
    }

    /// What an entry of so many bytes takes.
    pub(super) fn entry(bytes: usize) -> u64 {
        ENTRY_ROW + JOURNAL_ROW + bytes as u64
    }

    /// What an action of so many bytes takes.
    pub(super) fn action(bytes: usize) -> u64 {
        ACTION_ROW + bytes as u64
    }

    /// An entry was appended, and its row of the journal.
    pub(super) fn appended(&mut self, tenant: &str, bytes: usize) {
        self.add(&tenant.into(), Self::entry(bytes));
    }

    /// An entry left its inbox; its row of the journal stays.
    pub(super) fn removed(
        &mut self,
        db: &Connection,
        instance: InstanceId,
        bytes: usize,
    ) -> rusqlite::Result<()> {
        if let Some(tenant) = self.tenant_of(db, instance)? {
            self.subtract(&tenant, ENTRY_ROW + bytes as u64);
        }
        Ok(())
    }

    /// An entry has another body.
    pub(super) fn revised(
        &mut self,
        db: &Connection,
        instance: InstanceId,
        before: usize,
        now: usize,
    ) -> rusqlite::Result<()> {
        if let Some(tenant) = self.tenant_of(db, instance)? {
            self.subtract(&tenant, before as u64);
            self.add(&tenant, now as u64);
        }
        Ok(())
    }

    /// An action was written down.
    pub(super) fn accepted(&mut self, id: i64, tenant: &str, bytes: usize) {
        let tenant: Arc<str> = tenant.into();
        self.add(&tenant, Self::action(bytes));
        self.unfinished.insert(id, (tenant, bytes as u64));
    }

    /// An action is finished, and its body gone.
    pub(super) fn finished(&mut self, id: i64) {
        if let Some((tenant, bytes)) = self.unfinished.remove(&id) {
            self.subtract(&tenant, bytes);
        }
    }

    /// Finished actions of a tenant are forgotten.
    pub(super) fn forgot_actions(&mut self, tenant: &str, count: u64) {
        self.subtract(tenant, count * ACTION_ROW);
    }

    /// Rows of a tenant's journal are forgotten.
    pub(super) fn forgot_journal(&mut self, tenant: &str, count: u64) {
        self.subtract(tenant, count * JOURNAL_ROW);
    }

    fn tenant_of(&mut self, db: &Connection, instance: InstanceId) -> rusqlite::Result<Option<Arc<str>>> {
        if let Some(tenant) = self.instances.get(&instance) {
            return Ok(Some(tenant.clone()));
        }
        let tenant: Option<Arc<str>> = db
            .prepare_cached("SELECT tenant FROM instances WHERE instance = ?")?
            .query_row([instance.0], |row| row.get(0))
            .optional()?;
        if let Some(tenant) = &tenant {
            self.instances.insert(instance, tenant.clone());
        }
        Ok(tenant)
    }

    fn add(&mut self, tenant: &Arc<str>, bytes: u64) {
        *self.tenants.entry(tenant.clone()).or_default() += bytes;
    }

    fn subtract(&mut self, tenant: &str, bytes: u64) {
        if let Some(stored) = self.tenants.get_mut(tenant) {
            *stored = stored.saturating_sub(bytes);
            if *stored == 0 {
                self.tenants.remove(tenant);
            }
        }
    }

    /// The counts alone, to compare with those of the tables.
    pub(super) fn counts(&self) -> (&HashMap<Arc<str>, u64>, usize) {
        (&self.tenants, self.unfinished.len())
    }
}
