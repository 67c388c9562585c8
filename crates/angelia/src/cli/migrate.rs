//! `angelia migrate`: everything from the SQLite file to PostgreSQL, while no server runs.

use super::request::Answer;
use crate::config::{Config, StoreUrl};
use crate::presence::{self, Holder};
use crate::show::{self, Migrated, MovedTable};
use crate::{file_permissions, open};
use angelia_core::error::{Error, Result};
use angelia_engines::store::postgres::{DatabaseUrl, Options, UrlError};
use angelia_engines::store::transfer::{self, Progress};
use clap::Args;
use std::io::{IsTerminal, Write};

#[derive(Debug, Args)]
pub(super) struct Migrate {
    /// Where it is now.
    #[arg(long, value_name = "WHAT", default_value = "sqlite", value_parser = ["sqlite"])]
    from: String,
    /// The empty database; without it the one of store.url.
    #[arg(long, value_name = "URL")]
    to: Option<String>,
}

pub(super) async fn migrate(config: &Config, wanted: &Migrate, as_json: bool) -> Result<()> {
    let options = target(config, wanted)?;
    let data_dir = &config.server.data_dir;
    // Looking must not make a data directory.
    if !open::has_data(data_dir) {
        return Err(Error::not_found(format!(
            "{} holds no {} database; check server.data_dir. An empty PostgreSQL database needs nothing moved: \
             set store.url and start",
            data_dir.display(),
            wanted.from
        )));
    }
    let Holder::Us(lock) = presence::find(data_dir).await? else {
        return Err(Error::conflict(
            "the server runs: stop it first, and leave it off until everything is moved",
        ));
    };
    file_permissions::check(config, false)?;
    let mut teller = Teller::new(as_json);
    let moved = transfer::to_postgres(&lock, &options, &mut |progress| teller.tell(progress)).await;
    teller.end();
    let moved = moved?;
    let tables = moved.tables.iter().map(|(table, rows)| MovedTable { table: table.clone(), rows: *rows });
    let made = Migrated {
        rows: moved.tables.iter().map(|(_, rows)| rows).sum(),
        tables: tables.collect(),
        replaced: moved.replaced,
        url: options.url.to_string(),
        password: options.url.has_password(),
        is_configured: matches!(&config.store.url, StoreUrl::Postgres(url) if url.to_string() == options.url.to_string()),
        shelved: moved.shelved,
        moved_before: moved.before,
    };
    Answer::own(&made, show::migrated)?.show(as_json)
}

/// The database that is meant, with its password.
fn target(config: &Config, wanted: &Migrate) -> Result<Options> {
    match (&wanted.to, config.store.postgres()?) {
        (Some(to), _) => {
            let url: DatabaseUrl =
                to.parse().map_err(|error: UrlError| Error::invalid(format!("--to {error}")))?;
            config.store.at(url)
        }
        (None, Some(options)) => Ok(options),
        (None, None) => Err(Error::invalid(
            "name the database with --to URL, such as --to postgres://angelia@db.example.org/angelia, or set \
             store.url to it",
        )),
    }
}

/// Says how far it is: in one line of a terminal, or a line for each table and each tenth.
struct Teller {
    quiet: bool,
    in_place: bool,
    /// The tenths of everything that were told of.
    tenths: u64,
    /// Whether a line of a terminal is begun.
    begun: bool,
}

impl Teller {
    fn new(quiet: bool) -> Self {
        Self { quiet, in_place: std::io::stderr().is_terminal(), tenths: 0, begun: false }
    }

    fn tell(&mut self, progress: Progress<'_>) {
        if self.quiet || !(self.in_place || self.is_news(progress)) {
            return;
        }
        let line = show::moving(progress);
        let line = if self.in_place { format!("\r{line}\x1b[K") } else { format!("{line}\n") };
        self.begun = true;
        // What goes wrong with the telling is no reason to stop.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    /// Whether it is worth a line: a table that has arrived, or a tenth of everything.
    fn is_news(&mut self, progress: Progress<'_>) -> bool {
        let Progress::Copying { done, rows, all_done, all, .. } = progress else { return true };
        let tenths = all_done.saturating_mul(10) / all.max(1);
        let more = tenths > self.tenths;
        self.tenths = tenths;
        rows > 0 && (more || done == rows)
    }

    fn end(&self) {
        if self.in_place && self.begun {
            let _ = writeln!(std::io::stderr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_with_every_table_and_every_tenth() {
        let mut teller = Teller { quiet: false, in_place: false, tenths: 0, begun: false };
        let mut told = |done, rows, all_done| {
            teller.is_news(Progress::Copying { table: "journal", done, rows, all_done, all: 100 })
        };
        let news = [told(0, 0, 0), told(0, 50, 0), told(5, 50, 5), told(10, 50, 10), told(15, 50, 15)];
        assert_eq!(news, [false, false, false, true, false]);
        assert!(told(50, 50, 50) && told(1, 1, 51) && !told(0, 49, 51));
    }
}
