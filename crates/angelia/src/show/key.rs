//! Keys, backups and the audit log.

use super::{moment, rows, table, word};
use angelia_engines::store::sqlite::DATABASE_FILES;
use serde_json::Value;
use std::fmt::Write as _;

pub(crate) fn key(answer: &Value) -> String {
    let mut text =
        format!("The master key is {}. Everything sealed with it opens:\n", word(answer, "key_id"));
    for row in rows(answer, "sealed") {
        let _ = writeln!(text, "{:>6}  {}", word(row, "count"), word(row, "kind"));
    }
    if let Some(old) = answer["retiring_key_id"].as_str() {
        let _ = writeln!(
            text,
            "A change of keys is not finished: the old key, {old}, is kept in the database until it is. A server \
             that runs\ngoes on by itself; angelia key rotate finishes it too."
        );
    }
    text
}

/// What does not open, each by its name, and what to do about it.
pub(crate) fn unreadable(answer: &Value) -> String {
    let mut text = format!("not everything sealed opens with the key {}:\n", word(answer, "key_id"));
    for row in rows(answer, "damaged") {
        let (kind, name) = (word(row, "kind"), word(row, "name"));
        let what = format!("{kind} {name}");
        let _ = writeln!(text, "  {}: {}", what.trim_end(), word(row, "error"));
    }
    text.push_str(
        "Restore a backup together with its key, or make what is lost anew: a gateway gets another secret \
         with angelia gateway rotate --now",
    );
    text
}

pub(crate) fn rotated_key(answer: &Value) -> String {
    let mut text = format!(
        "The master key is {} now, and {} values are sealed with it. Nobody was disconnected.\n\
         Backups made before need the old key, {}: keep a copy of it for as long as you keep them.\n",
        word(answer, "key_id"),
        answer["resealed"],
        word(answer, "old_key_id"),
    );
    if answer["old_erased"] == false {
        text.push_str(
            "Something is reading the database: values under the old key go from its log when that is done.\n",
        );
    }
    if let Some(step) = answer["next_step"].as_str() {
        let _ = writeln!(text, "To do: {step}");
    }
    text
}

pub(crate) fn rotated_admin_token() -> String {
    "The admin token is a new one; it is in the data directory, file admin-token. The old one is void.\n"
        .into()
}

pub(crate) fn audit(answer: &Value) -> String {
    let rows = rows(answer, "audit");
    if rows.is_empty() {
        return "nothing\n".into();
    }
    let cells = rows.iter().map(|row| {
        let fields = ["actor", "action", "tenant", "target", "outcome", "detail"].map(|name| word(row, name));
        [vec![moment(&row["at"])], fields.to_vec()].concat()
    });
    table(&["AT", "ACTOR", "ACTION", "TENANT", "TARGET", "OUTCOME", "DETAIL"], cells)
}

/// How far a copy is.
pub(crate) fn copied(written: u64, expected: u64) -> String {
    let percent = written.saturating_mul(100) / expected.max(1);
    format!("copied {} of about {} ({percent} %)", size(written), size(expected))
}

pub(crate) fn backup(answer: &Value) -> String {
    let [database, log, index] = DATABASE_FILES;
    let key = match answer["key_id"].as_str() {
        Some(key) => format!(
            "It does not hold the master key, {key}, and is of no use without it: keep a copy of that key,\n\
             apart from this file.\n"
        ),
        None => String::new(),
    };
    format!(
        "{file} is a good copy of the database, {size}.\n{key}\n\
         To restore it: stop the server; remove {database}, {log} and {index} from\n\
         {data_dir}; copy {file} there as {database}, with the master key beside it; start the server.\n",
        file = word(answer, "file"),
        size = size(answer["bytes"].as_u64().unwrap_or_default()),
        data_dir = word(answer, "data_dir"),
    )
}

pub(crate) fn compacted(answer: &Value) -> String {
    let part = |name: &str| size(answer[name].as_u64().unwrap_or_default());
    format!(
        "The database was written anew: {} before, {} now. From here on it shrinks by itself.\n",
        part("before"),
        part("after")
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
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rotation_says_what_is_left_to_do() {
        let mut answer = json!({
            "old_key_id": "aaaa", "key_id": "bbbb", "resealed": 3, "old_erased": true, "next_step": null,
        });
        let done = rotated_key(&answer);
        assert!(done.contains("bbbb") && done.contains("aaaa") && !done.contains("To do"), "{done}");
        answer["next_step"] = "point keys.master there".into();
        answer["old_erased"] = false.into();
        let more = rotated_key(&answer);
        assert!(more.contains("To do: point keys.master there") && more.contains("from its log"), "{more}");
    }

    #[test]
    fn a_change_that_is_not_finished_is_told() {
        let mut answer = json!({ "key_id": "bbbb", "retiring_key_id": null, "sealed": [] });
        assert!(!key(&answer).contains("not finished"));
        answer["retiring_key_id"] = "aaaa".into();
        let text = key(&answer);
        assert!(text.contains("aaaa") && text.contains("angelia key rotate"), "{text}");
    }

    #[test]
    fn what_does_not_open_is_named() {
        let text = unreadable(&json!({ "key_id": "a1b2", "unreadable": 2, "damaged": [
            { "kind": "secret of a gateway", "name": "acme/gw", "error": "damaged" },
            { "kind": "key check", "name": null, "error": "moved" },
        ]}));
        assert!(text.contains("  secret of a gateway acme/gw: damaged\n"), "{text}");
        assert!(text.contains("  key check: moved\n") && text.contains("a1b2"), "{text}");
    }

    #[test]
    fn a_backup_names_the_key_it_needs() {
        let answer = json!({ "file": "/b/x.db", "bytes": 5 << 20, "key_id": "a1b2", "data_dir": "/data" });
        let text = backup(&answer);
        for part in ["/b/x.db", "5 MiB", "a1b2", "/data", DATABASE_FILES[1]] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(copied(512 * 1024, 2 << 20), "copied 512 KiB of about 2 MiB (25 %)");
    }
}
