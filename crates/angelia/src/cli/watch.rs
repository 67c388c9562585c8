//! `angelia status --watch`: looks again and again until it is told to stop.

use crate::config::Config;
use crate::remote::{Remote, Reply};
use crate::show;
use angelia_connector::admin::api;
use angelia_connector::admin::types::{Nothing, Status};
use angelia_core::clock;
use angelia_core::error::{Error, Result};
use serde_json::json;
use std::io::IsTerminal;
use std::time::Duration;

/// How often it looks: quick enough to watch a drain, seldom enough to cost nothing.
const EVERY: Duration = Duration::from_secs(2);
/// Goes to the upper left corner and wipes what is below.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows the status until Ctrl-C, or until nobody reads it any more.
///
/// Only a running server is looked at: opening the data directory every two
/// seconds would be in the way of one that wants to start.
pub(super) async fn watch(find: impl Fn() -> Result<Remote>, as_json: bool) -> Result<()> {
    let in_place = !as_json && std::io::stdout().is_terminal();
    let mut stop = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        let status = tokio::select! {
            status = look(&find) => status,
            _ = &mut stop => return Ok(()),
        };
        let text = if as_json { line(&status) } else { page(&status, in_place) };
        if !show::heard(&text)? {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            _ = &mut stop => return Ok(()),
        }
    }
}

/// The server that runs now.
pub(super) fn running(config: &Config) -> Result<Remote> {
    let data_dir = config.server.data_dir.display();
    Remote::running(config)?.ok_or_else(|| Error::unavailable(format!("no server is running on {data_dir}")))
}

async fn look(find: impl Fn() -> Result<Remote>) -> Result<Reply<Status>> {
    let remote = find()?;
    remote.call(api::STATUS.ask(&Nothing {})?).await
}

fn line(status: &Result<Reply<Status>>) -> String {
    match status {
        Ok(status) => format!("{}\n", status.value),
        Err(error) => format!("{}\n", json!({ "error": error.to_string() })),
    }
}

fn page(status: &Result<Reply<Status>>, in_place: bool) -> String {
    let read = status.as_ref().and_then(|reply| reply.read.as_ref());
    let body = match read {
        Ok(status) => show::status(status),
        Err(error) => format!("{error}; trying again every {} s\n", EVERY.as_secs()),
    };
    let at = show::moment(clock::wall());
    if in_place { format!("{CLEAR}{at}\n{body}") } else { format!("{at}\n{body}\n") }
}
