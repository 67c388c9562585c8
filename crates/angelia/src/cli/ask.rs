//! Commands that ask a server, running or not.

use super::Command;
use super::words::{GatewayCommand, InboxCommand, Named, RouteCommand, TenantCommand, WebchatCommand, Which};
use crate::config::Config;
use crate::remote::Remote;
use crate::show;
use angelia_core::error::{Error, Kind, Result};
use serde_json::{Value, json};

/// Asks, and shows the answer.
pub(super) async fn ask(config: Config, command: Command, as_json: bool) -> Result<()> {
    let makes = matches!(
        command,
        Command::Gateway(GatewayCommand::Create { .. })
            | Command::Tenant(TenantCommand::Create { .. })
            | Command::Route(RouteCommand::Add { .. })
            | Command::Webchat(WebchatCommand::Invite { .. })
    );
    let remote = Remote::open(&config, makes).await?;
    let (answer, show): (Value, fn(&Value) -> String) = match command {
        Command::Tenant(TenantCommand::Create { name }) => {
            (remote.post("/admin/tenants", &json!({ "tenant": name })).await?, show::created_tenant)
        }
        Command::Tenant(TenantCommand::List) => (remote.get("/admin/tenants").await?, show::tenants),
        Command::Route(command) => route(&remote, command).await?,
        Command::Gateway(command) => gateway(&remote, command).await?,
        Command::Status => (remote.get("/admin/status").await?, show::status),
        Command::Explain { message } => {
            let path = format!("/admin/explain/{}", path_segment(&message)?);
            (remote.get(&path).await?, show::story)
        }
        Command::Webchat(WebchatCommand::Invite { room, user, gateway, tenant }) => {
            let body = json!({ "room": room, "user": user, "gateway": gateway, "tenant": tenant });
            (remote.post("/admin/webchat/invites", &body).await?, show::invitation)
        }
        Command::Inbox(command) => inbox(&remote, command).await?,
        Command::Demo { .. } | Command::Serve { .. } | Command::Config(_) | Command::Contract(_) => {
            return Err(Error::internal("this command asks no server"));
        }
    };
    if as_json { show::text(&format!("{answer}\n")) } else { show::text(&show(&answer)) }
}

async fn gateway(remote: &Remote, command: GatewayCommand) -> Result<(Value, fn(&Value) -> String)> {
    let act = async |verb: &str, named: Named, wake_url: Option<String>| {
        let path = format!("/admin/gateways/{}/{verb}", path_segment(&named.id)?);
        remote.post(&path, &json!({ "tenant": named.tenant, "wake_url": wake_url })).await
    };
    Ok(match command {
        GatewayCommand::Create { id, tenant, wake_url } => {
            let body = json!({ "tenant": tenant, "gateway_id": id, "wake_url": wake_url });
            (remote.post("/admin/gateways", &body).await?, show::created_gateway)
        }
        GatewayCommand::List => (remote.get("/admin/gateways").await?, show::gateways),
        GatewayCommand::Show(named) => (act("show", named, None).await?, show::gateway),
        GatewayCommand::Set { gateway, wake_url } => {
            (act("set", gateway, Some(wake_url)).await?, show::gateway)
        }
        GatewayCommand::Default(named) => (act("default", named, None).await?, show::gateway),
        GatewayCommand::Rotate(named) => (act("rotate", named, None).await?, show::created_gateway),
        GatewayCommand::Revoke(named) => (act("revoke", named, None).await?, show::revoked_gateway),
    })
}

async fn route(remote: &Remote, command: RouteCommand) -> Result<(Value, fn(&Value) -> String)> {
    Ok(match command {
        RouteCommand::Add { place, tenant, gateway, allow, free } => {
            let body =
                json!({ "place": place, "tenant": tenant, "gateway": gateway, "allow": allow, "free": free });
            (remote.post("/admin/routes", &body).await?, show::added_route)
        }
        RouteCommand::List => (remote.get("/admin/routes").await?, show::routes),
        RouteCommand::Remove { place } => {
            (remote.post("/admin/routes/remove", &json!({ "place": place })).await?, show::removed_route)
        }
    })
}

async fn inbox(remote: &Remote, command: InboxCommand) -> Result<(Value, fn(&Value) -> String)> {
    let body = |entry: &Option<String>, which: &Which| json!({ "entry": entry, "gateway": which.gateway, "tenant": which.tenant });
    Ok(match command {
        InboxCommand::List { which, dead: false } => {
            (remote.get(&query("/admin/inbox", None, &which, false)?).await?, show::inboxes)
        }
        InboxCommand::List { which, dead: true } => {
            (remote.get(&query("/admin/inbox/entries", None, &which, true)?).await?, show::entries)
        }
        InboxCommand::Show { entry, which, dead } => {
            (remote.get(&query("/admin/inbox/entries", entry, &which, dead)?).await?, show::entries)
        }
        InboxCommand::Redrive { entry, which } => {
            (remote.post("/admin/inbox/redrive", &body(&entry, &which)).await?, show::redriven)
        }
        InboxCommand::Purge { entry, which } => {
            (remote.post("/admin/inbox/purge", &body(&entry, &which)).await?, show::purged)
        }
    })
}

fn query(path: &str, entry: Option<String>, which: &Which, dead: bool) -> Result<String> {
    let mut url = url::Url::parse("http://admin").map_err(|e| Error::internal(e.to_string()))?;
    let optional = [("entry", &entry), ("gateway", &which.gateway), ("tenant", &which.tenant)];
    for (name, value) in optional {
        if let Some(value) = value {
            url.query_pairs_mut().append_pair(name, value);
        }
    }
    url.query_pairs_mut().append_pair("dead", if dead { "true" } else { "false" });
    Ok(format!("{path}?{}", url.query().unwrap_or_default()))
}

/// Message ids of platforms may hold anything; a path may not.
fn path_segment(text: &str) -> Result<String> {
    let mut url = url::Url::parse("http://admin").map_err(|e| Error::internal(e.to_string()))?;
    if text.is_empty() || text == "." || text == ".." {
        return Err(Error::new(Kind::Invalid, format!("{text:?} is not a message id")));
    }
    url.path_segments_mut().map_err(|()| Error::internal("no path"))?.push(text);
    Ok(url.path().trim_start_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_the_path() {
        assert_eq!(path_segment("a/b c?d").unwrap(), "a%2Fb%20c%3Fd");
        assert!(path_segment("..").is_err());
    }
}
