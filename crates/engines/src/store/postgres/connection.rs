//! PostgreSQL as the store sees it: one connection, on which statements run one after the other.
//!
//! Every statement goes without a name and with the types of what it is given: one round trip,
//! and nothing that a pooler between us and the server would have to remember.

use crate::store::db::{Db, EachRow, Param, Row, Sql};
use bytes::BytesMut;
use futures_util::StreamExt;
use std::error::Error;
use tokio::runtime::Handle;
use tokio_postgres::Client;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// What PostgreSQL's text cannot hold, and what stands for it.
const NOTHING: char = '\0';
const REPLACED: &str = "\u{fffd}";

/// Rows that are waited for together.
const AT_ONCE: usize = 64;

impl ToSql for Param<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Int(number) => number.to_sql(kind, out),
            Self::Text(Some(text)) if text.contains(NOTHING) => {
                text.replace(NOTHING, REPLACED).to_sql(kind, out)
            }
            Self::Text(text) => text.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl Param<'_> {
    /// What it is there.
    pub(super) fn kind(&self) -> Type {
        match self {
            Self::Int(_) => Type::INT8,
            Self::Text(_) => Type::TEXT,
            Self::Bytes(_) => Type::BYTEA,
        }
    }
}

/// A connection whose answers are waited for on a thread that may wait.
pub(super) struct Waiting<'a> {
    pub(super) client: &'a Client,
    pub(super) runtime: &'a Handle,
}

/// What a statement is given, with its types.
pub(super) fn typed<'a>(given: &'a [Param<'a>]) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    given.iter().map(|param| (param as &(dyn ToSql + Sync), param.kind())).collect()
}

impl Db for Waiting<'_> {
    fn execute(&mut self, statement: &str, given: &[Param<'_>]) -> Sql<usize> {
        let changed = self.runtime.block_on(self.client.execute_typed(statement, &typed(given)))?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    fn each(&mut self, statement: &str, given: &[Param<'_>], row: EachRow<'_>) -> Sql<()> {
        // As they come: a page is full by its bytes, and what is left is never held.
        let rows = self.runtime.block_on(self.client.query_typed_raw(statement, typed(given)))?;
        let mut rows = std::pin::pin!(rows.ready_chunks(AT_ONCE));
        while let Some(found) = self.runtime.block_on(rows.next()) {
            for found in found {
                if !row(Row::Postgres(&found?))? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn insert(&mut self, statement: &str, given: &[Param<'_>]) -> Sql<Option<i64>> {
        let mut id = None;
        self.each(&format!("{statement} RETURNING id"), given, &mut |row| {
            id = row.get(0)?;
            Ok(false)
        })?;
        Ok(id)
    }

    fn next_number(&mut self, table: &str, key: &str, _given: i64) -> Sql<i64> {
        let mut number = 0;
        let next = format!("SELECT nextval(pg_get_serial_sequence('{table}', '{key}'))");
        self.each(&next, &[], &mut |row| {
            number = row.get(0)?;
            Ok(false)
        })?;
        Ok(number)
    }
}
