//! Keys, backups and the audit log.

use super::{harmless, moment, perhaps, table};
use angelia_connector::admin::types::{Audit, KeyCheck, RotatedKey};
use angelia_engines::store::sqlite::DATABASE_FILES;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

pub(crate) fn key(answer: &KeyCheck) -> String {
    let mut text =
        format!("The master key is {}. Everything sealed with it opens:\n", harmless(&answer.key_id));
    for row in &answer.sealed {
        let _ = writeln!(text, "{:>6}  {}", row.count, harmless(&row.kind));
    }
    if let Some(old) = &answer.retiring_key_id {
        let _ = writeln!(
            text,
            "A change of keys is not finished: the old key, {old}, is kept in the database until it is. A server \
             that runs\ngoes on by itself; angelia key rotate finishes it too."
        );
    }
    text
}

/// What does not open, each by its name, and what to do about it.
pub(crate) fn unreadable(answer: &KeyCheck) -> String {
    let mut text = format!("not everything sealed opens with the key {}:\n", harmless(&answer.key_id));
    for row in &answer.damaged {
        let what = format!("{} {}", harmless(&row.kind), perhaps(&row.name));
        let _ = writeln!(text, "  {}: {}", what.trim_end(), harmless(&row.error));
    }
    text.push_str(
        "Restore a backup together with its key, or make what is lost anew: a gateway gets another secret \
         with angelia gateway rotate --now",
    );
    text
}

pub(crate) fn rotated_key(answer: &RotatedKey) -> String {
    let mut text = format!(
        "The master key is {} now, and {} values are sealed with it. Nobody was disconnected.\n\
         Backups made before need the old key, {}: keep a copy of it for as long as you keep them.\n",
        harmless(&answer.key_id),
        answer.resealed,
        perhaps(&answer.old_key_id),
    );
    if !answer.old_erased {
        text.push_str(
            "Values under the old key may still be in the log of the database: SQLite's goes once nobody reads the \
             database any more, PostgreSQL's when it has been vacuumed and its log written over.\n",
        );
    }
    if let Some(step) = &answer.next_step {
        let _ = writeln!(text, "To do: {step}");
    }
    text
}

pub(crate) fn rotated_admin_token() -> String {
    "The admin token is a new one; it is in the data directory, file admin-token. The old one is void.\n"
        .into()
}

pub(crate) fn audit(answer: &Audit) -> String {
    if answer.audit.is_empty() {
        return "nothing\n".into();
    }
    let cells = answer.audit.iter().map(|line| {
        let words = [&line.actor, &line.action, &line.tenant, &line.target, &line.outcome, &line.detail];
        [vec![moment(line.at)], words.map(|word| harmless(word)).to_vec()].concat()
    });
    table(&["AT", "ACTOR", "ACTION", "TENANT", "TARGET", "OUTCOME", "DETAIL"], cells)
}

/// A copy of the database that was made.
#[derive(Serialize)]
pub(crate) struct Backup {
    pub(crate) file: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) schema_version: i64,
    pub(crate) key_id: Option<String>,
    pub(crate) data_dir: PathBuf,
    pub(crate) files: FilesOfBackup,
}

/// The files that people and agents sent, which the database tells of.
#[derive(Serialize)]
pub(crate) struct FilesOfBackup {
    pub(crate) blobs: u64,
    pub(crate) bytes: u64,
    pub(crate) bucket: Option<String>,
    pub(crate) copied: Option<CopiedFiles>,
}

/// Files that were copied with their database.
#[derive(Serialize)]
pub(crate) struct CopiedFiles {
    pub(crate) folder: PathBuf,
    pub(crate) blobs: u64,
    pub(crate) bytes: u64,
    pub(crate) gone: u64,
}

impl FilesOfBackup {
    /// Whether they are in it, and what to do with them.
    fn told(&self, data_dir: &str) -> String {
        let all = format!("{} files, {}", self.blobs, size(self.bytes));
        match (&self.copied, &self.bucket) {
            (Some(copied), _) => {
                let gone = match copied.gone {
                    0 => String::new(),
                    gone => format!(" {gone} more went meanwhile, as they were past their time."),
                };
                let folder = harmless(&copied.folder.to_string_lossy());
                format!(
                    "Files are in it: {} of them, {}, sealed, in {folder}.{gone}\n\
                     To restore them: copy {folder} to {data_dir}/media.\n",
                    copied.blobs,
                    size(copied.bytes)
                )
            }
            (None, _) if self.blobs == 0 => String::new(),
            (None, Some(bucket)) => {
                format!("Files are not in it: {all}, which rest in {}.\n", harmless(bucket))
            }
            (None, None) => format!("Files are not in it: {all}. With --with-media they are.\n"),
        }
    }
}

/// A database that was written anew, in bytes.
#[derive(Serialize)]
pub(crate) struct Compacted {
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// How far a copy is.
pub(crate) fn copied(written: u64, expected: u64) -> String {
    let percent = written.saturating_mul(100) / expected.max(1);
    format!("copied {} of about {} ({percent} %)", size(written), size(expected))
}

pub(crate) fn backup(made: &Backup) -> String {
    let [database, log, index] = DATABASE_FILES;
    let key = match &made.key_id {
        Some(key) => format!(
            "It does not hold the master key, {key}, and is of no use without it: keep a copy of that key,\n\
             apart from this file.\n"
        ),
        None => String::new(),
    };
    let data_dir = harmless(&made.data_dir.to_string_lossy());
    format!(
        "{file} is a good copy of the database, {size}.\n{key}{files}\n\
         To restore it: stop the server; remove {database}, {log} and {index} from\n\
         {data_dir}; copy {file} there as {database}, with the master key beside it; start the server.\n",
        file = harmless(&made.file.to_string_lossy()),
        size = size(made.bytes),
        files = made.files.told(&data_dir),
    )
}

pub(crate) fn compacted(made: &Compacted) -> String {
    format!(
        "The database was written anew: {} before, {} now. From here on it shrinks by itself.\n",
        size(made.before),
        size(made.after)
    )
}

pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..=1_048_575 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{} MiB", bytes.div_ceil(1024 * 1024)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rotation_says_what_is_left_to_do() {
        let mut answer = json!({
            "old_key_id": "aaaa", "key_id": "bbbb", "resealed": 3, "old_erased": true, "next_step": null,
        });
        let done = rotated_key(&read(answer.clone()));
        assert!(done.contains("bbbb") && done.contains("aaaa") && !done.contains("To do"), "{done}");
        answer["next_step"] = "point keys.master there".into();
        answer["old_erased"] = false.into();
        let more = rotated_key(&read(answer));
        assert!(
            more.contains("To do: point keys.master there") && more.contains("the log of the database"),
            "{more}"
        );
    }

    #[test]
    fn a_change_that_is_not_finished_is_told() {
        let mut answer = json!({ "key_id": "bbbb", "retiring_key_id": null, "sealed": [] });
        assert!(!key(&read(answer.clone())).contains("not finished"));
        answer["retiring_key_id"] = "aaaa".into();
        let text = key(&read(answer));
        assert!(text.contains("aaaa") && text.contains("angelia key rotate"), "{text}");
    }

    #[test]
    fn what_does_not_open_is_named() {
        let text = unreadable(&read(json!({ "key_id": "a1b2", "unreadable": 2, "damaged": [
            { "kind": "secret of a gateway", "name": "acme/gw", "error": "damaged" },
            { "kind": "key check", "name": null, "error": "moved" },
        ]})));
        assert!(text.contains("  secret of a gateway acme/gw: damaged\n"), "{text}");
        assert!(text.contains("  key check: moved\n") && text.contains("a1b2"), "{text}");
    }

    #[test]
    fn a_backup_names_the_key_it_needs() {
        let (bytes, key_id) = (5 << 20, Some("a1b2".to_owned()));
        let (file, data_dir) = ("/b/x.db".into(), "/data".into());
        let files = FilesOfBackup { blobs: 2, bytes: 3 << 20, bucket: None, copied: None };
        let mut made = Backup { file, bytes, schema_version: 1, key_id, data_dir, files };
        let text = backup(&made);
        for part in ["/b/x.db", "5 MiB", "a1b2", "/data", DATABASE_FILES[1]] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.contains("Files are not in it: 2 files, 3 MiB. With --with-media they are."), "{text}");
        made.files.bucket = Some("s3://relay".into());
        assert!(backup(&made).contains("2 files, 3 MiB, which rest in s3://relay."));
        let folder = "/b/x.db.media".into();
        made.files.copied = Some(CopiedFiles { folder, blobs: 1, bytes: 2 << 20, gone: 1 });
        let text = backup(&made);
        assert!(
            text.contains("Files are in it: 1 of them, 2 MiB, sealed, in /b/x.db.media. 1 more went"),
            "{text}"
        );
        assert!(text.contains("copy /b/x.db.media to /data/media."), "{text}");
        assert_eq!(copied(512 * 1024, 2 << 20), "copied 512 KiB of about 2 MiB (25 %)");
    }
}
