//! A tenant that has a great deal, and what is left of one.

use super::Inspect;
use angelia_core::clock::{self, UnixMillis};
use rusqlite::{Connection, params};

/// Rows for one commit.
const AT_ONCE: usize = 50;

impl Inspect {
    /// Gives the first instance of a tenant so many messages that wait, and the tenant as
    /// many actions that failed, each of so many random bytes, past its share of the
    /// disk. A small disk needs no more room for it than they take.
    ///
    /// # Panics
    ///
    /// When the tenant has no instance.
    pub fn stuff(&self, tenant: &str, count: usize, bytes: usize) {
        let first = "SELECT instance FROM instances WHERE tenant = ? ORDER BY instance";
        let instance = self.ask(first, [tenant], |row| row.get(0)).into_iter().next();
        let instance = instance.unwrap_or_else(|| panic!("{tenant} has no instance"));
        let db = self.open();
        let row = Stuffing { db: &db, tenant, instance, bytes, at: clock::wall() };
        let stuffed = (0..count).step_by(AT_ONCE).try_for_each(|from| {
            db.execute_batch("BEGIN")?;
            (from..count.min(from + AT_ONCE)).try_for_each(|number| row.add(number))?;
            db.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")
        });
        stuffed.unwrap_or_else(|error| panic!("stuff {tenant}: {error}"));
    }

    /// Rows that are left of a tenant: what waits for instances that are no other's, its
    /// actions, what the journal has of it, and the note that it is being removed.
    pub fn rows_of(&self, tenant: &str) -> u64 {
        self.count(
            "SELECT (SELECT count(*) FROM actions WHERE tenant = ?1) + (SELECT count(*) FROM journal WHERE tenant = ?1)
                  + (SELECT count(*) FROM inbox
                     WHERE instance NOT IN (SELECT instance FROM instances WHERE tenant <> ?1))
                  + (SELECT count(*) FROM removals WHERE tenant = ?1)",
            [tenant],
        )
    }
}

/// What a tenant is stuffed with.
struct Stuffing<'a> {
    db: &'a Connection,
    tenant: &'a str,
    instance: i64,
    bytes: usize,
    at: UnixMillis,
}

impl Stuffing<'_> {
    fn add(&self, number: usize) -> rusqlite::Result<()> {
        let (tenant, instance, at) = (self.tenant, self.instance, self.at.0);
        let (message, bytes) = (format!("{tenant}-{number}"), self.bytes);
        self.db.execute(
            "INSERT INTO journal (message_id, kind, platform, bot, chat_id, tenant, instance, received_at, appended_at)
             VALUES (?1, 'message', 'webchat', 'webchat', 'web-x', ?2, ?3, ?4, ?4)",
            params![message, tenant, instance, at],
        )?;
        self.db.execute(
            "INSERT INTO inbox (instance, seq, kind, platform, bot, chat_id, message_id, session_key, received_at, body)
             VALUES (?1, last_insert_rowid(), 'message', 'webchat', 'webchat', 'web-x', ?2, 's', ?4, randomblob(?3))",
            params![instance, message, bytes, at],
        )?;
        self.db.execute(
            "INSERT INTO actions (tenant, instance, platform, bot, chat_id, op, state, received_at, body)
             VALUES (?1, ?2, 'webchat', 'webchat', 'web-x', 'send', 'failed', ?4, randomblob(?3))",
            params![tenant, instance, bytes, at],
        )?;
        Ok(())
    }
}
