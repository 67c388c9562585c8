//! Records and sealed values as they are kept, and changes to them that no rule allows.

use super::Inspect;
use crate::sql;
use crate::store::db::{Db, Param, ToParam};
use crate::store::records;
use crate::store::sqlite::connection::Plain;
use angelia_core::clock::{self, Old};
use angelia_core::error::{Error, Result};
use angelia_core::records::{
    By, Change, Changed, Query, Record, Records, Row, Rule, Source, Table, Value, View,
};
use angelia_core::store::{BoxFuture, PageSize, SealStore, SealedValue};
use rusqlite::Connection;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

impl Inspect {
    /// Every record of a kind, in the order of its key.
    ///
    /// # Panics
    ///
    /// When one cannot be read.
    pub fn records<R: Record>(&self) -> Vec<R> {
        let read = |row| R::read(row).unwrap_or_else(|error| panic!("{error}"));
        self.rows(R::TABLE).into_iter().map(read).collect()
    }

    /// Changes every record of a kind that `is` says yes to, whatever rules say.
    ///
    /// # Panics
    ///
    /// When there is none: a test that changes nothing shows nothing.
    pub fn rewrite<R: Record>(&self, is: impl Fn(&R) -> bool, change: impl Fn(&mut R)) {
        let put = sql::put(R::TABLE);
        for mut record in self.those::<R>(is) {
            change(&mut record);
            self.write(&put, &record.to_row()[..R::TABLE.own().len()]);
        }
    }

    /// Deletes every record of a kind that `is` says yes to, whatever rules say.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn delete<R: Record>(&self, is: impl Fn(&R) -> bool) {
        let delete = sql::delete(R::TABLE);
        for record in self.those::<R>(is) {
            self.write(&delete, &record.to_row()[..R::TABLE.key]);
        }
    }

    /// Everything that is sealed, wherever it rests.
    ///
    /// # Panics
    ///
    /// When it cannot be read.
    pub fn sealed_values(&self) -> Vec<SealedValue> {
        let looking = Looking(self);
        let (mut all, mut more) = (Vec::<SealedValue>::new(), true);
        while more {
            let mut page = SealStore::sealed_values(&looking, all.last(), PageSize::of(1_000));
            let read = page.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let Poll::Ready(page) = read else { panic!("a look waits for nothing") };
            let page = page.unwrap_or_else(|error| panic!("what is sealed: {error}"));
            more = page.more;
            all.extend(page);
        }
        all
    }

    /// What cannot be read is none of them: notes are not all of bytes.
    fn those<R: Record>(&self, is: impl Fn(&R) -> bool) -> Vec<R> {
        let found: Vec<R> = self.rows(R::TABLE).into_iter().filter_map(R::from_row).filter(is).collect();
        assert!(!found.is_empty(), "there is none of them in {}", R::TABLE.name);
        found
    }

    fn rows(&self, table: &'static Table) -> Vec<Row> {
        let every = Query::all(By::Columns(&[]), Vec::new());
        let found = records::find(&mut Plain(&self.open()), table, &every);
        found.unwrap_or_else(|error| panic!("{}: {error}", table.name))
    }

    fn write(&self, statement: &str, values: &[Value]) {
        let params: Vec<Param<'_>> = values.iter().map(ToParam::param).collect();
        let written = Plain(&self.open()).execute(statement, &params);
        written.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

/// Runs rules that read, at once.
struct Looking<'a>(&'a Inspect);

impl Records for Looking<'_> {
    fn change(&self, change: Change, _: Rule) -> BoxFuture<'_, Result<()>> {
        panic!("this only looks, and cannot {}", change.what)
    }

    fn look(&self, _: &'static str, mut rule: Rule) -> BoxFuture<'_, Result<()>> {
        let (outcome, _) = View::new(&mut Rows(&self.0.open()), clock::wall()).run(&mut *rule);
        Box::pin(std::future::ready(outcome))
    }

    fn changed(&self, _: i64, _: usize) -> BoxFuture<'_, Result<Vec<Changed>>> {
        panic!("this only looks at what is")
    }
}

struct Rows<'a>(&'a Connection);

impl Source for Rows<'_> {
    fn find(&mut self, table: &'static Table, query: &Query) -> Result<Vec<Row>> {
        records::find(&mut Plain(self.0), table, query)
            .map_err(|failure| Error::internal(failure.to_string()))
    }

    fn count(&mut self, table: &'static Table, query: &Query) -> Result<u64> {
        self.find(table, query).map(|rows| rows.len() as u64)
    }

    fn heads(&mut self, table: &'static Table) -> Result<Vec<Vec<u8>>> {
        panic!("how values begin in {} is asked of a store", table.name)
    }

    fn older_than(&mut self, _: Duration) -> Option<Old> {
        None
    }

    fn fits(&mut self, _: u64) -> bool {
        false
    }

    fn next_number(&mut self, table: &'static Table, _: i64) -> Result<i64> {
        panic!("a number of {} is given by a store", table.name)
    }
}
