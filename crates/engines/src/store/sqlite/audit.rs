//! The audit log.

use super::Sqlite;
use super::txn::{Txn, now};
use angelia_core::audit::{AuditLine, Deed, Sort};
use angelia_core::clock::UnixMillis;
use angelia_core::store::{AuditStore, Later};
use rusqlite::params;

impl AuditStore for Sqlite {
    fn audit(&self, deed: Deed) -> Later<'_, ()> {
        self.writer.write("write the audit log", move |txn| write(txn, &deed))
    }

    fn audit_lines(&self, tenant: Option<&str>, limit: usize) -> Later<'_, Vec<AuditLine>> {
        let tenant = tenant.map(str::to_owned);
        self.readers.read("read the audit log", move |db| {
            db.prepare_cached(
                "SELECT id, at, actor, action, tenant, target, outcome, detail FROM audit
                 WHERE ?1 IS NULL OR tenant = ?1 ORDER BY id DESC LIMIT ?2",
            )?
            .query_map(params![tenant, limit as i64], |row| {
                Ok(AuditLine {
                    id: row.get(0)?,
                    at: UnixMillis(row.get(1)?),
                    actor: row.get(2)?,
                    action: row.get(3)?,
                    tenant: row.get(4)?,
                    target: row.get(5)?,
                    outcome: row.get(6)?,
                    detail: row.get(7)?,
                })
            })?
            .collect()
        })
    }
}

/// Writes a line in the open transaction, with the change it tells of.
pub(super) fn write(txn: &Txn<'_>, deed: &Deed) -> rusqlite::Result<()> {
    txn.prepare_cached(
        "INSERT INTO audit (at, actor, action, tenant, target, outcome, detail, sort) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        now(),
        deed.actor.as_str(),
        deed.action,
        deed.tenant,
        deed.target,
        deed.outcome,
        deed.detail,
        Sort::of(deed).as_str()
    ])?;
    Ok(())
}
