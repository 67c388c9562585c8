//! Moving to PostgreSQL, and what is done there instead of our own commands.

use super::{harmless, plural};
use crate::config::Config;
use crate::files::absolute;
use angelia_engines::store::postgres::DatabaseUrl;
use angelia_engines::store::sqlite::DATABASE;
use angelia_engines::store::transfer::Progress;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Everything that was moved.
#[derive(Serialize)]
pub(crate) struct Migrated {
    pub(crate) rows: u64,
    pub(crate) tables: Vec<MovedTable>,
    /// Texts in which a character was replaced.
    pub(crate) replaced: u64,
    /// Without its password.
    pub(crate) url: String,
    /// Whether it needs one.
    pub(crate) password: bool,
    /// Whether the configuration names it already.
    pub(crate) is_configured: bool,
    pub(crate) shelved: PathBuf,
    pub(crate) moved_before: bool,
}

/// One table of it.
#[derive(Serialize)]
pub(crate) struct MovedTable {
    pub(crate) table: String,
    pub(crate) rows: u64,
}

/// How far it is.
pub(crate) fn moving(progress: Progress<'_>) -> String {
    match progress {
        Progress::Checking => format!("looking through {DATABASE}"),
        Progress::Copying { table, done, rows, all_done, all } => {
            let percent = all_done.saturating_mul(100) / all.max(1);
            format!("{table}: {done} of {} ({percent} % of everything)", plural(rows, "row"))
        }
        Progress::Finishing => "counting everything on both sides".into(),
    }
}

pub(crate) fn migrated(made: &Migrated) -> String {
    let url = harmless(&made.url);
    let mut text = if made.moved_before {
        format!("A run before this one moved everything to {url} already, and nothing changed since.\n")
    } else {
        let tables = plural(made.tables.len() as u64, "table");
        format!("{} of {tables} are in {url}, counted on both sides.\n", plural(made.rows, "row"))
    };
    if made.replaced > 0 {
        text += &format!(
            "{} held a character that PostgreSQL cannot keep (NUL); U+FFFD stands for it.\n",
            plural(made.replaced, "text")
        );
    }
    text += &format!(
        "The SQLite file is {} now: nothing in it was changed, and it is not needed any more.\n\n",
        made.shelved.display()
    );
    if made.is_configured {
        text += "Next: angelia serve\n";
    } else {
        let password = if made.password {
            "password = { env = \"ANGELIA_DB_PASSWORD\" }   # or wherever it is kept\n"
        } else {
            ""
        };
        text += &format!(
            "Next, in angelia.toml:\n\n[store]\nurl = \"{url}\"\n{password}\nand then: angelia serve\n"
        );
    }
    text
}

/// How a database that is not ours to copy is copied, and what else belongs to it.
pub(crate) fn backup_elsewhere(config: &Config, url: &DatabaseUrl, file: &Path) -> String {
    let key = match &config.keys.master {
        Some(reference) => format!("what keys.master refers to, {reference}"),
        None => absolute(&config.server.data_dir.join("master.key")).display().to_string(),
    };
    format!(
        "the store is in PostgreSQL, which is copied by its own means, beside a running server: pg_dump \
         --format=custom --file={} '{url}'. That holds everything but the master key, {key}: keep a copy of it \
         apart, without it nobody can use the secrets in the dump, you included",
        file.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_engines::store::sqlite::MOVED;

    #[test]
    fn the_next_step_is_told() {
        let made = Migrated {
            rows: 2,
            tables: vec![MovedTable { table: "notes".into(), rows: 2 }],
            replaced: 1,
            url: "postgres://u@h/x".into(),
            password: true,
            is_configured: false,
            shelved: MOVED.into(),
            moved_before: false,
        };
        let text = migrated(&made);
        assert!(text.starts_with("2 rows of 1 table are in postgres://u@h/x, counted"), "{text}");
        assert!(text.contains("1 text held") && text.contains(MOVED), "{text}");
        assert!(text.contains("[store]\nurl = \"postgres://u@h/x\"\npassword = {"), "{text}");
        let text = migrated(&Migrated { is_configured: true, moved_before: true, replaced: 0, ..made });
        assert!(text.contains("moved everything") && text.ends_with("Next: angelia serve\n"), "{text}");
    }

    #[test]
    fn a_backup_is_told_with_the_key_and_without_the_password() {
        let url: DatabaseUrl = "postgres://u:hunter2@h/x".parse().unwrap();
        let text = backup_elsewhere(&Config::default(), &url, Path::new("/backups/x.dump"));
        assert!(text.contains("--file=/backups/x.dump 'postgres://u@h/x'"), "{text}");
        assert!(text.contains("angelia-data/master.key") && !text.contains("hunter2"), "{text}");
    }
}
