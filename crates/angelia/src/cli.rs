//! The command line: nouns, then verbs.

use crate::config::{self, Config};
use crate::contract_cli::{self, ContractCommand};
use crate::remote::Remote;
use crate::{demo, serve, show};
use angelia_core::clock;
use angelia_core::error::{Error, Kind, Result};
use clap::{Args, Parser, Subcommand};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Connects people on chat platforms to AI agents that dial in.
///
/// Try it without any account:  angelia demo
#[derive(Debug, Parser)]
#[command(name = "angelia", version, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 server unreachable.")]
pub struct Cli {
    /// The configuration file; without it angelia.toml here, or the defaults.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Answers in JSON, for scripts.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a server with an agent that echoes, to try things out; leaves no trace.
    Demo {
        /// Keeps the data, in this directory, instead of throwing it away.
        #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "angelia-demo")]
        keep: Option<PathBuf>,
    },
    /// Runs the server until it is told to stop.
    Serve {
        /// Listens beyond this machine without TLS.
        #[arg(long)]
        insecure: bool,
    },
    /// Looks at the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Customers: whose agents and places these are.
    #[command(subcommand)]
    Tenant(TenantCommand),
    /// Which place belongs to which tenant, and who may speak there.
    #[command(subcommand)]
    Route(RouteCommand),
    /// Agents that may dial in.
    #[command(subcommand)]
    Gateway(GatewayCommand),
    /// What waits for agents.
    #[command(subcommand)]
    Inbox(InboxCommand),
    /// The built-in web chat.
    #[command(subcommand)]
    Webchat(WebchatCommand),
    /// Shows how the server is doing.
    Status,
    /// Tells which way a message took, and when.
    Explain {
        /// The message's id, or an inbox entry such as b123.
        message: String,
    },
    /// The rules of the relay contract, for scripts and other languages.
    #[command(subcommand)]
    Contract(ContractCommand),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Says whether the configuration is good, and everything that is wrong with it.
    Check,
    /// Prints the configuration in force; secrets appear as references.
    Print {
        /// Prints the commented default file instead.
        #[arg(long)]
        default: bool,
    },
}

#[derive(Debug, Subcommand)]
enum TenantCommand {
    /// Makes a tenant.
    Create {
        /// Its name.
        name: String,
    },
    /// Lists the tenants.
    List,
}

#[derive(Debug, Subcommand)]
enum RouteCommand {
    /// Gives a place to a tenant, or to one of its gateways.
    #[command(after_help = "Example:\n  angelia route add --tenant acme --allow any webchat:lab")]
    Add {
        /// The place: platform:path, for example webchat:lab or webchat:*.
        place: String,
        /// Whose place it is.
        #[arg(long)]
        tenant: String,
        /// The gateway that answers there, if not the tenant's default.
        #[arg(long, value_name = "ID")]
        gateway: Option<String>,
        /// Who may speak there: user ids, or the word any.
        #[arg(long, value_name = "any|ID,…", value_delimiter = ',')]
        allow: Vec<String>,
        /// Delivers messages that do not address the bot too.
        #[arg(long)]
        free: bool,
    },
    /// Lists the routes.
    List,
    /// Takes a place away again.
    Remove {
        /// The place.
        place: String,
    },
}

#[derive(Debug, Subcommand)]
enum GatewayCommand {
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
    List,
}

#[derive(Args, Debug, Default)]
struct Which {
    /// Only the inbox of this gateway.
    #[arg(long, value_name = "ID")]
    gateway: Option<String>,
    /// The gateway's tenant, where ids collide.
    #[arg(long)]
    tenant: Option<String>,
}

#[derive(Debug, Subcommand)]
enum InboxCommand {
    /// Lists what waits: a line per gateway, or dead letters.
    List {
        #[command(flatten)]
        which: Which,
        /// Lists dead letters: entries on which three connections ended.
        #[arg(long)]
        dead: bool,
    },
    /// Shows the entries of one gateway's inbox, or one entry; never their text.
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
    Redrive {
        /// One entry; without it all dead letters.
        entry: Option<String>,
        #[command(flatten)]
        which: Which,
    },
    /// Throws dead letters away for good.
    Purge {
        /// One entry, dead or waiting; without it all dead letters.
        entry: Option<String>,
        #[command(flatten)]
        which: Which,
    },
}

#[derive(Debug, Subcommand)]
enum WebchatCommand {
    /// Makes a personal key for somebody to write in a room.
    Invite {
        /// The room.
        #[arg(long)]
        room: String,
        /// The person's name in it.
        #[arg(long)]
        user: String,
        /// The gateway that answers in this room, if not the default one.
        #[arg(long, value_name = "ID")]
        gateway: Option<String>,
        /// The tenant the room belongs to.
        #[arg(long)]
        tenant: Option<String>,
    },
}

/// Runs a command; what it cannot do is said on standard error and in the exit code.
pub fn run(cli: Cli) -> ExitCode {
    angelia_connector::edge::install_tls_provider();
    let json = cli.json;
    match dispatch(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let text = if json {
                json!({ "error": error.to_string() }).to_string()
            } else {
                format!("angelia: {error}")
            };
            let _ = writeln!(std::io::stderr(), "{text}");
            ExitCode::from(error.kind().exit_code())
        }
    }
}

fn dispatch(cli: Cli) -> Result<()> {
    if let Command::Contract(command) = &cli.command {
        let now = || clock::wall().seconds();
        return contract_cli::run(command, now, std::io::stdin().lock(), std::io::stdout().lock())
            .map_err(|e| Error::internal(e.to_string()));
    }
    if let Command::Config(ConfigCommand::Print { default: true }) = &cli.command {
        return show::text(config::DEFAULT_FILE);
    }
    let config = Config::load(cli.config.as_deref(), config::environment())
        .map_err(|faults| Error::invalid(faults.to_string()))?;
    match cli.command {
        Command::Contract(_) => Ok(()),
        Command::Config(ConfigCommand::Print { .. }) => show::text(&config.print()),
        Command::Config(ConfigCommand::Check) => {
            config.check_exposure(false).map_err(|faults| Error::invalid(faults.to_string()))?;
            show::text("the configuration is good\n")
        }
        Command::Serve { insecure } => runtime()?.block_on(serve::serve(config, insecure)),
        Command::Demo { keep } => runtime()?.block_on(demo::demo(config, keep)),
        other => runtime()?.block_on(ask(config, other, cli.json)),
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Runtime::new().map_err(|e| Error::internal(format!("cannot start: {e}")))
}

/// Commands that ask a server, running or not.
async fn ask(config: Config, command: Command, as_json: bool) -> Result<()> {
    let makes = matches!(
        command,
        Command::Gateway(GatewayCommand::Create { .. })
            | Command::Tenant(TenantCommand::Create { .. })
            | Command::Route(RouteCommand::Add { .. })
            | Command::Webchat(WebchatCommand::Invite { .. })
    );
    let remote = Remote::open(&config, makes).await?;
    let (answer, show): (Value, fn(&Value) -> String) = match command {
        Command::Gateway(GatewayCommand::Create { id, tenant, wake_url }) => {
            let body = json!({ "tenant": tenant, "gateway_id": id, "wake_url": wake_url });
            (remote.post("/admin/gateways", &body).await?, show::created_gateway)
        }
        Command::Tenant(TenantCommand::Create { name }) => {
            (remote.post("/admin/tenants", &json!({ "tenant": name })).await?, show::created_tenant)
        }
        Command::Tenant(TenantCommand::List) => (remote.get("/admin/tenants").await?, show::tenants),
        Command::Route(command) => route(&remote, command).await?,
        Command::Gateway(GatewayCommand::List) => (remote.get("/admin/gateways").await?, show::gateways),
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
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn globals_may_stand_anywhere() {
        let cli = Cli::try_parse_from(["angelia", "gateway", "create", "--json", "gw", "--config", "x.toml"])
            .unwrap();
        assert!(cli.json && cli.config.is_some());
    }

    #[test]
    fn ids_survive_the_path() {
        assert_eq!(path_segment("a/b c?d").unwrap(), "a%2Fb%20c%3Fd");
        assert!(path_segment("..").is_err());
    }
}
