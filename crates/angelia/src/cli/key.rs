//! `angelia key`, `angelia admin-token`, `angelia clock` and `angelia audit`: what the rest relies on.

use super::request::Answer;
use crate::remote::Remote;
use crate::show;
use angelia_connector::admin::api;
use angelia_connector::admin::types::{AuditWanted, Nothing, RotateKey};
use angelia_core::error::{Error, Result};
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Opens everything that is sealed with the master key, and counts it.
    #[command(after_help = "Example:\n  angelia key check")]
    Check,
    /// Changes the master key and wraps everything anew with it; nobody waits, nobody is disconnected.
    ///
    /// Backups made before still need the old key: keep a copy of it for as long
    /// as you keep them. With the key file of the data directory a new key is
    /// made and put in its place. With keys.master configured, write the new key
    /// to a file first and name it; point keys.master at it afterwards. The server
    /// reads the file, so with --server it is on its machine.
    ///
    /// Several nodes change it together: each has the new key before anybody seals
    /// with it. The answer names what is left to do on which node.
    #[command(after_help = "Examples:\n  angelia key rotate\n  \
        openssl rand -hex 32 > next.key && angelia key rotate --to next.key")]
    Rotate {
        /// The file with the new key: 64 hexadecimal digits.
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum AdminTokenCommand {
    /// Makes a new token for the admin API; the old one is void at once.
    ///
    /// It is in the data directory, file admin-token, where commands find it by
    /// themselves.
    #[command(after_help = "Example:\n  angelia admin-token rotate")]
    Rotate,
}

#[derive(Debug, Subcommand)]
pub(super) enum ClockCommand {
    /// Shows the time, and whether the clock has leapt.
    #[command(after_help = "Example:\n  angelia clock show")]
    Show,
    /// Says that the clock is right as it is now.
    ///
    /// After a leap of the clock nothing is dropped for its age until it is where
    /// it is expected again, or until you say this. Look at the time first: also
    /// a server that was off for days finds a clock that is ahead. What waits is
    /// no older by a leap, so nothing is lost by accepting one.
    #[command(after_help = "Example:\n  angelia clock accept")]
    Accept,
}

#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Lists who changed what, and who was refused; the newest first.
    #[command(after_help = "Example:\n  angelia audit list --tenant acme --limit 20")]
    List {
        /// Only what concerns this tenant.
        #[arg(long)]
        tenant: Option<String>,
        /// How many lines.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        limit: Option<u32>,
    },
}

pub(super) async fn key(remote: &Remote, command: KeyCommand) -> Result<Answer> {
    Ok(match command {
        KeyCommand::Check => {
            let check = remote.call(api::KEY.ask(&Nothing {})?).await?;
            if let Ok(read) = &check.read
                && read.unreadable > 0
            {
                return Err(Error::internal(show::unreadable(read)));
            }
            Answer::new(check, show::key)
        }
        KeyCommand::Rotate { to } => {
            // The server may run in another directory.
            let absolute = |file: PathBuf| {
                let made = std::path::absolute(&file);
                made.map_err(|e| {
                    Error::invalid(format!("{} is not a path: {e}", file.display())).caused_by(e)
                })
            };
            let rotate = RotateKey { file: to.map(absolute).transpose()? };
            Answer::new(remote.call_patiently(api::ROTATE_KEY.ask(&rotate)?).await?, show::rotated_key)
        }
    })
}

pub(super) async fn admin_token(remote: &Remote, command: AdminTokenCommand) -> Result<Answer> {
    let AdminTokenCommand::Rotate = command;
    Answer::of(remote, api::ROTATE_TOKEN.ask(&Nothing {}), |_| show::rotated_admin_token()).await
}

pub(super) async fn clock(remote: &Remote, command: ClockCommand) -> Result<Answer> {
    match command {
        ClockCommand::Show => Answer::of(remote, api::CLOCK.ask(&Nothing {}), show::clock).await,
        ClockCommand::Accept => {
            Answer::of(remote, api::ACCEPT_CLOCK.ask(&Nothing {}), show::accepted_clock).await
        }
    }
}

pub(super) async fn audit(remote: &Remote, command: AuditCommand) -> Result<Answer> {
    let AuditCommand::List { tenant, limit } = command;
    let wanted = AuditWanted { tenant, limit: limit.map(|limit| limit as usize) };
    Answer::of(remote, api::AUDIT.ask(&wanted), show::audit).await
}
