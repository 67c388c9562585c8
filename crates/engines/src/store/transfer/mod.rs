//! Everything of an SQLite database into an empty PostgreSQL database, all of it or nothing.
//!
//! It is one transaction there: whoever looks meanwhile sees an empty database, a server that
//! starts waits for the end, and when the command is interrupted or a count does not come out,
//! nothing has happened. The SQLite file is read and, once all is committed, put aside under
//! another name: two servers over the two copies would each deliver what waits.

mod finish;
mod rows;
mod source;
mod target;

use super::postgres::Options;
use super::sqlite::{self, DataLock};
use angelia_core::error::{Error, Result};
use source::Source;
use std::path::PathBuf;
use target::Target;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The file is looked through, which takes a while before anything is written.
    Checking,
    /// Rows of a table are on their way.
    Copying {
        /// The table.
        table: &'a str,
        /// Rows of it that are there, of so many.
        done: u64,
        /// How many it has.
        rows: u64,
        /// Rows of all tables that are there, of so many.
        all_done: u64,
        /// How many there are.
        all: u64,
    },
    /// Numbers are set and everything is counted on both sides.
    Finishing,
}

/// What was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Tables with their rows, counted on both sides.
    pub tables: Vec<(String, u64)>,
    /// Texts in which PostgreSQL cannot keep a character, so that U+FFFD stands for it.
    pub replaced: u64,
    /// Where the SQLite file is now.
    pub shelved: PathBuf,
    /// Whether it had been moved by a run before this one, which ended before it could say so.
    pub before: bool,
}

/// Moves everything from the data directory, which is ours, to an empty database.
pub async fn to_postgres(
    lock: &DataLock,
    options: &Options,
    tell: &mut dyn FnMut(Progress<'_>),
) -> Result<Moved> {
    let source = Source::open(lock.data_dir())?;
    let target = Target::connect(options).await?;
    tell(Progress::Checking);
    source.check()?;
    let copied = copy(&source, &target, tell).await;
    if copied.is_err() {
        // The server does the same when the connection ends.
        target.roll_back().await;
    }
    let (tables, replaced, before) = match copied? {
        Outcome::Copied { tables, replaced } => (tables, replaced, false),
        Outcome::Before => (source.counts()?, 0, true),
    };
    source.close()?;
    let shelved = sqlite::shelve(lock).map_err(|error| {
        Error::unavailable(format!(
            "everything is in PostgreSQL, but the SQLite file could not be put aside: {error}. Move it away by \
             hand before a server starts: one must not go on with it"
        ))
        .caused_by(error)
    })?;
    Ok(Moved { tables, replaced, shelved, before })
}

enum Outcome {
    Copied {
        tables: Vec<(String, u64)>,
        replaced: u64,
    },
    /// It was all there already.
    Before,
}

async fn copy(source: &Source, target: &Target, tell: &mut dyn FnMut(Progress<'_>)) -> Result<Outcome> {
    let state = source.state()?;
    target.begin().await?;
    let schema = target.schema().await?;
    let filled = target.filled(&schema).await?;
    if !filled.is_empty() {
        if state.is_some() && target.moved_from().await? == state {
            target.roll_back().await;
            return Ok(Outcome::Before);
        }
        return Err(Error::conflict(format!(
            "the database at {} is not empty: there is something in {}. Make an empty one and name that, or drop \
             this one if nobody needs it",
            target.place(),
            filled.join(", ")
        )));
    }
    let tables = source.tables(&schema)?;
    let all: u64 = tables.iter().map(|table| table.rows).sum();
    let (mut all_done, mut replaced) = (0, 0);
    for table in &tables {
        let mut told = |done| {
            tell(Progress::Copying {
                table: &table.name,
                done,
                rows: table.rows,
                all_done: all_done + done,
                all,
            });
        };
        replaced += rows::copy(source, target, table, &mut told).await?;
        all_done += table.rows;
    }
    tell(Progress::Finishing);
    finish::finish(source, target, &schema, state.as_deref()).await?;
    let counted = target.compare(&tables).await?;
    target.commit().await?;
    Ok(Outcome::Copied { tables: counted, replaced })
}
