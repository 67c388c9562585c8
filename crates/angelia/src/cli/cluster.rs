//! `angelia cluster`: several nodes on one store.

use super::request::Answer;
use crate::remote::Remote;
use crate::show;
use angelia_connector::admin::api;
use angelia_connector::admin::types::Nothing;
use angelia_core::error::Result;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(super) enum ClusterCommand {
    /// Shows which nodes there are, what each of them does, and what is wrong.
    ///
    /// Any node answers. LAST SIGN is when a node said last that it is there, which
    /// it does twice a second; after three seconds of silence the others do what it
    /// did. BUS says whether it hears the others at once, by Redis, or within a
    /// second, by the database. BEHIND counts changes of who is known here that
    /// others know of and it does not yet.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  angelia cluster status\n  \
        angelia cluster status --server http://127.0.0.1:8788 --token-file admin-token --json"
    )]
    Status,
}

pub(super) async fn ask(remote: &Remote, command: ClusterCommand) -> Result<Answer> {
    let ClusterCommand::Status = command;
    Answer::of(remote, api::CLUSTER.ask(&Nothing {}), show::cluster).await
}
