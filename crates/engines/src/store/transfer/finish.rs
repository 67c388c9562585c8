//! What comes after the rows: numbers that go on where they were, and what SQLite counts in
//! memory.

use super::source::Source;
use super::target::{MOVED_FROM, Schema, Target, read};
use crate::store::db;
use crate::store::footprint::{self, ACTION_LENGTHS, ENTRY_LENGTHS, JOURNAL_LENGTHS};
use angelia_core::error::Result;
use std::collections::BTreeMap;
use tokio_postgres::types::Type;

/// The change feed, and its counter.
const CHANGES: &str = "changes";
const FEED: &str = "feed";
/// Ids of lines are counted beside their table in SQLite, in blocks.
const LINES: &str = "webchat_lines";
const LINE_ID: &str = "webchat_id";
/// Above which the log of a new instance begins.
const LOG_BASE: &str = "log_base";

pub(super) async fn finish(
    source: &Source,
    target: &Target,
    schema: &Schema,
    state: Option<&str>,
) -> Result<()> {
    let (sequences, counters) = (source.sequences()?, source.counters()?);
    set_counters(target, &sequences, counters.clone()).await?;
    for (table, column) in schema.numbered() {
        let beside = counters.get(LINE_ID).filter(|_| table == LINES);
        let given = [sequences.get(table), beside].into_iter().flatten().copied().max().unwrap_or_default();
        go_on_behind(target, table, column, given).await?;
    }
    if let Some(base) = counters.get(LOG_BASE) {
        // SQLite has a trigger for it.
        target.execute(&format!("ALTER TABLE instances ALTER COLUMN tail SET DEFAULT {base}"), &[]).await?;
    }
    count_rooms(target).await?;
    count_waiting(target).await?;
    count_tenants(target).await?;
    // Nobody runs, so nobody holds one; the next holder's token is larger all the same.
    target.execute("UPDATE leases SET released = 1", &[]).await?;
    if let Some(state) = state {
        let note = "INSERT INTO notes (name, value) VALUES ($1, $2)";
        target.execute(note, &[(&MOVED_FROM, Type::TEXT), (&state.as_bytes(), Type::BYTEA)]).await?;
    }
    Ok(())
}

/// What SQLite counts among its notes, and the feed, whose numbers it takes from its table.
async fn set_counters(
    target: &Target,
    sequences: &BTreeMap<String, i64>,
    mut counters: BTreeMap<String, i64>,
) -> Result<()> {
    let last = target.query("SELECT coalesce(max(id), 0) FROM changes", &[]).await?;
    let last: i64 = last.first().map_or(Ok(0), |row| read(row, 0))?;
    let given = sequences.get(CHANGES).copied().unwrap_or_default();
    counters.insert(FEED.into(), last.max(given));
    let (names, values): (Vec<String>, Vec<i64>) = counters.into_iter().unzip();
    let set = "INSERT INTO counters (name, value) SELECT * FROM unnest($1, $2)";
    target.execute(set, &[(&names, Type::TEXT_ARRAY), (&values, Type::INT8_ARRAY)]).await.map(drop)
}

/// Has the next number of a column be above all that it has, and above those it had.
async fn go_on_behind(target: &Target, table: &str, column: &str, given: i64) -> Result<()> {
    let last = target.query(&format!("SELECT coalesce(max(\"{column}\"), 0) FROM \"{table}\""), &[]).await?;
    let last: i64 = last.first().map_or(Ok(0), |row| read(row, 0))?;
    let last = last.max(given);
    if last > 0 {
        let set = "SELECT setval(pg_get_serial_sequence($1, $2), $3)";
        let given: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
            [(&table, Type::TEXT), (&column, Type::TEXT), (&last, Type::INT8)];
        target.query(set, &given).await?;
    }
    Ok(())
}

/// Rooms of the web chat: the last number in each, and what it holds.
async fn count_rooms(target: &Target) -> Result<()> {
    let count = "INSERT INTO webchat_rooms (room, seq, lines, bytes)
        SELECT room, max(seq), count(*), coalesce(sum(octet_length(text)), 0) FROM webchat_lines GROUP BY room";
    target.execute(count, &[]).await.map(drop)
}

/// What waits for each instance. SQLite sets it right at every start, here nobody will.
async fn count_waiting(target: &Target) -> Result<()> {
    let count = "UPDATE instances i SET
            waiting = (SELECT count(*) FROM inbox e WHERE e.instance = i.instance AND e.dead_at IS NULL),
            bytes = (SELECT coalesce(sum(length(e.body)), 0) FROM inbox e
                     WHERE e.instance = i.instance AND e.dead_at IS NULL)";
    target.execute(count, &[]).await.map(drop)
}

/// What is kept of each tenant. Rows of one length take the same, and are counted together.
async fn count_tenants(target: &Target) -> Result<()> {
    type Footprint = fn(&db::Row<'_>, usize) -> db::Sql<u64>;
    let waiting = "inbox JOIN instances USING (instance)";
    let counted: [(&str, &str, &str, Footprint); 3] = [
        (ENTRY_LENGTHS, waiting, "a, b, c", footprint::entry),
        (JOURNAL_LENGTHS, "journal", "a, b", footprint::journal),
        (ACTION_LENGTHS, "actions", "a, b, c, d", footprint::action),
    ];
    let mut tenants = BTreeMap::<String, i64>::new();
    for (lengths, table, names, footprint) in counted {
        let alike = format!(
            "SELECT tenant, count(*), {names} FROM (SELECT tenant, {lengths} FROM {table}) AS t (tenant, {names})
             GROUP BY tenant, {names}"
        );
        for row in target.query(&alike, &[]).await? {
            let (tenant, rows): (String, i64) = (read(&row, 0)?, read(&row, 1)?);
            let each = footprint(&db::Row::Postgres(&row), 2).map_err(|failure| failure.told("count"))?;
            *tenants.entry(tenant).or_default() += rows * i64::try_from(each).unwrap_or(i64::MAX);
        }
    }
    let (names, bytes): (Vec<String>, Vec<i64>) = tenants.into_iter().unzip();
    let set = "INSERT INTO tenant_usage (tenant, bytes) SELECT * FROM unnest($1, $2)";
    target.execute(set, &[(&names, Type::TEXT_ARRAY), (&bytes, Type::INT8_ARRAY)]).await.map(drop)
}
