//! `angelia gateway`: agents that may dial in.

use super::request::Answer;
use crate::remote::Remote;
use crate::show;
use angelia_connector::admin::types::{ChangeGateway, CreateGateway, Gateway, Nothing, RotateGateway};
use angelia_connector::admin::{Endpoint, NAMED, api};
use angelia_core::error::Result;
use angelia_core::turns::WhileBusy;
use clap::builder::{PossibleValuesParser, TypedValueParser};
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
        /// What people see it called: in the web chat, and in what the server itself says of it.
        #[arg(long, value_name = "NAME")]
        display_name: Option<String>,
        /// What becomes of messages while it is busy, where their route says nothing.
        #[arg(long, value_name = "MODE", value_parser = while_busy())]
        while_busy: Option<WhileBusy>,
        /// Says that it is set to share sessions in groups: all people of a group are one conversation with it.
        #[arg(long)]
        shared_groups: bool,
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
        angelia gateway set gw-office --wake-url ''    (takes it away)\n  \
        angelia gateway set gw-office --while-busy collect --shared-groups"
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
    /// What people see it called: in the web chat, and in what the server itself says of it. An empty one takes it away.
    #[arg(long, value_name = "NAME")]
    display_name: Option<String>,
    /// The inbox it serves; of several gateways with one inbox, the last that dialled receives.
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
    /// What becomes of messages while it is busy, where their route says nothing.
    #[arg(long, value_name = "MODE", value_parser = while_busy())]
    while_busy: Option<WhileBusy>,
    /// Whether it is set to share sessions in groups: all people of a group are one conversation with it.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    shared_groups: Option<bool>,
}

/// Reads what becomes of messages while an agent is busy.
pub(super) fn while_busy() -> impl TypedValueParser<Value = WhileBusy> {
    PossibleValuesParser::new(WhileBusy::ALL.map(WhileBusy::as_str)).try_map(|word| word.parse())
}

pub(super) async fn ask(remote: &Remote, command: GatewayCommand) -> Result<Answer> {
    let act = |endpoint: Endpoint<NAMED, ChangeGateway, Gateway>, Named { id, tenant }: Named| {
        endpoint.ask(&id, &ChangeGateway { tenant, ..ChangeGateway::default() })
    };
    match command {
        GatewayCommand::Create {
            id: gateway_id,
            tenant,
            wake_url,
            display_name,
            while_busy,
            shared_groups,
        } => {
            let tenant = Some(tenant);
            let gateway =
                CreateGateway { tenant, gateway_id, wake_url, display_name, while_busy, shared_groups };
            Answer::of(remote, api::CREATE_GATEWAY.ask(&gateway), show::created_gateway).await
        }
        GatewayCommand::List => Answer::of(remote, api::GATEWAYS.ask(&Nothing {}), show::gateways).await,
        GatewayCommand::Show(named) => Answer::of(remote, act(api::GATEWAY, named), show::gateway).await,
        GatewayCommand::Set { gateway: Named { id, tenant }, change } => {
            let Change { wake_url, display_name, instance, while_busy, shared_groups } = change;
            let change =
                ChangeGateway { tenant, wake_url, display_name, instance, while_busy, shared_groups };
            Answer::of(remote, api::SET_GATEWAY.ask(&id, &change), show::gateway).await
        }
        GatewayCommand::Default(named) => {
            Answer::of(remote, act(api::DEFAULT_GATEWAY, named), show::gateway).await
        }
        GatewayCommand::Rotate { gateway: Named { id, tenant }, now } => {
            let rotate = RotateGateway { tenant, now };
            Answer::of(remote, api::ROTATE_GATEWAY.ask(&id, &rotate), show::created_gateway).await
        }
        GatewayCommand::Revoke(Named { id, tenant }) => {
            let named = ChangeGateway { tenant, ..ChangeGateway::default() };
            Answer::of(remote, api::REVOKE_GATEWAY.ask(&id, &named), show::revoked_gateway).await
        }
    }
}
