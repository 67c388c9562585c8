//! Where the master key lives between starts: in the data directory, or
//! wherever the configuration says.
//!
//! A change of keys writes `master.key.next`, makes it in one commit the key that
//! opens the store, and renames it over `master.key`. A process that ends in
//! between leaves both behind, and the next start keeps the one that opens the
//! store. The old key is in the store from then on, sealed with the new one, for
//! as long as something needs it (docs/decisions/0031).

use crate::config::{Config, SecretRef};
use crate::files::{absolute, create_private, write_private};
use crate::sealed_mark;
use angelia_connector::KeyKeeper;
use angelia_core::error::{Error, Result};
use angelia_core::records::Records;
use angelia_core::seal::{self, KEY_CHECK, KeyId, MasterKey};
use angelia_core::secret::Secret;
use angelia_core::store::IdentityStore;
use angelia_engines::store::sqlite::DataLock;
use parking_lot::Mutex;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const MASTER_KEY: &str = "master.key";
const NEXT_KEY: &str = "master.key.next";

/// What there is that a key has to fit.
pub(crate) struct Kept<'a> {
    pub(crate) has_data: bool,
    /// Where it is, for sentences.
    pub(crate) place: String,
    /// The key it needs, if that can be told.
    pub(crate) key_id: &'a dyn Fn() -> Option<String>,
}

/// The configured key, or the one in the data directory. A key is made only
/// together with the data: making one beside existing data would lose every
/// secret in it. Nobody else may make one meanwhile, hence the lock.
pub(crate) fn master_key(config: &Config, lock: &DataLock, kept: &Kept<'_>) -> Result<MasterKey> {
    if let Some(reference) = &config.keys.master {
        let text = reference.resolve().map_err(|e| {
            if kept.has_data {
                lost(kept, &e.to_string())
            } else {
                Error::invalid(e.to_string()).caused_by(e)
            }
        })?;
        return MasterKey::from_hex(text.expose());
    }
    let path = lock.data_dir().join(MASTER_KEY);
    match fs::read_to_string(&path).map(Secret::new) {
        Ok(text) => MasterKey::from_hex(text.expose()).map_err(|e| {
            Error::invalid(format!("{}: {e}; put the right key there", path.display())).caused_by(e)
        }),
        Err(e) if e.kind() == ErrorKind::NotFound && !kept.has_data => {
            let key = MasterKey::mint();
            create_private(&path, key.to_hex().expose())?;
            Ok(key)
        }
        Err(e) => Err(lost(kept, &format!("{}: {e}", path.display()))),
    }
}

/// What to say when there is data, but not its key.
fn lost(kept: &Kept<'_>, why: &str) -> Error {
    let needed = match (kept.key_id)() {
        Some(id) => format!("its master key, {id},"),
        None => "its master key".to_owned(),
    };
    Error::internal(format!(
        "{} holds data, but {needed} cannot be read: {why}. Put the key back, or name it in the \
         configuration under [keys]",
        kept.place
    ))
}

/// The key that opens the store, after a change of keys that was cut short
/// too, and who keeps it.
pub(crate) async fn settle(
    config: &Config,
    key: MasterKey,
    records: &dyn Records,
) -> Result<(MasterKey, Box<dyn KeyKeeper>)> {
    let check = check_of(&key, records).await?;
    let is_shared = config.store.is_shared();
    if let Some(reference) = &config.keys.master {
        let advice = if is_shared {
            "all nodes need the same key: point keys.master of this one at that key"
        } else {
            "point keys.master at that key"
        };
        refuse_another(&key, &check, advice)?;
        return Ok((key, Box::new(Configured::new(reference.clone()))));
    }
    let data_dir = &config.server.data_dir;
    let key = finish_change(data_dir, key, &check)?;
    let path = absolute(&data_dir.join(MASTER_KEY));
    let path = path.display();
    let advice = match is_shared {
        true if sealed_mark::has_sealed(data_dir, &key, records).await? => format!(
            "the master key was changed while this node was away: copy {MASTER_KEY} from the data directory of a node \
             that runs to {path}"
        ),
        true => format!(
            "all nodes need the same key: copy {MASTER_KEY} from the data directory of a node that runs to {path}, or \
             point keys.master of all of them at one key"
        ),
        false => format!("put that key into {path}, or point keys.master at it"),
    };
    refuse_another(&key, &check, &advice)?;
    let database = sealed_mark::name(records, data_dir, &key).await?;
    sealed_mark::write(data_dir, &key, &database);
    let owed = AtomicBool::new(false);
    Ok((key, Box::new(KeyFiles { folder: data_dir.clone(), database, owed })))
}

/// What tells which key opens the store. Of several nodes that begin with an empty one the first
/// has its key count, before any of them seals something else.
async fn check_of(key: &MasterKey, records: &dyn Records) -> Result<Vec<u8>> {
    match records.note(KEY_CHECK).await? {
        Some(check) => Ok(check),
        None => records.note_once(KEY_CHECK, key.seal(&Secret::new(KEY_CHECK), KEY_CHECK)?).await,
    }
}

/// The one of two keys that opens the store, if a change of keys was cut short.
fn finish_change(data_dir: &Path, key: MasterKey, check: &[u8]) -> Result<MasterKey> {
    let Some(next) = staged(data_dir)? else { return Ok(key) };
    let opens = |key: &MasterKey| key.open(check, KEY_CHECK).is_ok();
    if !opens(&key) && opens(&next) {
        tracing::warn!(key = %next.id(), "a change of the master key was cut short; finishing it");
        adopt_staged(data_dir)?;
        return Ok(next);
    }
    if opens(&key) {
        tracing::warn!(key = %next.id(), "a change of the master key was cut short before it took place");
        let path = data_dir.join(NEXT_KEY);
        fs::remove_file(&path)
            .map_err(|e| Error::unavailable(format!("cannot remove {}: {e}", path.display())).caused_by(e))?;
    }
    Ok(key)
}

/// The key to change to, where a change is under way.
fn staged(folder: &Path) -> Result<Option<MasterKey>> {
    let path = folder.join(NEXT_KEY);
    match fs::read_to_string(&path).map(Secret::new) {
        Ok(text) => MasterKey::from_hex(text.expose())
            .map(Some)
            .map_err(|e| Error::invalid(format!("{}: {e}; move the file away", path.display())).caused_by(e)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::unavailable(format!("cannot read {}: {e}", path.display())).caused_by(e)),
    }
}

fn adopt_staged(folder: &Path) -> Result<()> {
    let (next, path) = (folder.join(NEXT_KEY), folder.join(MASTER_KEY));
    let adopt = || {
        fs::rename(&next, &path)?;
        fs::File::open(folder)?.sync_all()
    };
    adopt().map_err(|e: std::io::Error| {
        Error::unavailable(format!("cannot rename {} to {MASTER_KEY}: {e}", next.display())).caused_by(e)
    })
}

/// Refuses a key that is not the one of the data, as after a restore beside the
/// wrong one, and says what to do.
fn refuse_another(key: &MasterKey, check: &[u8], advice: &str) -> Result<()> {
    // One of this key that does not open is damaged, which is told elsewhere.
    if seal::key_id(check) == Some(key.id()) {
        return Ok(());
    }
    let Err(error) = key.open(check, KEY_CHECK) else { return Ok(()) };
    Err(Error::internal(format!("{error}; {advice}")).caused_by(error))
}

/// The key in the data directory.
struct KeyFiles {
    folder: PathBuf,
    /// The name of the database it seals secrets of.
    database: String,
    /// Whether the staged key is the one in use, and could not be put in its place.
    owed: AtomicBool,
}

impl KeyKeeper for KeyFiles {
    fn next(&self, file: Option<&Path>) -> Result<MasterKey> {
        file.map_or_else(|| Ok(MasterKey::mint()), read_key)
    }

    fn stage(&self, next: &MasterKey) -> Result<()> {
        // There is no other copy of it: the next one must not take its place.
        if self.owed.load(Ordering::Acquire) {
            self.adopt()?;
        }
        write_private(&self.folder.join(NEXT_KEY), next.to_hex().expose())
    }

    fn adopt(&self) -> Result<Option<String>> {
        self.owed.store(true, Ordering::Release);
        let key = staged(&self.folder)?;
        adopt_staged(&self.folder)?;
        self.owed.store(false, Ordering::Release);
        key.iter().for_each(|key| sealed_mark::write(&self.folder, key, &self.database));
        Ok(None)
    }
}

/// A key that the operator keeps.
struct Configured {
    reference: SecretRef,
    /// The file of the next key.
    next: Mutex<Option<PathBuf>>,
    /// The next key, if another node has changed to it.
    staged: Mutex<Option<KeyId>>,
}

impl Configured {
    fn new(reference: SecretRef) -> Self {
        Self { reference, next: Mutex::default(), staged: Mutex::default() }
    }
}

impl KeyKeeper for Configured {
    fn next(&self, file: Option<&Path>) -> Result<MasterKey> {
        let file = file.ok_or_else(|| {
            Error::invalid(format!(
                "the master key is configured as {}, so the next one is yours to keep: write it to a file \
                 with `openssl rand -hex 32 > FILE` and name it with --to FILE",
                self.reference
            ))
        })?;
        let key = read_key(file)?;
        *self.next.lock() = Some(file.to_owned());
        Ok(key)
    }

    fn stage(&self, next: &MasterKey) -> Result<()> {
        // It was read from the place where it stays, here or on another node.
        *self.staged.lock() = Some(next.id());
        Ok(())
    }

    fn adopt(&self) -> Result<Option<String>> {
        let file = self.next.lock().take();
        let staged = self.staged.lock().take();
        let Some(file) = file else {
            return Ok(staged.map(|key| {
                format!(
                    "before the next start, put the key {key} where keys.master reads it: {}",
                    self.reference
                )
            }));
        };
        if matches!(&self.reference, SecretRef::File(known) if *known == file) {
            return Ok(None);
        }
        Ok(Some(format!(
            "before the next start, point keys.master at the new key: master = {}",
            SecretRef::File(file)
        )))
    }
}

fn read_key(file: &Path) -> Result<MasterKey> {
    let text =
        SecretRef::File(file.to_owned()).resolve().map_err(|e| Error::invalid(e.to_string()).caused_by(e))?;
    MasterKey::from_hex(text.expose())
        .map_err(|e| Error::invalid(format!("{}: {e}", file.display())).caused_by(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_could_not_be_put_in_its_place_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let [key_file, next_file] = [MASTER_KEY, NEXT_KEY].map(|name| folder.path().join(name));
        let (database, owed) = ("db".to_owned(), AtomicBool::new(false));
        let keeper = KeyFiles { folder: folder.path().to_owned(), database, owed };
        let [second, third] = [MasterKey::mint(), MasterKey::mint()];
        let read = |path: &Path| read_key(path).unwrap().id();
        // Nothing can be renamed over a folder that holds something.
        fs::create_dir_all(key_file.join("in the way")).unwrap();
        keeper.stage(&second).unwrap();
        assert!(keeper.adopt().is_err());
        assert!(keeper.stage(&third).is_err());
        assert_eq!(read(&next_file), second.id(), "it is the only copy");

        fs::remove_dir_all(&key_file).unwrap();
        keeper.stage(&third).unwrap();
        assert_eq!((read(&key_file), read(&next_file)), (second.id(), third.id()));
        keeper.adopt().unwrap();
        assert_eq!(read(&key_file), third.id());
    }
}
