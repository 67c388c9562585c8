//! Which database the key in the data directory has sealed secrets of.
//!
//! A key without its database is a server that lost everything, and it must not
//! come up as a new one. So a small file beside the key names the database; it
//! is about that key alone, so another key put in its place begins anew
//! (docs/decisions/0025).

use crate::files::{absolute, write_private};
use angelia_core::error::{Error, Kind, Result};
use angelia_core::records::Records;
use angelia_core::seal::{self, KEY_CHECK, MasterKey};
use angelia_core::secret::random_hex;
use angelia_core::store::{DATABASE_ID, IdentityStore};
use angelia_engines::store::sqlite::{self, DATABASE, DatabaseIdentity};
use std::fs;
use std::path::Path;

/// The file: the key's public name and the database's, nothing secret.
pub(crate) const MARK: &str = "sealed-by";

/// The database that a key has sealed secrets of, if it has.
fn read(data_dir: &Path, key: &MasterKey) -> Option<String> {
    let text = fs::read_to_string(data_dir.join(MARK)).ok()?;
    let (key_id, database) = text.trim().split_once(' ')?;
    (key_id == key.id().to_string()).then(|| database.to_owned())
}

/// Whether a key is known to have sealed secrets of a database.
pub(crate) async fn has_sealed(data_dir: &Path, key: &MasterKey, records: &dyn Records) -> Result<bool> {
    let id = records.note(DATABASE_ID).await?.map(|id| String::from_utf8_lossy(&id).into_owned());
    Ok(id.is_some() && read(data_dir, key) == id)
}

/// Refuses a database that is not the one the key has sealed secrets of; ask
/// before it is opened, which would make one where there is none. A database
/// that needs another key is not ours to judge: that is told better later.
pub(crate) fn check(data_dir: &Path, key: &MasterKey) -> Result<()> {
    let Some(expected) = read(data_dir, key) else { return Ok(()) };
    let path = data_dir.join(DATABASE);
    let is_empty = fs::metadata(&path).map_or(true, |it| it.len() == 0 && no_log(data_dir));
    if is_empty {
        let there = if path.exists() { "is empty" } else { "is not there" };
        return Err(lost(data_dir, key, &expected, there));
    }
    // What cannot be read is told by whoever opens it.
    let Ok(found) = sqlite::identity(data_dir) else { return Ok(()) };
    match (found.database_id, found.key_id) {
        (Some(id), _) if id == expected => Ok(()),
        (_, None) => Err(lost(data_dir, key, &expected, "holds nothing that was ever sealed")),
        (_, Some(needs)) if needs != key.id().to_string() => Ok(()),
        // A backup from before databases had names.
        (None, Some(_)) => Ok(()),
        (Some(other), Some(_)) => Err(lost(data_dir, key, &expected, &format!("is another one, {other}"))),
    }
}

/// What a database elsewhere says of itself.
pub(crate) async fn found(records: &dyn Records) -> Result<DatabaseIdentity> {
    let id = records.note(DATABASE_ID).await?;
    let check = records.note(KEY_CHECK).await?;
    Ok(DatabaseIdentity {
        database_id: id.map(|id| String::from_utf8_lossy(&id).into_owned()),
        key_id: check.as_deref().and_then(seal::key_id).map(|id| id.to_string()),
    })
}

/// [`check`] for a database that is elsewhere: `place` says where.
pub(crate) fn check_elsewhere(
    data_dir: &Path,
    key: &MasterKey,
    found: &DatabaseIdentity,
    place: &str,
) -> Result<()> {
    let Some(expected) = read(data_dir, key) else { return Ok(()) };
    let what = match (&found.database_id, &found.key_id) {
        (Some(id), _) if *id == expected => return Ok(()),
        (_, None) => "is empty".to_owned(),
        (_, Some(needs)) if *needs != key.id().to_string() => return Ok(()),
        (None, Some(_)) => return Ok(()),
        (Some(other), Some(_)) => format!("is another one, {other}"),
    };
    let folder = absolute(data_dir);
    let folder = folder.display();
    Err(Error::conflict(format!(
        "the key {} in {folder} has sealed secrets of the database {expected} before, but {place} {what}. Is \
         store.url the right one? Point it there, or restore a backup into it (see \"PostgreSQL\" in the manual of \
         operation). To really begin anew, without any tenant, gateway or message of before: \
         mv {folder}/master.key {folder}/master.key.old",
        key.id()
    )))
}

/// What was written last may be in the log only.
fn no_log(data_dir: &Path) -> bool {
    fs::metadata(data_dir.join(format!("{DATABASE}-wal"))).map_or(true, |log| log.len() == 0)
}

fn lost(data_dir: &Path, key: &MasterKey, expected: &str, what: &str) -> Error {
    let folder = absolute(data_dir);
    let folder = folder.display();
    Error::new(
        Kind::Conflict,
        format!(
            "the key {} in {folder} has sealed secrets of the database {expected} before, but {DATABASE} there {what}. \
             Is this the right volume? Put the database back, or restore a backup ({DATABASE} and, if it needs \
             another one, its master.key; see \"Restore\" in the manual of operation). To really begin anew, without \
             any tenant, gateway or message of before: mv {folder}/master.key {folder}/master.key.old",
            key.id()
        ),
    )
}

/// Gives the database a name, if it has none.
pub(crate) async fn name(records: &dyn Records, data_dir: &Path, key: &MasterKey) -> Result<String> {
    if let Some(id) = records.note(DATABASE_ID).await? {
        return Ok(String::from_utf8_lossy(&id).into_owned());
    }
    // A backup from before it had one gets its old name back.
    let id = read(data_dir, key).unwrap_or_else(random_hex::<8>);
    let kept = records.note_once(DATABASE_ID, id.into_bytes()).await?;
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

/// Notes that a key has sealed secrets of a database. If that fails the server
/// is no worse off than one of an older release, so it is only told.
pub(crate) fn write(data_dir: &Path, key: &MasterKey, database: &str) {
    if read(data_dir, key).as_deref() == Some(database) {
        return;
    }
    let written = write_private(&data_dir.join(MARK), &format!("{} {database}", key.id()));
    if let Err(error) = written {
        tracing::warn!(%error, "if the database is lost, the next start will not notice");
    }
}
