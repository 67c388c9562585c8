//! Who has the data directory: a server that takes commands, another command,
//! or we.
//!
//! A server announces itself in `admin-url`, a file that it keeps locked while
//! it serves. The lock is what proves that the address in it is the server's:
//! one that was killed leaves the file behind, but not the lock, and nobody is
//! sent the admin token for an old address, whoever answers there now.

use crate::files;
use angelia_core::clock;
use angelia_core::error::{Error, Result};
use angelia_core::secret::Secret;
use angelia_engines::store::sqlite::{self, DataLock};
use std::fs::{self, File, TryLockError};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ADMIN_URL: &str = "admin-url";
pub(crate) const ADMIN_TOKEN: &str = "admin-token";
/// How long a command waits for another one, or for a server that starts or
/// stops: each of them is done within a second or two on a slow disk.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Who has the data directory.
pub(crate) enum Holder {
    /// A server takes commands at this URL, from those with the token.
    Server(String, Secret),
    /// We do.
    Us(DataLock),
}

/// Finds a server that runs, or takes the data directory, after whoever has it now.
pub(crate) async fn find(data_dir: &Path) -> Result<Holder> {
    let began = clock::mono();
    loop {
        if let Some((url, token)) = server(data_dir)? {
            return Ok(Holder::Server(url, token));
        }
        if let Some(lock) = DataLock::try_take(data_dir)? {
            forget(data_dir)?;
            return Ok(Holder::Us(lock));
        }
        if clock::mono().since(began) > PATIENCE {
            return Err(sqlite::taken(data_dir));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Finds a server that runs, or that is just starting, and takes nothing.
pub(crate) async fn find_server(data_dir: &Path) -> Result<Option<(String, Secret)>> {
    let began = clock::mono();
    loop {
        let found = server(data_dir)?;
        if found.is_some() || !sqlite::is_locked(data_dir) || clock::mono().since(began) > PATIENCE {
            return Ok(found);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Where a server takes commands now, and the token it asks for.
pub(crate) fn server(data_dir: &Path) -> Result<Option<(String, Secret)>> {
    let unreadable = |path: &Path, e: std::io::Error| {
        Error::unavailable(format!("a server is running, but {} cannot be read: {e}", path.display()))
            .caused_by(e)
    };
    let path = data_dir.join(ADMIN_URL);
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(unreadable(&path, e)),
    };
    // Shared: two who look at once must not take each other for a server.
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return Ok(None);
    }
    let mut url = String::new();
    file.read_to_string(&mut url).map_err(|e| unreadable(&path, e))?;
    let path = data_dir.join(ADMIN_TOKEN);
    let token = fs::read_to_string(&path).map_err(|e| unreadable(&path, e))?;
    Ok(Some((url.trim().to_owned(), Secret::new(token.trim()))))
}

/// What tells other processes where a server takes commands, until it is dropped.
/// Dropped before the data directory is free for others.
pub(crate) struct Announcement {
    path: PathBuf,
    _file: File,
}

/// Tells other processes where this server takes commands.
pub(crate) fn announce(data_dir: &Path, admin_url: &str) -> Result<Announcement> {
    let path = data_dir.join(ADMIN_URL);
    let file = files::write_locked(&path, admin_url).or_else(|_| {
        // On a full disk there is a reserve for this.
        sqlite::make_room(data_dir);
        files::write_locked(&path, admin_url)
    })?;
    Ok(Announcement { _file: file, path })
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // What stays if it cannot be removed proves nothing without its lock.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes what a server that was killed left behind.
fn forget(data_dir: &Path) -> Result<()> {
    let path = data_dir.join(ADMIN_URL);
    match fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::unavailable(format!("cannot remove {}: {e}", path.display())).caused_by(e))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_counts_while_its_server_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path();
        fs::write(data_dir.join(ADMIN_TOKEN), "token\n").unwrap();
        fs::write(data_dir.join(ADMIN_URL), "http://stale\n").unwrap();
        assert!(server(data_dir).unwrap().is_none(), "nobody keeps it");

        let Holder::Us(lock) = find(data_dir).await.unwrap() else { panic!("nobody else has it") };
        assert!(!data_dir.join(ADMIN_URL).exists(), "what was left behind is removed");
        let announced = announce(data_dir, "http://new").unwrap();
        let looks: Vec<_> = (0..3).map(|_| server(data_dir).unwrap().unwrap().0).collect();
        assert_eq!(looks, ["http://new"; 3]);
        assert!(matches!(find(data_dir).await.unwrap(), Holder::Server(url, _) if url == "http://new"));
        drop(announced);
        assert!(server(data_dir).unwrap().is_none() && !data_dir.join(ADMIN_URL).exists());
        drop(lock);
    }

    #[tokio::test]
    async fn whoever_only_looks_for_a_server_makes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path().join("data");
        assert!(find_server(&data_dir).await.unwrap().is_none());
        assert!(!data_dir.exists());
        let lock = DataLock::try_take(&data_dir).unwrap().unwrap();
        fs::write(data_dir.join(ADMIN_TOKEN), "token\n").unwrap();
        let mut waiting = std::pin::pin!(find_server(&data_dir));
        assert!(
            tokio::time::timeout(LOOK_EVERY * 3, &mut waiting).await.is_err(),
            "one that starts is waited for"
        );
        let announced = announce(&data_dir, "http://new").unwrap();
        assert_eq!(waiting.await.unwrap().unwrap().0, "http://new");
        drop((announced, lock));
    }

    #[tokio::test]
    async fn who_comes_second_waits_for_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let lock = DataLock::try_take(folder.path()).unwrap().unwrap();
        let mut waiting = std::pin::pin!(find(folder.path()));
        assert!(tokio::time::timeout(LOOK_EVERY * 3, &mut waiting).await.is_err(), "it waits");
        drop(lock);
        assert!(matches!(waiting.await.unwrap(), Holder::Us(_)));
    }
}
