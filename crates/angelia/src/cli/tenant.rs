//! `angelia tenant`: customers, and as whom issuers of tokens know them.

use super::request::Answer;
use crate::remote::Remote;
use crate::show;
use angelia_connector::admin::api;
use angelia_connector::admin::types::{CreateTenant, Link, Nothing, RemoveTenant, TenantCounts};
use angelia_core::error::{Error, Result};
use clap::{Args, Subcommand};
use std::io::{BufRead, IsTerminal, Write};

#[derive(Debug, Subcommand)]
pub(super) enum TenantCommand {
    /// Makes a tenant.
    ///
    /// What people write to it from now on waits for its first gateway. Agents that bring a token
    /// of an identity provider of yours belong to the tenant that the token's claim is linked to:
    /// name both to link it at once.
    #[command(after_help = "Examples:\n  angelia tenant create acme\n  \
        angelia tenant create acme --issuer https://id.example.org/ --claim 8f14e45f")]
    Create {
        /// Its name.
        name: String,
        /// An issuer of [[identity.oidc]], or the portal's account URL.
        #[arg(long, value_name = "URL", requires = "claim")]
        issuer: Option<String>,
        /// What tokens of that issuer say where they mean this tenant.
        #[arg(long, value_name = "VALUE", requires = "issuer")]
        claim: Option<String>,
    },
    /// Lists the tenants, and as whom issuers know them.
    #[command(after_help = "Example:\n  angelia tenant list")]
    List,
    /// Lets tokens of an issuer prove a tenant.
    #[command(after_help = "Example:\n  \
        angelia tenant link acme --issuer https://id.example.org/ --claim 8f14e45f")]
    Link(TenantLink),
    /// Takes that back; agents that are enrolled stay.
    #[command(after_help = "Example:\n  \
        angelia tenant unlink acme --issuer https://id.example.org/ --claim 8f14e45f")]
    Unlink(TenantLink),
    /// Removes a tenant and everything of it, for good.
    ///
    /// Its agents are shut out, its routes and clients go, and so do messages
    /// that wait for it. Asks for the name again before it does.
    #[command(after_help = "Examples:\n  angelia tenant remove acme\n  \
        angelia tenant remove acme --confirm acme    (in scripts)")]
    Remove {
        /// Its name.
        name: String,
        /// The name again, where nobody can be asked.
        #[arg(long, value_name = "NAME")]
        confirm: Option<String>,
    },
}

/// A tenant as an issuer knows it.
#[derive(Args, Debug)]
pub(super) struct TenantLink {
    /// The tenant.
    name: String,
    /// The issuer, letter by letter as in its tokens.
    #[arg(long, value_name = "URL")]
    issuer: String,
    /// What its tokens say where they mean this tenant.
    #[arg(long, value_name = "VALUE")]
    claim: String,
}

impl TenantCommand {
    /// Refuses what would have to be asked where nobody can be.
    pub(super) fn check_terminal(&self) -> Result<()> {
        match self {
            Self::Remove { name, confirm: None } if !std::io::stdin().is_terminal() => {
                Err(Error::invalid(format!(
                    "removing a tenant has to be confirmed, and there is no terminal to ask on; add: --confirm {name}"
                )))
            }
            _ => Ok(()),
        }
    }
}

pub(super) async fn ask(remote: &Remote, command: TenantCommand) -> Result<Answer> {
    match command {
        TenantCommand::Create { name, issuer, claim } => {
            let tenant = CreateTenant { tenant: name, issuer, claim };
            Answer::of(remote, api::CREATE_TENANT.ask(&tenant), show::created_tenant).await
        }
        TenantCommand::List => Answer::of(remote, api::TENANTS.ask(&Nothing {}), show::tenants).await,
        TenantCommand::Link(TenantLink { name, issuer, claim }) => {
            let link = Link { issuer, claim };
            Answer::of(remote, api::LINK_TENANT.ask(&name, &link), |_| show::linked(&name, &link)).await
        }
        TenantCommand::Unlink(TenantLink { name, issuer, claim }) => {
            let link = Link { issuer, claim };
            Answer::of(remote, api::UNLINK_TENANT.ask(&name, &link), |_| show::unlinked(&name, &link)).await
        }
        TenantCommand::Remove { name, confirm } => remove(remote, &name, confirm).await,
    }
}

async fn remove(remote: &Remote, name: &str, confirm: Option<String>) -> Result<Answer> {
    let confirm = match confirm {
        Some(confirm) => confirm,
        None => {
            let counts = remote.call(api::TENANT.ask(name, &Nothing {})?).await?;
            type_again(&counts.read?, &mut std::io::stdin().lock(), &mut std::io::stderr())?
        }
    };
    if confirm != name {
        return Err(Error::invalid(format!("{confirm:?} is not {name:?}: nothing was removed")));
    }
    let remove = api::REMOVE_TENANT.ask(name, &RemoveTenant { confirm });
    Answer::of(remote, remove, |answer| show::removed_tenant(name, answer)).await
}

/// Says what will go, and takes what the operator types.
fn type_again(counts: &TenantCounts, from: &mut dyn BufRead, to: &mut dyn Write) -> Result<String> {
    let failed =
        |e: std::io::Error| Error::internal(format!("the terminal cannot be used: {e}")).caused_by(e);
    write!(to, "{}", show::about_to_remove(counts)).and_then(|()| to.flush()).map_err(failed)?;
    let mut line = String::new();
    from.read_line(&mut line).map_err(failed)?;
    Ok(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use angelia_core::store::TenantBelongings;

    #[test]
    fn the_operator_sees_what_goes_before_typing() {
        let has = TenantBelongings { gateways: 2, routes: 3, clients: 1, waiting: 40 };
        let counts = TenantCounts { tenant: "acme".into(), has };
        let mut shown = Vec::new();
        assert_eq!(type_again(&counts, &mut "acme \n".as_bytes(), &mut shown).unwrap(), "acme");
        let shown = String::from_utf8(shown).unwrap();
        for part in ["acme", "2 gateways", "3 routes", "1 client", "40 messages"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert_eq!(type_again(&counts, &mut "".as_bytes(), &mut Vec::new()).unwrap(), "");
    }
}
