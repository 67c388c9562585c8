//! A copy of the database in one file, made beside a running server.
//!
//! The copy is a snapshot: what was committed when it began is in it, what
//! comes meanwhile is not, and nobody waits for it. It is read back before it
//! gets its name, so that a file with that name is a good one.

use super::space::sizes;
use super::{DATABASE, open_for_reading, private_file};
use crate::blobs::{CopiedBlobs, copy_blobs};
use angelia_core::error::{Error, Result};
use angelia_core::media::FileId;
use angelia_core::seal::{self, KEY_CHECK};
use angelia_core::secret::random_hex;
use angelia_core::store::DATABASE_ID;
use rusqlite::{Connection, OptionalExtension};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// How often the caller hears how far it is.
const TOLD_EVERY: Duration = Duration::from_millis(500);

/// A copy that was made.
#[derive(Clone, Debug)]
pub struct Backup {
    /// How large it is.
    pub bytes: u64,
    /// The version of its schema.
    pub schema_version: i64,
    /// The master key it needs; `None` if nothing in it was ever sealed.
    pub key_id: Option<String>,
    /// The files that people and agents have in it.
    pub files: FilesOfBackup,
}

/// The files that a copy of the database tells of. Their bytes rest beside the database.
#[derive(Clone, Debug, Default)]
pub struct FilesOfBackup {
    /// Objects, each of one file or several of the same bytes.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Where they were copied to, and what came of that; `None` if nobody wanted that.
    pub copied: Option<(PathBuf, CopiedBlobs)>,
}

/// Where the files of a backup are, beside the copy of its database.
fn media_of(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".media");
    name.into()
}

/// Copies the database of `data_dir` to `target`, which must not exist; and, if `media` is the folder
/// that has them, the files it tells of into a folder beside it.
///
/// `progress` hears now and then how many bytes of about how many are written.
pub fn backup(
    data_dir: &Path,
    target: &Path,
    media: Option<&Path>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Backup> {
    let beside = media.map(|media| (media, media_of(target)));
    for path in [Some(target), beside.as_ref().map(|(_, path)| &**path)].into_iter().flatten() {
        if fs::symlink_metadata(path).is_ok() {
            return Err(taken(path));
        }
    }
    let database = data_dir.join(DATABASE);
    if !database.exists() {
        return Err(no_data(data_dir));
    }
    let partial = Partial::new(target)?;
    let source = open_for_reading(&database)?;
    let (all, free) = sizes(&source).map_err(|e| broken("read", &database, e))?;
    // Free pages are not copied.
    copy(source, &partial.path, all.saturating_sub(free), progress)?;
    let (mut made, blobs) = check(&partial.path)?;
    if let Some((media, folder)) = beside {
        // First: a database with that name has its files.
        let copied = copy_files(media, &folder, &blobs, &mut |bytes| {
            progress(made.bytes + bytes, made.bytes + made.files.bytes.max(bytes));
        })?;
        made.files.copied = Some((folder, copied));
    }
    partial.keep(target)?;
    Ok(made)
}

/// The file while it grows; gone again unless it is kept.
struct Partial {
    path: PathBuf,
}

impl Partial {
    fn new(target: &Path) -> Result<Self> {
        let name = target.file_name().ok_or_else(|| {
            Error::invalid(format!("{} names no file; say where to put the backup", target.display()))
        })?;
        let name = format!(".{}.{}.partial", name.to_string_lossy(), random_hex::<4>());
        let path = target.with_file_name(name);
        // Before the first byte: it will hold message text that waits.
        private_file().create_new(true).open(&path).map_err(|e| match (e.kind(), target.parent()) {
            (std::io::ErrorKind::NotFound, Some(folder)) => {
                Error::not_found(format!("the folder {} does not exist; make it first", folder.display()))
            }
            _ => cannot("write", &path, e),
        })?;
        Ok(Self { path })
    }

    /// Gives it its name, durably, and not over another file.
    fn keep(self, target: &Path) -> Result<()> {
        File::open(&self.path)
            .and_then(|file| file.sync_all())
            .map_err(|e| cannot("write", &self.path, e))?;
        match fs::hard_link(&self.path, target) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => return Err(taken(target)),
            // Not every file system has links; then the look before has to do.
            Err(_) => fs::rename(&self.path, target).map_err(|e| cannot("write", target, e))?,
        }
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let synced = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        synced.map_err(|e| cannot("write", target, e))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Copies files into a folder that gets its name when it is whole.
fn copy_files(
    media: &Path,
    folder: &Path,
    blobs: &[FileId],
    progress: &mut dyn FnMut(u64),
) -> Result<CopiedBlobs> {
    let mut partial = folder.as_os_str().to_owned();
    partial.push(format!(".{}.partial", random_hex::<4>()));
    let partial = PathBuf::from(partial);
    let copied = copy_blobs(media, &partial, blobs, progress).and_then(|copied| {
        fs::rename(&partial, folder).map_err(|e| cannot("write", folder, e))?;
        Ok(copied)
    });
    if copied.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    copied
}

/// Copies in a thread of its own, and watches the file grow.
fn copy(source: Connection, target: &Path, expected: u64, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
    let (done, finished) = sync_channel(1);
    let path = target.to_owned();
    let copying = std::thread::spawn(move || {
        let copied = source.execute("VACUUM INTO ?", [path.to_string_lossy()]);
        let _ = done.send(());
        copied
    });
    while finished.recv_timeout(TOLD_EVERY) == Err(RecvTimeoutError::Timeout) {
        let written = fs::metadata(target).map_or(0, |file| file.len());
        progress(written.min(expected), expected);
    }
    let copied = copying.join().map_err(|_| Error::internal("the copy broke off"))?;
    copied.map(drop).map_err(|e| broken("copied", target, e))
}

/// Reads the copy back; the objects it tells of besides.
fn check(path: &Path) -> Result<(Backup, Vec<FileId>)> {
    let failed = |e: rusqlite::Error| broken("read back", path, e);
    let copy = open_for_reading(path)?;
    let verdict: String = copy.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
    if verdict != "ok" {
        return Err(Error::internal(format!(
            "the copy is damaged: {verdict}; check the disk, and the database with it, and try again"
        )));
    }
    let schema_version = copy.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    let key_id = needed_key(&copy).map_err(failed)?;
    let bytes = fs::metadata(path).map_err(|e| cannot("read", path, e))?.len();
    let (blobs, sizes): (Vec<_>, Vec<_>) = blobs(&copy).map_err(failed)?.into_iter().unzip();
    let files = FilesOfBackup { blobs: blobs.len() as u64, bytes: sizes.iter().sum(), copied: None };
    Ok((Backup { bytes, schema_version, key_id, files }, blobs))
}

/// The objects that a database tells of, and their bytes.
fn blobs(db: &Connection) -> rusqlite::Result<Vec<(FileId, u64)>> {
    // Releases before files have no such table.
    if !has_table(db, "blobs")? {
        return Ok(Vec::new());
    }
    let mut statement = db.prepare("SELECT blob, size FROM blobs ORDER BY blob")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
    let named = rows.map(|row| row.map(|(blob, size)| Some((FileId::parse(&blob)?, size.unsigned_abs()))));
    named.filter_map(Result::transpose).collect()
}

fn has_table(db: &Connection, name: &str) -> rusqlite::Result<bool> {
    let asked = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?)";
    db.query_row(asked, [name], |row| row.get(0))
}

/// The public name of the master key that the database of `data_dir` needs;
/// `None` if nothing in it was ever sealed. Nobody needs the key to ask.
pub fn key_id(data_dir: &Path) -> Result<Option<String>> {
    let database = data_dir.join(DATABASE);
    needed_key(&open_for_reading(&database)?).map_err(|e| cannot_read(&database, e))
}

/// What a database says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseIdentity {
    /// Its name; `None` if no release gave it one yet.
    pub database_id: Option<String>,
    /// The master key it needs; `None` if nothing in it was ever sealed.
    pub key_id: Option<String>,
}

/// What the database of `data_dir` says of itself, before it is opened to work with it.
pub fn identity(data_dir: &Path) -> Result<DatabaseIdentity> {
    let database = data_dir.join(DATABASE);
    let db = open_for_reading(&database)?;
    let read = || {
        // Anything may lie there under that name, such as a file without a table.
        if !has_table(&db, "notes")? {
            return Ok(DatabaseIdentity::default());
        }
        let database_id = note(&db, DATABASE_ID)?.map(|id| String::from_utf8_lossy(&id).into_owned());
        Ok(DatabaseIdentity { database_id, key_id: needed_key(&db)? })
    };
    read().map_err(|e| cannot_read(&database, e))
}

/// What is noted under a name.
fn note(db: &Connection, name: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    db.query_row("SELECT value FROM notes WHERE name = ?", [name], |row| row.get(0)).optional()
}

fn needed_key(db: &Connection) -> rusqlite::Result<Option<String>> {
    Ok(note(db, KEY_CHECK)?.as_deref().and_then(seal::key_id).map(|id| id.to_string()))
}

fn cannot_read(path: &Path, error: rusqlite::Error) -> Error {
    Error::internal(format!("{} could not be read: {error}", path.display())).caused_by(error)
}

/// What to say when there is no database.
pub(super) fn no_data(data_dir: &Path) -> Error {
    Error::not_found(format!("{} holds no data; check server.data_dir", data_dir.display()))
}

fn taken(target: &Path) -> Error {
    Error::conflict(format!("{} exists already; choose another name, or move it away", target.display()))
}

fn cannot(what: &str, path: &Path, error: std::io::Error) -> Error {
    Error::internal(format!("cannot {what} {}: {error}", path.display())).caused_by(error)
}

fn broken(what: &str, path: &Path, error: rusqlite::Error) -> Error {
    let message = format!("{} could not be {what}: {error}; nothing was kept", path.display());
    Error::internal(message).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(folder: &Path) -> Connection {
        let db = Connection::open(folder.join(DATABASE)).unwrap();
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA user_version = 7;
             CREATE TABLE notes (name TEXT PRIMARY KEY, value BLOB);
             CREATE TABLE log (seq INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT);
             INSERT INTO log (text) VALUES ('one'), ('two'), ('three');
             DELETE FROM log WHERE seq = 3;
             INSERT INTO notes VALUES ('key_check', x'a1b2c3d400000000000000000000000000000000000000000000000000');",
        )
        .unwrap();
        db
    }

    fn files(folder: &Path) -> Vec<String> {
        let names =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.starts_with(DATABASE)).collect()
    }

    #[test]
    fn the_copy_holds_what_was_committed_and_numbers_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let db = database(folder.path());
        let target = folder.path().join("copy.db");
        let made = backup(folder.path(), &target, None, &mut |_, _| {}).unwrap();
        assert_eq!((made.schema_version, made.key_id.as_deref()), (7, Some("a1b2c3d4")));
        assert_eq!(made.bytes, fs::metadata(&target).unwrap().len());
        assert_eq!(files(folder.path()), ["copy.db"], "nothing else is left");
        db.execute("INSERT INTO log (text) VALUES ('later')", []).unwrap();
        let copy = Connection::open(&target).unwrap();
        let texts: String =
            copy.query_row("SELECT group_concat(text) FROM log", [], |row| row.get(0)).unwrap();
        assert_eq!(texts, "one,two");
        copy.execute("INSERT INTO log (text) VALUES ('next')", []).unwrap();
        assert_eq!(copy.last_insert_rowid(), 4, "no number is given twice");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_reads_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        drop(database(folder.path()));
        let target = folder.path().join("copy.db");
        backup(folder.path(), &target, None, &mut |_, _| {}).unwrap();
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn files_are_copied_beside_it_if_somebody_wants_that() {
        let folder = tempfile::tempdir().unwrap();
        let db = database(folder.path());
        let [here, gone] = ["here", "gone"].map(|name| FileId::named(&[name]).to_string());
        db.execute_batch("CREATE TABLE blobs (blob TEXT PRIMARY KEY, size INTEGER)").unwrap();
        for blob in [&here, &gone] {
            db.execute("INSERT INTO blobs VALUES (?, 5)", [blob]).unwrap();
        }
        let media = folder.path().join("media");
        let way = Path::new(&here[..2]).join(&here);
        fs::create_dir_all(media.join(&here[..2])).unwrap();
        fs::write(media.join(&way), "bytes").unwrap();
        fs::write(media.join(&here[..2]).join("ff"), "of nobody").unwrap();
        let made = backup(folder.path(), &folder.path().join("bare.db"), None, &mut |_, _| {}).unwrap();
        assert_eq!((made.files.blobs, made.files.bytes), (2, 10));
        assert!(made.files.copied.is_none());
        let target = folder.path().join("copy.db");
        let made = backup(folder.path(), &target, Some(&media), &mut |_, _| {}).unwrap();
        let (beside, copied) = made.files.copied.unwrap();
        assert_eq!(beside, folder.path().join("copy.db.media"));
        assert_eq!(copied, CopiedBlobs { count: 1, bytes: 5, gone: 1 });
        assert_eq!(fs::read(beside.join(&way)).unwrap(), b"bytes");
        assert_eq!(fs::read_dir(beside.join(&here[..2])).unwrap().count(), 1);
        assert_eq!(files(folder.path()).iter().filter(|name| name.contains("partial")).count(), 0);
        fs::remove_file(&target).unwrap();
        assert!(
            backup(folder.path(), &target, Some(&media), &mut |_, _| {}).is_err(),
            "nothing is overwritten"
        );
        assert!(!target.exists());
    }

    #[test]
    fn nothing_is_overwritten_and_nothing_half_done_stays() {
        use angelia_core::Kind;
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("copy.db");
        let missing = backup(folder.path(), &target, None, &mut |_, _| {}).unwrap_err();
        assert_eq!(missing.kind(), Kind::NotFound);
        drop(database(folder.path()));
        fs::write(&target, "mine").unwrap();
        let error = backup(folder.path(), &target, None, &mut |_, _| {}).unwrap_err();
        assert_eq!(error.kind(), Kind::Conflict);
        assert_eq!(fs::read(&target).unwrap(), b"mine");
        // A page in the middle is lost.
        fs::remove_file(&target).unwrap();
        let path = folder.path().join(DATABASE);
        let mut bytes = fs::read(&path).unwrap();
        bytes[4096..8192].fill(0xff);
        fs::write(&path, bytes).unwrap();
        assert!(backup(folder.path(), &target, None, &mut |_, _| {}).is_err());
        assert_eq!(files(folder.path()), Vec::<String>::new());
    }
}
