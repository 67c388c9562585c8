//! The PostgreSQL database that everything is moved to, in one transaction.

use super::source::Table;
use crate::store::postgres::{self, Connector, Options};
use angelia_core::error::{Error, Result};
use std::collections::BTreeMap;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

/// Tables that SQLite does not have: what it counts in memory.
const OWN: [&str; 5] = ["counters", "ledger_owners", "schema_version", "tenant_usage", "webchat_rooms"];
/// The one that is never empty.
const VERSION: &str = "schema_version";
/// What was moved here, so that it is recognised.
pub(super) const MOVED_FROM: &str = "moved_from";

/// However long it takes, unless somebody else has hold of the tables.
const BEGIN: &str =
    "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;
    SET LOCAL lock_timeout = '10s'; SET LOCAL synchronous_commit = on";

/// The connection.
pub(super) struct Target {
    client: Client,
    place: String,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Text,
    Bytes,
}

/// A column.
pub(super) struct Column {
    pub(super) kind: Kind,
    /// Whether its numbers come from a sequence.
    pub(super) numbered: bool,
}

/// The tables with their columns.
pub(super) struct Schema(BTreeMap<String, BTreeMap<String, Column>>);

impl Schema {
    pub(super) fn columns(&self, table: &str) -> Option<&BTreeMap<String, Column>> {
        self.0.get(table)
    }

    /// Tables whose rows come from SQLite.
    pub(super) fn moved(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(|name| !OWN.contains(name))
    }

    /// Every column whose numbers come from a sequence.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|(table, columns)| {
            let numbered = columns.iter().filter(|(_, column)| column.numbered);
            numbered.map(move |(name, _)| (table.as_str(), name.as_str()))
        })
    }
}

impl Target {
    /// Connects to a server that is good enough.
    pub(super) async fn connect(options: &Options) -> Result<Self> {
        let client = Connector::new(options)?.connect().await?;
        postgres::check(&client, options).await?;
        let place = format!("{}/{}", options.url.place(), options.url.database());
        Ok(Self { client, place })
    }

    /// Where it is.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Begins, and has nobody else begin; makes the tables.
    pub(super) async fn begin(&self) -> Result<()> {
        self.client.batch_execute(BEGIN).await.map_err(failed)?;
        let tables = self.tables().await?;
        if !tables.is_empty() && !tables.iter().any(|table| table == VERSION) {
            return Err(Error::conflict(format!(
                "the database at {} belongs to something else: it has the tables {}. Give angelia one of its own",
                self.place,
                tables.join(", ")
            )));
        }
        postgres::ensure(&self.client).await?;
        let tables = self.tables().await?.join("\", \"");
        let lock = format!("LOCK TABLE \"{tables}\" IN ACCESS EXCLUSIVE MODE");
        self.client.batch_execute(&lock).await.map_err(failed)
    }

    async fn tables(&self) -> Result<Vec<String>> {
        let all =
            "SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1";
        let rows = self.query(all, &[]).await?;
        rows.iter().map(|row| row.try_get(0).map_err(failed)).collect()
    }

    /// Reads the schema.
    pub(super) async fn schema(&self) -> Result<Schema> {
        let columns =
            "SELECT CAST(c.table_name AS TEXT), CAST(c.column_name AS TEXT), CAST(c.data_type AS TEXT),
                c.is_identity = 'YES'
            FROM information_schema.columns c JOIN pg_tables t ON t.tablename = c.table_name
                AND t.schemaname = c.table_schema
            WHERE c.table_schema = current_schema()";
        let mut schema = BTreeMap::<String, BTreeMap<String, Column>>::new();
        for row in self.query(columns, &[]).await? {
            let [table, name, kind] = [read(&row, 0)?, read(&row, 1)?, read::<String>(&row, 2)?];
            let kind = match kind.as_str() {
                "bigint" => Kind::Int,
                "bytea" => Kind::Bytes,
                _ => Kind::Text,
            };
            let numbered = read(&row, 3)?;
            schema.entry(table).or_default().insert(name, Column { kind, numbered });
        }
        Ok(Schema(schema))
    }

    /// Tables in which there is something.
    pub(super) async fn filled(&self, schema: &Schema) -> Result<Vec<String>> {
        let mut filled = Vec::new();
        for table in schema.0.keys().filter(|name| *name != VERSION) {
            let any = self.query(&format!("SELECT 1 FROM \"{table}\" LIMIT 1"), &[]).await?;
            if !any.is_empty() {
                filled.push(table.clone());
            }
        }
        Ok(filled)
    }

    /// What was moved here before.
    pub(super) async fn moved_from(&self) -> Result<Option<String>> {
        let noted = "SELECT value FROM notes WHERE name = $1";
        let rows = self.query(noted, &[(&MOVED_FROM, Type::TEXT)]).await?;
        let note: Option<Vec<u8>> = rows.first().map(|row| read(row, 0)).transpose()?;
        Ok(note.map(|note| String::from_utf8_lossy(&note).into_owned()))
    }

    /// Counts every table; what is there has to be what was to come.
    pub(super) async fn compare(&self, tables: &[Table]) -> Result<Vec<(String, u64)>> {
        let mut counted = Vec::new();
        for Table { name, rows, .. } in tables {
            let kept = if name == super::source::NOTES {
                format!(" WHERE name <> '{MOVED_FROM}'")
            } else {
                String::new()
            };
            let found = self.query(&format!("SELECT count(*) FROM \"{name}\"{kept}"), &[]).await?;
            let found: i64 = found.first().map_or(Ok(0), |row| read(row, 0))?;
            if found.unsigned_abs() != *rows {
                return Err(Error::internal(format!(
                    "of {rows} rows of {name} there are {found} in PostgreSQL; nothing was moved"
                )));
            }
            counted.push((name.clone(), *rows));
        }
        Ok(counted)
    }

    pub(super) async fn query(
        &self,
        statement: &str,
        given: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>> {
        self.client.query_typed(statement, given).await.map_err(failed)
    }

    pub(super) async fn execute(
        &self,
        statement: &str,
        given: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<u64> {
        self.client.execute_typed(statement, given).await.map_err(failed)
    }

    /// Has everything there at once, for good.
    pub(super) async fn commit(&self) -> Result<()> {
        self.client.batch_execute("COMMIT").await.map_err(|error| {
            let said = error.code().is_some();
            let error = failed(error);
            if said {
                return error;
            }
            Error::unavailable(format!(
                "{error}. Whether everything arrived is not known: run the same command again, it finds out"
            ))
        })?;
        // Otherwise the first questions are planned as if the tables were empty.
        let _ = self.client.batch_execute("ANALYZE").await;
        Ok(())
    }

    pub(super) async fn roll_back(&self) {
        let _ = self.client.batch_execute("ROLLBACK").await;
    }
}

pub(super) fn read<T: tokio_postgres::types::FromSqlOwned>(row: &Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(failed)
}

pub(super) fn failed(error: tokio_postgres::Error) -> Error {
    let why = error.as_db_error().map_or_else(|| error.to_string(), |said| said.message().to_owned());
    let then = if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) {
        ": somebody else uses the database; stop them first"
    } else {
        ""
    };
    Error::unavailable(format!("PostgreSQL did not take it: {why}{then}; nothing was moved")).caused_by(error)
}
