//! `angelia gateway`: agents that may dial in.

use super::answer::Answer;
use crate::remote::Remote;
use crate::show;
use angelia_connector::admin::types::{ChangeGateway, CreateGateway, Gateway, Nothing, RotateGateway};
use angelia_connector::admin::{self, Endpoint, api};
use angelia_core::error::Result;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(super) enum GatewayCommand {
    /// Makes an id and a secret for an agent, and prints the lines it needs.
    #[command(after_help = "Example:\n  angelia gateway create --tenant acme gw-office")]
    Create {
        /// The gateway id; made up if not given.
        id: Option<String>,
        /// Whose agent it is.
        #[arg(long, default_value = "default")]
        tenant: String,
        /// Where to poke it when it sleeps and something waits.
        #[arg(long, value_name = "URL")]
        wake_url: Option<String>,
    },
    /// Lists the gateways.
    #[command(after_help = "Example:\n  angelia gateway list")]
    List,
    /// Shows one gateway.
    #[command(after_help = "Example:\n  angelia gateway show gw-office")]
    Show(Named),
    /// Changes what a gateway cannot tell us itself.
    #[command(
        after_help = "Examples:\n  angelia gateway set gw-office --wake-url https://wake.example/gw\n  \
        angelia gateway set gw-office --wake-url ''    (takes it away)"
    )]
    Set {
        #[command(flatten)]
        gateway: Named,
        #[command(flatten)]
        change: Change,
    },
    /// Makes this gateway the one that receives what no route assigns to another.
    #[command(after_help = "Example:\n  angelia gateway default gw-office")]
    Default(Named),
    /// Makes a new secret; the one before stays good for 24 hours, unless --now.
    #[command(after_help = "Examples:\n  angelia gateway rotate gw-office\n  \
        angelia gateway rotate gw-office --now    (the secret leaked)")]
    Rotate {
        #[command(flatten)]
        gateway: Named,
        /// Makes every old secret void at once and closes the gateway's connection: only who has the new secret comes back.
        #[arg(long)]
        now: bool,
    },
    /// Shuts a gateway out for good: it is told so, and does not come back by itself.
    #[command(after_help = "Example:\n  angelia gateway revoke gw-office")]
    Revoke(Named),
}

/// One gateway.
#[derive(Args, Debug)]
pub(super) struct Named {
    /// Its id.
    id: String,
    /// Its tenant, where ids collide.
    #[arg(long)]
    tenant: Option<String>,
}

/// What is to change; at least one thing.
#[derive(Args, Debug)]
#[group(required = true, multiple = true)]
pub(super) struct Change {
    /// Where to poke it when it sleeps and something waits; an empty one takes it away.
    #[arg(long, value_name = "URL")]
    wake_url: Option<String>,
    /// What people see it called; an empty one takes it away.
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,
    /// The inbox it serves; of several gateways with one inbox, the last that dialled receives.
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
}

pub(super) async fn ask(remote: &Remote, command: GatewayCommand) -> Result<Answer> {
    let act = async |endpoint: Endpoint<admin::Named, ChangeGateway, Gateway>,
                     Named { id, tenant }: Named| {
        remote.call(endpoint.ask(&id, &ChangeGateway { tenant, ..ChangeGateway::default() })?).await
    };
    Ok(match command {
        GatewayCommand::Create { id, tenant, wake_url } => {
            let gateway =
                CreateGateway { tenant: Some(tenant), gateway_id: id, wake_url, display_name: None };
            Answer::new(remote.call(api::CREATE_GATEWAY.ask(&gateway)?).await?, show::created_gateway)
        }
        GatewayCommand::List => {
            Answer::new(remote.call(api::GATEWAYS.ask(&Nothing {})?).await?, show::gateways)
        }
        GatewayCommand::Show(named) => Answer::new(act(api::GATEWAY, named).await?, show::gateway),
        GatewayCommand::Set { gateway: Named { id, tenant }, change } => {
            let Change { wake_url, display_name, instance } = change;
            let change = ChangeGateway { tenant, wake_url, display_name, instance };
            Answer::new(remote.call(api::SET_GATEWAY.ask(&id, &change)?).await?, show::gateway)
        }
        GatewayCommand::Default(named) => Answer::new(act(api::DEFAULT_GATEWAY, named).await?, show::gateway),
        GatewayCommand::Rotate { gateway: Named { id, tenant }, now } => {
            let rotate = RotateGateway { tenant, now };
            Answer::new(remote.call(api::ROTATE_GATEWAY.ask(&id, &rotate)?).await?, show::created_gateway)
        }
        GatewayCommand::Revoke(named) => {
            Answer::new(act(api::REVOKE_GATEWAY, named).await?, show::revoked_gateway)
        }
    })
}
