//! `angelia clock`: whether the clock can be trusted.

use super::answer::Answer;
use crate::remote::Remote;
use crate::show;
use angelia_connector::admin::api;
use angelia_connector::admin::types::Nothing;
use angelia_core::error::Result;
use clap::Subcommand;

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

pub(super) async fn ask(remote: &Remote, command: ClockCommand) -> Result<Answer> {
    Ok(match command {
        ClockCommand::Show => Answer::new(remote.call(api::CLOCK.ask(&Nothing {})?).await?, show::clock),
        ClockCommand::Accept => {
            Answer::new(remote.call(api::ACCEPT_CLOCK.ask(&Nothing {})?).await?, show::accepted_clock)
        }
    })
}
