//! `angelia backup` and `angelia compact`: done by the command itself, the first whether a server
//! runs or not, the second while none does.

use super::request::Answer;
use crate::config::{Config, StoreUrl};
use crate::open;
use crate::presence::{self, Holder};
use crate::show::{self, Backup, Compacted, CopiedFiles, FilesOfBackup};
use angelia_core::clock::{self, Mono};
use angelia_core::error::{Error, Result};
use angelia_engines::store::sqlite;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A copy that takes longer than this is told of while it is made.
const QUIET_FOR: Duration = Duration::from_secs(2);

pub(super) fn backup(config: &Config, file: &Path, with_media: bool, as_json: bool) -> Result<()> {
    if let StoreUrl::Postgres(url) = &config.store.url {
        return Err(Error::invalid(show::backup_elsewhere(config, url, file)));
    }
    let media = if with_media { Some(folder_of_files(config)?) } else { None };
    let mut teller = Teller { began: clock::mono(), in_place: std::io::stderr().is_terminal(), tenths: None };
    let made = sqlite::backup(&config.server.data_dir, file, media.as_deref(), &mut |written, expected| {
        if !as_json {
            teller.tell(written, expected);
        }
    });
    teller.end();
    let data_dir = config.server.data_dir.clone();
    let sqlite::Backup { bytes, schema_version, key_id, files } = made?;
    let files = FilesOfBackup {
        blobs: files.blobs,
        bytes: files.bytes,
        bucket: config.media.url.as_ref().map(ToString::to_string),
        copied: files.copied.map(|(folder, copied)| CopiedFiles {
            folder,
            blobs: copied.count,
            bytes: copied.bytes,
            gone: copied.gone,
        }),
    };
    let made = Backup { file: file.to_owned(), bytes, schema_version, key_id, data_dir, files };
    Answer::own(&made, show::backup)?.show(as_json)
}

fn folder_of_files(config: &Config) -> Result<PathBuf> {
    match &config.media.url {
        None => Ok(open::media_folder(config)),
        Some(bucket) => Err(Error::invalid(format!(
            "files rest in {bucket}, not on this machine: copy them with the tools of the bucket, after the \
             database; run this without --with-media"
        ))),
    }
}

/// Says how far a long copy is: in one line of a terminal, or a line per tenth.
struct Teller {
    began: Mono,
    in_place: bool,
    /// What was said last.
    tenths: Option<u64>,
}

impl Teller {
    fn tell(&mut self, written: u64, expected: u64) {
        let tenths = written.saturating_mul(10) / expected.max(1);
        if clock::mono().since(self.began) < QUIET_FOR || (!self.in_place && self.tenths == Some(tenths)) {
            return;
        }
        self.tenths = Some(tenths);
        let line = show::copied(written, expected);
        let line = if self.in_place { format!("\r{line}\x1b[K") } else { format!("{line}\n") };
        // What goes wrong with the telling is no reason to stop.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    fn end(&self) {
        if self.in_place && self.tenths.is_some() {
            let _ = writeln!(std::io::stderr());
        }
    }
}

/// Writes the database anew, while no server runs.
pub(super) async fn compact(config: &Config, as_json: bool) -> Result<()> {
    let data_dir = &config.server.data_dir;
    if config.store.is_shared() {
        return Err(Error::invalid(
            "the store is in PostgreSQL, which uses again by itself what is free in it (autovacuum); to give \
             space back to its disk, have its administrator run VACUUM FULL while the server is stopped",
        ));
    }
    // Looking must not make a data directory.
    if !open::has_data(data_dir) {
        return Err(Error::not_found(format!("{} holds no data; check server.data_dir", data_dir.display())));
    }
    let Holder::Us(lock) = presence::find(data_dir).await? else {
        return Err(Error::conflict(
            "the server runs: stop it first. A database that can shrink does so while it runs",
        ));
    };
    let (before, after) = sqlite::compact(&lock)?;
    Answer::own(&Compacted { before, after }, show::compacted)?.show(as_json)
}
