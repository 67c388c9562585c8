//! From any older schema to this one, step by step, each in one transaction.

use super::failed;
use angelia_core::error::{Error, Kind, Result};
use rusqlite::Connection;
use std::path::Path;

/// The version of `schema.sql`; a database from a newer release is refused.
pub(in crate::store) const SCHEMA_VERSION: i64 = 11;

/// What leads from each older version to the next, the first from 1 to 2.
const STEPS: [&str; 10] = [
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    concat!(
        include_str!("migrations/5-log.sql"),
        include_str!("migrations/5-seals.sql"),
        include_str!("migrations/5-ledger.sql"),
        include_str!("migrations/5-records.sql"),
        include_str!("migrations/5-lines.sql"),
        include_str!("migrations/5-owners.sql")
    ),
    concat!(include_str!("migrations/6-leases.sql"), include_str!("migrations/6-first.sql")),
    concat!(
        include_str!("migrations/7-turns.sql"),
        include_str!("migrations/7-journal.sql"),
        include_str!("migrations/7-language.sql"),
        include_str!("migrations/7-while-busy.sql")
    ),
    include_str!("migrations/8-nodes.sql"),
    include_str!("migrations/9-prompts.sql"),
    include_str!("migrations/10-conversation.sql"),
    include_str!("migrations/11-files.sql"),
];

/// Brings a database to the current schema; refuses one from the future.
pub(super) fn migrate(connection: &Connection, path: &Path) -> Result<()> {
    let version: i64 = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(|e| failed("read the schema version", e))?;
    match version {
        SCHEMA_VERSION => Ok(()),
        0 => apply(connection, include_str!("schema.sql"), SCHEMA_VERSION)
            .map_err(|e| failed("create the schema", e)),
        1..SCHEMA_VERSION => (version..SCHEMA_VERSION).try_for_each(|from| {
            tracing::info!(from, to = from + 1, "bringing the database to a newer schema");
            let step = STEPS[usize::try_from(from - 1).unwrap_or_default()];
            apply(connection, step, from + 1).map_err(|e| failed("bring the database to a newer schema", e))
        }),
        newer => Err(Error::new(
            Kind::Conflict,
            format!(
                "{} has schema version {newer}, this angelia knows {SCHEMA_VERSION}: \
                 run the newer angelia that wrote it, or restore a backup",
                path.display()
            ),
        )),
    }
}

fn apply(connection: &Connection, step: &str, version: i64) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(step)?;
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()
}
