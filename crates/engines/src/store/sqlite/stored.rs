//! What is kept on disk of each tenant, as it lies there. Counted in memory by the
//! one thread that writes, and anew from the tables at every start and after every
//! transaction that failed.

use super::footprint::{self, ACTION_LENGTHS, ENTRY_LENGTHS, JOURNAL_LENGTHS};
use super::owners::Owners;
use angelia_core::inbox::InstanceId;
use rusqlite::{Connection, OptionalExtension, Row};
use std::collections::HashMap;
use std::sync::Arc;

/// The counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    tenants: HashMap<Arc<str>, u64>,
    /// Whose an unfinished action is, and what it takes.
    unfinished: HashMap<i64, (Arc<str>, u64)>,
    /// Whose what is, for others to know.
    owners: Arc<Owners>,
}

impl Stored {
    /// Counts everything.
    pub(super) fn read(db: &Connection, owners: Arc<Owners>) -> rusqlite::Result<Self> {
        let mut stored = Self { owners, ..Self::default() };
        let waiting = format!("SELECT tenant, {ENTRY_LENGTHS} FROM inbox JOIN instances USING (instance)");
        stored.read_rows(db, &waiting, footprint::entry)?;
        stored.read_rows(
            db,
            &format!("SELECT tenant, {JOURNAL_LENGTHS} FROM journal"),
            footprint::journal,
        )?;
        stored.read_rows(db, &format!("SELECT tenant, {ACTION_LENGTHS} FROM actions"), footprint::action)?;
        let mut statement = db.prepare(&format!(
            "SELECT id, tenant, {ACTION_LENGTHS} FROM actions WHERE state IN ('accepted', 'sending')"
        ))?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            stored.unfinished.insert(row.get(0)?, (row.get(1)?, footprint::action(row, 2)?));
        }
        let unfinished = stored.unfinished.iter().map(|(id, (tenant, _))| (*id, tenant.clone()));
        stored.owners.set_actions(unfinished.collect());
        Ok(stored)
    }

    /// Counts rows whose tenant comes first, and then what `footprint` needs.
    fn read_rows(
        &mut self,
        db: &Connection,
        query: &str,
        footprint: impl Fn(&Row<'_>, usize) -> rusqlite::Result<u64>,
    ) -> rusqlite::Result<()> {
        let mut statement = db.prepare(query)?;
        let mut found = statement.query([])?;
        while let Some(row) = found.next()? {
            let (tenant, bytes) = (row.get_ref(0)?.as_str()?, footprint(row, 1)?);
            match self.tenants.get_mut(tenant) {
                Some(stored) => *stored += bytes,
                None => drop(self.tenants.insert(tenant.into(), bytes)),
            }
        }
        Ok(())
    }

    /// What is kept of a tenant.
    pub(super) fn of(&self, tenant: &str) -> u64 {
        self.tenants.get(tenant).copied().unwrap_or_default()
    }

    /// An entry was appended, and its row of the journal.
    pub(super) fn appended(&mut self, tenant: &str, instance: InstanceId, bytes: u64) {
        let tenant: Arc<str> = tenant.into();
        self.owners.set_instance(instance, &tenant);
        self.add(&tenant, bytes);
    }

    /// An entry left its inbox; its row of the journal stays.
    pub(super) fn removed(
        &mut self,
        db: &Connection,
        instance: InstanceId,
        bytes: u64,
    ) -> rusqlite::Result<()> {
        if let Some(tenant) = self.tenant_of(db, instance)? {
            self.subtract(&tenant, bytes);
        }
        Ok(())
    }

    /// An entry has another body.
    pub(super) fn revised(
        &mut self,
        db: &Connection,
        instance: InstanceId,
        before: u64,
        now: u64,
    ) -> rusqlite::Result<()> {
        if let Some(tenant) = self.tenant_of(db, instance)? {
            self.subtract(&tenant, before);
            self.add(&tenant, now);
        }
        Ok(())
    }

    /// An action was written down.
    pub(super) fn accepted(&mut self, id: i64, tenant: &str, bytes: u64) {
        let tenant: Arc<str> = tenant.into();
        self.add(&tenant, bytes);
        self.owners.set_action(id, &tenant);
        self.unfinished.insert(id, (tenant, bytes));
    }

    /// An action is finished, its body gone, and what is remembered of it takes so much.
    pub(super) fn finished(&mut self, id: i64, bytes: u64) {
        if let Some((tenant, before)) = self.unfinished.remove(&id) {
            self.subtract(&tenant, before);
            self.add(&tenant, bytes);
        }
        self.owners.forget_action(id);
    }

    /// Rows of a tenant that took so much are gone.
    pub(super) fn forgot(&mut self, tenant: &str, bytes: u64) {
        self.subtract(tenant, bytes);
    }

    /// An instance is gone.
    pub(super) fn forgot_instance(&mut self, instance: InstanceId) {
        self.owners.forget_instance(instance);
    }

    fn tenant_of(&self, db: &Connection, instance: InstanceId) -> rusqlite::Result<Option<Arc<str>>> {
        if let Some(tenant) = self.owners.tenant_of(instance) {
            return Ok(Some(tenant));
        }
        let tenant: Option<Arc<str>> = db
            .prepare_cached("SELECT tenant FROM instances WHERE instance = ?")?
            .query_row([instance.0], |row| row.get(0))
            .optional()?;
        if let Some(tenant) = &tenant {
            self.owners.set_instance(instance, tenant);
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
    pub(super) fn counts(&self) -> (HashMap<Arc<str>, u64>, usize) {
        (self.tenants.clone(), self.unfinished.len())
    }
}
