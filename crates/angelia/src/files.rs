//! Small files of the data directory that only their owner may read.

use angelia_core::error::{Error, Result};
use angelia_core::secret::random_hex;
use angelia_engines::store::sqlite::DataLock;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes a file, whole or not at all, over the one of that name.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let write = || Draft::new(path, text)?.rename();
    write().map(drop).map_err(|e| cannot(path, e))
}

/// The same for a name that nobody has; one who has it already keeps it.
pub(crate) fn create_private(path: &Path, text: &str) -> Result<()> {
    let create = || Draft::new(path, text)?.link();
    create().map_err(|e| cannot(path, e))
}

/// Writes a file over the one of that name and keeps a lock on it. Whoever
/// finds a file of this name locked reads what the holder of the lock wrote:
/// it is locked before it gets its name.
pub(crate) fn write_locked(path: &Path, text: &str) -> Result<File> {
    let write = || {
        let draft = Draft::new(path, text)?;
        draft.file.lock()?;
        draft.rename()
    };
    write().map_err(|e| cannot(path, e))
}

/// A file before it gets its name; gone again unless it does.
struct Draft<'a> {
    path: PathBuf,
    wanted: &'a Path,
    file: File,
}

impl<'a> Draft<'a> {
    fn new(wanted: &'a Path, text: &str) -> io::Result<Self> {
        let name = wanted.file_name().unwrap_or_default().to_string_lossy();
        // A name of its own: two who write at once must not write into one file.
        let path = wanted.with_file_name(format!(".{name}.{}.new", random_hex::<4>()));
        let mut options = File::options();
        options.create_new(true).write(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let mut draft = Self { file: options.open(&path)?, path, wanted };
        writeln!(draft.file, "{text}")?;
        draft.file.sync_all()?;
        Ok(draft)
    }

    /// Takes the name, from another file if need be.
    fn rename(self) -> io::Result<File> {
        fs::rename(&self.path, self.wanted)?;
        sync_folder(self.wanted)?;
        self.file.try_clone()
    }

    /// Takes the name if it is free.
    fn link(self) -> io::Result<()> {
        match fs::hard_link(&self.path, self.wanted) {
            // Not every file system has links; then a look has to do.
            Err(e)
                if e.kind() != io::ErrorKind::AlreadyExists && fs::symlink_metadata(self.wanted).is_err() =>
            {
                fs::rename(&self.path, self.wanted)?;
            }
            other => other?,
        }
        sync_folder(self.wanted)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Names of which a process that was killed may have left drafts.
const DRAFTED: [&str; 6] =
    ["master.key", "master.key.next", "admin-token", "admin-url", "demo.json", crate::sealed_mark::MARK];

/// Removes drafts that a process left which was killed before it gave them
/// their names; there may be a key in them. Hold the lock of the directory: who
/// has it writes here, and nobody else.
pub(crate) fn sweep_drafts(lock: &DataLock) {
    let folder = lock.data_dir();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_file = entry.file_type().is_ok_and(|it| it.is_file());
        if is_file && entry.file_name().to_str().is_some_and(is_draft) {
            match fs::remove_file(entry.path()) {
                Ok(()) => {
                    tracing::info!(file = %entry.path().display(), "removed what a killed process left")
                }
                Err(error) => tracing::warn!(file = %entry.path().display(), %error, "cannot be removed"),
            }
        }
    }
}

/// Whether it is a name that [`Draft::new`] gives.
fn is_draft(name: &str) -> bool {
    let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(".new"));
    inner.and_then(|inner| inner.rsplit_once('.')).is_some_and(|(wanted, random)| {
        let random = random.len() == 8 && random.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        random && DRAFTED.contains(&wanted)
    })
}

/// Whether a file in this directory that is made for its owner stays its
/// owner's: some file systems, and some mounts, know no modes. If that cannot
/// be found out, it is taken to be so.
#[cfg(unix)]
pub(crate) fn keeps_modes(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let wanted = folder.join(crate::sealed_mark::MARK);
    let kept = || Ok::<bool, io::Error>(Draft::new(&wanted, "")?.file.metadata()?.mode() & 0o077 == 0);
    kept().unwrap_or(true)
}

/// A directory for a while, which goes with everything in it when this is
/// dropped. Whoever needs it makes it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// One for `what`, that nobody else has.
    pub(crate) fn new(what: &str) -> Self {
        Self(std::env::temp_dir().join(format!("angelia-{what}-{}", random_hex::<8>())))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A path that means the same wherever it is read.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The name has to survive a power cut as well.
fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn cannot(path: &Path, error: io::Error) -> Error {
    Error::unavailable(format!("cannot write {}: {error}", path.display())).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_engines::store::sqlite::DATABASE;

    #[test]
    fn only_drafts_of_ours_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let lock = DataLock::try_take(folder.path()).unwrap().unwrap();
        let kept = [
            ".master.key.0123abcd.new.old",
            ".master.key.0123ABCD.new",
            ".master.key.0123abc.new",
            ".notes.0123abcd.new",
            "master.key.0123abcd.new",
            &format!(".{DATABASE}.0123abcd.partial"),
            "master.key",
            "lock",
        ];
        for name in kept {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        fs::create_dir(folder.path().join(".admin-token.0123abcd.new")).unwrap();
        let drafts: Vec<PathBuf> = DRAFTED
            .iter()
            .map(|name| {
                std::mem::ManuallyDrop::new(Draft::new(&folder.path().join(name), "x").unwrap()).path.clone()
            })
            .collect();
        assert!(drafts.iter().all(|path| path.exists()));
        sweep_drafts(&lock);
        assert!(drafts.iter().all(|path| !path.exists()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), kept.len() + 1);
    }

    #[test]
    fn a_name_that_is_taken_is_kept_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        create_private(&path, "first").unwrap();
        assert!(create_private(&path, "second").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "first\n");
        write_private(&path, "third").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "third\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
