//! Giving space back: a database that can shrink does so in steps, one of an
//! older release is written anew once.

use super::backup::no_data;
use super::lock::DataLock;
use super::space::{Space, budget, sizes};
use super::writer::OpenTxn;
use super::{DATABASE, SqliteEngine, failed};
use crate::store::db::Sql;
use crate::store::engine::Owner;
use crate::store::txn::Txn;
use angelia_core::error::{Error, Result};
use angelia_core::space;
use rusqlite::Connection;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The database while it is written anew.
const DRAFT: &str = ".angelia.db.compact";

/// Whether a database gives free pages back.
pub(super) fn can_shrink(db: &Connection) -> rusqlite::Result<bool> {
    db.pragma_query_value(None, "auto_vacuum", |row| row.get::<_, i64>(0)).map(|mode| mode == 2)
}

/// Gives back what is free in the database, if that is worth it.
pub(super) async fn shrink(store: &SqliteEngine) -> Result<()> {
    let worth_it = store.readers.look("look at the database", |db| {
        let (database, slack) = sizes(db)?;
        Ok(can_shrink(db)?.then_some((database, slack)))
    });
    let Some((database, slack)) = worth_it.await? else { return Ok(()) };
    if !space::shrinks(store.space.is_short(), slack, database) {
        return Ok(());
    }
    while store.writer.write(Owner::Upkeep, 0, "shrink the database", |txn| step(txn).map(Ok)).await? {}
    Ok(())
}

/// One step; `false` once it is not worth it any more.
fn step(txn: &mut OpenTxn<'_>) -> Sql<bool> {
    let (database, slack) = sizes(txn.connection)?;
    if !space::shrinks(txn.space.is_short(), slack, database) {
        return Ok(false);
    }
    let pages = budget(txn.space).pages();
    // One page per row of the answer.
    let mut statement = txn.connection.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    drop(rows);
    drop(statement);
    // The file is cut when the log is folded into it.
    txn.then_erase(angelia_core::records::Erased::default());
    Ok(true)
}

/// Writes the database of a directory anew, without what is free in it, so that it
/// can shrink from then on. Answers how large it was and is.
pub fn compact(lock: &DataLock) -> Result<(u64, u64)> {
    let (path, draft) = (lock.data_dir().join(DATABASE), lock.data_dir().join(DRAFT));
    let disk =
        |e: std::io::Error| Error::unavailable(format!("cannot write {}: {e}", draft.display())).caused_by(e);
    let length = |path: &Path| fs::metadata(path).map(|file| file.len()).map_err(disk);
    if !path.exists() {
        return Err(no_data(lock.data_dir()));
    }
    let before = length(&path)?;
    discard_draft(lock.data_dir());
    let space = Space::open(lock.data_dir());
    if Connection::open(&path)
        .and_then(|db| sizes(&db))
        .is_ok_and(|(all, slack)| space.measure().free < all - slack)
    {
        // Whoever asks for it wants space.
        space.cut_reserve(0);
    }
    let written = write_anew(&path, &draft).map_err(|e| {
        discard_draft(lock.data_dir());
        failed("write the database anew", e)
    });
    written?;
    File::open(&draft).and_then(|file| file.sync_all()).map_err(disk)?;
    fs::rename(&draft, &path).map_err(disk)?;
    File::open(lock.data_dir()).and_then(|folder| folder.sync_all()).map_err(disk)?;
    Ok((before, length(&path)?))
}

/// Copies what is in use into `draft`. Leaving the log mode works only while nobody
/// else has the database open, and leaves no log behind that would not fit the new file.
fn write_anew(path: &Path, draft: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "DELETE")?;
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if !mode.eq_ignore_ascii_case("delete") {
        let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
        return Err(rusqlite::Error::SqliteFailure(busy, Some("somebody reads it, a backup perhaps".into())));
    }
    super::make_private(draft);
    connection.execute("VACUUM INTO ?", [draft.to_string_lossy()])?;
    connection.close().map_err(|(_, error)| error)
}

/// What a rewriting that was killed left behind.
pub(super) fn discard_draft(data_dir: &Path) {
    let _ = fs::remove_file(data_dir.join(DRAFT));
}

/// Whether the header of the file says that it cannot shrink. Every command opens the
/// database, and few find an old one: this asks without opening it.
fn looks_old(path: &Path) -> bool {
    let mut header = [0; 68];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header[64..68] == [0; 4]
}

/// Rewrites a small database of an older release, where there is room. Nobody needs
/// it to serve, so a failure is only told.
pub(super) fn rewrite_if_small(lock: &DataLock, space: &Space) {
    discard_draft(lock.data_dir());
    let path = lock.data_dir().join(DATABASE);
    if space.is_short() || !looks_old(&path) {
        return;
    }
    let look = || -> rusqlite::Result<Option<u64>> {
        let db = Connection::open(&path)?;
        let (database, slack) = sizes(&db)?;
        Ok((!can_shrink(&db)? && database > 0).then_some(database.saturating_sub(slack)))
    };
    let Ok(Some(used)) = look() else { return };
    let disk = space.measure();
    if used > space::REWRITTEN_AT_START || disk.free < 2 * used + disk.wanted() {
        return;
    }
    match compact(lock) {
        Ok((before, after)) => {
            tracing::info!(before, after, "the database was rewritten, so that it can shrink")
        }
        Err(error) => tracing::warn!(%error, "the database could not be rewritten; it goes on as it is"),
    }
}
