//! Who else on this machine can read or change what is the server's alone.
//!
//! What the server made itself it made for its owner only, so anything else is
//! somebody's doing. Files that the configuration names are their keeper's to
//! protect: containers mount secrets for everybody to read, so only those that
//! anybody can change are refused.

use crate::config::{Config, SecretRef};
use angelia_core::error::{Error, Result};
use angelia_engines::store::sqlite::{DATABASE_FILES, MOVED};
#[cfg(not(unix))]
use std::path::Path;
use std::path::PathBuf;

/// The files of a data directory that hold secrets or people's words.
const OWN: [&str; 8] = [
    "master.key",
    "master.key.next",
    "admin-token",
    "demo.json",
    DATABASE_FILES[0],
    DATABASE_FILES[1],
    DATABASE_FILES[2],
    MOVED,
];

/// Refuses to go on with files that others can get at; names all of them, each
/// with the command that mends it. `serves` if bots and TLS are needed too.
pub(crate) fn check(config: &Config, serves: bool) -> Result<()> {
    let mut mends = own(&config.server.data_dir);
    mends.extend(named(config, serves).iter().filter_map(|path| anybody_writes(path)));
    if mends.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "others on this machine can read or change what is this server's alone. Run as the owner of the files, \
         and start again:\n  {}\nWhoever read the key, the token or a secret has it: rotate what may have been seen \
         (angelia key rotate, admin-token rotate, gateway rotate --now)",
        mends.join("\n  ")
    )))
}

/// The files that the configuration names.
fn named(config: &Config, serves: bool) -> Vec<PathBuf> {
    let of_bots = config.bots.iter().flat_map(|bot| bot.secrets()).filter(|_| serves);
    let of_media = config.media.secret_access_key.iter().filter(|_| serves);
    let own = config.keys.master.iter().chain(&config.store.password).chain(of_media);
    let secrets = own.chain(of_bots).filter_map(|secret| match secret {
        SecretRef::File(path) => Some(path.clone()),
        SecretRef::Env(_) | SecretRef::Command(_) => None,
    });
    let tls = config.server.tls.iter().filter(|_| serves).map(|tls| tls.key.clone());
    secrets.chain(tls).collect()
}

#[cfg(not(unix))]
fn own(_data_dir: &Path) -> Vec<String> {
    Vec::new()
}

#[cfg(not(unix))]
fn anybody_writes(_path: &Path) -> Option<String> {
    None
}

#[cfg(unix)]
use unix::{anybody_writes, own};

#[cfg(unix)]
mod unix {
    use super::OWN;
    use crate::files::{absolute, keeps_modes};
    use angelia_engines::store::sqlite;
    use std::fs::{self, Metadata};
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    const OTHERS: u32 = 0o077;
    const ANYBODY_WRITES: u32 = 0o002;
    /// In such a directory nobody removes what is another's.
    const STICKY: u32 = 0o1000;

    /// What is loose in a data directory.
    pub(super) fn own(data_dir: &Path) -> Vec<String> {
        let files = OWN.map(|name| data_dir.join(name));
        let loose = files.iter().filter_map(|path| match fs::symlink_metadata(path).ok()? {
            // Somebody put a link there: what it leads to is not ours.
            it if it.is_symlink() => anybody_writes(path),
            it => (it.mode() & OTHERS != 0).then(|| command("600", path)),
        });
        let mends: Vec<String> = directory(data_dir).into_iter().chain(loose).collect();
        if !mends.is_empty() && !keeps_modes(data_dir) {
            tracing::warn!(
                data_dir = %data_dir.display(),
                "the file system keeps no modes, so others may read the key and the database; \
                 restrict it where it is mounted"
            );
            return Vec::new();
        }
        mends
    }

    fn directory(data_dir: &Path) -> Option<String> {
        let it = fs::metadata(data_dir).ok()?;
        let loose = if sqlite::is_own_directory(data_dir) {
            it.mode() & OTHERS != 0
        } else {
            // Somebody made or mounted it as they want it. Its files are protected by their own modes.
            it.mode() & ANYBODY_WRITES != 0 && it.mode() & STICKY == 0
        };
        loose.then(|| command("700", data_dir))
    }

    /// What mends a file that anybody can change.
    pub(super) fn anybody_writes(path: &Path) -> Option<String> {
        let it = fs::metadata(path).ok().filter(Metadata::is_file)?;
        (it.mode() & ANYBODY_WRITES != 0).then(|| command("o-w", path))
    }

    fn command(mode: &str, path: &Path) -> String {
        let path = absolute(path).display().to_string();
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,".contains(c);
        if path.chars().all(plain) {
            format!("chmod {mode} {path}")
        } else {
            format!("chmod {mode} '{}'", path.replace('\'', "'\\''"))
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use angelia_engines::store::sqlite::{DATABASE, DataLock};
        use std::os::unix::fs::PermissionsExt;

        fn set(path: &Path, mode: u32) {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }

        #[test]
        fn every_loose_file_is_named_with_what_mends_it() {
            let folder = tempfile::tempdir().unwrap();
            let data = folder.path().join("it's data");
            drop(DataLock::try_take(&data).unwrap().unwrap());
            for name in OWN.iter().chain(&["admin-url", "other"]) {
                fs::write(data.join(name), "x").unwrap();
                set(&data.join(name), 0o600);
            }
            assert!(own(&data).is_empty());
            for name in ["lock", "other", "admin-url"] {
                set(&data.join(name), 0o666);
            }
            assert!(own(&data).is_empty(), "nothing is in them");
            set(&data, 0o750);
            set(&data.join("master.key"), 0o640);
            set(&data.join(DATABASE), 0o604);
            let mends = own(&data);
            assert_eq!(mends.len(), 3, "{mends:?}");
            assert!(
                mends[0].starts_with("chmod 700 '/") && mends[0].ends_with("/it'\\''s data'"),
                "{mends:?}"
            );
            assert!(mends[1].starts_with("chmod 600 ") && mends[1].contains("master.key"), "{mends:?}");
        }

        #[test]
        fn a_directory_that_somebody_else_made_is_as_they_want_it() {
            let folder = tempfile::tempdir().unwrap();
            set(folder.path(), 0o755);
            drop(DataLock::try_take(folder.path()).unwrap().unwrap());
            assert!(own(folder.path()).is_empty());
            set(folder.path(), 0o1777);
            assert!(own(folder.path()).is_empty(), "nobody removes what is another's");
            set(folder.path(), 0o777);
            assert_eq!(own(folder.path()).len(), 1, "anybody could put another key there");
        }

        #[test]
        fn a_link_leads_to_what_is_not_ours() {
            let folder = tempfile::tempdir().unwrap();
            let (data, secret) = (folder.path().join("data"), folder.path().join("secret"));
            fs::create_dir(&data).unwrap();
            set(&data, 0o700);
            fs::write(&secret, "x").unwrap();
            set(&secret, 0o444);
            std::os::unix::fs::symlink(&secret, data.join("master.key")).unwrap();
            assert!(own(&data).is_empty(), "containers mount secrets like this");
            set(&secret, 0o446);
            assert_eq!(own(&data).len(), 1);
        }

        #[test]
        fn of_files_that_are_named_only_those_count_that_anybody_changes() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("secret");
            assert_eq!(anybody_writes(&path), None, "what is not there is told elsewhere");
            fs::write(&path, "x").unwrap();
            for (mode, fine) in [(0o444, true), (0o660, true), (0o602, false), (0o666, false)] {
                set(&path, mode);
                assert_eq!(anybody_writes(&path).is_none(), fine, "{mode:o}");
            }
            assert_eq!(anybody_writes(folder.path()), None, "a directory is no secret");
        }
    }
}
