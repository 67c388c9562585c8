//! A database as the store sees it: statements, what they are given, and the rows they
//! answer. What is kept and how it changes is written once over this, for every database.
//!
//! Statements number what they are given `$1`, `$2` in the order in which it is first
//! named: PostgreSQL goes by the number, SQLite by the order.

use angelia_core::clock::UnixMillis;
use angelia_core::error::Error;
use angelia_core::inbox::{InstanceId, Seq};
use angelia_core::ports::ActionId;
use angelia_core::records::Value;
use rusqlite::types::{FromSql, ValueRef};
use std::sync::Arc;
use tokio_postgres::types::{FromSqlOwned, Type};

/// What a statement comes to, or why it failed.
pub(crate) type Sql<T> = Result<T, Failure>;

/// Why a statement failed. The transaction around it comes to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// SQLite says so.
    Sqlite(rusqlite::Error),
    /// PostgreSQL says so, or cannot be reached.
    Postgres(tokio_postgres::Error),
    /// What the database holds cannot be what was written.
    Damaged(String),
}

impl Failure {
    /// A rule that cannot refuse refused.
    pub(crate) fn of_rule(error: &Error) -> Self {
        Self::Damaged(error.to_string())
    }

    /// What whoever asked is told: nothing was changed, try later.
    pub(crate) fn told(self, what: &str) -> Error {
        let told = Error::unavailable(format!("the store could not {what}: {self}"));
        match self {
            Self::Sqlite(error) => told.caused_by(error),
            Self::Postgres(error) => told.caused_by(error),
            Self::Damaged(_) => told,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(error) => error.fmt(f),
            Self::Postgres(error) => match error.as_db_error() {
                Some(said) => f.write_str(said.message()),
                None => {
                    error.fmt(f)?;
                    // What it says itself is only that something went wrong.
                    match std::error::Error::source(error) {
                        Some(cause) => write!(f, ": {cause}"),
                        None => Ok(()),
                    }
                }
            },
            Self::Damaged(what) => f.write_str(what),
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

/// What a statement is given for one of its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Param<'a> {
    /// A number, a time, a flag.
    Int(Option<i64>),
    /// Text.
    Text(Option<&'a str>),
    /// Bytes.
    Bytes(Option<&'a [u8]>),
}

/// Something that a statement can be given.
pub(crate) trait ToParam {
    /// As it is given.
    fn param(&self) -> Param<'_>;
}

/// Numbers, as a statement is given them.
macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl ToParam for $type {
            fn param(&self) -> Param<'_> {
                Param::Int(Some(i64::try_from(*self).unwrap_or(i64::MAX)))
            }
        }
    )*};
}

numbers!(i64, u64, u32, usize, i32);

impl ToParam for bool {
    fn param(&self) -> Param<'_> {
        Param::Int(Some(i64::from(*self)))
    }
}

/// Numbers with a meaning.
macro_rules! named_numbers {
    ($($type:ty),*) => {$(
        impl ToParam for $type {
            fn param(&self) -> Param<'_> {
                Param::Int(Some(self.0))
            }
        }
    )*};
}

named_numbers!(UnixMillis, InstanceId, Seq, ActionId);

impl ToParam for str {
    fn param(&self) -> Param<'_> {
        Param::Text(Some(self))
    }
}

impl ToParam for String {
    fn param(&self) -> Param<'_> {
        Param::Text(Some(self))
    }
}

impl ToParam for Arc<str> {
    fn param(&self) -> Param<'_> {
        Param::Text(Some(self))
    }
}

impl ToParam for [u8] {
    fn param(&self) -> Param<'_> {
        Param::Bytes(Some(self))
    }
}

impl ToParam for Vec<u8> {
    fn param(&self) -> Param<'_> {
        Param::Bytes(Some(self))
    }
}

impl<const N: usize> ToParam for [u8; N] {
    fn param(&self) -> Param<'_> {
        Param::Bytes(Some(self))
    }
}

impl ToParam for bytes::Bytes {
    fn param(&self) -> Param<'_> {
        Param::Bytes(Some(self))
    }
}

impl<T: ToParam + ?Sized> ToParam for &T {
    fn param(&self) -> Param<'_> {
        (**self).param()
    }
}

/// What may be nothing; of which kind it is is known all the same.
macro_rules! options {
    ($($type:ty as $kind:ident),*) => {$(
        impl ToParam for Option<$type> {
            fn param(&self) -> Param<'_> {
                self.as_ref().map_or(Param::$kind(None), ToParam::param)
            }
        }
    )*};
}

options!(
    i64 as Int, InstanceId as Int, Seq as Int, UnixMillis as Int, String as Text, &str as Text, &String as Text,
    &Arc<str> as Text, Arc<str> as Text, Vec<u8> as Bytes
);

impl ToParam for Value {
    fn param(&self) -> Param<'_> {
        match self {
            // Statements say themselves where they look for nothing; what is written there
            // may be of any kind.
            Self::Null => Param::Text(None),
            Self::Int(number) => Param::Int(Some(*number)),
            Self::Text(text) => Param::Text(Some(text)),
            Self::Bytes(bytes) => Param::Bytes(Some(bytes)),
        }
    }
}

/// What a statement is given, in the order of its numbers.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        &[$($crate::store::db::ToParam::param(&$value)),*]
    };
}
pub(crate) use values;

/// One row of what a statement answers.
#[derive(Clone, Copy)]
pub(crate) enum Row<'a> {
    /// Of SQLite.
    Sqlite(&'a rusqlite::Row<'a>),
    /// Of PostgreSQL.
    Postgres(&'a tokio_postgres::Row),
}

impl Row<'_> {
    /// What one of its columns holds.
    pub(crate) fn get<T: Column>(&self, column: usize) -> Sql<T> {
        match self {
            Self::Sqlite(row) => T::of_sqlite(row.get_ref(column)?).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Null, error.into())
                    .into()
            }),
            Self::Postgres(row) => T::of_postgres(row, column),
        }
    }

    /// What one of its columns holds, of whatever kind.
    pub(crate) fn value(&self, column: usize) -> Sql<Value> {
        match self {
            Self::Sqlite(row) => Ok(match row.get_ref(column)? {
                // No column of a record holds a fraction.
                ValueRef::Null | ValueRef::Real(_) => Value::Null,
                ValueRef::Integer(number) => Value::Int(number),
                ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
            }),
            Self::Postgres(row) => Ok(match *row.columns()[column].type_() {
                Type::BYTEA => self.get::<Option<Vec<u8>>>(column)?.map_or(Value::Null, Value::Bytes),
                Type::INT4 | Type::INT8 => self.get::<Option<i64>>(column)?.map_or(Value::Null, Value::Int),
                _ => read::<Option<String>>(row, column)?.map_or(Value::Null, Value::Text),
            }),
        }
    }

    /// How long the text or the bytes of a column are, without a copy of them.
    pub(crate) fn length(&self, column: usize) -> Sql<usize> {
        match self {
            Self::Sqlite(row) => Ok(match row.get_ref(column)? {
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
                _ => 0,
            }),
            Self::Postgres(row) => match *row.columns()[column].type_() {
                Type::BYTEA => Ok(row.try_get::<_, Option<&[u8]>>(column)?.map_or(0, <[u8]>::len)),
                _ => Ok(row.try_get::<_, Option<&str>>(column)?.map_or(0, str::len)),
            },
        }
    }
}

/// What a column can be read as.
pub(crate) trait Column: Sized {
    /// From SQLite.
    fn of_sqlite(value: ValueRef<'_>) -> Result<Self, rusqlite::types::FromSqlError>;
    /// From PostgreSQL.
    fn of_postgres(row: &tokio_postgres::Row, column: usize) -> Sql<Self>;
}

/// Numbers: of however many bytes they are.
macro_rules! number_columns {
    ($($type:ty),*) => {$(
        impl Column for $type {
            fn of_sqlite(value: ValueRef<'_>) -> Result<Self, rusqlite::types::FromSqlError> {
                <$type as FromSql>::column_result(value)
            }

            fn of_postgres(row: &tokio_postgres::Row, column: usize) -> Sql<Self> {
                Option::<$type>::of_postgres(row, column)?.ok_or_else(|| unreadable(column))
            }
        }

        impl Column for Option<$type> {
            fn of_sqlite(value: ValueRef<'_>) -> Result<Self, rusqlite::types::FromSqlError> {
                <Option<$type> as FromSql>::column_result(value)
            }

            fn of_postgres(row: &tokio_postgres::Row, column: usize) -> Sql<Self> {
                let number = match *row.columns()[column].type_() {
                    Type::INT4 => read::<Option<i32>>(row, column)?.map(i64::from),
                    _ => read::<Option<i64>>(row, column)?,
                };
                number.map(|number| <$type>::try_from(number).map_err(|_| unreadable(column))).transpose()
            }
        }
    )*};
}

number_columns!(i64, u64, u32, usize);

/// Texts and bytes.
macro_rules! text_columns {
    ($($type:ty as $stored:ty),*) => {$(
        impl Column for $type {
            fn of_sqlite(value: ValueRef<'_>) -> Result<Self, rusqlite::types::FromSqlError> {
                <$type as FromSql>::column_result(value)
            }

            fn of_postgres(row: &tokio_postgres::Row, column: usize) -> Sql<Self> {
                read::<$stored>(row, column).map(Into::into)
            }
        }

        impl Column for Option<$type> {
            fn of_sqlite(value: ValueRef<'_>) -> Result<Self, rusqlite::types::FromSqlError> {
                <Option<$type> as FromSql>::column_result(value)
            }

            fn of_postgres(row: &tokio_postgres::Row, column: usize) -> Sql<Self> {
                Ok(read::<Option<$stored>>(row, column)?.map(Into::into))
            }
        }
    )*};
}

text_columns!(String as String, Arc<str> as String, Vec<u8> as Vec<u8>);

impl Column for bool {
    fn of_sqlite(value: ValueRef<'_>) -> Result<Self, rusqlite::types::FromSqlError> {
        bool::column_result(value)
    }

    /// What a statement finds out is a truth value there; what a column holds is a number.
    fn of_postgres(row: &tokio_postgres::Row, column: usize) -> Sql<Self> {
        match *row.columns()[column].type_() {
            Type::BOOL => read(row, column),
            _ => i64::of_postgres(row, column).map(|number| number != 0),
        }
    }
}

fn read<T: FromSqlOwned>(row: &tokio_postgres::Row, column: usize) -> Sql<T> {
    row.try_get(column).map_err(Failure::from)
}

fn unreadable(column: usize) -> Failure {
    Failure::Damaged(format!("column {column} holds a number that cannot be"))
}

/// Told of each row; `false` ends it.
pub(crate) type EachRow<'a> = &'a mut dyn FnMut(Row<'_>) -> Sql<bool>;

/// A database in which statements are run, one after the other.
pub(crate) trait Db {
    /// Runs a statement and answers how many rows it changed.
    fn execute(&mut self, statement: &str, given: &[Param<'_>]) -> Sql<usize>;

    /// Runs a statement and tells of each row it answers.
    fn each(&mut self, statement: &str, given: &[Param<'_>], row: EachRow<'_>) -> Sql<()>;

    /// Runs an `INSERT` and answers the `id` of the row that came, or `None` if none did.
    fn insert(&mut self, statement: &str, given: &[Param<'_>]) -> Sql<Option<i64>>;

    /// A number that no row of a table has as its key, and that none had. `given` were
    /// answered before and are not written yet.
    fn next_number(&mut self, table: &str, key: &str, given: i64) -> Sql<i64>;
}

/// Statements whose answers are read at once.
pub(crate) trait Ask: Db {
    /// All rows.
    fn all<T>(
        &mut self,
        statement: &str,
        given: &[Param<'_>],
        mut read: impl FnMut(Row<'_>) -> Sql<T>,
    ) -> Sql<Vec<T>> {
        let mut all = Vec::new();
        self.each(statement, given, &mut |row| {
            all.push(read(row)?);
            Ok(true)
        })?;
        Ok(all)
    }

    /// The first row, if there is one.
    fn first<T>(
        &mut self,
        statement: &str,
        given: &[Param<'_>],
        mut read: impl FnMut(Row<'_>) -> Sql<T>,
    ) -> Sql<Option<T>> {
        let mut first = None;
        self.each(statement, given, &mut |row| {
            first = Some(read(row)?);
            Ok(false)
        })?;
        Ok(first)
    }

    /// The one row that there always is.
    fn one<T>(
        &mut self,
        statement: &str,
        given: &[Param<'_>],
        read: impl FnMut(Row<'_>) -> Sql<T>,
    ) -> Sql<T> {
        self.first(statement, given, read)?.ok_or_else(|| Failure::Damaged("a row is missing".into()))
    }

    /// What the one column of the one row says.
    fn says<T: Column>(&mut self, statement: &str, given: &[Param<'_>]) -> Sql<T> {
        self.one(statement, given, |row| row.get(0))
    }
}

impl<D: Db + ?Sized> Ask for D {}
