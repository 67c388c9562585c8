//! What a kept demo remembers between runs: secrets are shown only once, and
//! its links and lines are to stay what they were.

use crate::files::write_private;
use angelia_core::error::{Error, Result};
use angelia_engines::store::sqlite::DataLock;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The file in the demo's directory; only its owner may read it.
const FILE: &str = "demo.json";

/// What is remembered. It has no `Debug`: there is nothing in it to be printed.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kept {
    /// The port of the run before.
    pub(super) port: Option<u16>,
    /// By gateway: the environment that `gateway create` answered.
    pub(super) gateways: BTreeMap<String, Vec<String>>,
    /// By room: the visitor's key.
    pub(super) keys: BTreeMap<String, String>,
}

impl Kept {
    /// Makes a directory the demo's own, or finds that it is, with what the run
    /// before left. One with other things in it is refused: they are somebody's,
    /// perhaps a server's data.
    pub(super) fn claim(folder: &Path) -> Result<Self> {
        if folder.join(FILE).exists() {
            return Ok(Self::load(folder));
        }
        if !is_empty(folder)? {
            return Err(Error::invalid(format!(
                "{} is not empty and not a demo's (it has no {FILE}); name a new or an empty directory \
                 with --keep DIR",
                folder.display()
            )));
        }
        // At once: a run that is cut short may go on the next time. Whoever has the
        // directory meanwhile is told of by the start that follows.
        if let Some(_lock) = DataLock::try_take(folder)? {
            Self::default().store(folder)?;
        }
        Ok(Self::default())
    }

    /// What the run before left; one that cannot be read is no loss, because
    /// everything in it can be made again.
    fn load(folder: &Path) -> Self {
        let text = fs::read_to_string(folder.join(FILE)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub(super) fn store(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        write_private(&folder.join(FILE), &text)
    }
}

/// Whether nothing is in a directory, or there is none.
fn is_empty(folder: &Path) -> Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(true),
        Err(e) => Err(Error::unavailable(format!("cannot look into {}: {e}", folder.display())).caused_by(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_engines::store::sqlite::DATABASE;

    #[test]
    fn a_directory_of_others_is_refused_and_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.txt"), "x").unwrap();
        let refused = Kept::claim(folder.path()).err().unwrap().to_string();
        assert!(refused.contains("is not empty") && refused.contains("--keep DIR"), "{refused}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_run_that_was_cut_short_leaves_a_directory_that_is_taken_again() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("new");
        assert!(Kept::claim(&empty).is_ok());
        fs::write(empty.join(DATABASE), "").unwrap();
        assert!(Kept::claim(&empty).is_ok());
    }
}
