//! `angelia compact`: done by the command itself, while no server runs.

use super::answer::Answer;
use crate::config::Config;
use crate::open;
use crate::presence::{self, Holder};
use crate::show::{self, Compacted};
use angelia_core::error::{Error, Result};
use angelia_engines::store::sqlite;

pub(super) async fn compact(config: &Config, as_json: bool) -> Result<()> {
    let data_dir = &config.server.data_dir;
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
