//! `angelia client` and `angelia enroll-token`: how agents enroll themselves.

use super::request::Answer;
use crate::config::{Config, parse_duration};
use crate::remote::Remote;
use crate::show;
use angelia_connector::admin::api;
use angelia_connector::admin::types::{CreateClient, MintToken, Nothing, OfTenant};
use angelia_core::error::Result;
use clap::{Args, Subcommand};
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(super) enum ClientCommand {
    /// Makes an OAuth client with which agents of a tenant prove whose they are.
    ///
    /// hermes-agent from 0.19 on fetches a token with it and enrolls or
    /// provisions itself. The secret is shown once.
    #[command(after_help = "Example:\n  angelia client create --tenant acme")]
    Create {
        /// Whose agents.
        #[arg(long)]
        tenant: String,
    },
    /// Lists the clients.
    #[command(after_help = "Example:\n  angelia client list --tenant acme")]
    List {
        /// Only those of this tenant.
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Makes a new secret for a client; the old one is void at once.
    ///
    /// The client stays the same: agents that enrolled with it stay enrolled, and
    /// may go on with the new secret. The secret is shown once.
    #[command(after_help = "Example:\n  angelia client rotate client-2f6c")]
    Rotate {
        /// Its id.
        id: String,
    },
    /// Shuts a client out, with the tokens it has. Agents that are enrolled stay.
    #[command(after_help = "Example:\n  angelia client revoke client-2f6c")]
    Revoke {
        /// Its id.
        id: String,
    },
}

/// A token for one enrollment.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  angelia enroll-token --tenant acme\n  \
    angelia enroll-token --tenant acme --gateway gw-office --expires 10m")]
pub(super) struct EnrollToken {
    /// Whose agent.
    #[arg(long)]
    tenant: String,
    /// The only gateway it is good for; one that exists gets a new secret.
    #[arg(long, value_name = "ID")]
    gateway: Option<String>,
    /// How long it is good: 10m, 1h, 1d.
    #[arg(long, value_name = "TIME", value_parser = time)]
    expires: Option<Duration>,
}

fn time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).filter(|time| time.as_secs() > 0);
    time.ok_or_else(|| "not a time of a second or more; write something like 10m, 1h or 1d".to_owned())
}

pub(super) async fn ask(remote: &Remote, command: ClientCommand) -> Result<Answer> {
    match command {
        ClientCommand::Create { tenant } => {
            let client = CreateClient { tenant };
            Answer::of(remote, api::CREATE_CLIENT.ask(&client), show::created_client).await
        }
        ClientCommand::List { tenant } => {
            Answer::of(remote, api::CLIENTS.ask(&OfTenant { tenant }), show::clients).await
        }
        ClientCommand::Rotate { id } => {
            Answer::of(remote, api::ROTATE_CLIENT.ask(&id, &Nothing {}), show::rotated_client).await
        }
        ClientCommand::Revoke { id } => {
            let revoke = api::REVOKE_CLIENT.ask(&id, &Nothing {});
            Answer::of(remote, revoke, |_| show::revoked_client(&id)).await
        }
    }
}

pub(super) async fn enroll_token(
    remote: &Remote,
    config: Option<&Config>,
    wanted: EnrollToken,
) -> Result<Answer> {
    let EnrollToken { tenant, gateway, expires } = wanted;
    let token = MintToken { tenant, gateway, expires_in: expires.map(|expires| expires.as_secs()) };
    let known = config.map(|config| config.server.public_url(config.server.listen));
    Answer::of(remote, api::MINT_TOKEN.ask(&token), |answer| {
        show::enroll_token(answer, known.as_ref().unwrap_or(&answer.url))
    })
    .await
}
