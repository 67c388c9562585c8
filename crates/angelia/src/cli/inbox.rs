//! `angelia inbox`: what waits for agents.

use super::request::Answer;
use crate::remote::Remote;
use crate::show;
use angelia_connector::admin::api;
use angelia_connector::admin::types::Selection;
use angelia_core::error::{Error, Result};
use clap::{Args, Subcommand};
use std::io::{BufRead, IsTerminal, Write};

#[derive(Debug, Subcommand)]
pub(super) enum InboxCommand {
    /// Lists what waits: a line per gateway, or dead letters.
    #[command(after_help = "Example:\n  angelia inbox list --dead")]
    List {
        #[command(flatten)]
        which: Which,
        /// Lists dead letters: entries on which three connections ended.
        #[arg(long)]
        dead: bool,
    },
    /// Shows the entries of one gateway's inbox, or one entry; never their text.
    #[command(after_help = "Examples:\n  angelia inbox show --gateway gw-office\n  angelia inbox show b123")]
    Show {
        /// The entry, such as b123.
        entry: Option<String>,
        #[command(flatten)]
        which: Which,
        /// Shows dead letters.
        #[arg(long)]
        dead: bool,
    },
    /// Puts dead letters back in line.
    #[command(after_help = "Example:\n  angelia inbox redrive --gateway gw-office")]
    Redrive {
        /// One entry; without it all dead letters.
        entry: Option<String>,
        #[command(flatten)]
        which: Which,
    },
    /// Throws dead letters away for good.
    #[command(
        after_help = "Examples:\n  angelia inbox purge b123\n  angelia inbox purge --gateway gw-office --yes"
    )]
    Purge {
        /// One entry, dead or waiting; without it all dead letters, after you were asked.
        entry: Option<String>,
        #[command(flatten)]
        which: Which,
        /// Throws all of them away without asking.
        #[arg(long)]
        yes: bool,
    },
}

/// Whose inboxes; everybody's if nothing is said.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Which {
    /// Only the inbox of this gateway.
    #[arg(long, value_name = "ID")]
    gateway: Option<String>,
    /// Only inboxes of this tenant; with --gateway, whose gateway it is.
    #[arg(long)]
    tenant: Option<String>,
}

impl Which {
    fn select(self, entry: Option<String>, dead: bool) -> Selection {
        Selection { entry, gateway: self.gateway, tenant: self.tenant, dead }
    }
}

/// Asks whether so many dead letters are to go; an error if not.
fn confirm(dead: usize) -> Result<()> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::invalid(format!(
            "throwing away all dead letters ({dead} of them) has to be confirmed, and there is no terminal to ask \
             on; add --yes, or name one of them"
        )));
    }
    let failed =
        |e: std::io::Error| Error::internal(format!("the terminal cannot be used: {e}")).caused_by(e);
    let mut to = std::io::stderr();
    write!(to, "{dead} dead letters will be thrown away for good. Type yes to go on: ").map_err(failed)?;
    to.flush().map_err(failed)?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(failed)?;
    if line.trim() == "yes" {
        return Ok(());
    }
    Err(Error::invalid("nothing was thrown away"))
}

pub(super) async fn ask(remote: &Remote, command: InboxCommand) -> Result<Answer> {
    match command {
        InboxCommand::List { which, dead: false } => {
            Answer::of(remote, api::INBOXES.ask(&which.select(None, false)), show::inboxes).await
        }
        InboxCommand::List { which, dead: true } => {
            Answer::of(remote, api::ENTRIES.ask(&which.select(None, true)), show::entries).await
        }
        InboxCommand::Show { entry, which, dead } => {
            Answer::of(remote, api::ENTRIES.ask(&which.select(entry, dead)), show::entries).await
        }
        InboxCommand::Redrive { entry, which } => {
            Answer::of(remote, api::REDRIVE.ask(&which.select(entry, false)), show::redriven).await
        }
        InboxCommand::Purge { entry, which, yes } => {
            if entry.is_none() && !yes {
                let dead = remote.call(api::ENTRIES.ask(&which.clone().select(None, true))?).await?;
                confirm(dead.read?.entries.len())?;
            }
            Answer::of(remote, api::PURGE.ask(&which.select(entry, false)), show::purged).await
        }
    }
}
